"""Which donors suit a column: chosen by how well draws foretell left-out values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .column_draws import ColumnDraws, DonorRule, Values

LINEAR = DonorRule(adds_residual=True, leaf=0)
_FOR_NUMBERS = (LINEAR, *(DonorRule(True, leaf) for leaf in (3, 5, 10)), DonorRule(False, 3))
_FOR_LABELS = tuple(DonorRule(False, leaf) for leaf in (10, 5, 3))
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
    rng: np.random.Generator,
) -> DonorRule:
    """The rule whose draws have the best energy score on left-out rows, or the first one where none is clearly better.

    The first rule for numbers is a linear model with the residuals of any row: where it holds, searching for similar rows
    only adds noise. Labels, and numbers with few different values, are always those of donors.
    """
    rules = _FOR_LABELS if is_label else _FOR_NUMBERS
    if len(observed) > _MOST_ROWS:
        observed = rng.choice(observed, _MOST_ROWS, replace=False)
    n, first = len(observed), rules[0]
    if n < _FEWEST_ROWS:
        return first
    fold = rng.permutation(n) % _FOLDS
    scores = np.empty((len(rules), n))
    unbounded = np.full(len(columns), np.nan)
    for left_out in range(_FOLDS):
        others, mine = observed[fold != left_out], observed[fold == left_out]
        rows = np.repeat(table[mine], _N_DRAWS, axis=0)
        for place, rule in enumerate(rules):
            model = ColumnDraws.fit(
                table, columns, inputs, others, rule, n_trees=_N_TREES, rng=rng, low=unbounded, high=unbounded, proper=False
            )
            draws = model.draw(rows, rng.random(len(rows)), rng.random(len(rows)))
            scores[place, fold == left_out] = _energy_score(
                table[np.ix_(mine, columns)], draws.reshape(len(mine), _N_DRAWS, -1)
            )
    best = int(scores.mean(axis=1).argmin())
    gain = scores[0] - scores[best]
    return rules[best] if gain.mean() > _CLEARLY * gain.std() / np.sqrt(n) else first


def _energy_score(truth: Values, draws: Values) -> Values:
    """Per row ``[n]``, of draws ``[n, m, k]``; the lower, the better."""
    m = draws.shape[1]
    off = np.sqrt(((draws - truth[:, None]) ** 2).sum(axis=2)).mean(axis=1)
    apart = np.sqrt(((draws[:, :, None] - draws[:, None]) ** 2).sum(axis=3)).sum(axis=(1, 2)) / (m * (m - 1))
    return np.asarray(off - apart / 2)
