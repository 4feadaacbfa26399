"""What is observed of a column of numbers, and its natural edges: what nothing observed crosses, nothing imputed does.

Bringing a guess back to an edge that no true value crosses can only bring it nearer to the truth. Rounding is not like that:
it is a loss where the whole numbers are as coarse as what is guessed at. Measured: docs/studies/edges.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A column around 0 shows one sign only this often by a chance of 2 in a million; of one that does cross an edge in more than
# 15 % of its values this many are on one side with a chance below 5 %.
_ENOUGH = 20
_FIRST = 1000  # values that usually tell whether all are whole
_CHUNK = 4096  # rows that caches hold
_MOST_VALUES = 12  # different ones of a column with few of them


@dataclass(frozen=True)
class Extent:
    """How many values of a column are observed, their range, and whether all are whole."""

    n: int
    lowest: float
    highest: float
    whole: bool

    def natural_range(self) -> tuple[float, float]:
        """The edges that imputed values keep to: 0 on one side, or 0 and 1, or none."""
        if self.n < _ENOUGH or self.lowest < 0 < self.highest:
            return -math.inf, math.inf
        if self.lowest < 0:
            return -math.inf, 0.0
        return 0.0, 1.0 if self.highest <= 1 else math.inf

    def are_counts(self) -> bool:
        """Whether the values count something, so that fractions make no sense.

        Two neighbouring numbers, such as 0 and 1, do not: between them a fraction is a share, or a chance.
        """
        return self.n >= _ENOUGH and self.whole and self.highest - self.lowest > 1


def extent_of(values: NDArray[np.floating]) -> Extent:
    """Of the observed ``values [n]`` of a column."""
    return extents_of(values[:, None])[0]


def extents_of(values: NDArray[np.floating]) -> list[Extent]:
    """Of every column of an array in which NaN is what is missing."""
    d = values.shape[1]
    n, lowest, highest = np.zeros(d, np.int64), np.full(d, np.nan), np.full(d, np.nan)
    for begin in range(0, len(values), _CHUNK):
        rows = values[begin : begin + _CHUNK]
        n += np.count_nonzero(~np.isnan(rows), axis=0)
        lowest, highest = np.fmin(lowest, np.fmin.reduce(rows, axis=0)), np.fmax(highest, np.fmax.reduce(rows, axis=0))
    whole = _all_whole(values[:_FIRST])
    whole[whole] = _all_whole(values[:, whole]) if len(values) > _FIRST else True
    return [Extent(int(n[k]), float(lowest[k]), float(highest[k]), bool(whole[k])) for k in range(d)]


def _all_whole(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    return np.asarray(((np.rint(values) == values) | np.isnan(values)).all(axis=0))


def few_values(observed: NDArray[np.floating]) -> NDArray[np.float64]:
    """The different values of a column that has but a few, and each more than once; otherwise none."""
    if len(np.unique(observed[:_FIRST])) > _MOST_VALUES:  # most columns show at once that they are none of these
        return np.empty(0)
    values, counts = np.unique(observed, return_counts=True)
    few = 1 < len(values) <= _MOST_VALUES and counts.min() > 1
    return np.asarray(values if few else values[:0], dtype=np.float64)
