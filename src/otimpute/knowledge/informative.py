"""Which columns of a wide table say most about which: predictors="auto"."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage, to_tree
from scipy.spatial.distance import squareform

from ..table import Standardiser, Table

_NARROW = 60  # columns: fewer inform each other, all of them
_BLOCK = 24  # columns that are imputed together
_BEST = 24  # columns from outside that inform a block
_MOST_ROWS = 2000  # that relations are measured on
_CHANCE = 2.0  # squared correlations below so many times 1 / rows may be chance
_FARTHEST = 5.0  # standard deviations: beyond that a value counts no more


def informative_columns(table: Table, imputed: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The matrix ``[d, d]``, row by row which columns inform one; None for a table that is not wide.

    Columns that are strongly related are imputed together, two dozen at a time, from each other and the `_BEST` others; so the
    inputs of a fit stay the same however wide the table is.
    """
    width = np.array([code.width for code in table.codes])
    used = np.flatnonzero((width > 0) & ~_without_value(table))
    if len(used) <= _NARROW:
        return None
    related = _relations(table, used)
    matrix = np.zeros((len(width), len(width)), dtype=bool)
    targets = np.flatnonzero(imputed[used])
    for block in _blocks(related[np.ix_(targets, targets)]):
        own = targets[block]
        informs = np.concatenate([own, _best_outside(related, own)])
        matrix[np.ix_(used[own], used[informs])] = True
    np.fill_diagonal(matrix, False)
    return matrix


def _without_value(table: Table) -> NDArray[np.bool_]:
    groups = np.repeat(np.arange(len(table.codes)), [code.width for code in table.codes])
    empty = np.zeros(len(table.codes), dtype=bool)
    empty[groups[table.missing.all(axis=0)]] = True
    return empty


def _relations(table: Table, used: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much of each column's variance another explains ``[d, d]``, straight or by its square; less what is chance."""
    rows = np.linspace(0, len(table.values) - 1, min(len(table.values), _MOST_ROWS)).astype(np.int64)
    groups = np.repeat(np.arange(len(table.codes)), [code.width for code in table.codes])
    mine = np.flatnonzero(np.isin(groups, used))
    values, missing = table.values[np.ix_(rows, mine)], table.missing[np.ix_(rows, mine)]
    z = np.clip(Standardiser.fit(values, missing).apply(np.where(missing, 0.0, values)), -_FARTHEST, _FARTHEST)
    squared = _standardised(z**2, missing)
    z = _standardised(z, missing)
    there = (~missing).astype(np.float64)
    both = np.maximum(there.T @ there, 1.0)
    explained = np.maximum((z.T @ z / both) ** 2, (z.T @ squared / both) ** 2)
    explained = np.where(explained > _CHANCE / both, np.minimum(explained, 1.0), 0.0)
    column = np.searchsorted(used, groups[mine])
    related = np.zeros((len(used), len(used)))
    np.maximum.at(related, (column[:, None], column[None, :]), explained)
    np.fill_diagonal(related, 0.0)
    return related


def _standardised(values: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Columns of mean 0 and spread 1 over what is there, with 0 elsewhere."""
    n = np.maximum((~missing).sum(axis=0), 1)
    values = np.where(missing, 0.0, values - np.where(missing, 0.0, values).sum(axis=0) / n)
    spread = np.sqrt((values**2).sum(axis=0) / n)
    return np.asarray(values / np.where(spread > 0, spread, np.inf))


def _blocks(related: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Columns in blocks of at most `_BLOCK`: subtrees of related ones, small ones beside each other put together."""
    if len(related) <= _BLOCK:
        return [np.arange(len(related))] if len(related) else []
    apart = 1.0 - np.maximum(related, related.T)
    np.fill_diagonal(apart, 0.0)
    parts: list[list[int]] = []
    branches = [to_tree(linkage(squareform(apart, checks=False), "average"))]
    while branches:
        branch = branches.pop()
        if branch.count > _BLOCK:
            branches += [branch.right, branch.left]
        elif parts and len(parts[-1]) + branch.count <= _BLOCK:
            parts[-1] += branch.pre_order()
        else:
            parts.append(branch.pre_order())
    return [np.sort(part) for part in parts]


def _best_outside(related: NDArray[np.float64], block: NDArray[np.int64]) -> NDArray[np.int64]:
    """The columns outside of a block that say most about its columns, each of which has a turn."""
    outside = np.setdiff1d(np.arange(len(related)), block)
    order = np.argsort(-related[np.ix_(block, outside)], axis=1, kind="stable")
    chosen: dict[int, None] = {}
    for turn in range(len(outside)):
        for row, own in zip(order[:, turn].tolist(), block.tolist(), strict=True):
            if related[own, outside[row]] > 0 and len(chosen) < _BEST:
                chosen[int(outside[row])] = None
        if len(chosen) == _BEST:
            break
    return np.array(sorted(chosen), dtype=np.int64)
