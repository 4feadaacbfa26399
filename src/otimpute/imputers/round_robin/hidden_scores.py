"""Scores of the values that were hidden from a fit of Algorithm 3, as they stand in its table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._random import generator
from ...estimator import score_cells
from ...metrics import energy_distance
from ..transport_imputer import Prepared

_ROWS_FOR_ENERGY = 1000


def scores_of_hidden(prepared: Prepared, decisive: str, seed: int) -> Callable[[], dict[str, float]]:
    """A function that scores the hidden values as they are now, the ``decisive`` score first."""
    hidden, truth, table = prepared.hidden, prepared.truth, prepared.work[:, : prepared.hidden.shape[1]]
    rows = np.flatnonzero(hidden.any(axis=1))
    if len(rows) > _ROWS_FOR_ENERGY:
        rows = generator(seed, "energy").choice(rows, _ROWS_FOR_ENERGY, replace=False)
    answer = np.zeros(hidden.shape, np.float32)
    answer[hidden] = truth
    answer, judged = answer[rows], hidden[rows]

    def score() -> dict[str, float]:
        mae, rmse = score_cells(truth, table[hidden])
        now = table[rows]
        energy = energy_distance(np.where(judged, answer, now), now, judged)
        scores = {"mae": mae, "rmse": rmse, "energy": energy}
        return {decisive: scores.pop(decisive), **scores}

    return score
