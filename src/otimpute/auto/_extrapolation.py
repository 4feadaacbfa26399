"""Where values are missing and hardly any was observed: there imputed values rest on what was seen elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._threads import FEW, workers_in_use

_N_BINS = 10
_HARDLY = 0.2  # of the share of values observed in the whole column
_MANY = 0.15  # of a column's missing values
_FEWEST_EXPECTED = 10.0  # values that would have been observed there, were they missing by chance
_MOST_ROWS = 20_000  # looked at


@dataclass(frozen=True)
class UnseenRegion:
    """Many values of ``column`` are missing in rows where ``other`` is from ``low`` to ``high``, and hardly any is observed."""

    column: int  # coordinates
    other: int
    low: float
    high: float
    share: float  # of the missing values
    n_observed: int


def find_unseen_regions(
    values: NDArray[np.floating], missing: NDArray[np.bool_], numbers: Sequence[int], rng: np.random.Generator
) -> list[UnseenRegion]:
    """For each column of ``numbers`` with missing values, the worst range of another one, if there is one.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> missing = np.column_stack([np.zeros(500, dtype=bool), x[:, 0] > 1])
    >>> [(each.column, each.other, each.n_observed) for each in find_unseen_regions(x, missing, [0, 1], rng)]
    [(1, 0, 0)]
    """
    if len(values) > _MOST_ROWS:
        rows = np.sort(rng.choice(len(values), _MOST_ROWS, replace=False))
        values, missing = values[rows], missing[rows]
    targets = [j for j in numbers if missing[:, j].any() and not missing[:, j].all()]
    holes = missing[:, targets].astype(np.float32)  # products of numbers are many times faster than those of truth values
    share_observed = 1 - holes.mean(axis=0)

    def regions_of(k: int) -> list[UnseenRegion]:
        """Ranges of column ``k``."""
        known = np.flatnonzero(~missing[:, k])
        x = values[known, k]
        edges = np.unique(np.quantile(x, np.linspace(0, 1, _N_BINS + 1))) if len(x) else np.empty(0)
        if len(edges) < 3:
            return []
        bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        among = np.equal.outer(np.arange(len(edges) - 1), bins).astype(np.float32)  # [bins, rows]
        n_rows = among.sum(axis=1)[:, None]
        n_missing = among @ holes[known]  # [bins, targets]
        expected = n_rows * share_observed
        unseen = n_rows - n_missing < _HARDLY * expected
        found = []
        for place in np.flatnonzero((n_missing * unseen).sum(axis=0) >= _MANY * holes.sum(axis=0)).tolist():
            j = targets[place]
            for first, last in _runs(unseen[:, place]) if j != k else ():
                there = slice(first, last)
                share = float(n_missing[there, place].sum() / holes[:, place].sum())
                if share >= _MANY and expected[there, place].sum() >= _FEWEST_EXPECTED:
                    n_observed = int(n_rows[there].sum() - n_missing[there, place].sum())
                    inside = x[(bins >= first) & (bins < last)]
                    found.append(UnseenRegion(j, k, float(inside.min()), float(inside.max()), share, n_observed))
        return found

    worst: dict[int, UnseenRegion] = {}
    for regions in workers_in_use().map(regions_of, numbers if targets else (), most_threads=FEW):
        for each in regions:
            if each.column not in worst or each.share >= worst[each.column].share:
                worst[each.column] = each
    return sorted(worst.values(), key=lambda region: -region.share)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where flags are set without a break: first, and one past the last."""
    changes = np.flatnonzero(np.diff(np.r_[False, flags, False].astype(np.int8)))
    return list(zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True))
