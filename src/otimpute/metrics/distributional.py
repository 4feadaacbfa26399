"""Scores that compare the cloud of imputed rows with the cloud of true ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from .._optional import require
from .pointwise import check_tables

_BLOCK = 1024


def wasserstein2(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike, *, max_rows: int = 5000) -> float:
    """Exact squared 2-Wasserstein distance between the true and the imputed rows that had a missing value.

    The paper's formula: squared Euclidean cost, without ½. Memory and time grow with the square of the rows and more, so
    above ``max_rows`` it refuses. Needs POT.

    >>> wasserstein2([[0.0, 1.0], [5.0, 5.0]], [[0.0, 3.0], [5.0, 5.0]], [[False, True], [False, False]])
    4.0
    """
    ot = require("ot", "the exact Wasserstein distance", "bench")
    true, imputed = _incomplete_rows(X_true, X_imputed, missing)
    if len(true) > max_rows:
        raise ValueError(
            f"{len(true)} rows have a missing value, more than max_rows={max_rows}; "
            "raise max_rows, score a sample of the rows, or use energy_distance"
        )
    return float(ot.emd2([], [], cdist(true, imputed, "sqeuclidean"), numItermax=10_000_000))


def energy_distance(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike) -> float:
    """Squared energy distance between the true and the imputed rows that had a missing value.

    ``2 E‖X − Y‖ − E‖X − X'‖ − E‖Y − Y'‖`` over all pairs, a row with itself included (V-statistic).

    >>> energy_distance([[0.0], [9.0]], [[2.0], [9.0]], [[True], [False]])
    4.0
    """
    true, imputed = _incomplete_rows(X_true, X_imputed, missing)
    return 2 * _mean_distance(true, imputed) - _mean_distance(true, true) - _mean_distance(imputed, imputed)


def _incomplete_rows(
    X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    true, imputed, holes = check_tables(X_true, X_imputed, missing)
    rows = holes.any(axis=1)
    return true[rows], imputed[rows]


def _mean_distance(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    total = sum(float(cdist(x[i : i + _BLOCK], y).sum()) for i in range(0, len(x), _BLOCK))
    return total / (len(x) * len(y))
