"""SoftImpute: low-rank completion by shrinking singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_real
from .._random import generator
from .._row_products import row_products
from .._stored import Real, stored
from ..estimator import TableParameters, hide_cells, score_cells
from ..fitting import FitSummary
from .standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, TrainingSet

# The smallest penalty of the grid, relative to the largest singular value. Below it the solution hardly changes.
_SMALLEST_SHARE = 1e-3
_NUMBERS_AT_A_TIME = 2**22


@stored(loadings="varying K", penalty=Real(above=0))
@dataclass(frozen=True)
class Factors:
    """The completed table as scores times loadings; the scores of a row follow from its observed entries alone."""

    loadings: NDArray[np.float64]  # [d, rank], right singular vectors times roots of the shrunk singular values
    penalty: float

    def __post_init__(self) -> None:
        if self.loadings.shape[1] > self.loadings.shape[0]:
            raise ValueError("the rank exceeds the number of columns")

    @classmethod
    def of(cls, completed: Rows, penalty: float) -> Factors:
        _, singular, right = np.linalg.svd(completed, full_matrices=False)
        kept = np.maximum(singular - penalty, 0)
        return cls(np.ascontiguousarray((right.T * np.sqrt(kept))[:, kept > 0]), penalty)

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        d, rank = self.loadings.shape
        completed = rows.copy()
        if rank == 0:
            return completed
        products = (self.loadings[:, :, None] * self.loadings[:, None, :]).reshape(d, rank * rank)
        at_a_time = max(1, _NUMBERS_AT_A_TIME // rank**2)
        for begin in range(0, len(rows), at_a_time):
            chunk = slice(begin, begin + at_a_time)
            gram = row_products(~holes[chunk], products).reshape(-1, rank, rank) + self.penalty * np.eye(rank)
            scores = np.linalg.solve(gram, row_products(rows[chunk], self.loadings)[:, :, None])[
                :, :, 0
            ]  # missing entries are 0
            completed[chunk][holes[chunk]] = row_products(scores, self.loadings.T)[holes[chunk]]
        return completed


@stored()
@dataclass(frozen=True)
class SoftModel(StandardisedModel):
    """A low-rank model of standardised columns."""

    method: Factors | None


class SoftImputer(StandardisedImputer):
    """Impute missing values by low-rank matrix completion (softimpute: Mazumder, Hastie & Tibshirani, 2010).

    Minimises ``½ Σ (x_ij − m_ij)²`` over the observed entries ``+ penalty · ‖M‖_*`` by iterated soft-thresholding of singular
    values; missing entries are taken from M. A new row is completed by the ridge regression that gives the training rows of M.

    Parameters
    ----------
    penalty : float or "cv", default="cv"
        Weight of the nuclear norm, on standardised columns. ``"cv"`` hides some observed values and chooses, from a geometric
        grid, the penalty that imputes them best, as in the paper.
    n_penalties : int, default=20
        Size of that grid.
    hidden_fraction : float in (0, 1), default=0.1
        Fraction of the observed values to hide for this choice.
    max_iter : int, default=200
        Maximum number of iterations per penalty.
    tol : float, default=1e-4
        Stop when the completed table changes by less than this fraction of its norm.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator that chooses the hidden values. Pass an int for reproducible results.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    penalty_ : float
        Penalty used.
    rank_ : int
        Rank of the completed table; 0 means that missing values are imputed by column means.
    n_iter_ : int
        Number of iterations for the last penalty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) * np.ones(5) + 0.1 * rng.normal(size=(100, 5))
    >>> X_incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> X_imputed = SoftImputer(random_state=0).fit_transform(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[np.isnan(X_incomplete)].mean() < 0.2)
    True
    """

    model_class: ClassVar[type] = SoftModel
    _model: SoftModel

    def __init__(
        self,
        *,
        penalty: float | str = "cv",
        n_penalties: int = 20,
        hidden_fraction: float = 0.1,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.penalty = penalty
        self.n_penalties = n_penalties
        self.hidden_fraction = hidden_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check_parameters(self) -> None:
        if self.penalty != "cv":
            check_real("penalty", self.penalty, above=0, advice='pass "cv" to choose it by hidden values')
        check_count("n_penalties", self.n_penalties, at_least=2, advice="the first penalty of the grid imputes column means")
        check_real("hidden_fraction", self.hidden_fraction, above=0, below=1)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, above=0)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        rows, holes = training.rows, training.holes
        largest = float(np.linalg.norm(rows, 2))
        grid = np.geomspace(largest, _SMALLEST_SHARE * largest, self.n_penalties)
        if self.penalty == "cv":
            penalty = self._choose_penalty(rows, holes, grid, generator(training.seed, "hidden cells"))
        else:
            penalty = float(self.penalty)
        # Each penalty, from strong to weak, starts from the solution of the previous one, which saves iterations.
        path = [*grid[grid > penalty], penalty]
        completed, n_iter = _follow(rows, holes, path, self.max_iter, self.tol)[-1]
        return RowFit(completed, Factors.of(completed, penalty), FitSummary(n_steps=n_iter))

    def _choose_penalty(self, rows: Rows, holes: Holes, grid: NDArray[np.float64], rng: np.random.Generator) -> float:
        hidden = hide_cells(holes, self.hidden_fraction, rng)
        if not hidden.any():  # too few values to spare one
            return float(grid[len(grid) // 2])
        path = _follow(np.where(hidden, 0.0, rows), holes | hidden, grid, self.max_iter, self.tol)
        errors = [score_cells(rows[hidden], completed[hidden])[1] for completed, _ in path]
        return float(grid[int(np.argmin(errors))])

    def _publish(self) -> None:
        factors = self._model.method
        if factors is not None:
            self.penalty_, self.rank_, self.n_iter_ = factors.penalty, factors.loadings.shape[1], self.fit_summary_.n_steps


def _follow(rows: Rows, holes: Holes, path: Any, max_iter: int, tol: float) -> list[tuple[Rows, int]]:
    """Return the completed table and its number of iterations for every penalty of a decreasing path."""
    completed, found = rows, []
    for penalty in path:
        moved, n_iter = np.inf, 0
        while moved > tol * max(float(np.linalg.norm(completed)), 1e-300) and n_iter < max_iter:
            update = np.where(holes, _shrink(completed, penalty), rows)
            moved = float(np.linalg.norm(update - completed))
            completed = update
            n_iter += 1
        found.append((completed, n_iter))
    return found


def _shrink(table: Rows, penalty: float) -> Rows:
    """Shrink every singular value of the table by ``penalty``, using the smaller of its two Gram matrices."""
    tall = table.shape[0] >= table.shape[1]
    squares, vectors = np.linalg.eigh(table.T @ table if tall else table @ table.T)
    singular = np.sqrt(np.maximum(squares, 0))
    kept = singular > penalty
    projection = (vectors[:, kept] * (1 - penalty / singular[kept])) @ vectors[:, kept].T
    return np.asarray(table @ projection if tall else projection @ table)
