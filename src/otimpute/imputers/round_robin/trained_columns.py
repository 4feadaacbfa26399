"""Which columns have a model to train, on which rows, with which batches.

Some columns have few holes or none, but new rows may have them there: their models *practise* on observed cells, which the
model's predictions replace only while that model is trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._random import generator
from ...estimator import hide_cells
from ..batches.divergence import BatchPlan
from ..batches.pairs import ALL_ROWS
from ..transport_imputer import N_CROSS_ITERATIONS, N_SELF_ITERATIONS
from .nets import Target

# A handful of holes would teach a model little for new rows: below 5 % it practises on 20 % of the observed cells.
_FEW_HOLES = 0.05
_PRACTICE = 0.2
_REACH = 1.0  # how far beyond the observed range predictions may go, in units of that range


@dataclass(frozen=True)
class TrainedColumn:
    """A column with a model to train."""

    target: Target
    plan: BatchPlan
    batch_size: int
    rows: NDArray[np.int64]  # where values are missing
    practice: NDArray[np.int64]  # observed, but replaced by predictions while the model is trained


def choose_columns_to_train(
    free: NDArray[np.bool_],
    ranges: NDArray[np.float32],
    *,
    batch_size: int,
    batches: str,
    skip_complete: bool,
    seed: int,
) -> list[TrainedColumn]:
    """The columns that get a model: all of them, or those with missing entries; ``ranges [2, d]`` are the observed ones.

    ``batches`` says which rows meet: see `RoundRobinImputer`.
    """
    rng = generator(seed, "practice")
    trained_columns = []
    for column in range(free.shape[1]):
        missing = free[:, column]
        practice = np.zeros(len(free), dtype=bool)
        if not skip_complete and missing.mean() < _FEW_HOLES:
            practice = hide_cells(missing[:, None], _PRACTICE, rng)[:, 0]
        predicted = missing | practice
        if not predicted.any():
            continue
        low, high = map(float, ranges[:, column])
        reach = _REACH * (high - low)
        first, second = ALL_ROWS if batches == "all" else np.flatnonzero(~predicted), ALL_ROWS
        if batches == "observed-missing":
            second = np.flatnonzero(predicted)
        size = min(batch_size, *(len(pool) or len(free) for pool in (first, second)))
        trained_columns.append(
            TrainedColumn(
                Target(column, predicted, batches == "all", low - reach, high + reach),
                BatchPlan(seed, first, second, N_CROSS_ITERATIONS, N_SELF_ITERATIONS),
                size,
                np.flatnonzero(missing),
                np.flatnonzero(practice),
            )
        )
    return trained_columns
