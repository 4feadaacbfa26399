"""Hide values of a panel in the company that missing ones have: in runs of time, or with most of their group.

A column that is missing for years on end is harder to impute than one that is missing now and then, and what is hidden to find
out how well it is imputed has to be as hard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ._other_rows import Places, Rows

Holes = NDArray[np.bool_]
Numbers = NDArray[np.float64]

_KEEP = 2  # values that a column keeps
_DRAWS = 5  # examples that a value is tried with
_EXCESS = 2.0  # standard errors by which the company of missing values must differ from that of observed ones


def hide_in_company(
    rows: Rows, missing: Holes, hidden: Holes, stands_for: Numbers, rng: np.random.Generator
) -> tuple[Holes, Numbers]:
    """About as many values ``[n]`` of a column as are ``hidden``, with others around them as far as missing ones have those.

    What else is hidden stands for as many missing values as the value that it accompanies.
    """
    if not missing.any() or not hidden.any():
        return hidden, stands_for
    order = np.lexsort((np.arange(len(missing)) if rows.time is None else rows.time, rows.group))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    group, is_missing = rows.group[order], missing[order]
    if rows.time is None:
        company: Company = Shares.of(group, is_missing)
    else:
        company = Runs.of(group, is_missing)
    copied = _copied(company.numbers[is_missing], company.numbers[~is_missing])
    if copied == 0:
        return hidden, stands_for
    chosen, weight = np.zeros(len(missing), dtype=bool), np.zeros(len(missing))
    seeds, examples = place[rng.permutation(np.flatnonzero(hidden))], np.flatnonzero(is_missing)
    n_wanted = int(hidden.sum())
    for strict in (True, False):  # values whose company would be larger than that of missing ones come last
        for seed in seeds[~chosen[seeds]].tolist():
            if chosen.sum() >= n_wanted:
                break
            if chosen[seed]:
                continue
            around: Places | None = np.array([seed])
            if rng.random() < copied:
                drawn = rng.choice(examples, _DRAWS if strict else 1).tolist()
                around = next(
                    (each for one in drawn if (each := company.around(seed, one, rng, strict=strict)) is not None), None
                )
            if around is not None:
                more = around[~is_missing[around] & ~chosen[around]]
                chosen[more], weight[more] = True, stands_for[order[seed]]
    if int((~is_missing & ~chosen).sum()) < _KEEP:
        return hidden, stands_for
    found, counts = np.zeros(len(missing), dtype=bool), np.zeros(len(missing))
    found[order], counts[order] = chosen, weight
    return found, counts * (chosen.sum() / max(counts.sum(), 1e-12))


class Company(Protocol):
    """What is missing beside a value, of rows in order of their groups and times."""

    @property
    def numbers(self) -> Numbers:
        """How much that is ``[n]``."""
        ...

    def around(self, seed: int, example: int, rng: np.random.Generator, *, strict: bool) -> Places | None:
        """The rows that are hidden with a seed, so that it has the company of an example.

        With ``strict`` None where it would have more.
        """
        ...


@dataclass(frozen=True)
class Runs:
    """Times in a row at which a group lacks a value."""

    numbers: Numbers  # [n]: at how many of the times before and after it is missing without a gap
    sides: Places  # [n, 2]
    missing: Holes
    ends: tuple[Places, Places]  # of the row's group
    n_observed: Places  # [n]: in the row's group

    @classmethod
    def of(cls, group: Places, missing: Holes) -> Runs:
        """Counted in rows that are in order."""
        sides = _sides(group, missing)
        ends = np.searchsorted(group, group, side="left"), np.searchsorted(group, group, side="right")
        return cls((sides > 0).mean(axis=1), sides, missing, ends, np.bincount(group, ~missing).astype(np.int64)[group])

    def around(self, seed: int, example: int, rng: np.random.Generator, *, strict: bool) -> Places | None:  # noqa: ARG002
        """A run as long as the example's, and as far from the ends of the group where it reaches one."""
        begin, end = seed - int(self.sides[example, 0]), seed + int(self.sides[example, 1]) + 1
        first, last = int(self.ends[0][seed]), int(self.ends[1][seed])
        rows = np.arange(max(begin, first), min(end, last))
        if not strict:
            return rows
        at_start, at_end = begin <= first, end >= last
        open_start = example - self.sides[example, 0] <= self.ends[0][example]
        open_end = example + self.sides[example, 1] + 1 >= self.ends[1][example]
        longer = (at_start and not open_start) or (at_end and not open_end)
        longer |= (not at_start and bool(self.missing[begin - 1])) or (not at_end and bool(self.missing[end]))
        left = self.n_observed[seed] - np.count_nonzero(~self.missing[rows])
        return None if longer or left < self.n_observed[example] - 1 else rows


@dataclass(frozen=True)
class Shares:
    """Where nobody said when rows were observed: how many of its group lack a value."""

    numbers: Numbers  # [n]: share of the other rows of its group
    ends: tuple[Places, Places]

    @classmethod
    def of(cls, group: Places, missing: Holes) -> Shares:
        """Counted in rows that are in order."""
        n, n_missing = np.bincount(group), np.bincount(group, missing)
        ends = np.searchsorted(group, group, side="left"), np.searchsorted(group, group, side="right")
        return cls(np.asarray((n_missing[group] - missing) / np.maximum(n[group] - 1, 1)), ends)

    def around(self, seed: int, example: int, rng: np.random.Generator, *, strict: bool) -> Places | None:
        """As large a share of the other rows as of the example's."""
        if strict and self.numbers[seed] > self.numbers[example]:
            return None
        others = np.arange(self.ends[0][seed], self.ends[1][seed])
        more = (self.numbers[example] - self.numbers[seed]) / max(1 - self.numbers[seed], 1e-12)
        return np.append(others[(rng.random(len(others)) < more) & (others != seed)], seed)


def _sides(group: Places, missing: Holes) -> Places:
    """How many rows next to each are missing without a gap, before and after it in its group ``[n, 2]``."""
    sides = []
    for step in (1, -1):
        each, holes = group[::step], missing[::step]
        begins = np.r_[True, np.diff(each) != 0]
        stops = np.where(begins | np.r_[True, ~holes[:-1]], np.arange(len(each)), 0)
        sides.append((np.arange(len(each)) - np.maximum.accumulate(stops))[::step])
    return np.stack(sides, axis=1)


def _copied(of_missing: Numbers, of_observed: Numbers) -> float:
    """How often to copy the company of a missing value, so that those hidden have it as often as those missing."""
    if len(of_observed) == 0:
        return 0.0
    beside, elsewhere = float(of_missing.mean()), float(of_observed.mean())
    error = np.sqrt(max(elsewhere * (1 - elsewhere), 1e-9) * 2 / min(len(of_missing), len(of_observed)))
    if beside - elsewhere <= _EXCESS * error:
        return 0.0
    return float(np.clip((beside - elsewhere) / (beside * (1 - elsewhere)), 0.0, 1.0))
