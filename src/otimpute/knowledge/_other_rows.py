"""What the other rows of a group say about a value: their mean, what moves all groups at a time, and the nearest in time.

A value is taken for the sum of three parts. The *mean* of its group's other values is drawn towards 0, the population's mean,
the more the fewer they are. The *movement* is how far values of other groups at about that time are from their groups' means,
drawn towards 0 likewise. The *rest* is correlated with that of values nearby in time, and its expectation given up to
`_ON_A_SIDE` observed ones before and after is the solution of a small linear system, as in kriging. No value, observed or not,
has any part in what is said about it. How strong all this is in a column is a `Strength`, chosen so that observed values are
foretold best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._stored import Real, stored

Cells = NDArray[np.float64]
Places = NDArray[np.int64]

_ON_A_SIDE = 2  # neighbours in time
_MOST_TRIED = 1000  # observed values that the strength is chosen by
_MOST_BINS = 64  # of time, where groups are observed at times of their own
_ROWS_PER_TIME = 2.0  # on average, or times are put into bins
_NEVER = 1e12  # rows that the population's mean counts as where others say nothing
_POOLED = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, _NEVER)
_POOLED_IN_TIME = (1.0, 4.0, 16.0, _NEVER)
_REACHES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)  # in typical steps of time
_SHARES = (0.0, 0.3, 0.6, 0.85, 0.95, 0.999, 0.99999)


@stored(pooled=Real(above=0), pooled_in_time=Real(above=0), reach=Real(above=0))
@dataclass(frozen=True)
class Strength:
    """How strongly the values of a column go together."""

    pooled: float = _NEVER  # rows that the population's mean counts as, beside those of a group
    pooled_in_time: float = _NEVER  # the same for what moves all groups
    reach: float = 1.0  # steps of time after which what is left has forgotten its past
    share: float = 0.0  # of what is left that is correlated at all; the others come and go
    smooth: bool = False  # whether it moves like a curve, or like a random walk

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ValueError(f"the correlated share must be at least 0 and below 1, got {self.share}")

    def correlation(self, gap: Cells) -> Cells:
        """Of what is left of two values of a group, so far apart in time."""
        a = np.abs(gap) / self.reach
        return np.asarray(self.share * np.exp(-a) * (1 + a if self.smooth else 1.0))


class Moments(NamedTuple):
    """The times at which a group has rows, M of them, by group and then by time."""

    of_row: Places  # [n]
    group: Places  # [M]
    time: Cells  # [M]
    row: Places  # [M]: one of its rows


class Near(NamedTuple):
    """The moments nearest to rows at which a column was observed, `_ON_A_SIDE` before and as many after."""

    exist: NDArray[np.bool_]  # [N, K]
    moment: Places  # [N, K]
    value: Cells  # [N, K]: the mean of what was observed then
    gap: Cells  # [N, K]


@dataclass(frozen=True)
class Rows:
    """To which group rows belong, and when they were observed, in typical steps of time."""

    group: Places  # [n]: from 0
    time: Cells | None  # [n]

    def said_of(self, z: Cells, missing: NDArray[np.bool_], strengths: Sequence[Strength]) -> Cells:
        """What others say about every value ``[n, J]``, in standard deviations; 0 where they say nothing."""
        columns = zip(z.T, missing.T, strengths, strict=True)
        return np.array([_Column(self, one, ~holes).said(how) for one, holes, how in columns]).reshape(-1, len(z)).T

    def strengths(self, z: Cells, missing: NDArray[np.bool_], rng: np.random.Generator) -> list[Strength]:
        """Those with which observed values are foretold best, by column."""
        return [_Column(self, one, ~holes).strength(rng) for one, holes in zip(z.T, missing.T, strict=True)]

    def at(self, places: Places) -> Rows:
        """Some rows, or all in another order."""
        return Rows(self.group[places], None if self.time is None else self.time[places])

    @cached_property
    def n_groups(self) -> int:
        """How many there are."""
        return int(self.group.max(initial=-1)) + 1

    @cached_property
    def moments(self) -> Moments:
        """The times at which groups have rows."""
        assert self.time is not None
        order = np.lexsort((self.time, self.group))
        group, time = self.group[order], self.time[order]
        is_new = np.r_[True, (np.diff(group) != 0) | (np.diff(time) != 0)][: len(order)]
        of_row = np.empty(len(order), np.int64)
        of_row[order] = np.cumsum(is_new) - 1
        return Moments(of_row, group[is_new], time[is_new], order[is_new])

    @cached_property
    def bins(self) -> Places | None:
        """Which rows are at about the same time; None where there is but one group to compare."""
        if self.time is None or self.n_groups < 2:
            return None
        times, place = np.unique(self.time, return_inverse=True)
        if len(times) * _ROWS_PER_TIME <= len(self.time):
            return np.asarray(place)
        n_bins = max(min(_MOST_BINS, len(self.time) // 16), 1)
        return np.asarray(np.searchsorted(np.quantile(self.time, np.linspace(0, 1, n_bins + 1)[1:-1]), self.time))

    @cached_property
    def own_bins(self) -> Places:
        """Which rows are at about the same time and of one group."""
        bins = self.bins
        assert bins is not None
        return np.asarray(np.unique(self.group * (bins.max() + 1) + bins, return_inverse=True)[1])


class _Column:
    """One column of a panel."""

    def __init__(self, rows: Rows, z: Cells, observed: NDArray[np.bool_]):
        self.rows, self.observed, self.z = rows, observed, np.where(observed, z, 0.0)
        self.sums, self.counts = _sums(rows.group, self.z, observed)

    def said(self, how: Strength) -> Cells:
        """What others say about each value."""
        means, moved = self._means(how), self._movement(how)
        if how.share == 0 or self.rows.time is None:
            return means + moved
        everyone = np.arange(len(self.z))
        return means + moved + self._rest(how, everyone, means, moved, self._near(everyone))

    def strength(self, rng: np.random.Generator) -> Strength:
        """Chosen part after part, by observed values."""
        tried = np.flatnonzero(self.observed)
        if len(tried) > _MOST_TRIED:
            tried = np.sort(rng.choice(tried, _MOST_TRIED, replace=False))
        truth, how = self.z[tried], Strength()
        pooled = [replace(how, pooled=each) for each in _POOLED]
        how = _least([(one, self._means(one)[tried] - truth) for one in pooled])
        if self.rows.time is None:
            return how
        means = self._means(how)
        moved_alike = [replace(how, pooled_in_time=each) for each in _POOLED_IN_TIME]
        how = _least([(one, (means + self._movement(one))[tried] - truth) for one in moved_alike])
        near, ways = self._near(tried, self._gaps_like_missing(len(tried), rng)), []
        for pooled_in_time in dict.fromkeys((how.pooled_in_time, _NEVER)):  # what is near may know better than all groups
            one = replace(how, pooled_in_time=pooled_in_time)
            moved = self._movement(one)
            left = (means + moved)[tried] - truth
            for share, reach, smooth in product(_SHARES, _REACHES, (False, True)):
                this = replace(one, share=share, reach=reach, smooth=smooth)
                ways.append((this, left + self._rest(this, tried, means, moved, near)))
        return _least(ways)

    def _means(self, how: Strength) -> Cells:
        """The mean of the other values of the group."""
        group = self.rows.group
        return np.asarray((self.sums[group] - self.z) / (self.counts[group] - self.observed + how.pooled))

    def _movement(self, how: Strength) -> Cells:
        """How far values of other groups at about that time are from their groups' means."""
        bins = self.rows.bins
        if how.pooled_in_time >= _NEVER or bins is None:
            return np.zeros(len(self.z))
        own = self.rows.own_bins
        away = np.where(self.observed, self.z - (self.sums / (self.counts + how.pooled))[self.rows.group], 0.0)
        all_sums, all_counts = _sums(bins, away, self.observed)
        own_sums, own_counts = _sums(own, away, self.observed)
        return np.asarray((all_sums[bins] - own_sums[own]) / (all_counts[bins] - own_counts[own] + how.pooled_in_time))

    def _near(self, rows: Places, passed_over: Places | int = 0) -> Near:
        """The neighbours in time of some rows; rows at one moment are none of each other.

        So many moments ``[N, 2]`` before and after are passed over, whether the column was observed then or not.
        """
        moments = self.rows.moments
        sums, counts = _sums(moments.of_row, self.z, self.observed)
        seen, own, last = np.flatnonzero(counts), moments.of_row[rows], len(moments.time)
        n_until = np.r_[0, np.cumsum(counts > 0)]  # how many of those seen come before a moment
        passed_over = np.broadcast_to(passed_over, (len(rows), 2))
        before = n_until[np.maximum(own - passed_over[:, 0], 0)][:, None] - 1 - np.arange(_ON_A_SIDE)
        after = n_until[np.minimum(own + 1 + passed_over[:, 1], last)][:, None] + np.arange(_ON_A_SIDE)
        place = np.hstack([before, after])
        exist = (place >= 0) & (place < len(seen))
        moment = np.where(exist, np.r_[seen, 0][np.where(exist, place, -1)], own[:, None])
        exist &= moments.group[moment] == moments.group[own][:, None]
        value = sums[moment] / np.maximum(counts[moment], 1)
        return Near(exist, moment, value, moments.time[moment] - moments.time[own][:, None])

    def _gaps_like_missing(self, n: int, rng: np.random.Generator) -> Places | int:
        """How many moments next to a missing value lack one too ``[n, 2]``, as it is at missing values drawn at random."""
        missing = np.flatnonzero(~self.observed)
        if len(missing) == 0:
            return 0
        drawn = rng.choice(missing, n)
        near, own = self._near(drawn), self.rows.moments.of_row[drawn]
        sides = [0, _ON_A_SIDE]  # the nearest before, and after
        gaps = np.abs(near.moment[:, sides] - own[:, None]) - 1
        return np.where(near.exist[:, sides], gaps, len(self.rows.moments.time))

    def _rest(self, how: Strength, rows: Places, means: Cells, moved: Cells, near: Near) -> Cells:
        """What is expected to be left of some rows' values, given what is left of their neighbours'."""
        if how.share == 0:
            return np.zeros(len(rows))
        left = np.where(near.exist, near.value - means[rows][:, None] - moved[self.rows.moments.row[near.moment]], 0.0)
        together = how.correlation(near.gap[:, :, None] - near.gap[:, None, :])
        together *= near.exist[:, :, None] & near.exist[:, None, :]
        together[:, np.arange(2 * _ON_A_SIDE), np.arange(2 * _ON_A_SIDE)] = 1.0
        weights = np.linalg.solve(together, (how.correlation(near.gap) * near.exist)[:, :, None])[:, :, 0]
        return np.asarray((weights * left).sum(axis=1))


def _sums(place: Places, z: Cells, observed: NDArray[np.bool_]) -> tuple[Cells, Places]:
    """Sums and numbers of observed values, by place."""
    n = int(place.max(initial=-1)) + 1
    numbers = np.bincount(place[observed], minlength=n).astype(np.int64)
    return np.bincount(place, z, n).astype(np.float64), numbers


def _least(ways: Sequence[tuple[Strength, Cells]]) -> Strength:
    """The one whose errors are smallest."""
    return min(ways, key=lambda way: float(way[1] @ way[1]))[0]
