"""Which columns predict others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .standardised import Rows

_MOST_INPUTS = 32  # of a column: in wide tables most others tell nothing new


def choose_inputs(rows: Rows, targets: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The columns that predict others: all the rest, or of many those that follow them most closely, straight or bent."""
    every = np.arange(rows.shape[1])
    others = [np.setdiff1d(every, columns) for columns in targets]
    if max(map(len, others), default=0) <= _MOST_INPUTS:
        return others
    related = np.maximum(_correlation(rows, rows), _correlation(rows**2, rows))
    closest = [np.argsort(-related[np.ix_(other, columns)].max(axis=1), kind="stable")[:_MOST_INPUTS]
               for other, columns in zip(others, targets, strict=True)]  # fmt: skip
    return [np.sort(other[chosen]) for other, chosen in zip(others, closest, strict=True)]


def _correlation(x: Rows, y: Rows) -> NDArray[np.float64]:
    """How closely columns [n, p] and [n, k] follow each other, from 0 to 1; 0 where one of them does not vary."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    size = np.sqrt(np.outer((x**2).sum(axis=0), (y**2).sum(axis=0)))
    return np.abs(x.T @ y) / np.where(size > 0, size, np.inf)
