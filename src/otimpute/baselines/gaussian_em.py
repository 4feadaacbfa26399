"""A multivariate Gaussian fitted by expectation–maximisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_real
from .._stored import Array, IfThere, Kind, Scalar, Whole
from .._threads import single_blas_thread
from ..gaussian import GaussianModel, fit_gaussian
from ._standardised import Holes, Rows, StandardisedImputer


class GaussianEMImputer(StandardisedImputer):
    """Fill a row's holes with their expectation given its other values, under a Gaussian fitted to the whole table.

    Parameters
    ----------
    prior_rows : float, default=1.0
        Imaginary rows of independent columns added to the table; more of them help small wide tables.
    max_iter : int, default=200
        Most rounds of expectation and maximisation.
    tol : float, default=1e-3
        Stop when the imputed values move by less than this (root mean square, in standard deviations).
    random_state : int, Generator, RandomState or None, default=None
        Without effect; here so that all imputers are made alike.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    mean_, covariance_ : arrays [n_varying], [n_varying, n_varying]
        The Gaussian, of the standardised columns that have more than one distinct value.
    n_iter_ : int
        Rounds made.
    converged_ : bool
        Whether the imputed values had settled.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> X = np.column_stack([x, 2 * x])
    >>> X[4, 1] = np.nan
    >>> abs(GaussianEMImputer(prior_rows=0.01).fit_transform(X)[4, 1] - 8) < 0.1
    np.True_
    """

    _ends_early: ClassVar[bool] = True

    _stored: ClassVar[Mapping[str, Kind]] = {
        "mean_": IfThere(Array("varying", np.float64)),
        "covariance_": IfThere(Array("varying varying", np.float64)),
        "n_iter_": IfThere(Whole()),
        "converged_": IfThere(Scalar(bool)),
    }

    def __init__(
        self,
        *,
        prior_rows: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
    ):
        self.prior_rows = prior_rows
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
        check_real("prior_rows", self.prior_rows, above=0)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, at_least=0)

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:  # noqa: ARG002
        model = fit_gaussian(
            rows, holes, prior_rows=self.prior_rows, tolerance=self.tol, max_iterations=self.max_iter, deadline=self.deadline
        )
        self.mean_, self.covariance_ = model.mean, model.covariance
        self.n_iter_, self.converged_ = model.n_iterations, model.converged
        return model.fill(rows, holes)

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        return self._model.fill(rows, holes)

    @property
    def _model(self) -> GaussianModel:
        return GaussianModel(self.mean_, self.covariance_, self.n_iter_, self.converged_)

    def conditional_std(self, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How far missing entries may lie from their expectation given the rest of their row, in the columns' units.

        These are what the Gaussian says, row by row; columns with one distinct value get 0.
        """
        spread = np.zeros(missing.shape)
        if len(self._varying):
            with single_blas_thread():
                spread[:, self._varying] = self._model.conditional_std(missing[:, self._varying])
        return (spread * self._scaler.unit)[missing]
