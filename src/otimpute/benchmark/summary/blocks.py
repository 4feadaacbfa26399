"""Methods are compared on the blocks, (data set, setting) pairs, that all of them finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice, check_real
from .names import sort_methods

# Scores are clipped below at this fraction of the block's median before taking logarithms, which are −∞ for a perfect score.
_PERFECT = 1e-3


@dataclass(frozen=True, eq=False)
class Blocks:
    """Mean scores of the compared methods on the blocks that all of them finished, over the seeds that all of them have."""

    methods: tuple[str, ...]  # none when no block is shared
    keys: tuple[tuple[str, str], ...]  # (data set, setting)
    means: NDArray[np.float64]  # [block, method]
    left_out: tuple[str, ...]  # methods that were not compared
    n_left_out: int  # blocks that were not used


def shared_blocks(
    scores: Mapping[tuple[str, str, str], Mapping[int, float]],
    methods: Iterable[str] | None = None,
    *,
    coverage: float = 0.9,
) -> Blocks:
    """Choose the methods and blocks to compare, given scores by (setting, data set, method) and seed.

    By default these are the methods that finished at least ``coverage`` times as many blocks as the method with the most:
    otherwise a method run in only a few settings would restrict the comparison to those. Within a block all methods are
    averaged over the same seeds, so that none benefits from having run only easy ones.

    >>> scores = {("mcar-30", dataset, "mean"): {0: 1.0, 1: 2.0} for dataset in ("iris", "wine")}
    >>> scores["mcar-30", "iris", "knn"] = {0: 0.5}
    >>> shared_blocks(scores).left_out, shared_blocks(scores, ["mean", "knn"]).means
    (('knn',), array([[1. , 0.5]]))
    """
    coverage = check_real("coverage", coverage, above=0, at_most=1)
    present = sort_methods(method for *_, method in scores)
    blocks = list(dict.fromkeys((dataset, setting) for setting, dataset, _ in scores))
    finished = {method: sum((setting, dataset, method) in scores for dataset, setting in blocks) for method in present}
    if methods is None:
        enough = coverage * max(finished.values(), default=0)
        chosen = [method for method in present if finished[method] >= enough]
    else:
        chosen = [check_choice("methods", method, present) for method in dict.fromkeys(methods)]
    keys, means = [], []
    for dataset, setting in blocks:
        by_method = [scores.get((setting, dataset, method), {}) for method in chosen]
        seeds = sorted(set.intersection(*(set(by_seed) for by_seed in by_method)))
        if seeds:
            keys.append((dataset, setting))
            means.append([np.mean([by_seed[seed] for seed in seeds]) for by_seed in by_method])
    compared = tuple(chosen) if keys else ()
    return Blocks(
        methods=compared,
        keys=tuple(keys),
        means=np.array(means).reshape(len(keys), len(compared)),
        left_out=tuple(method for method in present if method not in compared),
        n_left_out=len(blocks) - len(keys),
    )


def relative_scores(blocks: Blocks, *, lower_is_better: bool = True) -> tuple[str, NDArray[np.float64]]:
    """Return the reference method, and each method's geometric mean over blocks of its score relative to the reference.

    The reference is the column mean, ``"mean"``, or the best method of each block if the column mean was not run. Scores are
    clipped below at a thousandth of the block's median.

    >>> scores = {("mcar-30", "iris", "mean"): {0: 1.0}, ("mcar-30", "iris", "knn"): {0: 0.5}}
    >>> relative_scores(shared_blocks(scores))
    ('mean', array([1. , 0.5]))
    """
    if not blocks.keys:
        return "best", np.ones(0)
    if "mean" in blocks.methods:
        name, reference = "mean", blocks.means[:, [blocks.methods.index("mean")]]
    else:
        name, reference = "best", (np.min if lower_is_better else np.max)(blocks.means, axis=1, keepdims=True)
    least = _PERFECT * np.median(blocks.means, axis=1, keepdims=True)
    scores, reference = np.maximum(blocks.means, least), np.maximum(reference, least)
    ratios = np.divide(scores, reference, out=np.ones_like(scores), where=(scores > 0) & (reference > 0))
    return name, np.exp(np.log(ratios).mean(axis=0))
