"""RowKernel ridge regression, all columns at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_real
from .._deadline import check_deadline
from .._random import generator
from .._stored import Array, Real, stored
from ..estimator import TableParameters
from .refining import RefiningImputer, RefiningModel
from .standardised import Holes, RowFit, Rows, TrainingSet

_CHUNK = 4096  # rows predicted at a time: their kernel with all known rows is held in memory


@stored(length=Real(above=0))
@dataclass(frozen=True)
class RowKernel:
    """How alike rows are."""

    length: float
    linear: float

    def of(self, rows: Rows, others: Rows, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Between rows, without the ``columns`` that are to be predicted."""
        x, y = np.delete(rows, columns, axis=1), np.delete(others, columns, axis=1)
        products, p = x @ y.T, x.shape[1]
        distance = np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * products, 0)
        kernel = np.exp(distance * (-0.5 / (p * self.length**2)))
        return np.asarray(kernel + (self.linear / p) * products if self.linear else kernel)


@stored(columns=Array("K", index_of="varying"), weights="R K", centre="K", low="K", high="K")
@dataclass(frozen=True)
class Regression:
    """How the rows of a round predict some columns."""

    columns: NDArray[np.int64]  # [K]
    weights: NDArray[np.float64]  # [R, K], 0 for rows in which the columns are missing
    centre: NDArray[np.float64]  # [K]
    low: NDArray[np.float64]  # [K]: predictions stay inside what was observed, for a kernel machine can go astray
    high: NDArray[np.float64]


@stored(rows="R varying")
@dataclass(frozen=True)
class KernelRound:
    """The completed rows that predictions are made from, and the regressions on them."""

    rows: NDArray[np.float64]  # [R, d]
    regressions: list[Regression]

    def __post_init__(self) -> None:
        if any(len(each.weights) != len(self.rows) for each in self.regressions):
            raise ValueError("every row needs a weight")

    def predict(self, kernel: RowKernel, rows: Rows, holes: Holes, deadline: float) -> Rows:
        """Rows with every hole predicted from the other columns."""
        following = rows.copy()
        for each in self.regressions:
            check_deadline(deadline)
            used = np.flatnonzero(each.weights.any(axis=1))
            where = np.flatnonzero(holes[:, each.columns[0]])
            for begin in range(0, len(where), _CHUNK):
                some = where[begin : begin + _CHUNK]
                predicted = each.centre + kernel.of(rows[some], self.rows[used], each.columns) @ each.weights[used]
                following[np.ix_(some, each.columns)] = np.clip(predicted, each.low, each.high)
        return following


@stored()
@dataclass(frozen=True)
class KernelRounds:
    """Rounds of predictions, each from the rows of the one before."""

    kernel: RowKernel
    rounds: list[KernelRound]

    def fill(self, rows: Rows, holes: Holes, deadline: float = math.inf) -> Rows:
        """Rows with better values in their holes."""
        for each in self.rounds:
            rows = each.predict(self.kernel, rows, holes, deadline)
        return rows


@stored()
@dataclass(frozen=True)
class KernelRidgeModel(RefiningModel):
    """Regressions that refine a first guess."""

    method: KernelRounds | None


class KernelRidgeImputer(RefiningImputer):
    """A smooth function per column by kernel ridge regression on the others, from the guess of a Gaussian model.

    The kernel of two rows is ``exp(−‖x − y‖² / (2 p length²)) + linear ⟨x, y⟩ / p`` over the p other columns, standardised. In
    every round all columns are predicted from the table of the round before. New rows go through the same rounds.

    Parameters
    ----------
    length : float, default=1.0
        How far apart rows may be to count as near, in standard deviations per column.
    ridge : float, default=0.1
        Noise assumed in the observed values, as a share of a column's variance.
    linear : float, default=1.0
        Weight of straight relations.
    n_rounds : int, default=2
        Rounds over the columns.
    max_rows : int, default=1500
        Most rows that predictions are made from; time grows with its cube.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result; without effect up to ``max_rows`` rows.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> X = np.column_stack([x, x**2])
    >>> X[20, 1] = np.nan
    >>> bool(abs(KernelRidgeImputer().fit_transform(X)[20, 1] - x[20] ** 2) < 0.1)
    True
    """

    model_class: ClassVar[type] = KernelRidgeModel

    def __init__(
        self,
        *,
        length: float = 1.0,
        ridge: float = 0.1,
        linear: float = 1.0,
        n_rounds: int = 2,
        max_rows: int = 1500,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.length = length
        self.ridge = ridge
        self.linear = linear
        self.n_rounds = n_rounds
        self.max_rows = max_rows
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_real("length", self.length, above=0)
        check_real("ridge", self.ridge, above=0)
        check_real("linear", self.linear, at_least=0)
        check_count("n_rounds", self.n_rounds)
        check_count("max_rows", self.max_rows)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        rows, holes = training.rows, training.holes
        chosen = np.arange(len(rows))
        if len(rows) > self.max_rows:
            chosen = np.sort(generator(training.seed, "rows").choice(len(rows), self.max_rows, replace=False))
        targets, kernel = training.targets(), RowKernel(self.length, self.linear)
        known, known_holes = rows[chosen], holes[chosen]
        rounds: list[KernelRound] = []
        for _ in range(self.n_rounds):
            regressions = [self._regress(kernel, known, known_holes, columns, training.deadline) for columns in targets]
            rounds.append(KernelRound(known, regressions))
            known = rounds[-1].predict(kernel, known, known_holes, training.deadline)
        method = KernelRounds(kernel, rounds)
        return RowFit(method.fill(rows, holes, training.deadline), method)

    def _regress(self, kernel: RowKernel, rows: Rows, holes: Holes, columns: NDArray[np.int64], deadline: float) -> Regression:
        from scipy.linalg import cho_factor, cho_solve

        check_deadline(deadline)
        observed = np.flatnonzero(~holes[:, columns[0]])
        truth = rows[np.ix_(observed, columns)]
        weights = np.zeros((len(rows), len(columns)))
        if len(observed) == 0:  # possible among a sample of the rows
            nothing = np.zeros(len(columns))
            return Regression(columns, weights, nothing, nothing, nothing)
        products = kernel.of(rows[observed], rows[observed], columns)
        products[np.diag_indices(len(observed))] += self.ridge
        centre = truth.mean(axis=0)
        weights[observed] = cho_solve(cho_factor(products, lower=True, overwrite_a=True, check_finite=False), truth - centre)
        return Regression(columns, weights, centre, truth.min(axis=0), truth.max(axis=0))
