"""Impute rows that were not in training, each alone: a fixed point of the barycentric map onto a reference sample.

A row's missing part should cost least to carry to where transport sends the row,
``T(x) = Σ_j softmax_j((g_j − c(x, y_j))/ε) y_j``. For the Euclidean cost that point is ``x_M = T(x)_M``. In a metric Λ the
observed part pulls along: the stationary point is ``x_M = T(x)_M − Λ_MM⁻¹ Λ_MO (x_O − T(x)_O)``, a Gaussian conditional
mean around ``T(x)`` instead of around the column means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._compile import compiled
from ..._fast_exp import exp
from ..._stored import Array, stored
from ..._threads import each_in_threads
from ...gaussian import GaussianModel
from ...transport import epsilon_from_rule
from ...transport.kernels.select import select_kernel

# The map of a new row sees the whole reference at once and no second batch to average over, so it needs more smoothing than
# a fit: 20 times ε was best on ten sets (docs/studies/defaults.md).
_SMOOTHING = 20.0
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-3  # in standard deviations
_CHUNK = 4096
_FOR_DRAWS = 256  # rows drawn at a time: each has a number per reference row


@stored(points="varying R", slope="varying R", offset="R", precision=Array("varying varying", or_empty=True))
@dataclass(frozen=True)
class Reference:
    """Completed training rows ``y`` and what the map needs of them.

    With ``c(x, y) = ½(x − y)ᵀΛ(x − y)`` the part of a score that depends on j is ``offset_j + Σ_k x_k slope_kj``.
    """

    points: NDArray[np.float32]  # [d, R], coordinate by coordinate
    slope: NDArray[np.float32]  # [d, R]: Λ y / ε
    offset: NDArray[np.float32]  # [R]: (g − ½ yᵀΛy) / ε
    precision: NDArray[np.float64]  # [d, d]: Λ, or [0, 0] for the identity

    def __post_init__(self) -> None:
        if self.points.size == 0:
            raise ValueError("a reference needs at least one row and one column")

    @classmethod
    def build(cls, points: NDArray[np.float64], metric: NDArray[np.float64], rng: np.random.Generator) -> Reference:
        """From completed rows ``[R, d]`` and the metric A (or [0, 0] for the identity)."""
        mapped, precision = (points @ metric, metric @ metric) if metric.size else (points, metric)
        epsilon = _SMOOTHING * epsilon_from_rule(mapped, "auto", rng)
        weights = np.full((1, len(points)), 1 / len(points))
        g = select_kernel("cpu").itself(mapped[None], weights, epsilon, 1e-3, 200).f[0]
        slope = points @ precision if metric.size else points
        offset = g - np.einsum("rd,rd->r", points, slope) / 2
        by_column = [np.ascontiguousarray(part.T, dtype=np.float32) for part in (points, slope / epsilon)]
        return cls(by_column[0], by_column[1], (offset / epsilon).astype(np.float32), precision)

    def impute(self, values: NDArray[np.float32], missing: NDArray[np.bool_], n_jobs: int) -> None:
        """Overwrite the ``missing [n, d]`` entries of the working copy ``values``, which hold their start."""

        def settle(chunk: slice) -> None:
            _settle_rows(values[chunk], missing[chunk], self.points, self.slope, self.offset, self.precision)

        each_in_threads(settle, [slice(i, i + _CHUNK) for i in range(0, len(values), _CHUNK)], n_jobs)

    def draw(self, values: NDArray[np.float32], missing: NDArray[np.bool_], chance: NDArray[np.float64]) -> None:
        """Replace the missing entries of rows that `impute` completed by draws, by a random number from 0 to 1 per row.

        Transport sends a row to several reference rows at once, and `impute` takes their mean; a draw takes one of them, as
        often as its share says, and follows it in the missing part: ``x_M = y_M − Λ_MM⁻¹ Λ_MO (x_O − y_O)``.
        """
        d = len(self.points)
        covariance = np.asarray(np.linalg.inv(self.precision) if self.precision.size else np.eye(d), dtype=np.float64)
        around = GaussianModel(np.zeros(d), covariance, n_iterations=0, converged=True)
        for begin in range(0, len(values), _FOR_DRAWS):
            rows = slice(begin, begin + _FOR_DRAWS)
            score = self.offset + values[rows, :d] @ self.slope
            below = np.cumsum(np.exp((score - score.max(axis=1, keepdims=True)).astype(np.float64)), axis=1)
            chosen = (below < chance[rows, None] * below[:, -1:]).sum(axis=1)
            target = self.points.T[np.minimum(chosen, self.points.shape[1] - 1)].astype(np.float64)
            drawn = target + around.fill(values[rows, :d] - target, missing[rows])
            values[rows, :d][missing[rows]] = drawn[missing[rows]]


@compiled
def _settle_rows(values, missing, points, slope, offset, precision):  # type: ignore[no-untyped-def]
    """Iterate each row until no missing entry moves by more than the tolerance."""
    d, n_points = points.shape
    base = np.empty(n_points, np.float32)
    score = np.empty(n_points, np.float32)
    holes = np.empty(d, np.int64)
    target = np.empty(d)
    row = np.empty(d)
    right = np.empty(d)
    whitened = precision.shape[0] > 0
    factor = np.empty(precision.shape)
    for i in range(values.shape[0]):
        n_holes = 0
        for j in range(n_points):
            base[j] = offset[j]
        for k in range(d):
            row[k] = values[i, k]
            if missing[i, k]:
                holes[n_holes] = k
                n_holes += 1
            else:
                x = values[i, k]
                for j in range(n_points):
                    base[j] += x * slope[k, j]
        if n_holes == 0:
            continue
        if whitened:
            _factor_block(precision, holes, n_holes, factor)
        for _ in range(_MAX_ITERATIONS):
            for j in range(n_points):
                score[j] = base[j]
            for r in range(n_holes):
                x = np.float32(row[holes[r]])
                for j in range(n_points):
                    score[j] += x * slope[holes[r], j]
            largest = score[0]
            for j in range(1, n_points):
                largest = max(largest, score[j])
            total = np.float32(0)
            for j in range(n_points):
                score[j] = exp(score[j] - largest)
                total += score[j]
            for k in range(d):
                projected = np.float32(0)
                for j in range(n_points):
                    projected += score[j] * points[k, j]
                target[k] = projected / total
            if whitened:
                _fill_row(row, holes, n_holes, target, precision, factor, right)
            else:
                for r in range(n_holes):
                    row[holes[r]] = target[holes[r]]
            moved = 0.0
            for r in range(n_holes):
                moved = max(moved, abs(row[holes[r]] - values[i, holes[r]]))
                values[i, holes[r]] = row[holes[r]]
            if moved <= _TOLERANCE:
                break


@compiled
def _fill_row(row, holes, q, mean, precision, factor, right):  # type: ignore[no-untyped-def]
    """Set the ``q`` entries ``holes`` of ``row`` to their conditional mean given the others.

    ``factor`` is the Cholesky factor of the precision's block of the holes (`_factor_block`), ``right`` a buffer.
    """
    for r in range(q):
        row[holes[r]] = mean[holes[r]]
    for r in range(q):
        total = 0.0
        for k in range(row.shape[0]):
            total -= precision[holes[r], k] * (row[k] - mean[k])
        right[r] = total
    for r in range(q):  # forward, then backward substitution
        for c in range(r):
            right[r] -= factor[r, c] * right[c]
        right[r] /= factor[r, r]
    for r in range(q - 1, -1, -1):
        for c in range(r + 1, q):
            right[r] -= factor[c, r] * right[c]
        right[r] /= factor[r, r]
    for r in range(q):
        row[holes[r]] += right[r]


@compiled
def _factor_block(matrix, index, q, factor):  # type: ignore[no-untyped-def]
    """Lower Cholesky factor of ``matrix[index, index]``, for the first ``q`` entries of ``index``."""
    for r in range(q):
        for c in range(r + 1):
            total = matrix[index[r], index[c]]
            for k in range(c):
                total -= factor[r, k] * factor[c, k]
            if r == c:
                factor[r, r] = math.sqrt(max(total, 1e-300))
            else:
                factor[r, c] = total / factor[c, c]
