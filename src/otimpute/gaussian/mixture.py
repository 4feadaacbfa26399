"""A mixture of Gaussians fitted to an incomplete table by expectation–maximisation.

One Gaussian is one straight relation between columns; a mixture is a different one in every region of the table, so it follows
clusters and curves. The regions share most of their covariance: each leans on the pooled one as if ``prior_rows`` rows had it.
With Λ a component's precision and the holes M filled with their conditional mean, the density of a row's observed part is
``log N = ½ log|Λ| − ½ log|Λ_MM| − ½ (x̂ − μ)ᵀ Λ (x̂ − μ)`` up to a constant: what fills a row also weighs the components.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._deadline import check_deadline
from .._lanes import WIDTH, aligned_zeros
from .._stored import stored
from .._threads import ALONE, Workers
from ._mixture_loops import (
    FAR_BELOW,
    FAR_STEPS,
    NEAR_STEPS,
    ROWS_SUMMED,
    SHARE_STEPS,
    add_whole_rows,
    draw_rows,
    weigh_rows,
)
from .em import GaussianModel, number_of_parts, order_by_pattern, rows_on

_SMALLEST_VARIANCE = 1e-4
_TOWARDS_DIAGONAL = 0.03  # of the pooled covariance
_FOR_CENTRES = 5000  # rows
_ASSIGNMENTS = 10  # rounds of k-means for the start
_SURE = 0.95  # how much of a row the start gives to its nearest centre
_ROWS_PER_PART = 128  # whose sums are made side by side
_NO_WEIGHT, _NO_SUMS = np.empty(0), np.empty((0, WIDTH))
_LANES_AT_ONCE = 16_384  # a megabyte of them: what is known of a chunk of rows stays in the cache


@stored(share="K", mean="K varying", covariance="K varying varying")
@dataclass(frozen=True)
class MixtureModel:
    """Gaussians and how much of the table each of them describes."""

    share: NDArray[np.float64]  # [K], sums to 1
    mean: NDArray[np.float64]  # [K, d]
    covariance: NDArray[np.float64]  # [K, d, d]
    n_iterations: int = 0

    def __post_init__(self) -> None:
        if len(self.share) == 0 or not (self.share > 0).all():
            raise ValueError("every component needs a share")
        if self.covariance.shape[1] and not (np.linalg.eigvalsh(self.covariance)[:, 0] > 0).all():
            raise ValueError("a covariance is not positive definite")

    @classmethod
    def of(cls, gaussian: GaussianModel) -> MixtureModel:
        """A mixture of one Gaussian."""
        return cls(np.ones(1), gaussian.mean[None], gaussian.covariance[None])

    def draw(
        self,
        values: NDArray[np.float64],
        missing: NDArray[np.bool_],
        chance: NDArray[np.float64],
        noise: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Replace the missing entries by draws given the rest of their row; random numbers as in `draw_residuals`."""
        return self.fill(values, missing) + self.draw_residuals(values, missing, chance, noise)

    def fill(
        self,
        values: NDArray[np.float64],
        missing: NDArray[np.bool_],
        workers: Workers = ALONE,
        torch_device: str | None = None,
    ) -> NDArray[np.float64]:
        """Replace the missing entries of ``values [n, d]`` by their conditional means; row by row, nothing is refitted."""
        filled = np.array(values, dtype=np.float64)
        if torch_device is not None:
            rows = rows_on(torch_device, filled, missing, len(self.share))
            filled[missing] = rows.fill(self.share, self.mean, self.covariance)
            return filled
        prepared = _prepare(self.share, self.mean, self.covariance)
        parts = _parts_of(missing, len(self.share), workers.n_threads)
        workers.map(lambda part: part.fill(filled, prepared), parts)
        return filled

    def draw_residuals(
        self,
        values: NDArray[np.float64],
        missing: NDArray[np.bool_],
        chance: NDArray[np.float64],
        noise: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """How far draws of the missing entries, given the rest of their row, lie from their conditional means; ``[n, d]``.

        A row uses its ``chance`` (uniform, ``[n]``) and its ``noise`` (standard normal, ``[n, d]``) only.
        """
        filled = np.array(values, dtype=np.float64)
        prepared = _prepare(self.share, self.mean, self.covariance)
        (part,) = _parts_of(missing, len(self.share), 1)
        for rows in part.weigh(filled, prepared):
            draw_rows(filled, rows, prepared[0], chance, noise, *part.memory)
        return np.where(missing, filled, 0.0)

    def expect(self, values: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.int64]:
        """What a step of EM needs of rows, in whole numbers: no order of rows and no partitioning of them changes a bit.

        ``[3, K, 1 + d, 1 + d]``, lower triangles: products of rows (1, distance from a component's mean), weighed by how much
        of the row the component has, for rows near it and far from it; and conditional covariances.
        """
        filled, prepared = np.array(values, dtype=np.float64), _prepare(self.share, self.mean, self.covariance)
        (part,) = _parts_of(missing, len(self.share), 1)
        return part.count(filled, prepared, _in_lanes(self._steps), len(self.share))

    def improved(self, expected: NDArray[Any], n: int, prior_rows: float | None = None) -> MixtureModel:
        """A step of EM: from the sum over ``n`` rows of what `expect` returned, in integers of any type."""
        near, far, conditional = expected.astype(object)
        products = ((near + far * int((NEAR_STEPS / FAR_STEPS) ** 2)) / int(NEAR_STEPS**2)).astype(np.float64)
        steps = SHARE_STEPS * self._steps[:, :, None] * self._steps[:, None, :]
        scatter = products[:, 1:, 1:] + conditional[:, 1:, 1:].astype(np.float64) / steps
        scatter += np.tril(scatter, -1).transpose(0, 2, 1)
        mass, drift = products[:, 0, 0], products[:, 1:, 0]
        overall = (mass @ self.mean + drift.sum(axis=0)) / n
        mean = _move_means(self.mean, overall, mass, drift, scatter)
        share, covariance = _maximise(mass, scatter, n, _prior(len(overall), prior_rows))
        return replace(self, share=share, mean=mean, covariance=covariance)

    @property
    def _steps(self) -> NDArray[np.float64]:
        """For each component and column ``[K, d]`` a power of two, times which its standard deviation is 2⁹ to 2¹⁰."""
        _, exponent = np.frexp(np.diagonal(self.covariance, axis1=1, axis2=2))
        return np.asarray(np.ldexp(1.0, 10 - (exponent + 1) // 2))


def _parts_of(missing: NDArray[np.bool_], n_components: int, n_parts: int) -> list[_Part]:
    """So many parts of a table's rows, equal patterns side by side, in chunks."""
    n_blocks = -(-n_components // WIDTH)
    order = order_by_pattern(missing)
    n_missing = missing.sum(axis=1)[order]
    of_factor = n_blocks * (n_missing * (n_missing + 1) // 2)
    size = np.cumsum(of_factor + n_blocks * (missing.shape[1] + 1))
    chunks = np.split(order, 1 + np.flatnonzero(np.diff((size - size[:1]) // _LANES_AT_ONCE)))
    most_of_factor = min(_LANES_AT_ONCE, int(of_factor.sum())) + int(of_factor.max(initial=0))
    bounds = np.linspace(0, len(chunks), min(n_parts, len(chunks)) + 1).astype(int)
    return [_Part(missing, chunks[a:b], n_blocks, most_of_factor) for a, b in pairwise(bounds)]


class _Part:
    """Chunks of rows for one worker, and memory for what `weigh_rows` finds out about one of them."""

    def __init__(self, missing: NDArray[np.bool_], chunks: list[NDArray[np.int64]], n_blocks: int, most_of_factor: int):
        self.missing, self.chunks = missing, chunks
        self.rows, self.ends = np.concatenate(chunks), np.cumsum([len(rows) for rows in chunks])
        d, most = missing.shape[1], max(map(len, chunks))
        self.memory = (
            np.empty((most, d), np.int64),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            aligned_zeros(most_of_factor),
            aligned_zeros(most * n_blocks * d),
            aligned_zeros(most * n_blocks),
        )
        self.sums: list[NDArray[np.float64]] = []  # used again in every round

    def weigh(self, filled: NDArray[np.float64], prepared: tuple[NDArray[np.float64], ...]) -> Iterator[NDArray[np.int64]]:
        """Fill the rows, chunk by chunk; which rows they were. What else was found out about them is in the memory."""
        for rows in self.chunks:
            self._weigh(filled, prepared, _NO_WEIGHT, [_NO_SUMS] * 3, rows, np.array([len(rows)]))
            yield rows

    def fill(self, filled: NDArray[np.float64], prepared: tuple[NDArray[np.float64], ...]) -> None:
        """Fill the rows."""
        self._weigh(filled, prepared, _NO_WEIGHT, [_NO_SUMS] * 3, self.rows, self.ends)

    def learn(
        self,
        filled: NDArray[np.float64],
        prepared: tuple[NDArray[np.float64], ...],
        row_weight: NDArray[np.float64] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Fill the rows; sums over them of distances from components' means, of their products, and of shares.

        The sums are those of this round, and no longer when there is another one.
        """
        self.sums = self.sums or [np.empty(each.shape) for each in prepared]
        for each in self.sums:
            each[:] = 0
        self._weigh(filled, prepared, _NO_WEIGHT if row_weight is None else row_weight, self.sums, self.rows, self.ends)
        return self.sums

    def _weigh(
        self,
        filled: NDArray[np.float64],
        prepared: tuple[NDArray[np.float64], ...],
        row_weight: NDArray[np.float64],
        sums: list[NDArray[np.float64]],
        rows: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> None:
        """One call for all chunks, where they end: between calls threads would wait for each other."""
        weigh_rows(filled, self.missing, rows, ends, row_weight, *prepared, *self.memory, *sums)

    def count(
        self,
        filled: NDArray[np.float64],
        prepared: tuple[NDArray[np.float64], ...],
        steps: NDArray[np.float64],
        n_components: int,
    ) -> NDArray[np.int64]:
        """Fill the rows; sums over them in whole numbers, as `MixtureModel.expect` returns them."""
        n_blocks, d = len(prepared[-1]), filled.shape[1]
        whole = np.zeros((3, n_components, d + 1, d + 1), np.int64)
        sums, n_summed = [aligned_zeros(n_blocks * width**2) for width in (d + 1, d + 1, d)], 0

        def take_in() -> None:
            for place, (lanes, width) in enumerate(zip(sums, (d + 1, d + 1, d), strict=True)):
                whole[place, :, -width:, -width:] += _from_lanes(lanes, n_components, width, width).astype(np.int64)
                lanes[:] = 0

        for rows in self.weigh(filled, prepared):
            if n_summed + len(rows) > ROWS_SUMMED:
                take_in()
                n_summed = 0
            add_whole_rows(len(rows), *self.memory, steps, *sums)
            n_summed += len(rows)
        take_in()
        return whole


def _prepare(
    share: NDArray[np.float64], mean: NDArray[np.float64], covariance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Means, precisions, and the part of a component's log density that no row changes; in lanes."""
    log_weight = np.log(share) - 0.5 * np.linalg.slogdet(covariance)[1]
    return _in_lanes(mean), _in_lanes(np.linalg.inv(covariance)), _in_lanes(log_weight, padding=FAR_BELOW)


def _in_lanes(parameters: NDArray[np.floating], padding: float = 0.0) -> NDArray[np.float64]:
    """Parameters ``[K, ...]`` with `WIDTH` components side by side: ``[K / WIDTH · ..., WIDTH]``, the last ones padded."""
    n_blocks, shape = -(-len(parameters) // WIDTH), parameters.shape[1:]
    padded = np.full((n_blocks * WIDTH, *shape), padding)
    padded[: len(parameters)] = parameters
    lanes = aligned_zeros(n_blocks, *shape)
    lanes[:] = np.moveaxis(padded.reshape(n_blocks, WIDTH, *shape), 1, -1)
    return lanes.reshape(-1, WIDTH)


def _from_lanes(lanes: NDArray[np.float64], n_components: int, *shape: int) -> NDArray[np.float64]:
    """``[K, *shape]`` again."""
    apart = np.moveaxis(lanes.reshape(-1, *shape, WIDTH), -1, 1)
    return np.ascontiguousarray(apart.reshape(-1, *shape)[:n_components])


def fit_mixture(
    values: NDArray[np.float64],
    missing: NDArray[np.bool_],
    n_components: int,
    *,
    start: NDArray[np.float64],
    rng: np.random.Generator,
    prior_rows: float | None = None,
    tolerance: float = 2e-3,
    max_iterations: int = 15,
    deadline: float = math.inf,
    workers: Workers = ALONE,
    torch_device: str | None = None,
    row_weight: NDArray[np.float64] | None = None,
) -> MixtureModel:
    """Fit ``n_components`` Gaussians to standardised columns with holes; entries under ``missing`` are ignored.

    ``start`` is the table completed somehow, to find centres in. ``prior_rows``, by default d + 2, say how closely the
    components follow the pooled covariance. Stops as `fit_gaussian` does; OutOfTime where ``deadline`` passes before. The
    number of ``workers`` does not change the result. With a ``torch_device`` torch computes there, in the same precision. Rows
    count as often as their ``row_weight [n]`` says.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> values = np.column_stack([x, np.abs(x)])
    >>> missing = np.zeros(values.shape, dtype=bool)
    >>> missing[:20, 1] = True
    >>> start = np.where(missing, values[20:].mean(axis=0), values)
    >>> filled = fit_mixture(values, missing, 4, start=start, rng=rng).fill(values, missing)
    >>> bool(np.abs(filled - values).max() < 0.5 < np.abs(start - values).max())
    True
    """
    n_rows, d = values.shape
    prior = _prior(d, prior_rows)
    nearest = _nearest_centres(start, n_components, rng)
    belongs = np.full((n_rows, n_components), (1 - _SURE) / n_components)
    belongs[np.arange(n_rows), nearest] += _SURE
    n, overall = float(n_rows), start.mean(axis=0)
    if row_weight is not None:
        n, overall = float(row_weight.sum()), np.average(start, axis=0, weights=row_weight)
        belongs *= row_weight[:, None]
    mass = belongs.sum(axis=0)
    mean = (belongs.T @ start + overall) / (mass[:, None] + 1)

    def scatter_of(k: int) -> NDArray[np.float64]:
        centred = start - mean[k]
        return np.asarray((centred * belongs[:, k, None]).T @ centred)

    scatter = np.array(workers.map(scatter_of, range(n_components)))
    on_torch = None
    if torch_device is not None:
        weight = None if row_weight is None else row_weight[:, None]
        on_torch = rows_on(torch_device, np.where(missing, start, values), missing, n_components, weight)
    parts = _parts_of(missing, n_components, number_of_parts(n_rows, _ROWS_PER_PART)) if on_torch is None else []
    filled, entries = np.array(values), np.flatnonzero(missing)
    previous = start.take(entries)
    for iteration in range(max_iterations):
        share, covariance = _maximise(mass, scatter, n, prior)
        if on_torch is not None:
            check_deadline(deadline)
            drift, scatter, mass, moved = on_torch.learn(share, mean, covariance)
        else:
            prepared = _prepare(share, mean, covariance)

            def learn(part: _Part, prepared: tuple[NDArray[np.float64], ...] = prepared) -> list[NDArray[np.float64]]:
                check_deadline(deadline)
                return part.learn(filled, prepared, row_weight)

            found = workers.map(learn, parts)
            sums = found[0]
            for others in found[1:]:  # in the order of the parts
                for one, other in zip(sums, others, strict=True):
                    one += other
            shapes = (d,), (d, d), ()
            drift, scatter, mass = [_from_lanes(each, n_components, *shape) for each, shape in zip(sums, shapes, strict=True)]
            scatter += np.tril(scatter, -1).transpose(0, 2, 1)
            current = filled.take(entries)
            moved = float(((current - previous) ** 2).sum())
            previous = current
        mean = _move_means(mean, overall, mass, drift, scatter)
        if iteration and (entries.size == 0 or np.sqrt(moved / entries.size) <= tolerance):
            break
    share, covariance = _maximise(mass, scatter, n, prior)
    return MixtureModel(share, mean, covariance, n_iterations=iteration + 1)


def _prior(n_columns: int, prior_rows: float | None) -> float:
    """As how many rows the pooled covariance counts in each component."""
    return n_columns + 2.0 if prior_rows is None else prior_rows


def _move_means(
    mean: NDArray[np.float64],
    overall: NDArray[np.float64],
    mass: NDArray[np.float64],
    drift: NDArray[np.float64],
    scatter: NDArray[np.float64],
) -> NDArray[np.float64]:
    """New means, which lean on the ``overall`` one as if a row were there.

    Statistics are about the old means, which keeps them accurate; ``scatter`` is moved to the new ones.
    """
    step = (drift + overall - mean) / (mass[:, None] + 1)
    scatter += mass[:, None, None] * step[:, :, None] * step[:, None, :]
    scatter -= drift[:, :, None] * step[:, None, :] + step[:, :, None] * drift[:, None, :]
    return np.asarray(mean + step)


def _maximise(
    mass: NDArray[np.float64], scatter: NDArray[np.float64], n: float, prior: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares and covariances that explain sums over rows; components lean on the pooled covariance and on equal shares."""
    pooled = scatter.sum(axis=0) / n
    pooled[np.diag_indices(len(pooled))] += _SMALLEST_VARIANCE
    pooled = (1 - _TOWARDS_DIAGONAL) * pooled + _TOWARDS_DIAGONAL * np.diag(np.diag(pooled))
    covariance = (scatter + prior * pooled) / (mass[:, None, None] + prior)
    return (mass + 1) / (n + len(mass)), (covariance + covariance.transpose(0, 2, 1)) / 2


def _nearest_centres(every_row: NDArray[np.float64], n_centres: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A few rounds of k-means, from centres that are far from each other (k-means++); some of many rows find them."""
    n = len(every_row)
    rows = every_row if n <= _FOR_CENTRES else every_row[rng.choice(n, _FOR_CENTRES, replace=False)]
    centres = rows[[rng.integers(len(rows))]]
    distance = ((rows - centres[0]) ** 2).sum(axis=1)
    for _ in range(1, n_centres):
        total = distance.sum()
        chosen = rng.choice(len(rows), p=distance / total) if total > 0 else rng.integers(len(rows))
        centres = np.vstack([centres, rows[chosen]])
        distance = np.minimum(distance, ((rows - rows[chosen]) ** 2).sum(axis=1))
    for _ in range(_ASSIGNMENTS):
        nearest = np.argmin((centres**2).sum(axis=1) - 2 * rows @ centres.T, axis=1)
        for k in range(n_centres):
            members = nearest == k
            if members.any():
                centres[k] = rows[members].mean(axis=0)
    if n > _FOR_CENTRES:
        nearest = np.argmin((centres**2).sum(axis=1) - 2 * every_row @ centres.T, axis=1)
    return np.asarray(nearest)
