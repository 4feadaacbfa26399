"""A mixture of Gaussians fitted to an incomplete table by expectation–maximisation.

One Gaussian is one straight relation between columns; a mixture is a different one in every region of the table, so it follows
clusters and curves. The regions share most of their covariance: each leans on the pooled one as if ``prior_rows`` rows had it.
With Λ a component's precision and the holes M filled with their conditional mean, the density of a row's observed part is
``log N = ½ log|Λ| − ½ log|Λ_MM| − ½ (x̂ − μ)ᵀ Λ (x̂ − μ)`` up to a constant: what fills a row also weighs the components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._deadline import check_deadline
from .._stored import stored
from .em import factor_block, fill_row, invert_factor, list_holes, order_by_pattern, same_holes

_SMALLEST_VARIANCE = 1e-4
_TOWARDS_DIAGONAL = 0.03  # of the pooled covariance
_NEGLIGIBLE = 1e-6  # share of a row below which a component learns nothing from it
_ASSIGNMENTS = 10  # rounds of k-means for the start
_SURE = 0.95  # how much of a row the start gives to its nearest centre
_FAR_BELOW = -1e300
_OPERATIONS_AT_ONCE = 2e8  # between looks at the clock: some tenths of a second
_NOT_WANTED = np.empty((0, 0, 0))


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

    def fill(self, values: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Replace the missing entries of ``values [n, d]`` by their conditional means; row by row, nothing is refitted."""
        filled = np.array(values, dtype=np.float64)
        _expect(filled, missing, order_by_pattern(missing), *self._prepared(), np.empty(0), np.empty((0, 0)), _NOT_WANTED)
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
        _draw(filled, missing, order_by_pattern(missing), *self._prepared(), chance, noise)
        return np.where(missing, filled, 0.0)

    def _prepared(self) -> tuple[NDArray[np.floating], ...]:
        """Means, precisions, and the part of a component's log density that no row changes."""
        log_volume = np.linalg.slogdet(self.covariance)[1]
        return self.mean, np.linalg.inv(self.covariance), np.log(self.share) - 0.5 * log_volume


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
) -> MixtureModel:
    """Fit ``n_components`` Gaussians to standardised columns with holes; entries under ``missing`` are ignored.

    ``start`` is the table completed somehow, to find centres in. ``prior_rows``, by default d + 2, say how closely the
    components follow the pooled covariance. Stops as `fit_gaussian` does; OutOfTime where ``deadline`` passes before.

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
    n, d = values.shape
    prior = d + 2.0 if prior_rows is None else prior_rows
    nearest = _nearest_centres(start, n_components, rng)
    belongs = np.full((n, n_components), (1 - _SURE) / n_components)
    belongs[np.arange(n), nearest] += _SURE
    overall = start.mean(axis=0)
    mass = belongs.sum(axis=0)
    mean = (belongs.T @ start + overall) / (mass[:, None] + 1)
    scatter = np.empty((n_components, d, d))
    for k in range(n_components):
        centred = start - mean[k]
        scatter[k] = (centred * belongs[:, k, None]).T @ centred
    order = order_by_pattern(missing)
    row_cost = n_components * (float((missing.sum(axis=1) ** 3).mean()) + d * d)
    at_once = n if math.isinf(deadline) else int(np.clip(_OPERATIONS_AT_ONCE / row_cost, 1, n))
    previous = start[missing]
    for iteration in range(max_iterations):
        model = _maximise(mass, mean, scatter, n, prior)
        filled = np.array(values)
        mass, drift, scatter = np.zeros(n_components), np.zeros((n_components, d)), np.zeros((n_components, d, d))
        prepared = model._prepared()
        for begin in range(0, n, at_once):
            check_deadline(deadline)
            _expect(filled, missing, order[begin : begin + at_once], *prepared, mass, drift, scatter)
        # Statistics are about the old means, which keeps them accurate; move them to the new ones.
        step = (drift + overall - model.mean) / (mass[:, None] + 1)
        mean = model.mean + step
        scatter += mass[:, None, None] * step[:, :, None] * step[:, None, :]
        scatter -= drift[:, :, None] * step[:, None, :] + step[:, :, None] * drift[:, None, :]
        current = filled[missing]
        if iteration and (current.size == 0 or np.sqrt(np.mean((current - previous) ** 2)) <= tolerance):
            break
        previous = current
    return replace(_maximise(mass, mean, scatter, n, prior), n_iterations=iteration + 1)


def _maximise(
    mass: NDArray[np.float64], mean: NDArray[np.float64], scatter: NDArray[np.float64], n: int, prior: float
) -> MixtureModel:
    """The mixture that explains sums over rows, each component leaning on the pooled covariance and on every other's share."""
    pooled = scatter.sum(axis=0) / n
    pooled[np.diag_indices(len(pooled))] += _SMALLEST_VARIANCE
    pooled = (1 - _TOWARDS_DIAGONAL) * pooled + _TOWARDS_DIAGONAL * np.diag(np.diag(pooled))
    covariance = (scatter + prior * pooled) / (mass[:, None, None] + prior)
    return MixtureModel((mass + 1) / (n + len(mass)), mean, (covariance + covariance.transpose(0, 2, 1)) / 2)


def _nearest_centres(rows: NDArray[np.float64], n_centres: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A few rounds of k-means, from centres that are far from each other (k-means++)."""
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
    return np.asarray(nearest)


@compiled
def _weigh(row, missing, holes, q, mean, precision, log_weight, factor, log_holes, right, completed, part):  # type: ignore[no-untyped-def]
    """Complete a row as each component would, and find out how much of the row belongs to each: ``part``, summing to one."""
    n_components, d = mean.shape
    largest = _FAR_BELOW
    for k in range(n_components):
        for j in range(d):
            completed[k, j] = row[j]
        fill_row(completed[k], holes, q, mean[k], precision[k], factor[k], right)
        distance = 0.0
        for a in range(d):
            if not missing[a]:  # at the holes, Λ(x̂ − μ) is zero
                along = 0.0
                for b in range(d):
                    along += precision[k, a, b] * (completed[k, b] - mean[k, b])
                distance += along * (completed[k, a] - mean[k, a])
        part[k] = log_weight[k] - log_holes[k] - 0.5 * distance
        largest = max(largest, part[k])
    total = 0.0
    for k in range(n_components):
        part[k] = math.exp(part[k] - largest)
        total += part[k]
    for k in range(n_components):
        part[k] /= total


@compiled
def _factor_holes(precision, holes, q, factor, log_holes):  # type: ignore[no-untyped-def]
    """Factors of all components' precisions of the holes, and half the logarithms of their determinants."""
    for k in range(precision.shape[0]):
        factor_block(precision[k], holes, q, factor[k])
        log_holes[k] = 0.0
        for r in range(q):
            log_holes[k] += math.log(factor[k, r, r])


@compiled
def _expect(filled, missing, order, mean, precision, log_weight, mass, drift, scatter):  # type: ignore[no-untyped-def]
    """Fill the holes of all rows, and add up what each component has of them: rows, distances from its mean, their products.

    Nothing is added up where ``mass`` is empty. Rows come in an ``order`` in which equal patterns are neighbours.
    """
    d, n_components = filled.shape[1], mean.shape[0]
    holes, right = np.empty(d, np.int64), np.empty(d)
    factor, completed = np.empty((n_components, d, d)), np.empty((n_components, d))
    log_holes, part = np.zeros(n_components), np.empty(n_components)
    inverse = np.empty((d, d))
    q = 0
    for place in range(order.shape[0]):
        i = order[place]
        if place == 0 or not same_holes(missing[i], missing[order[place - 1]]):
            q = list_holes(missing[i], holes)
            _factor_holes(precision, holes, q, factor, log_holes)
        _weigh(filled[i], missing[i], holes, q, mean, precision, log_weight, factor, log_holes, right, completed, part)
        for r in range(q):
            filled[i, holes[r]] = 0.0
            for k in range(n_components):
                filled[i, holes[r]] += part[k] * completed[k, holes[r]]
        if mass.shape[0] == 0:
            continue
        for k in range(n_components):
            if part[k] < _NEGLIGIBLE:
                continue
            mass[k] += part[k]
            for a in range(d):
                away = part[k] * (completed[k, a] - mean[k, a])
                drift[k, a] += away
                for b in range(d):
                    scatter[k, a, b] += away * (completed[k, b] - mean[k, b])
            if q:
                invert_factor(factor[k], q, inverse)
                for r in range(q):
                    for c in range(q):
                        scatter[k, holes[r], holes[c]] += part[k] * inverse[r, c]


@compiled
def _draw(filled, missing, order, mean, precision, log_weight, chance, noise):  # type: ignore[no-untyped-def]
    """Set holes to draws given the rest of the row, less their expectation: a component by ``chance``, then its Gaussian."""
    n, d = filled.shape
    n_components = mean.shape[0]
    holes, right = np.empty(d, np.int64), np.empty(d)
    factor, completed = np.empty((n_components, d, d)), np.empty((n_components, d))
    log_holes, part = np.zeros(n_components), np.empty(n_components)
    q = 0
    for place in range(n):
        i = order[place]
        if place == 0 or not same_holes(missing[i], missing[order[place - 1]]):
            q = list_holes(missing[i], holes)
            _factor_holes(precision, holes, q, factor, log_holes)
        _weigh(filled[i], missing[i], holes, q, mean, precision, log_weight, factor, log_holes, right, completed, part)
        chosen, below = 0, part[0]
        while chosen < n_components - 1 and below < chance[i]:
            chosen += 1
            below += part[chosen]
        # With L Lᵀ the precision of the holes, L⁻ᵀ z has their covariance.
        for r in range(q - 1, -1, -1):
            right[r] = noise[i, holes[r]]
            for c in range(r + 1, q):
                right[r] -= factor[chosen, c, r] * right[c]
            right[r] /= factor[chosen, r, r]
        for r in range(q):
            expected = 0.0
            for k in range(n_components):
                expected += part[k] * completed[k, holes[r]]
            filled[i, holes[r]] = completed[chosen, holes[r]] + right[r] - expected
