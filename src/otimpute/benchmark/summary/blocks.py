"""Methods are compared on the blocks, (data set, setting) pairs, that all of them finished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice, check_real
from .cells import Cell
from .names import sort_methods

# Stands for a score of zero where a logarithm is taken: a perfect imputation.
_PERFECT = 1e-12


@dataclass(frozen=True, eq=False)
class Blocks:
    """Mean scores of the compared methods on the blocks that all of them finished."""

    methods: tuple[str, ...]  # none when no block is shared
    keys: tuple[tuple[str, str], ...]  # (data set, setting)
    means: NDArray[np.float64]  # [block, method]
    left_out: tuple[str, ...]  # methods that were not compared
    n_left_out: int  # blocks that were not used


def shared_blocks(cells: Iterable[Cell], methods: Iterable[str] | None = None, *, coverage: float = 0.9) -> Blocks:
    """Choose whom to compare, and on what.

    By default the methods that finished at least ``coverage`` as many blocks as the method that finished most: one that
    was run in a few settings only would shrink the comparison of all others to those.

    >>> cells = [Cell("mcar-30", dataset, "mean", 1.0, 0.1, 5) for dataset in ("iris", "wine")]
    >>> cells.append(Cell("mcar-30", "iris", "knn", 0.5, 0.1, 5))
    >>> shared_blocks(cells).left_out, shared_blocks(cells, ["mean", "knn"]).n_left_out
    (('knn',), 1)
    """
    coverage = check_real("coverage", coverage, above=0, at_most=1)
    means = {(cell.dataset, cell.setting, cell.method): cell.mean for cell in cells}
    present = sort_methods(method for *_, method in means)
    blocks = list(dict.fromkeys((dataset, setting) for dataset, setting, _ in means))
    finished = {method: sum((*block, method) in means for block in blocks) for method in present}
    if methods is None:
        enough = coverage * max(finished.values(), default=0)
        chosen = [method for method in present if finished[method] >= enough]
    else:
        chosen = [check_choice("methods", method, present) for method in dict.fromkeys(methods)]
    keys = tuple(block for block in blocks if all((*block, method) in means for method in chosen))
    compared = tuple(chosen) if keys else ()
    return Blocks(
        methods=compared,
        keys=keys,
        means=np.array([[means[*key, method] for method in compared] for key in keys]).reshape(len(keys), len(compared)),
        left_out=tuple(method for method in present if method not in compared),
        n_left_out=len(blocks) - len(keys),
    )


def relative_scores(blocks: Blocks) -> tuple[str, NDArray[np.float64]]:
    """What each method's score is relative to, and the geometric mean of that ratio over the blocks.

    The reference is the column mean, ``"mean"``, or, where it was not run, the best method of each block.

    >>> cells = [Cell("mcar-30", "iris", "mean", 1.0, 0.1, 5), Cell("mcar-30", "iris", "knn", 0.5, 0.1, 5)]
    >>> relative_scores(shared_blocks(cells))
    ('mean', array([1. , 0.5]))
    """
    logs = np.log(np.maximum(blocks.means, _PERFECT))
    if "mean" in blocks.methods:
        name, reference = "mean", logs[:, [blocks.methods.index("mean")]]
    else:
        name, reference = "best", logs.min(axis=1, keepdims=True, initial=np.inf)
    return name, np.exp((logs - reference).mean(axis=0))
