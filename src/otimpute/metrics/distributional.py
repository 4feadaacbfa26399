"""Metrics that compare the distribution of the imputed rows with that of the true rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from .._checks import check_count
from .._optional import require
from .._random import generator, seed_from
from .pointwise import check_finite, check_tables, weights_of

MOST_ROWS = 5000  # exact transport of so many rows takes seconds and 200 MB
_BLOCK = 1024
_MOST_PROJECTED = 1_000_000  # values projected at a time: 8 MB


def wasserstein2(
    X_true: ArrayLike,
    X_imputed: ArrayLike,
    missing: ArrayLike,
    *,
    max_rows: int = MOST_ROWS,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Exact squared 2-Wasserstein distance between the true and the imputed rows that had a missing value.

    As in the paper, the cost is the squared Euclidean distance, without ½. Memory and time grow at least with the square of
    the number of rows, so more than ``max_rows`` rows are an error. A row has as much mass as its ``sample_weight [n]`` says.
    Needs POT.

    >>> wasserstein2([[0.0, 1.0], [5.0, 5.0]], [[0.0, 3.0], [5.0, 5.0]], [[False, True], [False, False]])
    4.0
    """
    ot = require("ot", "the exact Wasserstein distance", "bench")
    true, imputed, weight = _incomplete_rows(X_true, X_imputed, missing, sample_weight)
    if len(true) > max_rows:
        raise ValueError(
            f"{len(true)} rows have a missing value, more than max_rows={max_rows}; "
            "increase max_rows, score a sample of the rows, or use energy_distance"
        )
    cost = cdist(true, imputed, "sqeuclidean")
    if not np.isfinite(cost).all():  # the squares overflowed; POT would return 0
        return math.inf
    mass = [] if weight is None else weight / weight.sum()
    return float(ot.emd2(mass, mass, cost, numItermax=10_000_000))


def energy_distance(
    X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Squared energy distance between the true and the imputed rows that had a missing value.

    ``2 E‖X − Y‖ − E‖X − X'‖ − E‖Y − Y'‖`` over all pairs, including each row with itself (V-statistic). Rows count as often
    as their ``sample_weight [n]`` says.

    >>> energy_distance([[0.0], [9.0]], [[2.0], [9.0]], [[True], [False]])
    4.0
    """
    true, imputed, weight = _incomplete_rows(X_true, X_imputed, missing, sample_weight)
    between, *within = (_mean_distance(x, y, weight) for x, y in ((true, imputed), (true, true), (imputed, imputed)))
    distance = 2 * between - within[0] - within[1]
    # Rounding may give a slightly negative number, and overflowing squares give NaN (infinity − infinity).
    return max(distance, 0.0) if math.isfinite(distance) else math.inf


def sliced_wasserstein2(
    X_true: ArrayLike,
    X_imputed: ArrayLike,
    missing: ArrayLike,
    *,
    n_projections: int = 100,
    random_state: Any = 0,
) -> float:
    """Squared sliced 2-Wasserstein distance between the true and the imputed rows that had a missing value.

    The mean, over random directions, of the exact squared distance between the rows projected on a line. Time and memory
    grow linearly with the number of rows. By default all calls use the same directions (``random_state=0``).

    >>> sliced_wasserstein2([[0.0], [9.0], [1.0]], [[2.0], [9.0], [0.0]], [[True], [False], [True]])
    0.5
    """
    check_count("n_projections", n_projections)
    true, imputed, _ = _incomplete_rows(X_true, X_imputed, missing)
    n, d = true.shape
    rng = generator(seed_from(random_state), "directions")
    block = max(1, _MOST_PROJECTED // n)
    total = 0.0
    for done in range(0, n_projections, block):
        directions = rng.normal(size=(min(block, n_projections - done), d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # In one dimension, the optimal matching is that of the sorted values.
        gaps = np.sort(directions @ true.T, axis=1) - np.sort(directions @ imputed.T, axis=1)
        total += float(np.square(gaps).sum()) / n
    return total / n_projections


def marginal_wasserstein1(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike) -> NDArray[np.float64]:
    """Exact 1-Wasserstein distance between the true and the imputed values, column by column.

    Only entries that were missing count; NaN for a column without missing entries.

    >>> marginal_wasserstein1([[0.0, 1.0], [5.0, 1.0]], [[7.0, 1.0], [0.0, 1.0]], [[True, False], [True, False]])
    array([ 1., nan])
    """
    true, imputed, holes = check_tables(X_true, X_imputed, missing)
    distances = np.full(true.shape[1], np.nan)
    for k in np.flatnonzero(holes.any(axis=0)):
        there = holes[:, k]
        truth, guess = check_finite("X_true", true[there, k]), check_finite("X_imputed", imputed[there, k])
        distances[k] = np.abs(np.sort(truth) - np.sort(guess)).mean()
    return distances


def _incomplete_rows(
    X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    true, imputed, holes = check_tables(X_true, X_imputed, missing)
    rows, weight = holes.any(axis=1), weights_of(holes, sample_weight)
    own = None if weight is None else weight[rows]
    return check_finite("X_true", true[rows]), check_finite("X_imputed", imputed[rows]), own


def _mean_distance(x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> float:
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(x), _BLOCK)]
    if weight is not None:
        return sum(float(weight[some] @ cdist(x[some], y) @ weight) for some in blocks) / float(weight.sum()) ** 2
    return sum(float(cdist(x[some], y).sum()) for some in blocks) / (len(x) * len(y))
