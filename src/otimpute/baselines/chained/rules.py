"""Which donors suit a column: chosen by how well draws foretell left-out values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .column_draws import ColumnDraws, DonorRule, Values
from .shapes import MOST_CURVED, TERMS, TargetScale

_LEAVES = (3, 5, 10)
_ROWS_PER_TERM = 5  # of a curved regression, that there must be
_FOLDS, _N_DRAWS, _N_TREES = 3, 20, 10
_MOST_ROWS = 2000  # that are tried on
_FEWEST_ROWS = 20
_CLEARLY = 1.0  # standard errors by which another rule must be better than the first


def choose_rule(
    table: Values,
    columns: NDArray[np.int64],
    inputs: NDArray[np.int64],
    observed: NDArray[np.int64],
    *,
    is_label: bool,
    low: Values,
    high: Values,
    grid: tuple[float, float],
    rng: np.random.Generator,
) -> DonorRule:
    """The rule whose draws have the best energy score on left-out rows, or a simpler one where none is clearly better.

    For numbers, a linear model with the residuals of any row comes first: where it holds, curves or searching for similar rows
    only add noise. Labels, and numbers with few different values, are always those of donors.
    """
    if len(observed) > _MOST_ROWS:
        observed = rng.choice(observed, _MOST_ROWS, replace=False)
    trial = _Trial(table, columns, inputs, observed, low, high, grid, rng)
    if is_label:
        return trial.best_of([DonorRule(False, leaf) for leaf in reversed(_LEAVES)])
    scales = TargetScale.that_suit(table[observed, columns[0]], float(low[0]), float(high[0]))
    bends = len(observed) > _ROWS_PER_TERM * (1 + TERMS) * min(len(inputs), MOST_CURVED) > 0
    # Scales have as many parameters as each other, so that the better one is taken; curves have more.
    straight = trial.best_of([DonorRule(True, 0, scale=scale) for scale in scales], clearly=0.0)
    shape = trial.best_of([straight, *(DonorRule(True, 0, curved=True, scale=scale) for scale in scales if bends)])
    return trial.best_of([shape, *(replace(shape, leaf=leaf) for leaf in _LEAVES), DonorRule(False, _LEAVES[0])])


class _Trial:
    """Left-out rows, and how well rules foretell them."""

    def __init__(
        self,
        table: Values,
        columns: NDArray[np.int64],
        inputs: NDArray[np.int64],
        observed: NDArray[np.int64],
        low: Values,
        high: Values,
        grid: tuple[float, float],
        rng: np.random.Generator,
    ) -> None:
        self.table, self.columns, self.inputs, self.observed = table, columns, inputs, observed
        self.low, self.high, self.grid = low, high, grid
        self.fold = rng.permutation(len(observed)) % _FOLDS
        self.seed = int(rng.integers(2**63))
        self.scores: dict[DonorRule, Values] = {}

    def best_of(self, rules: Sequence[DonorRule], clearly: float = _CLEARLY) -> DonorRule:
        """The rule with the best score, if ``clearly`` (so many standard errors) better than the first; else the first."""
        if len(self.observed) < _FEWEST_ROWS or len(rules) == 1:
            return rules[0]
        first, best = self.score(rules[0]), min(rules, key=lambda rule: float(self.score(rule).mean()))
        gain = first - self.score(best)
        return best if gain.mean() > clearly * gain.std() / np.sqrt(len(gain)) else rules[0]

    def score(self, rule: DonorRule) -> Values:
        """The energy score of draws for each left-out row; the lower, the better."""
        if rule not in self.scores:
            self.scores[rule] = self._score(rule)
        return self.scores[rule]

    def _score(self, rule: DonorRule) -> Values:
        rng = np.random.default_rng(self.seed)  # the same random numbers for all rules, which makes them comparable
        scores = np.empty(len(self.observed))
        for left_out in range(_FOLDS):
            others, mine = self.observed[self.fold != left_out], self.observed[self.fold == left_out]
            rows = np.repeat(self.table[mine], _N_DRAWS, axis=0)
            model = ColumnDraws.fit(
                self.table, self.columns, self.inputs, others, rule,
                n_trees=_N_TREES, rng=rng, low=self.low, high=self.high, grid=self.grid, proper=False,
            )  # fmt: skip
            draws = model.draw(rows, rng.random(len(rows)), rng.random(len(rows)))
            truth = self.table[np.ix_(mine, self.columns)]
            scores[self.fold == left_out] = _energy_score(truth, draws.reshape(len(mine), _N_DRAWS, -1))
        return scores


def _energy_score(truth: Values, draws: Values) -> Values:
    """Per row ``[n]``, of draws ``[n, m, k]``; the lower, the better."""
    m = draws.shape[1]
    off = np.sqrt(((draws - truth[:, None]) ** 2).sum(axis=2)).mean(axis=1)
    apart = np.sqrt(((draws[:, :, None] - draws[:, None]) ** 2).sum(axis=3)).sum(axis=(1, 2)) / (m * (m - 1))
    return np.asarray(off - apart / 2)
