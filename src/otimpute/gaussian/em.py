"""Mean and covariance of an incomplete table by expectation–maximisation under a Gaussian model.

Used by the transport imputers (metric of the cost, start of the descent) and free for a baseline to share, hence below both.
The conditional mean of a row's missing part M given its observed part O comes from the precision matrix Λ = Σ⁻¹:
``μ_M − Λ_MM⁻¹ Λ_MO (x_O − μ_O)`` with conditional covariance ``Λ_MM⁻¹``, so only a matrix as large as the holes is factored.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .._compile import compiled
from .._lanes import WIDTH, aligned_zeros, larger, load, spread, store
from .._stored import stored
from .._threads import ALONE, FEW, Workers

if TYPE_CHECKING:
    from .torch_rows import TorchRows

_SMALLEST_VARIANCE = 1e-6
COVARIANCE_STEPS = 2.0**24
_MANY_HOLES = 200  # of a row: from here on LAPACK is faster than our loops
_ROWS_PER_PART, _MOST_PARTS = 128, 16
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
        self,
        values: NDArray[np.float64],
        missing: NDArray[np.bool_],
        workers: Workers = ALONE,
        *,
        torch_device: str | None = None,
    ) -> NDArray[np.float64]:
        """Replace the missing entries of ``values [n, d]`` by their conditional means; row by row, nothing is refitted."""
        if torch_device is not None:
            filled = np.array(values, dtype=np.float64)
            on_torch = rows_on(torch_device, filled, missing, 1)
            filled[missing] = on_torch.fill(np.ones(1), self.mean[None], self.covariance[None])
            return filled
        order, parts = _parts_by_pattern(missing)
        rows, holes, precision = values.take(order, axis=0), missing.take(order, axis=0), self._precision
        workers.map(lambda part: part.condition(rows, holes, self.mean, precision), parts)
        filled = np.empty_like(rows)
        filled[order] = rows
        return filled

    def conditional_std(self, missing: NDArray[np.bool_], workers: Workers = ALONE) -> NDArray[np.float64]:
        """How far the missing entries may lie from their conditional means: standard deviations ``[n, d]``, else 0."""
        order, parts = _parts_by_pattern(missing)
        rows, holes, precision = np.zeros(missing.shape), missing.take(order, axis=0), self._precision
        deviation = np.zeros(missing.shape)
        workers.map(lambda part: part.condition(rows, holes, self.mean, precision, deviation=deviation), parts)
        rows[order] = deviation
        return rows

    def expect(self, values: NDArray[np.float64], missing: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Rows with conditional means in their holes; the sum of conditional covariances, each rounded, in steps of 2⁻²⁴.

        Sums of so many whole numbers are exact: no order of rows and no partitioning of them changes a bit.
        """
        order, parts = _parts_by_pattern(missing)
        rows, holes, precision = values.take(order, axis=0), missing.take(order, axis=0), self._precision
        conditional = np.zeros(self.covariance.shape)
        for part in parts:
            part.condition(rows, holes, self.mean, precision, conditional, steps=COVARIANCE_STEPS)
        return rows, np.rint(conditional).astype(np.int64)

    def improved(self, n: int, drift: NDArray[np.float64], scatter: NDArray[np.float64], prior_rows: float) -> GaussianModel:
        """A step of EM: from sums over ``n`` rows of distances from the mean and of their products, as expected in holes."""
        return GaussianModel(*_maximise(self.mean, drift, scatter, n, prior_rows), self.n_iterations, self.converged)

    @property
    def _precision(self) -> NDArray[Any]:
        return np.linalg.inv(self.covariance)


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
    row_weight: NDArray[np.float64] | None = None,
) -> GaussianModel:
    """Fit mean and covariance of standardised columns with holes; entries under ``missing`` are ignored.

    ``prior_rows`` imaginary rows with independent columns are added: they keep the covariance invertible when columns are
    collinear, constant, or more than the rows. Stops when no filled-in value moves by more than ``tolerance`` (root mean
    square, in standard deviations), after ``max_iterations``, or when another iteration would outlast the ``deadline`` of
    ``time.perf_counter()``; the one that finds relations between columns is always made. The number of ``workers`` does not
    change the result. With a ``torch_device`` torch computes there, in the same precision. Rows count as often as their
    ``row_weight [n]`` says, as if they were there several times.

    >>> values = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan], [-1.0, -1.0], [-2.0, -2.0]])
    >>> model = fit_gaussian(values, np.isnan(values), prior_rows=0.01)
    >>> bool(model.fill(values, np.isnan(values))[2, 1] > 1.5)
    True
    """
    d = values.shape[1]
    weight = None if row_weight is None else row_weight[:, None]
    n = len(values) if weight is None else float(weight.sum())
    n_missing = _sum(missing, weight)
    n_observed = np.maximum(_sum(~missing, weight), 1 if weight is None else 1e-300)
    mean: NDArray[np.float64] = _sum(np.where(missing, 0.0, values), weight) / n_observed
    order, parts = _parts_by_pattern(missing)
    filled, holes = np.where(missing, mean, values).take(order, axis=0), missing.take(order, axis=0)
    weight = None if weight is None else weight.take(order, axis=0)
    variance = _sum((filled - mean) ** 2, weight) / n_observed + _SMALLEST_VARIANCE
    on_torch = None if torch_device is None else rows_on(torch_device, filled, holes, 1, weight)
    covariance: NDArray[Any] = np.diag(variance)
    precision: NDArray[Any] = _NOT_WANTED
    converged = not missing.any()
    iteration = 0

    def expect(part: _Part) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Sums over rows of products of distances from the mean, of distances, and of squares of how far values moved."""
        rows, scatter = filled[part.rows], np.zeros((d, d))
        before = rows.copy()
        own = None if weight is None else weight[part.rows]
        if len(precision):
            part.condition(filled, holes, mean, precision, scatter, row_weight=own)
        centred = rows - mean
        products = centred.T @ (centred if own is None else own * centred)
        return scatter + products, _sum(centred, own), float(_sum((rows - before) ** 2, own).sum())

    for iteration in range(1, max_iterations + 1):
        begun = time.perf_counter()
        if on_torch is not None and iteration > 1:
            (drift,), (scatter,), _, moved = on_torch.learn(np.ones(1), mean[None], covariance[None])
        else:
            of_parts = workers.map(expect, parts, most_threads=FEW)
            scatter, drift, moved = (sum(each[1:], each[0]) for each in zip(*of_parts, strict=True))
        if iteration == 1:  # columns are independent yet: holes have means, and vary as their columns do
            scatter += np.diag(n_missing * variance)
        mean, covariance = _maximise(mean, drift, scatter, n, prior_rows)
        # The first expectation, under independent columns, only repeats the means: it cannot tell convergence.
        if converged or (iteration > 1 and np.sqrt(moved / n_missing.sum()) <= tolerance):
            converged = True
            break
        now = time.perf_counter()
        if iteration > 1 and 2 * now - begun >= deadline:
            break
        precision = np.linalg.inv(covariance)
    return GaussianModel(mean, covariance, iteration, converged)


def _sum(table: NDArray[Any], row_weight: NDArray[np.float64] | None) -> NDArray[Any]:
    """Sums over rows, which count as often as their weight ``[n, 1]`` says."""
    return np.asarray((table if row_weight is None else row_weight * table).sum(axis=0))


def _maximise(
    mean: NDArray[np.float64], drift: NDArray[np.float64], scatter: NDArray[np.float64], n: float, prior_rows: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and covariance from sums over ``n`` rows of distances from the mean and of their products."""
    centred: NDArray[np.float64] = scatter - np.outer(drift, drift) / n
    centred[np.diag_indices(len(mean))] += n * _SMALLEST_VARIANCE
    covariance = (centred + np.diag(np.diag(centred)) * (prior_rows / n)) / (n + prior_rows)
    return mean + drift / n, covariance


def rows_on(
    torch_device: str,
    values: NDArray[np.float64],
    missing: NDArray[np.bool_],
    n_components: int,
    row_weight: NDArray[np.float64] | None = None,
) -> TorchRows:
    """The table where torch computes, which is loaded only now that it is asked for."""
    from .torch_rows import TorchRows

    return TorchRows(values, missing, n_components, torch_device, row_weight)


def number_of_parts(n_rows: int, per_part: int) -> int:
    """In how many parts sums over rows are made, side by side: a power of two, as cores are, mostly.

    >>> number_of_parts(500, 128), number_of_parts(10**6, 128)
    (2, 16)
    """
    return min(1 << int(math.log2(max(n_rows / per_part, 1))), _MOST_PARTS)


def order_by_pattern(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows sorted so that equal patterns of holes are neighbours: each pattern is factored once."""
    return np.lexsort(np.packbits(missing, axis=1).T)


class _Part:
    """Some rows of a table in which those of one pattern of holes are neighbours."""

    def __init__(self, rows: slice, begins: NDArray[np.int64], n_holes: NDArray[np.int64]):
        self.rows = rows
        self.begins = begins  # [P + 1]: where patterns begin among these rows, those with the fewest holes first, and the end
        self.n_few = int((n_holes < _MANY_HOLES).sum())  # patterns
        most = int(n_holes[: self.n_few].max(initial=0))
        self.memory = aligned_zeros(most * (most + 1) // 2)

    def condition(
        self,
        table: NDArray[np.float64],
        holes_of_table: NDArray[np.bool_],
        mean: NDArray[np.float64],
        precision: NDArray[np.float64],
        conditional: NDArray[np.float64] = _NOT_WANTED,
        deviation: NDArray[np.float64] = _NOT_WANTED,
        row_weight: NDArray[np.float64] | None = None,
        steps: float = 0.0,
    ) -> None:
        """Fill these rows of a table with conditional means; add up ``conditional`` covariances, note each ``deviation``.

        With ``steps`` covariances are added in so many steps to a unit, each rounded.
        """
        rows, missing, deviation = table[self.rows], holes_of_table[self.rows], deviation[self.rows]
        few, counts = self.begins[: self.n_few + 1], np.diff(self.begins).astype(np.float64)  # of rows with each pattern
        if row_weight is not None:
            counts = np.add.reduceat(row_weight[:, 0], self.begins[:-1])
        _condition(rows, missing, few, counts, mean, precision, conditional, deviation, self.memory, steps)
        for (begin, end), count in zip(pairwise(self.begins[self.n_few :].tolist()), counts[self.n_few :], strict=True):
            holes = np.flatnonzero(missing[begin])
            factor, failed = dpotrf(precision[np.ix_(holes, holes)], lower=1)
            if failed:
                raise np.linalg.LinAlgError("the covariance of the columns is not positive definite")
            for row in range(begin, end):  # one by one: a row's last bits must not depend on the others
                away = precision[holes] @ np.where(missing[row], 0.0, rows[row] - mean)
                rows[row, holes] = mean[holes] - dpotrs(factor, away, lower=1)[0]
            lower = dpotri(factor, lower=1)[0]
            if len(conditional):
                own = np.tril(lower) + np.tril(lower, -1).T
                conditional[np.ix_(holes, holes)] += count * (np.rint(own * steps) if steps else own)
            if len(deviation):
                deviation[begin:end, holes] = np.sqrt(np.diag(lower))


def _parts_by_pattern(missing: NDArray[np.bool_]) -> tuple[NDArray[np.int64], list[_Part]]:
    """An order of the rows in which those of one pattern are neighbours, and parts of it that take about as long each."""
    n, d = missing.shape
    n_holes = missing.sum(axis=1)
    order = np.lexsort((*np.packbits(missing, axis=1).T, n_holes))
    holes, n_holes = missing.take(order, axis=0), n_holes[order]
    begins = np.flatnonzero(np.append(True, (holes[1:] != holes[:-1]).any(axis=1))[:n])
    work = np.cumsum(d + n_holes * (d + n_holes))[begins]
    n_parts = number_of_parts(n, _ROWS_PER_PART)
    cuts = np.unique(np.searchsorted(work, np.linspace(0, work[-1:].sum(), n_parts + 1)[1:-1]))
    parts = []
    for first, after in pairwise([0, *cuts[cuts > 0].tolist(), len(begins)]):
        bounds = np.append(begins, n)[first : after + 1]
        parts.append(_Part(slice(bounds[0], bounds[-1]), bounds - bounds[0], n_holes[bounds[:-1]]))
    return order, parts


@compiled
def _condition(rows, missing, begins, counts, mean, precision, conditional, deviation, inverse, steps):  # type: ignore[no-untyped-def]
    """Fill each row's holes with conditional means; add up conditional covariances and note deviations unless empty.

    The precision's blocks of eight patterns' holes are inverted side by side, in the lanes of ``inverse`` (lower triangles);
    those of patterns with fewer holes are made larger with ones on the diagonal, which changes nothing of them.
    """
    d, n_patterns = missing.shape[1], begins.shape[0] - 1
    holes, n_holes = np.zeros((WIDTH, d), np.int64), np.zeros(WIDTH, np.int64)
    column, own = np.empty((d, WIDTH)), np.empty((d, d))
    away, right = np.empty(d), np.empty(d)
    for first in range(0, n_patterns, WIDTH):
        most = 0
        for lane in range(WIDTH):
            q = 0
            for k in range(d if first + lane < n_patterns else 0):
                if missing[begins[first + lane], k]:
                    holes[lane, q] = k
                    q += 1
            n_holes[lane] = q
            most = max(most, q)
        for r in range(most):
            for c in range(r + 1):
                for lane in range(WIDTH):
                    known = r < n_holes[lane]
                    inverse[r * (r + 1) // 2 + c, lane] = precision[holes[lane, r], holes[lane, c]] if known else 1.0 * (r == c)
        # Gauss and Jordan's method in place (Bauer & Reinsch, 1970): rows and columns move up as the first one is eliminated.
        for k in range(most - 1, -1, -1):
            scale = spread(1.0) / larger(load(inverse, 0), spread(1e-300))
            for r in range(1, most):
                above, here = r * (r - 1) // 2, r * (r + 1) // 2
                entry = load(inverse, here)
                store(column, r, entry * scale if r > k else spread(0.0) - entry * scale)
                for c in range(1, r + 1):
                    store(inverse, above + c - 1, load(inverse, here + c) + entry * load(column, c))
            last = most * (most - 1) // 2
            for c in range(1, most):
                store(inverse, last + c - 1, load(column, c))
            store(inverse, last + most - 1, scale)
        for lane in range(min(WIDTH, n_patterns - first)):
            q, place = n_holes[lane], holes[lane]
            begin, end = begins[first + lane], begins[first + lane + 1]
            for r in range(q):
                for c in range(r + 1):
                    own[r, c] = own[c, r] = inverse[r * (r + 1) // 2 + c, lane]
            if conditional.shape[0] > 0:
                for r in range(q):
                    for c in range(q):
                        each = np.rint(own[r, c] * steps) if steps > 0 else own[r, c]
                        conditional[place[r], place[c]] += counts[first + lane] * each
            for i in range(begin, end if q > 0 else begin):
                for k in range(d):
                    away[k] = 0.0 if missing[i, k] else rows[i, k] - mean[k]
                for r in range(q):
                    total = 0.0
                    for k in range(d):
                        total += precision[place[r], k] * away[k]
                    right[r] = total
                for r in range(q):
                    total = 0.0
                    for c in range(q):
                        total += own[r, c] * right[c]
                    rows[i, place[r]] = mean[place[r]] - total
                    if deviation.shape[0] > 0:
                        deviation[i, place[r]] = math.sqrt(own[r, r])
