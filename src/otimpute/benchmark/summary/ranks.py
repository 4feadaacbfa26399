"""Average ranks of the methods, and tests of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from ..._checks import check_real
from ..outcome import Outcome
from .blocks import Blocks, shared_blocks
from .cells import ROUNDING, scores_by_seed
from .names import lower_is_better


@dataclass(frozen=True)
class Ranks:
    """Average ranks, best first, and the tests of their differences. Without a shared block, ``methods`` is empty."""

    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    friedman_p: float  # NaN with fewer than three methods or two data sets
    testable: bool  # whether there are enough data sets for any pair to differ significantly
    pairwise_p: Mapping[tuple[str, str], float]  # Wilcoxon, adjusted by Holm; keys (better rank, worse rank)
    cliques: tuple[tuple[str, ...], ...]  # runs of neighbours none of which differ significantly
    undecided: tuple[tuple[str, str], ...]  # other pairs that do not differ significantly, but are in no common run
    left_out: tuple[str, ...]  # methods that finished too few blocks to be compared
    n_datasets: int
    n_blocks: int  # (data set, setting) pairs used
    n_blocks_left_out: int


def average_ranks(
    outcomes: Iterable[Outcome],
    score: str,
    part: str = "train",
    *,
    methods: Iterable[str] | None = None,
    coverage: float = 0.9,
    alpha: float = 0.05,
) -> Ranks:
    """Rank the methods (1 is best) on every data set and setting, average, and test.

    Compared are ``methods``, or by default those that finished at least the share ``coverage`` of the blocks, on the
    blocks that all of them finished.

    The unit of the tests is the **data set**. The settings of a data set hide different cells of the same table, so they are
    not independent; treating them as such would make the p values far too small. Ranks are therefore first averaged over the
    settings of each data set, and all data sets have the same weight.

    - Friedman's test on these ranks asks whether the methods differ at all.
    - For each pair, Wilcoxon's signed-rank test over data sets asks whether the two differ. It uses the relative difference
      (a − b) / (a + b) of the two scores, averaged over the settings of a data set: it does not depend on the other methods,
      as ranks do, and a single data set on which a method diverges cannot dominate. A pair whose test contradicts the order
      of the ranks counts as undecided. Holm's correction bounds the probability of any false positive by ``alpha``.

    >>> scores = {"mean": 1.0, "knn": 0.8, "sinkhorn": 0.5}
    >>> outcomes = [
    ...     Outcome(f"set {i}", "mcar-30", method, 0, "train", {"rmse": scores[method] + i / 100}, 1.0, 50.0, 100, 4)
    ...     for i in range(8) for method in scores
    ... ]
    >>> result = average_ranks(outcomes, "rmse")
    >>> result.methods, result.ranks, result.cliques
    (('sinkhorn', 'knn', 'mean'), (1.0, 2.0, 3.0), ())
    >>> round(result.pairwise_p["sinkhorn", "knn"], 4)
    0.0234
    """
    alpha = check_real("alpha", alpha, above=0, below=1)
    blocks = shared_blocks(scores_by_seed(outcomes, score, part), methods, coverage=coverage)
    if not lower_is_better(score):
        blocks = replace(blocks, means=-blocks.means)
    by_dataset = [np.flatnonzero([key[0] == dataset for key in blocks.keys]) for dataset in sorted({k[0] for k in blocks.keys})]
    # Rounded to nine digits, so that rounding errors do not break ties.
    ranks = rankdata([[float(f"{mean:.9g}") for mean in row] for row in blocks.means], axis=1) if blocks.keys else blocks.means
    ranks_by_dataset = np.array([ranks[rows].mean(axis=0) for rows in by_dataset])  # [data set, method]
    average = ranks_by_dataset.mean(axis=0) if blocks.keys else np.zeros(0)
    order = [int(i) for i in np.argsort(average, kind="stable")]
    ordered = tuple(blocks.methods[i] for i in order)

    pairs = list(combinations(order, 2))
    raw = [_pair_p(blocks, by_dataset, i, j) for i, j in pairs]
    pairwise = {(blocks.methods[i], blocks.methods[j]): p for (i, j), p in zip(pairs, holm(raw), strict=True)}
    testable = len(pairs) * 2 * 0.5 ** len(by_dataset) <= alpha  # Wilcoxon's smallest p, by Holm's largest factor
    different = {pair for pair, p in pairwise.items() if p <= alpha}
    cliques = find_cliques(ordered, different) if testable else ()
    joined = {pair for clique in cliques for pair in combinations(clique, 2)}
    return Ranks(
        methods=ordered,
        ranks=tuple(float(average[i]) for i in order),
        friedman_p=_friedman_p(ranks_by_dataset),
        pairwise_p=pairwise,
        testable=testable,
        cliques=cliques,
        undecided=tuple(pair for pair in pairwise if testable and pair not in different and pair not in joined),
        left_out=blocks.left_out,
        n_datasets=len(by_dataset),
        n_blocks=len(blocks.keys),
        n_blocks_left_out=blocks.n_left_out,
    )


def holm(p_values: ArrayLike) -> list[float]:
    """Adjust p values by Holm's step-down method, which bounds the probability of any false positive.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return [float(value) for value in np.minimum(adjusted, 1)]


def find_cliques(methods: Sequence[str], different: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The longest runs of neighbours in ``methods``, two or more, of which no pair is ``different``.

    Only neighbours in rank order are joined, because a bar covers all methods between its ends.

    >>> find_cliques("abcd", [("a", "c"), ("a", "d")])
    (('a', 'b'), ('b', 'c', 'd'))
    """
    apart = {frozenset(pair) for pair in different}
    runs: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(methods)):
        end = start + 1
        while end < len(methods) and not any(frozenset((methods[end], m)) in apart for m in methods[start:end]):
            end += 1
        if end > reached and end - start > 1:
            runs.append(tuple(methods[start:end]))
        reached = max(reached, end)
    return tuple(runs)


def _pair_p(blocks: Blocks, by_dataset: Sequence[NDArray[np.intp]], i: int, j: int) -> float:
    """Return the p value of the difference between ``i`` and ``j``, which has the worse rank; 1 if the test favours ``j``."""
    a, b = blocks.means[:, i], blocks.means[:, j]
    size = np.abs(a) + np.abs(b)
    difference = np.divide(a - b, size, out=np.zeros_like(a), where=size > 0)
    per_dataset = np.array([difference[rows].mean() for rows in by_dataset])
    per_dataset[np.abs(per_dataset) < ROUNDING] = 0
    signed = rankdata(np.abs(per_dataset)) * np.sign(per_dataset)
    return float(wilcoxon(per_dataset).pvalue) if signed.sum() < 0 else 1.0


def _friedman_p(ranks_by_dataset: NDArray[np.float64]) -> float:
    if ranks_by_dataset.ndim < 2 or len(ranks_by_dataset) < 2 or ranks_by_dataset.shape[1] < 3:
        return float("nan")
    if (ranks_by_dataset == ranks_by_dataset[:, :1]).all():  # all tied: the statistic would be 0 / 0
        return 1.0
    return float(friedmanchisquare(*ranks_by_dataset.T).pvalue)
