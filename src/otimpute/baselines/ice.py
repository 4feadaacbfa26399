"""Chained equations, by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_count, check_real
from .._random import generator
from ._standardised import Holes, Rows, StandardisedImputer


class ICEImputer(StandardisedImputer):
    """Imputation by chained equations: ridge regressions, column after column (scikit-learn's IterativeImputer).

    Columns are standardised inside. scikit-learn warns (``ConvergenceWarning``) when the values have not settled in
    ``max_iter`` rounds, which is common; on few rows with collinear columns the chain can run far off.

    Parameters
    ----------
    max_iter : int, default=10
        Most rounds over the columns.
    tol : float, default=1e-3
        Stop when no row moves by more than this share of the largest value (sum of absolute changes).
    random_state : int, Generator, RandomState or None, default=None
        Handed to scikit-learn, where it has no effect on these regressions.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    n_iter_ : int
        Rounds made.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)
    >>> X = np.column_stack([x, 2 * x])
    >>> X[4, 1] = np.nan
    >>> ICEImputer(random_state=0).fit_transform(X)[4, 1].round(2)
    np.float64(8.0)
    """

    def __init__(
        self,
        *,
        max_iter: int = 10,
        tol: float = 1e-3,
        random_state: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
    ):
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers
        self.constraints = constraints
        self.max_categories = max_categories

    def _check_parameters(self) -> None:
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, at_least=0)

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        draw = int(generator(seed, "ice").integers(2**31))
        self._chain = IterativeImputer(max_iter=self.max_iter, tol=self.tol, random_state=draw)
        completed = np.asarray(self._chain.fit_transform(np.where(holes, np.nan, rows)))
        self.n_iter_ = max(int(self._chain.n_iter_), 1)
        return completed

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        # scikit-learn skips the chain when no row of the batch has any value: a row's result would depend on its company.
        with_a_complete_row = np.vstack([np.zeros(rows.shape[1]), np.where(holes, np.nan, rows)])
        return np.asarray(self._chain.transform(with_a_complete_row))[1:]
