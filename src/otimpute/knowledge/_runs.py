"""Hide values of a panel in the company that missing ones have: in runs of time, or with most of their group.

A column that is missing for years on end is harder to impute than one that is missing now and then, and what is hidden to find
out how well it is imputed has to be as hard.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._other_rows import Places, Rows

Holes = NDArray[np.bool_]
Numbers = NDArray[np.float64]

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
    company = _sides(group, is_missing) if rows.time is not None else _shares(group, is_missing)[:, None]
    copied = _copied(company[is_missing], company[~is_missing])
    if copied == 0:
        return hidden, stands_for
    chosen, weight, patterns = np.zeros(len(missing), dtype=bool), np.zeros(len(missing)), company[is_missing]
    ends = np.searchsorted(group, group, side="left"), np.searchsorted(group, group, side="right")
    n_wanted, n_chosen = int(hidden.sum()), 0
    for seed in place[rng.permutation(np.flatnonzero(hidden))].tolist():
        if n_chosen >= n_wanted:
            break
        first, last = int(ends[0][seed]), int(ends[1][seed])
        around = np.array([seed])
        if rng.random() < copied:
            pattern = patterns[rng.integers(len(patterns))]
            if rows.time is not None:
                around = np.arange(max(first, seed - int(pattern[0])), min(last, seed + int(pattern[1]) + 1))
            else:
                others = np.arange(first, last)
                around = np.append(others[(rng.random(len(others)) < pattern[0]) & (others != seed)], seed)
        more = around[~is_missing[around] & ~chosen[around]]
        chosen[more], weight[more] = True, stands_for[order[seed]]
        n_chosen += len(more)
    if int((~is_missing & ~chosen).sum()) < 2:  # nothing would be left to learn from
        return hidden, stands_for
    found, counts = np.zeros(len(missing), dtype=bool), np.zeros(len(missing))
    found[order], counts[order] = chosen, weight
    return found, counts * (chosen.sum() / max(counts.sum(), 1e-12))


def _sides(group: Places, missing: Holes) -> Places:
    """How many rows next to each are missing without a gap, before and after it in its group ``[n, 2]``."""
    sides = []
    for step in (1, -1):
        each, holes = group[::step], missing[::step]
        begins = np.r_[True, np.diff(each) != 0]
        stops = np.where(begins | np.r_[True, ~holes[:-1]], np.arange(len(each)), 0)
        sides.append((np.arange(len(each)) - np.maximum.accumulate(stops))[::step])
    return np.stack(sides, axis=1)


def _shares(group: Places, missing: Holes) -> Numbers:
    """What share of the other rows of its group is missing."""
    n, n_missing = np.bincount(group), np.bincount(group, missing)
    return np.asarray((n_missing[group] - missing) / np.maximum(n[group] - 1, 1))


def _copied(of_missing: Numbers | Places, of_observed: Numbers | Places) -> float:
    """How often to copy the company of a missing value, so that those hidden have it as often as those missing."""
    beside, elsewhere = (float((each > 0).mean()) if each.dtype.kind == "i" else float(each.mean()) for each in (of_missing, of_observed))
    n = max(min(len(of_missing), len(of_observed)), 1)
    error = np.sqrt(max(elsewhere * (1 - elsewhere), 1e-9) * 2 / n)
    if beside - elsewhere <= _EXCESS * error:
        return 0.0
    return float(np.clip((beside - elsewhere) / (beside * (1 - elsewhere)), 0.0, 1.0))
