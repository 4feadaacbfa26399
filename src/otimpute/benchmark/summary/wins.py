"""How often one method beats another; a difference within the noise over seeds is a tie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..outcome import Outcome
from .cells import ROUNDING, scores_by_seed
from .names import lower_is_better, sort_methods


@dataclass(frozen=True, eq=False)
class Wins:
    """Counts over (data set, setting) blocks; entry [i, j] compares method i with method j."""

    methods: tuple[str, ...]
    wins: NDArray[np.int64]  # [method, method]
    ties: NDArray[np.int64]  # [method, method]

    @property
    def losses(self) -> NDArray[np.int64]:
        """Blocks in which method i was worse than method j."""
        return self.wins.T


def wins(outcomes: Iterable[Outcome], score: str, part: str = "train") -> Wins:
    """Count wins (a better score), ties and losses of every method against every other.

    A pair is compared on each block in which the two share a seed, seed by seed, as the same seed hides the same cells. The
    block is a tie if the 95 % confidence interval (Student's t) of the mean paired difference contains 0. With a single
    shared seed, a difference of at most 1 % of the larger score is a tie.

    >>> outcomes = [
    ...     Outcome("iris", "mcar-30", method, seed, "train", {"rmse": base + seed / 10}, 1.0, 50.0, 150, 4)
    ...     for method, base in {"mean": 1.0, "knn": 0.5}.items() for seed in range(3)
    ... ]
    >>> result = wins(outcomes, "rmse")
    >>> result.methods, result.wins.tolist()
    (('mean', 'knn'), [[0, 0], [1, 0]])
    """
    cells = scores_by_seed(outcomes, score, part)
    methods = tuple(sort_methods(method for *_, method in cells))
    better = -1 if lower_is_better(score) else 1
    counts = np.zeros((2, len(methods), len(methods)), dtype=np.int64)  # wins, ties
    for setting, dataset in dict.fromkeys((setting, dataset) for setting, dataset, _ in cells):
        for i, one in enumerate(methods):
            for j, other in enumerate(methods):
                pair = cells.get((setting, dataset, one), {}), cells.get((setting, dataset, other), {})
                if i != j and (sign := _compare(*pair)) in (better, 0):
                    counts[int(sign == 0), i, j] += 1
    return Wins(methods, counts[0], counts[1])


def _compare(one: Mapping[int, float], other: Mapping[int, float]) -> int | None:
    """Return −1 if ``one`` is lower, 1 if it is higher, 0 for a tie, None without a shared seed."""
    seeds = sorted(one.keys() & other.keys())
    if not seeds:
        return None
    a, b = (np.array([scores[seed] for seed in seeds]) for scores in (one, other))
    n, size, mean = len(seeds), np.abs([a, b]).max(), (a - b).mean()
    noise = 0.01 * size if n == 1 else stdtrit(n - 1, 0.975) * (a - b).std(ddof=1) / np.sqrt(n)
    return 0 if abs(mean) <= max(noise, ROUNDING * size) else int(np.sign(mean))
