"""Imputation by chained equations, using scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_real
from .._row_products import row_products
from .._stored import Array, stored
from ..estimator import TableParameters
from ..fitting import FitSummary
from .standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, TrainingSet


@stored(groups="varying", start="varying", column=Array("S", index_of="varying"), coefficients="S varying", intercept="S")
@dataclass(frozen=True)
class Chain:
    """Linear predictions of one column after the other, from all columns outside its group."""

    groups: NDArray[np.int64]  # [d]
    start: NDArray[np.float64]  # [d]
    column: NDArray[np.int64]  # [S]: the column that each step predicts
    coefficients: NDArray[np.float64]  # [S, d], 0 for the columns not used
    intercept: NDArray[np.float64]  # [S]

    @classmethod
    def of(cls, groups: NDArray[np.int64], fitted: Any) -> Chain:
        """Create a chain from a fitted imputer of scikit-learn."""
        steps = fitted.imputation_sequence_
        coefficients = np.zeros((len(steps), len(groups)))
        for step, place in zip(steps, coefficients, strict=True):
            place[step.neighbor_feat_idx] = step.estimator.coef_
        column = np.array([step.feat_idx for step in steps], dtype=np.int64)
        intercept = np.array([step.estimator.intercept_ for step in steps], dtype=np.float64)
        return cls(groups, fitted.initial_imputer_.statistics_, column, coefficients, intercept)

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Apply the chain, as scikit-learn does."""
        completed = np.where(holes, self.start, rows)
        for column, coefficients, intercept in zip(self.column, self.coefficients, self.intercept, strict=True):
            where = holes[:, column]
            if where.any():
                completed[where, column] = row_products(completed[where], coefficients[:, None])[:, 0] + intercept
        return completed


@stored()
@dataclass(frozen=True)
class ICEModel(StandardisedModel):
    """A chain of regressions."""

    method: Chain | None


class ICEImputer(StandardisedImputer):
    """Impute missing values by chained equations: a ridge regression per column (scikit-learn's IterativeImputer).

    Columns are standardised internally. scikit-learn raises a ``ConvergenceWarning`` when the values have not converged in
    ``max_iter`` rounds, which is common; with few rows and collinear columns the chain can diverge.

    Parameters
    ----------
    max_iter : int, default=10
        Maximum number of rounds over the columns.
    tol : float, default=1e-3
        Stop when no row changes by more than this fraction of the largest value (sum of absolute changes).
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds performed.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)
    >>> X = np.column_stack([x, 2 * x])
    >>> X[4, 1] = np.nan
    >>> ICEImputer().fit_transform(X)[4, 1].round(2)
    np.float64(8.0)
    """

    model_class: ClassVar[type] = ICEModel

    def __init__(
        self,
        *,
        max_iter: int = 10,
        tol: float = 1e-3,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.max_iter = max_iter
        self.tol = tol

    def check_parameters(self) -> None:
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, at_least=0)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        # Ridge regressions are deterministic, so any seed gives the same result.
        chain = chain_without_siblings(training.groups, max_iter=self.max_iter, tol=self.tol, random_state=0)
        completed = np.asarray(chain.fit_transform(np.where(training.holes, np.nan, training.rows)))
        summary = FitSummary(n_steps=max(int(chain.n_iter_), 1))
        return RowFit(completed, Chain.of(training.groups, chain), summary)

    def _publish(self) -> None:
        if self.fit_summary_.n_steps is not None:
            self.n_iter_ = self.fit_summary_.n_steps


def chain_without_siblings(
    groups: NDArray[np.int64], *, max_iter: int, tol: float, random_state: int, estimator: Any = None
) -> Any:
    """Return scikit-learn's imputer, modified so that no column is predicted from others of its group (missing together)."""
    # With a single group there is nothing to predict from, and the columns keep their means.
    rounds = max_iter if len(np.unique(groups)) > 1 else 0
    chain = __getattr__("WithoutSiblings")(estimator, max_iter=rounds, tol=tol, random_state=random_state)
    chain.groups_ = groups
    return chain


@cache
def __getattr__(name: str) -> Any:
    """Create the subclass lazily, as scikit-learn's base class is experimental; pickle looks it up by this name."""
    if name != "WithoutSiblings":
        raise AttributeError(name)
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    def others(self: Any, n_features: int, feat_idx: int, abs_corr_mat: Any) -> NDArray[np.int64]:  # noqa: ARG001
        return np.flatnonzero(self.groups_ != self.groups_[feat_idx])

    return type(name, (IterativeImputer,), {"__module__": __name__, "_get_neighbor_feat_idx": others})
