"""Kernel ridge regression, all columns at once."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_jobs, check_real
from .._compile import compiled
from .._deadline import check_deadline
from .._device import Device
from .._fast_exp import exp
from .._gpu import check_device
from .._random import generator
from .._stored import Real, stored
from .._threads import ALONE, FEW, Workers, n_threads
from ..estimator import TableParameters
from .refining import RefiningImputer, RefiningModel
from .standardised import Holes, RowFit, Rows, TrainingSet

_CHUNK = 512  # rows that one worker predicts, between two looks at the clock
_FIRST_STEPS = 5  # of k-means; in later rounds, whose rows differ little, one step brings the landmarks up to date
# Noise of the landmarks' own values. Landmarks that lie close together would otherwise get huge weights of opposite signs,
# which cancel to few digits in the float32 of predictions.
_LANDMARK_NOISE = 1e-3
_PREDICTION, _WORK_A_SECOND = 100, 4e10  # of one missing value by one landmark; products and sums of the CPU


@stored(length=Real(above=0))
@dataclass(frozen=True)
class RowKernel:
    """How alike rows are."""

    length: float
    linear: float

    def scales(self, p: int) -> tuple[np.float32, float]:
        """Factors of squared distances and of products over p columns."""
        return np.float32(-0.5 / (p * self.length**2)), self.linear / p


@stored(
    landmarks="varying R",
    weights="varying R",
    slopes="varying varying",
    centre="varying",
    low="varying",
    high="varying",
)
@dataclass(frozen=True)
class KernelRound:
    """How the columns of rows are predicted from one another: a straight line, and bumps around landmarks."""

    landmarks: NDArray[np.float32]  # [d, R]: rows of which each stands for others near it, as columns
    weights: NDArray[np.float32]  # [d, R] of the bumps
    slopes: NDArray[np.float32]  # [d, d]: a column's dependence on the others, 0 on those predicted with it
    centre: NDArray[np.float32]  # [d]
    low: NDArray[np.float32]  # [d]: predictions stay inside what was observed, for a kernel machine can go astray
    high: NDArray[np.float32]

    def predict(
        self,
        rows: NDArray[np.float32],
        holes: Holes,
        ends: NDArray[np.int64],
        scales: NDArray[np.float32],
        deadline: float,
        workers: Workers,
    ) -> NDArray[np.float32]:
        """Rows with every missing entry predicted from the other columns."""
        following = rows.copy()

        def predict(begin: int) -> None:
            check_deadline(deadline)
            some = slice(begin, begin + _CHUNK)
            _predict(
                rows[some], holes[some], ends, scales, self.landmarks, self.weights, self.slopes, self.centre,
                self.low, self.high, following[some],
            )  # fmt: skip

        workers.map(predict, range(0, len(rows), _CHUNK))
        return following


@stored(groups="varying")
@dataclass(frozen=True)
class KernelRounds:
    """Rounds of predictions, each from the rows of the one before."""

    kernel: RowKernel
    groups: NDArray[np.int64]  # [d]: neighbouring columns of one group are missing together
    rounds: list[KernelRound]

    def __post_init__(self) -> None:
        if self.rounds and len(np.unique(self.groups)) < 2:
            raise ValueError("rounds need columns to predict from")

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with better values in their missing entries."""
        current, contiguous = _float32(rows), np.ascontiguousarray(holes)
        for each in self.rounds:
            current = self.apply(each, current, contiguous)
        return np.where(holes, current, rows)

    def apply(
        self,
        each: KernelRound,
        rows: NDArray[np.float32],
        holes: Holes,
        deadline: float = math.inf,
        workers: Workers = ALONE,
    ) -> NDArray[np.float32]:
        """Rows after one of the rounds."""
        begins = np.flatnonzero(np.diff(self.groups, prepend=self.groups[0] - 1))
        ends = np.append(begins[1:], len(self.groups))
        scales = np.array([self.kernel.scales(len(self.groups) - size)[0] for size in ends - begins])
        return each.predict(rows, holes, ends, scales, deadline, workers)


@stored()
@dataclass(frozen=True)
class KernelRidgeModel(RefiningModel):
    """Regressions that refine a first guess."""

    method: KernelRounds | None


class KernelRidgeImputer(RefiningImputer):
    """A smooth function per column by kernel ridge regression on the others, from the guess of a Gaussian model.

    The kernel of two rows is ``exp(−‖x − y‖² / (2 p length²)) + linear ⟨x, y⟩ / p`` over the p other columns, standardised.
    Functions are combinations of the kernels of some landmarks, the centres of clusters of rows, rather than of all rows: a
    few hundred do as well, in a fraction of the time. In every round all columns are predicted from the table of the round
    before. New rows go through the same rounds.

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
    n_landmarks : int, default=256
        Landmarks; the time of a fit grows with their square. Of up to twice as many rows every one is a landmark.
    max_rows : int, default=3000
        Most rows that weights are learned from, drawn at random from longer tables.
    n_jobs : int or None, default=None
        Threads; None is one, -1 all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute, as in `GaussianEMImputer`; the first guess is the CPU's.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result; without effect where every row is a landmark.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
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

    weighs_rows: ClassVar[bool] = True
    model_class: ClassVar[type] = KernelRidgeModel
    _state_version: ClassVar[int] = 4

    def __init__(
        self,
        *,
        length: float = 1.0,
        ridge: float = 0.1,
        linear: float = 1.0,
        n_rounds: int = 2,
        n_landmarks: int = 256,
        max_rows: int = 3000,
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.length = length
        self.ridge = ridge
        self.linear = linear
        self.n_rounds = n_rounds
        self.n_landmarks = n_landmarks
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_real("length", self.length, above=0)
        check_real("ridge", self.ridge, above=0)
        check_real("linear", self.linear, at_least=0)
        check_count("n_rounds", self.n_rounds)
        check_count("n_landmarks", self.n_landmarks)
        check_count("max_rows", self.max_rows)
        check_jobs(self.n_jobs)
        check_device(self.device)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        n, d = training.rows.shape
        by_landmark = d * min(n, self.max_rows) * self.n_landmarks + _PREDICTION * training.holes.sum()
        seconds = self.n_rounds * self.n_landmarks * by_landmark / _WORK_A_SECOND / n_threads(self.n_jobs)
        return Device(self.device, seconds).run_torch(f"a fit of {n} × {d} values", lambda place: self._fit_on(place, training))

    def _fit_on(self, torch_device: str | None, training: TrainingSet) -> RowFit:
        rng = generator(training.seed, "rows")
        rows, holes, targets = _float32(training.rows), np.ascontiguousarray(training.holes), training.targets()
        method = KernelRounds(RowKernel(self.length, self.linear), training.groups, [])
        chosen = _some(len(rows), self.max_rows, rng)
        weight = None if training.row_weight is None else training.row_weight[chosen]
        every_row = len(chosen) <= 2 * self.n_landmarks  # then all rows cost no more than fewer landmarks
        landmarks = rows[chosen][_some(len(chosen), self.n_landmarks, rng)].T.copy()
        with Workers(n_threads(self.n_jobs)) as workers:
            for k in range(self.n_rounds if targets else 0):
                known = rows[chosen]
                landmarks = known.T.copy() if every_row else _centres(known, landmarks, 1 if k else _FIRST_STEPS, workers)
                if torch_device is not None:
                    from ._torch_kernel_ridge import TorchKernelRidge

                    on_torch = TorchKernelRidge(method.kernel, targets, landmarks, torch_device, training.deadline)
                    learned = KernelRound(landmarks, *on_torch.learn(known, holes[chosen], self.ridge, _LANDMARK_NOISE, weight))
                    method.rounds.append(learned)
                    rows = on_torch.apply(learned, rows, holes)
                    continue
                holed, deadline = holes[chosen], training.deadline
                learned = self._learn(method.kernel, known, holed, landmarks, targets, weight, deadline, workers)
                method.rounds.append(learned)
                rows = method.apply(learned, rows, holes, training.deadline, workers)
        return RowFit(np.where(holes, rows, training.rows), method)

    def _learn(
        self,
        kernel: RowKernel,
        rows: NDArray[np.float32],
        holes: Holes,
        landmarks: NDArray[np.float32],
        targets: list[NDArray[np.int64]],
        row_weight: NDArray[np.float64] | None,
        deadline: float,
        workers: Workers,
    ) -> KernelRound:
        """The weights of one round; ``landmarks`` as many as rows are the rows. One that counts twice has half the noise."""
        (d, n_landmarks), n = landmarks.shape, len(rows)
        weights, slopes = np.zeros_like(landmarks), np.zeros((d, d), dtype=np.float32)
        centre, low, high = (np.zeros(d, dtype=np.float32) for _ in range(3))
        # Distances and products over all columns are shared: those of the predicted columns are taken off again.
        both = rows if n_landmarks == n else np.concatenate([rows, landmarks.T])
        distances, products = _distances(both, landmarks), both.astype(np.float64) @ landmarks
        of_thread = threading.local()

        def learn_columns(columns: NDArray[np.int64]) -> None:
            check_deadline(deadline)
            observed = np.flatnonzero(~holes[:, columns[0]])
            if len(observed) == 0:  # possible among a sample of the rows
                return
            similar = of_thread.__dict__.setdefault("similar", np.empty((len(both), n_landmarks)))
            truth = rows[np.ix_(observed, columns)].astype(np.float64)
            counts = None if row_weight is None else row_weight[observed]
            mean = np.average(truth, axis=0, weights=counts)
            centre[columns], low[columns], high[columns] = mean, truth.min(axis=0), truth.max(axis=0)
            truth -= mean
            bump, straight = kernel.scales(d - len(columns))
            used = np.append(observed, np.arange(n, len(both)))
            _similarities(both, used, landmarks, columns[0], columns[-1] + 1, distances, products, bump, straight, similar)
            of_rows, of_landmarks = similar[: len(observed)], similar[len(observed) : len(used)]
            found = np.zeros((n_landmarks, len(columns)))
            if n_landmarks == n:
                found[observed] = _solve(of_rows[:, observed].T, self.ridge if counts is None else self.ridge / counts, truth)
            else:  # minimise ‖truth − of_rows w‖² + ridge wᵀ of_landmarks w
                counted = of_rows if counts is None else counts[:, None] * of_rows
                normal = of_rows.T @ counted
                normal += self.ridge * of_landmarks
                found = _solve(normal.T, self.ridge * _LANDMARK_NOISE, counted.T @ truth)
            weights[columns] = found.T
            slopes[columns] = straight * (landmarks @ found).T
            slopes[np.ix_(columns, columns)] = 0

        workers.map(learn_columns, targets, most_threads=FEW)
        return KernelRound(landmarks, weights, slopes, centre, low, high)


def _solve(matrix: Rows, on_diagonal: float | Rows, right: Rows) -> Rows:
    """Solve a positive system of which the lower triangle is there.

    In float64: the smallest eigenvalues of normal equations would be lost in the rounding errors of float32.
    """
    from scipy.linalg.lapack import dposv

    matrix[np.diag_indices(len(matrix))] += on_diagonal
    _, solution, failed = dposv(matrix, right, lower=True, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("the kernel is not positive: some values are too large")
    return np.asarray(solution)


def _float32(rows: Rows) -> NDArray[np.float32]:
    """In row order: loops are compiled for no other."""
    return np.ascontiguousarray(rows, dtype=np.float32)


def _some(n: int, at_most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places among n, in order."""
    return np.sort(rng.choice(n, at_most, replace=False)) if n > at_most else np.arange(n)


def _centres(rows: NDArray[np.float32], centres: NDArray[np.float32], n_steps: int, workers: Workers) -> NDArray[np.float32]:
    """The centres [d, R] of clusters of rows after some steps of k-means; one that no row is nearest to stays."""

    def nearest_to(begin: int) -> NDArray[np.int64]:
        return np.asarray(_distances(rows[begin : begin + _CHUNK], centres).argmin(axis=1))

    for _ in range(n_steps):
        nearest = np.concatenate(workers.map(nearest_to, range(0, len(rows), _CHUNK)))
        counts = np.bincount(nearest, minlength=centres.shape[1])
        sums = np.array([np.bincount(nearest, column, minlength=centres.shape[1]) for column in rows.T])
        centres = np.where(counts > 0, sums / np.maximum(counts, 1), centres).astype(np.float32)
    return centres


@compiled
def _distances(rows, landmarks):  # type: ignore[no-untyped-def]
    """Squared distances [n, R] of rows from landmarks [d, R]."""
    distances = np.zeros((rows.shape[0], landmarks.shape[1]), dtype=np.float32)
    for i in range(rows.shape[0]):
        distance = distances[i]
        for c in range(rows.shape[1]):
            value = rows[i, c]
            for r in range(landmarks.shape[1]):
                distance[r] += (value - landmarks[c, r]) ** 2
    return distances


@compiled
def _similarities(rows, used, landmarks, begin, end, distances, products, bump, straight, out):  # type: ignore[no-untyped-def]
    """Kernels of the ``used`` rows with the landmarks, without the columns from ``begin`` to ``end``."""
    distance = np.empty(landmarks.shape[1], dtype=np.float32)
    for k in range(used.shape[0]):
        i = used[k]
        for r in range(landmarks.shape[1]):
            distance[r] = distances[i, r]
            out[k, r] = products[i, r]
        for c in range(begin, end):
            value = rows[i, c]
            for r in range(landmarks.shape[1]):
                distance[r] -= (value - landmarks[c, r]) ** 2
                out[k, r] -= np.float64(value) * np.float64(landmarks[c, r])
        for r in range(landmarks.shape[1]):
            distance[r] = exp(bump * max(distance[r], np.float32(0)))
        for r in range(landmarks.shape[1]):
            out[k, r] = distance[r] + straight * out[k, r]


@compiled
def _predict(rows, holes, ends, scales, landmarks, weights, slopes, centre, low, high, out):  # type: ignore[no-untyped-def]
    """Predict the missing entries of rows; ``ends`` are those of the groups of columns, ``scales`` their kernels'.

    Row by row, so that a row is filled alike whatever rows come with it.
    """
    n_landmarks = landmarks.shape[1]
    from_all = np.empty(n_landmarks, dtype=np.float32)
    similar = np.empty(n_landmarks, dtype=np.float32)
    for i in range(rows.shape[0]):
        known = False
        end = 0
        for g in range(ends.shape[0]):
            begin = end
            end = ends[g]
            if not holes[i, begin]:
                continue
            if not known:
                known = True
                for r in range(n_landmarks):
                    from_all[r] = 0
                for c in range(rows.shape[1]):
                    value = rows[i, c]
                    for r in range(n_landmarks):
                        from_all[r] += (value - landmarks[c, r]) ** 2
            for r in range(n_landmarks):
                similar[r] = from_all[r]
            for c in range(begin, end):
                value = rows[i, c]
                for r in range(n_landmarks):
                    similar[r] -= (value - landmarks[c, r]) ** 2
            for r in range(n_landmarks):
                similar[r] = exp(scales[g] * max(similar[r], np.float32(0)))
            for c in range(begin, end):
                total = np.float32(0)
                for r in range(n_landmarks):
                    total += weights[c, r] * similar[r]
                for other in range(rows.shape[1]):
                    total += slopes[c, other] * rows[i, other]
                out[i, c] = min(max(centre[c] + total, low[c]), high[c])
