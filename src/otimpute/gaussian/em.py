"""Mean and covariance of an incomplete table by expectation–maximisation under a Gaussian model.

Used by the transport imputers (metric of the cost, start of the descent) and free for a baseline to share, hence below both.
The conditional mean of a row's missing part M given its observed part O comes from the precision matrix Λ = Σ⁻¹:
``μ_M − Λ_MM⁻¹ Λ_MO (x_O − μ_O)`` with conditional covariance ``Λ_MM⁻¹``, so only a matrix as large as the holes is factored.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .._compile import compiled
from .._stored import stored
from .._threads import ALONE, Workers

if TYPE_CHECKING:
    from .torch_rows import TorchRows

_SMALLEST_VARIANCE = 1e-6
_FEW_HOLES = 100
_ROWS_PER_PART, _MOST_PARTS = 1024, 16
_NOT_WANTED = np.empty((0, 0))


@stored(mean="varying", covariance="varying varying")
@dataclass(frozen=True)
class GaussianModel:
    """A Gaussian fitted to an incomplete table, and how the fit ended."""

    mean: NDArray[np.float64]  # [d]
    covariance: NDArray[np.float64]  # [d, d]
    n_iterations: int
    converged: bool

    def fill(
        self, values: NDArray[np.float64], missing: NDArray[np.bool_], *, torch_device: str | None = None
    ) -> NDArray[np.float64]:
        """Replace the missing entries of ``values [n, d]`` by their conditional means; row by row, nothing is refitted."""
        filled = np.array(values, dtype=np.float64)
        if torch_device is not None:
            rows = rows_on(torch_device, filled, missing, 1)
            filled[missing] = rows.fill(np.ones(1), self.mean[None], self.covariance[None])
            return filled
        precision = np.linalg.inv(self.covariance)
        _expect(filled, missing, order_by_pattern(missing), self.mean, precision, _NOT_WANTED)
        return filled

    def conditional_std(self, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How far the missing entries may lie from their conditional means: standard deviations ``[n, d]``, else 0."""
        spread = np.zeros(missing.shape)
        precision = np.linalg.inv(self.covariance)
        few, many = _few_and_many(missing, order_by_pattern(missing))
        _conditional_std(spread, missing, few, precision)
        own = _NOT_WANTED
        for row, holes, factor, is_new in _factored_blocks(missing, many, precision):
            own = np.sqrt(np.diag(dpotri(factor, lower=1)[0])) if is_new else own
            spread[row, holes] = own
        return spread


def fit_gaussian(
    values: NDArray[np.float64],
    missing: NDArray[np.bool_],
    *,
    prior_rows: float = 1.0,
    tolerance: float = 1e-3,
    max_iterations: int = 50,
    deadline: float = math.inf,
    workers: Workers = ALONE,
    torch_device: str | None = None,
) -> GaussianModel:
    """Fit mean and covariance of standardised columns with holes; entries under ``missing`` are ignored.

    ``prior_rows`` imaginary rows with independent columns are added: they keep the covariance invertible when columns are
    collinear, constant, or more than the rows. Stops when no filled-in value moves by more than ``tolerance`` (root mean
    square, in standard deviations), after ``max_iterations``, or when another iteration would outlast the ``deadline`` of
    ``time.perf_counter()``; the one that finds relations between columns is always made. The number of ``workers`` does not
    change the result. With a ``torch_device`` torch computes there, in the same precision.

    >>> values = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan], [-1.0, -1.0], [-2.0, -2.0]])
    >>> model = fit_gaussian(values, np.isnan(values), prior_rows=0.01)
    >>> bool(model.fill(values, np.isnan(values))[2, 1] > 1.5)
    True
    """
    n, d = values.shape
    n_observed = np.maximum((~missing).sum(axis=0), 1)
    mean = np.where(missing, 0.0, values).sum(axis=0) / n_observed
    filled = np.where(missing, mean, values)
    variance = ((filled - mean) ** 2).sum(axis=0) / n_observed + _SMALLEST_VARIANCE
    covariance = np.diag(variance)
    on_torch = None if torch_device is None else rows_on(torch_device, filled, missing, 1)
    parts = np.array_split(order_by_pattern(missing), number_of_parts(n, _ROWS_PER_PART)) if on_torch is None else []
    previous = filled[missing]
    converged = previous.size == 0
    iteration = 0
    for iteration in range(1, max_iterations + 1):
        begun = time.perf_counter()
        if iteration == 1:  # columns are independent yet: holes get means, and vary as their columns do
            conditional = np.diag(missing.sum(axis=0) * variance)
        elif on_torch is not None:
            (drift,), (scatter,), _, moved = on_torch.learn(np.ones(1), mean[None], covariance[None])
            mean = mean + drift / n
            scatter -= np.outer(drift, drift) / n  # it was about the mean before
        else:
            precision = np.linalg.inv(covariance)

            def expect(part: NDArray[np.int64], mean: Any = mean, precision: Any = precision) -> NDArray[np.float64]:
                conditional = np.zeros((d, d))
                _expect(filled, missing, part, mean, precision, conditional)
                return conditional

            conditional = np.sum(workers.map(expect, parts), axis=0)
        if on_torch is None or iteration == 1:
            mean = filled.mean(axis=0)
            centred = filled - mean
            scatter = centred.T @ centred + conditional
            current = filled[missing]
            moved = float(((current - previous) ** 2).sum())
            previous = current
        scatter[np.diag_indices(d)] += n * _SMALLEST_VARIANCE
        covariance = (scatter + np.diag(np.diag(scatter)) * (prior_rows / n)) / (n + prior_rows)
        # The first expectation, under independent columns, only repeats the means: it cannot tell convergence.
        if converged or (iteration > 1 and np.sqrt(moved / previous.size) <= tolerance):
            converged = True
            break
        now = time.perf_counter()
        if iteration > 1 and 2 * now - begun >= deadline:
            break
    return GaussianModel(mean, covariance, iteration, converged)


def rows_on(torch_device: str, values: NDArray[np.float64], missing: NDArray[np.bool_], n_components: int) -> TorchRows:
    """The table where torch computes, which is loaded only now that it is asked for."""
    from .torch_rows import TorchRows

    return TorchRows(values, missing, n_components, torch_device)


def number_of_parts(n_rows: int, per_part: int) -> int:
    """In how many parts sums over rows are made, side by side: a power of two, as cores are, mostly.

    >>> number_of_parts(500, 128), number_of_parts(10**6, 128)
    (2, 16)
    """
    return min(1 << int(math.log2(max(n_rows / per_part, 1))), _MOST_PARTS)


def order_by_pattern(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows sorted so that equal patterns of holes are neighbours: each pattern is factored once."""
    return np.lexsort(np.packbits(missing, axis=1).T)


def _expect(
    filled: NDArray[np.float64],
    missing: NDArray[np.bool_],
    order: NDArray[np.int64],
    mean: NDArray[np.float64],
    precision: NDArray[np.floating],
    conditional: NDArray[np.float64],
) -> None:
    """Fill each row's holes with conditional means; add the conditional covariances to ``conditional`` unless empty."""
    few, many = _few_and_many(missing, order)
    _fill_conditional_means(filled, missing, few, mean, precision, conditional)
    inverse = _NOT_WANTED
    for row, holes, factor, is_new in _factored_blocks(missing, many, precision):
        known = ~missing[row]
        away = precision[holes] @ np.where(known, filled[row] - mean, 0.0)
        filled[row, holes] = mean[holes] - dpotrs(factor, away, lower=1)[0]
        if len(conditional):
            inverse = _inverse(factor) if is_new else inverse
            conditional[np.ix_(holes, holes)] += inverse


def _few_and_many(missing: NDArray[np.bool_], order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows with few holes, for which compiled loops are faster, and with many, for which LAPACK is; each row by itself."""
    is_few = missing.sum(axis=1)[order] <= _FEW_HOLES
    return order[is_few], order[~is_few]


def _factored_blocks(
    missing: NDArray[np.bool_], rows: NDArray[np.int64], precision: NDArray[np.floating]
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64], bool]]:
    """Row by row, its holes, the Cholesky factor of the precision's block of these, and whether it is another than before."""
    before = -1
    for row in rows.tolist():
        is_new = before < 0 or not np.array_equal(missing[row], missing[before])
        if is_new:
            holes = np.flatnonzero(missing[row])
            factor, failed = dpotrf(precision[np.ix_(holes, holes)], lower=1)
            if failed:
                raise np.linalg.LinAlgError("the covariance of the columns is not positive definite")
        before = row
        yield row, holes, factor, is_new


def _inverse(factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a matrix, from its Cholesky factor."""
    lower = dpotri(factor, lower=1)[0]
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


@compiled
def fill_row(row, holes, q, mean, precision, factor, right):  # type: ignore[no-untyped-def]
    """Set the ``q`` entries ``holes`` of ``row`` to their conditional mean given the others.

    ``factor`` is the Cholesky factor of the precision's block of the holes (`factor_block`), ``right`` a buffer.
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
def factor_block(matrix, index, q, factor):  # type: ignore[no-untyped-def]
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


@compiled
def invert_factor(factor, q, inverse):  # type: ignore[no-untyped-def]
    """Inverse of ``L Lᵀ`` from its Cholesky factor ``L``."""
    for c in range(q):  # L⁻¹, stored transposed in the upper triangle
        inverse[c, c] = 1.0 / factor[c, c]
        for r in range(c + 1, q):
            total = 0.0
            for k in range(c, r):
                total -= factor[r, k] * inverse[c, k]
            inverse[c, r] = total / factor[r, r]
    for r in range(q):  # (L⁻¹)ᵀ L⁻¹, row by row from the top: entries still needed are not yet overwritten
        for c in range(r, q):
            total = 0.0
            for k in range(c, q):
                total += inverse[r, k] * inverse[c, k]
            inverse[r, c] = total
    for r in range(q):
        for c in range(r):
            inverse[r, c] = inverse[c, r]


@compiled
def same_holes(missing, missing_before):  # type: ignore[no-untyped-def]
    """Whether two rows have the same pattern."""
    for k in range(missing.shape[0]):  # noqa: SIM110 (quicker to compile)
        if missing[k] != missing_before[k]:
            return False
    return True


@compiled
def list_holes(missing, holes):  # type: ignore[no-untyped-def]
    """Write the places of a row's holes into ``holes``; how many they are."""
    q = 0
    for k in range(missing.shape[0]):
        if missing[k]:
            holes[q] = k
            q += 1
    return q


@compiled
def _fill_conditional_means(filled, missing, order, mean, precision, conditional):  # type: ignore[no-untyped-def]
    """Fill each row's holes with conditional means; add the conditional covariances to ``conditional`` unless empty."""
    d = filled.shape[1]
    accumulate = conditional.shape[0] > 0
    holes = np.empty(d, np.int64)
    right = np.empty(d)
    factor = np.empty((d, d))
    inverse = np.empty((d, d))
    q = 0
    for position in range(order.shape[0]):
        i = order[position]
        if position == 0 or not same_holes(missing[i], missing[order[position - 1]]):
            q = list_holes(missing[i], holes)
            factor_block(precision, holes, q, factor)
            if accumulate:
                invert_factor(factor, q, inverse)
        if q == 0:
            continue
        fill_row(filled[i], holes, q, mean, precision, factor, right)
        if accumulate:
            for r in range(q):
                for c in range(q):
                    conditional[holes[r], holes[c]] += inverse[r, c]


@compiled
def _conditional_std(spread, missing, order, precision):  # type: ignore[no-untyped-def]
    """Standard deviations of each row's missing entries given the others."""
    d = spread.shape[1]
    holes = np.empty(d, np.int64)
    factor = np.empty((d, d))
    inverse = np.empty((d, d))
    q = 0
    for position in range(order.shape[0]):
        i = order[position]
        if position == 0 or not same_holes(missing[i], missing[order[position - 1]]):
            q = list_holes(missing[i], holes)
            factor_block(precision, holes, q, factor)
            invert_factor(factor, q, inverse)
        for r in range(q):
            spread[i, holes[r]] = math.sqrt(inverse[r, r])
