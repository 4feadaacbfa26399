"""Hide observed values the way a table's own values are missing.

Values that are missing are not like values that are there. A column may be missing together with others, and rather in some
rows than in others. Errors on values hidden evenly are then smaller than errors on missing ones. Two things are therefore
copied from the table:

- **which rows**: a column's values are hidden with a chance in proportion to the odds of being missing in that row, by a
  logistic model of the other columns, so that rows with hidden values are like rows with missing ones;
- **what else**: where a column is missing, others may be missing more often than elsewhere. Patterns of rows in which it is
  missing are laid over the rows in which it is hidden, as far as that excess goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..table import Standardiser

_NEWTON_STEPS = 25
_LARGEST_STEP = 1e-3  # of the logistic models' weights: smaller ones end their fit
_MOST_ROWS = 4000  # that the logistic models learn from
_FARTHEST_ODDS = 20.0  # times the typical ones: beyond that a model of few rows is not believed
_MOST_OF_ALIKE = 0.4  # share of values in rows alike that may be hidden: the others are what is learned from
_RATHER_ELSEWHERE = 10.0  # times more likely is a row hidden in that has one hidden value less
_KEEP = 2  # values that every column keeps
_EXCESS = 2.0  # standard errors by which columns must be missing together before that is copied

Holes = NDArray[np.bool_]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Missingness:
    """How the values of a table are missing, by column of the table (G of them)."""

    missing: Holes  # [n, G]
    wanted: Holes  # [n, G]: missing values of which it matters how they are missing
    odds: Numbers  # [n, G]: of being missing, relative to the typical row of the column
    together: Numbers  # [G, G]: chance that what a pattern has missing in column k is copied, where column j is hidden

    @classmethod
    def of(
        cls,
        values: NDArray[np.floating],
        missing: Holes,
        groups: NDArray[np.int64],
        rng: np.random.Generator,
        wanted: Holes | None = None,
    ) -> Missingness:
        """Learned from a table of coordinates, those of one column having the same entry in ``groups``.

        Missing values that are not ``wanted``, such as those that cannot exist, are taken neither for missing nor for observed.
        """
        firsts = np.flatnonzero(np.r_[True, np.diff(groups) != 0])
        by_column = missing[:, firsts]
        holes = by_column if wanted is None else wanted[:, firsts]
        odds = _odds_of_missing(values, missing, holes, groups, firsts, rng)
        return cls(by_column, holes, odds, _missing_together(by_column, holes, odds))


def hide_like_missing(how: Missingness, share: NDArray[np.float64], rng: np.random.Generator) -> tuple[Holes, Numbers]:
    """Choose about a ``share [G]`` of each column's observed values: where they are, and how much each stands for ``[n, G]``.

    Columns without missing values are hidden evenly. What a hidden value stands for is in proportion to how many missing ones
    are like it, 1 on average in a column.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> missing = np.column_stack([np.zeros(2000, dtype=bool), rng.random(2000) < expit(3 * x[:, 0])])
    >>> how = Missingness.of(x, missing, np.arange(2), rng)
    >>> hidden, _ = hide_like_missing(how, np.array([0.0, 0.15]), rng)
    >>> bool(x[hidden[:, 1], 0].mean() > x[~missing[:, 1], 0].mean() + 0.5)
    True
    """
    missing = how.missing
    n_observed = (~missing).sum(axis=0)
    wanted = np.clip(np.rint(share * n_observed), 0, np.maximum(n_observed - _KEEP, 0)).astype(np.int64)
    most = np.minimum(2 * wanted, np.maximum(n_observed - _KEEP, 0))
    hidden = np.zeros(missing.shape, dtype=bool)
    chance = np.ones(missing.shape)
    n_times = np.zeros(
        len(missing)
    )  # that something was hidden in a row: a hidden value should have the company of a missing one
    for j in rng.permutation(missing.shape[1]).tolist():
        observed = np.flatnonzero(~missing[:, j])
        chance[observed, j] = _chances(how.odds[observed, j], wanted[j])
        left = np.flatnonzero(~missing[:, j] & ~hidden[:, j])
        n_more = int(wanted[j] - hidden[:, j].sum())
        if n_more <= 0:
            continue
        rows = _draw(left, chance[left, j] / _RATHER_ELSEWHERE ** n_times[left], min(n_more, len(left)), rng)
        hidden[rows, j] = True
        n_times[rows] += 1
        with_pattern = np.flatnonzero(how.wanted[:, j])
        if len(with_pattern) and how.together[j].any():
            patterns = missing[rng.choice(with_pattern, len(rows))]
            hidden[rows] |= patterns & (rng.random(patterns.shape) < how.together[j]) & ~missing[rows]
    for j in np.flatnonzero(hidden.sum(axis=0) > most).tolist():
        chosen = np.flatnonzero(hidden[:, j])
        hidden[rng.choice(chosen, len(chosen) - most[j], replace=False), j] = False
    stands_for = np.where(hidden, how.odds / np.maximum(chance, 1e-12), 0.0)
    return hidden, stands_for * (hidden.sum(axis=0) / np.maximum(stands_for.sum(axis=0), 1e-12))


def _chances(odds: Numbers, n_wanted: int) -> Numbers:
    """Chances in proportion to the odds that add up to ``n_wanted``, none above `_MOST_OF_ALIKE`."""
    if n_wanted == 0 or len(odds) == 0:
        return np.zeros(len(odds))
    most = max(_MOST_OF_ALIKE, n_wanted / len(odds))
    chance = odds * (n_wanted / odds.sum())
    for _ in range(20):  # what is cut off goes to the others
        over = chance >= most
        rest = n_wanted - most * over.sum()
        if not over.any() or over.all() or rest <= 0:
            break
        scaled = odds * (rest / odds[~over].sum())
        chance = np.where(over, most, scaled)
        if (chance <= most * (1 + 1e-9)).all():
            break
    return np.asarray(np.minimum(chance, most))


def _draw(rows: NDArray[np.int64], chance: Numbers, n_wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """So many of the rows, each with about its chance."""
    keys = -np.log1p(-rng.random(len(rows))) / np.maximum(chance, 1e-12)
    return np.sort(rows[np.argsort(keys, kind="stable")[:n_wanted]])


def _odds_of_missing(
    values: NDArray[np.floating],
    missing: Holes,
    wanted: Holes,
    groups: NDArray[np.int64],
    firsts: NDArray[np.int64],
    rng: np.random.Generator,
) -> Numbers:
    """Odds ``[n, G]`` by ridge logistic regressions on the other columns, all fitted at once; 1 where nothing is missing.

    Newton's steps with the bound of the curvature ``XᵀX / 4`` that no weights exceed: one matrix serves all columns. A column's
    own coordinates stay out of its model.
    """
    n, n_columns = missing.shape[0], len(firsts)
    odds = np.ones((n, n_columns))
    counts = wanted | ~missing[:, firsts]
    targets = np.flatnonzero(wanted.any(axis=0) & (counts & ~wanted).any(axis=0))
    if len(targets) == 0 or n_columns < 2:
        return odds
    z = Standardiser.fit(values, missing).apply(np.where(missing, 0, values))
    z[missing] = 0
    z = np.column_stack([np.clip(z, -5, 5), np.ones(n)])
    learn = np.arange(n) if n <= _MOST_ROWS else np.sort(rng.choice(n, _MOST_ROWS, replace=False))
    inputs, truth = z[learn], wanted[np.ix_(learn, targets)].astype(np.float64)
    counts = counts[np.ix_(learn, targets)]
    d = z.shape[1]
    ridge = np.full(d, d / 4.0)
    ridge[-1] = 1e-3  # the rate itself is not shrunk
    bound = np.linalg.inv(inputs.T @ inputs / 4 + np.diag(ridge))
    own = [np.flatnonzero(groups == groups[firsts[j]]) for j in targets]
    undo = [np.linalg.solve(bound[np.ix_(mine, mine)], bound[mine]).T for mine in own]  # [d, width]
    weights = np.zeros((d, len(targets)))
    for _ in range(_NEWTON_STEPS):
        step = bound @ (inputs.T @ (counts * (truth - expit(inputs @ weights))) - ridge[:, None] * weights)
        for place, mine in enumerate(own):
            step[:, place] -= undo[place] @ step[mine, place]
        weights += step
        if np.abs(step).max() < _LARGEST_STEP:
            break
    log_odds = z @ weights
    log_odds = (log_odds - np.median(log_odds, axis=0)) * _believed(
        truth, expit(inputs @ weights), counts, np.trace(bound @ inputs.T @ inputs) / 4
    )
    odds[:, targets] = np.exp(np.clip(log_odds, -np.log(_FARTHEST_ODDS), np.log(_FARTHEST_ODDS)))
    return odds


def _believed(truth: Numbers, chance: Numbers, counts: Holes, n_free: float) -> Numbers:
    """By column, how much of a model to believe: all but the part of its deviance that ``n_free`` weights find in noise."""

    def deviance(chance: Numbers) -> Numbers:
        return np.asarray(-2 * (counts * np.log(np.where(truth > 0, chance, 1 - chance).clip(1e-12))).sum(axis=0))

    explained = deviance(np.broadcast_to(truth.sum(axis=0) / counts.sum(axis=0), truth.shape)) - deviance(chance)
    return np.maximum(1 - n_free / np.maximum(explained, 1e-12), 0.0)


def _missing_together(missing: Holes, wanted: Holes, odds: Numbers) -> Numbers:
    """The chance ``[j, k]`` of copying a missing k where j is hidden, so that it is missing as often as beside a missing j.

    Elsewhere means in rows where j is hidden, which are chosen by their odds: what these explain is not copied once more.
    """
    there, gone, hole = ~missing * odds, missing.astype(np.float64), wanted.astype(np.float64)
    n_there = (there.sum(axis=0) ** 2 / np.maximum((there**2).sum(axis=0), 1e-12))[
        :, None
    ]  # as many count as evenly chosen ones
    n_gone = np.maximum(hole.sum(axis=0), 1)[:, None]
    elsewhere = there.T @ gone / np.maximum(there.sum(axis=0), 1e-12)[:, None]  # [j, k]
    beside = hole.T @ gone / n_gone
    error = np.sqrt(elsewhere * (1 - elsewhere) / np.maximum(n_there, 1) + np.maximum(beside * (1 - beside), 1e-9) / n_gone)
    by_chance = max(_EXCESS, np.sqrt(2 * np.log(missing.shape[1])))  # in standard errors, the more columns the more
    excess = np.where(beside - elsewhere > by_chance * error, beside - elsewhere, 0.0)
    np.fill_diagonal(excess, 0.0)
    together = excess / np.maximum(beside * (1 - elsewhere), 1e-12)
    return np.asarray(np.clip(together, 0.0, 1.0))
