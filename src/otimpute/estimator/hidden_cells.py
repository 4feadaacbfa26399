"""Judge an imputer by observed values hidden from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, stored


@stored(
    rows=Array("R", at_least=0),
    row=Array("N", at_least=0),
    column=Array("N", index_of="table"),
    split=Array("N", at_least=0),
    truth="N",
    guess="N",
    simplest="N",
    stands_for=Array("N", at_least=0),
    spread=Array("table", at_least=0),
)
@dataclass(frozen=True)
class HiddenValues:
    """Observed values that were hidden from an imputer, and what it made of them.

    One number per value: in the column's units (dates and times in seconds), or the place of a category among the categories.
    """

    rows: NDArray[np.int64]  # [R] of the table, among which they were hidden
    row: NDArray[np.int64]  # [N] of the table
    column: NDArray[np.int64]  # [N] of the table
    split: NDArray[np.int64]  # [N]: those of one split were hidden together
    truth: NDArray[np.float64]  # [N]
    guess: NDArray[np.float64]  # [N]
    simplest: NDArray[np.float64]  # [N]: the mean of what was left of the column, or its most frequent category
    stands_for: NDArray[np.float64]  # [N]: missing values that are like it, 1 on average
    spread: NDArray[np.float64]  # [d]: standard deviation of each column that errors are measured in

    def __post_init__(self) -> None:
        if not np.isin(self.row, self.rows).all():
            raise ValueError("values were hidden in other rows than those named")


def hide_cells(
    missing: NDArray[np.bool_],
    fraction: float | NDArray[np.float64],
    rng: np.random.Generator,
    groups: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Choose a ``fraction`` of each column's observed entries at random; every column keeps at least two of its values.

    Columns of one group are missing together, and hidden together.

    >>> hidden = hide_cells(np.zeros((50, 4), dtype=bool), 0.1, np.random.default_rng(0))
    >>> int(hidden.sum())
    20
    """
    hidden = np.zeros(missing.shape, dtype=bool)
    share = np.broadcast_to(fraction, missing.shape[1])
    for k in range(missing.shape[1]):
        if groups is not None and k and groups[k] == groups[k - 1]:
            hidden[:, k] = hidden[:, k - 1]
            continue
        observed = np.flatnonzero(~missing[:, k])
        count = min(round(float(share[k]) * len(observed)), max(len(observed) - 2, 0))
        hidden[rng.choice(observed, size=count, replace=False), k] = True
    return hidden


def mean_over_missing(errors: Sequence[float], n_missing: NDArray[np.int64]) -> float:
    """The error to expect of a missing value, from that of every column and how many values are missing there.

    >>> mean_over_missing([0.1, 0.5], np.array([300, 100]))
    0.2
    """
    return float(np.average(errors, weights=n_missing))


def score_cells(truth: NDArray[np.floating], imputed: NDArray[np.floating]) -> tuple[float, float]:
    """MAE and RMSE over hidden cells; NaN when there are none.

    >>> score_cells(np.array([0.0, 0.0]), np.array([3.0, -4.0]))
    (3.5, 3.5355339059327378)
    """
    if truth.size == 0:
        return float("nan"), float("nan")
    error = imputed.astype(np.float64) - truth
    return float(np.abs(error).mean()), float(np.sqrt((error**2).mean()))
