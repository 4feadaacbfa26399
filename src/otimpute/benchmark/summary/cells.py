"""Mean and standard deviation over seeds of a score, by method, data set and setting."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...catalogue import COSTS
from ..outcome import Outcome
from .names import sort_methods, sort_settings

ROUNDING = 1e-9  # relative; smaller differences are due to the order of summation


@dataclass(frozen=True)
class Cell:
    """One score of one method on one data set in one setting, over seeds."""

    setting: str
    dataset: str
    method: str
    mean: float
    sd: float  # of one seed, not of the mean; NaN with a single seed
    n_seeds: int


def aggregate(outcomes: Iterable[Outcome], score: str, part: str = "train") -> list[Cell]:
    """Mean and standard deviation over seeds, sorted by setting, data set and method.

    ``score`` is a key of `Outcome.scores`, or ``"seconds"`` or ``"added_mib"``. A cell with a seed whose score is not
    finite is left out, as if the method had failed: a mean over the other seeds would be too favourable.

    >>> rmse = [1.0, 3.0]
    >>> outcomes = [Outcome("iris", "mcar-30", "mean", i, "train", {"rmse": rmse[i]}, 0.1, 50.0, 150, 4) for i in range(2)]
    >>> aggregate(outcomes, "rmse")
    [Cell(setting='mcar-30', dataset='iris', method='mean', mean=2.0, sd=1.414..., n_seeds=2)]
    """
    cells = []
    for (setting, dataset, method), by_seed in scores_by_seed(outcomes, score, part).items():
        values = np.array(list(by_seed.values()))
        sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        cells.append(Cell(setting, dataset, method, float(values.mean()), sd, len(values)))
    return cells


def scores_by_seed(outcomes: Iterable[Outcome], score: str, part: str) -> dict[tuple[str, str, str], dict[int, float]]:
    """Return the scores of each (setting, data set, method) by seed, sorted; without those with a score that is not finite."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for outcome in outcomes:
        value = getattr(outcome, score) if score in COSTS else outcome.scores.get(score)
        if outcome.part == part and value is not None:
            found.setdefault((outcome.setting, outcome.dataset, outcome.method), {})[outcome.seed] = float(value)
    settings, methods = sort_settings(cell[0] for cell in found), sort_methods(cell[2] for cell in found)
    order = sorted(found, key=lambda cell: (settings.index(cell[0]), cell[1], methods.index(cell[2])))
    # By seed, so that a sum over seeds does not depend on the order in which tasks finished.
    return {cell: dict(sorted(found[cell].items())) for cell in order if all(map(math.isfinite, found[cell].values()))}
