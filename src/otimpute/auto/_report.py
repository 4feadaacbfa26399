"""What the trial on hidden values showed, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._text import count, listed, number, share
from ..estimator import HiddenValues, mean_over_missing
from ..table import ColumnCode, NumberCode, category_of, observed_category_of, seconds_of
from ._experts import MEAN
from ._extrapolation import UnseenRegion, find_unseen_regions
from ._learn import Learned
from ._trial import Cells

NOTHING_MISSING = "Nothing was missing."
NOTHING_LEARNED = (
    "No column with holes could be learned from: holes got the one value of their column, or were left as they are."
)
STACK = "stack"  # the combination, by weights learned on other hidden values
_MOST_NAMED = 5
_A_TIE = 0.995

Scores = dict[Any, dict[str, dict[str, float]]]


def score_columns(learned: Learned, codes: Sequence[ColumnCode], names: Sequence[Any]) -> Scores:
    """By column and expert: MAE and RMSE in the column's units, or the share of wrong categories.

    ``codes`` and ``names`` are those of the columns with values.
    """
    trial, columns = learned.trial, learned.model.columns
    scores: Scores = {}
    group = columns.group[trial.column]
    candidates = [*zip(trial.names, trial.guesses.T, strict=True), (STACK, learned.weighed.guess)]
    for g, (code, name) in enumerate(zip(codes, names, strict=True)):
        mine = group == g
        if not mine.any():
            continue
        truth, counts = trial.truth[mine], trial.stands_for[mine]
        scores[name] = {}
        for expert, each in candidates:
            if code.has_labels:
                labels = learned.hidden_labels.get(g) if expert == STACK else None
                labels = _labels(code, columns.values_of(g, each[mine])) if labels is None else labels
                wrong = labels != _labels(code, columns.values_of(g, truth), observed=True)
                own = counts.reshape(len(wrong), -1)[:, 0]
                scores[name][expert] = {"wrong": float(np.average(wrong, weights=own))}
            else:
                error = each[mine] - truth
                unit = float(columns.scaler.unit[columns.group == g][0]) * seconds_of(code)
                mae, rmse = np.average(np.abs(error), weights=counts), np.sqrt(np.average(error**2, weights=counts))
                scores[name][expert] = {"mae": float(mae) * unit, "rmse": float(rmse) * unit}
    return scores


def _labels(code: ColumnCode, points: Cells, *, observed: bool = False) -> NDArray[np.int64]:
    """Which label each of some points ``[N, width]`` stands for, by place."""
    if code.kind == "boolean":
        return np.asarray(points[:, 0] >= 0.5, dtype=np.int64)
    return observed_category_of(code, points) if observed else category_of(code, points)


@dataclass(frozen=True)
class Findings:
    """What a verdict is made of; columns are those with values."""

    scores: Scores
    hidden_values: HiddenValues
    names: Sequence[Any]  # [G]
    is_label: NDArray[np.bool_]  # [G]
    spread: Cells  # [G]: standard deviations of numbers, in their units
    n_missing: NDArray[np.int64]  # [G]
    n_hidden: NDArray[np.int64]  # [G]
    no_better: NDArray[np.bool_]  # [G]: columns where the mean is best
    asked: Sequence[str]  # [E]: experts of the panel
    weights: Cells  # [G, E]: theirs
    left_out: Mapping[str, str]
    unseen: Sequence[tuple[str, str, UnseenRegion]]  # with the names of both columns
    draws: bool


def describe(
    learned: Learned,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    all_codes: Sequence[ColumnCode],
    groups: NDArray[np.int64],
    all_names: Sequence[Any],
    rng: np.random.Generator,
) -> Findings:
    """What there is to say about a fit; ``groups`` are the columns of the table that coordinates belong to."""
    columns, trial = learned.model.columns, learned.trial
    first = columns.is_first(np.arange(len(columns.group)))
    places = groups[first]
    codes, names = [all_codes[place] for place in places], [all_names[place] for place in places]
    spread = columns.scaler.unit[first] * np.array([seconds_of(code) for code in codes])
    is_number = [isinstance(code, NumberCode) and not code.has_labels for code in codes]
    numbers = np.flatnonzero(first)[is_number].tolist()
    panel = learned.model.panel
    return Findings(
        scores=score_columns(learned, codes, names),
        hidden_values=_hidden_values(learned, codes, places, spread, len(all_codes)),
        names=names,
        is_label=np.array([code.has_labels for code in codes], dtype=bool),
        spread=spread,
        n_missing=missing[:, first].sum(axis=0),
        n_hidden=np.bincount(columns.group[trial.column[columns.is_first(trial.column)]], minlength=len(codes)),
        no_better=learned.weighed.no_better,
        asked=panel.names,
        weights=panel.weights,
        left_out=learned.left_out,
        unseen=[
            (str(all_names[groups[each.column]]), str(all_names[groups[each.other]]), each)
            for each in find_unseen_regions(values, missing, numbers, rng)
        ],
        draws=learned.model.draws,
    )


def _hidden_values(
    learned: Learned, codes: Sequence[ColumnCode], places: NDArray[np.int64], spread: Cells, n_columns: int
) -> HiddenValues:
    """What was hidden and guessed, one number per value of the table."""
    trial, columns = learned.trial, learned.model.columns
    group, kept = columns.group[trial.column], columns.is_first(trial.column)
    numbers = np.empty((3, len(trial.truth)))
    mean = trial.guesses[:, trial.names.index(MEAN)]
    for g, code in enumerate(codes):
        mine = np.flatnonzero(group == g)
        for which, z in enumerate((trial.truth, learned.weighed.guess, mean)):
            points = columns.values_of(g, z[mine])
            each = _labels(code, points, observed=which == 0) if code.has_labels else points[:, 0] * seconds_of(code)
            numbers[which, mine[:: points.shape[1]]] = each
        if g in learned.hidden_labels:
            numbers[1, mine[:: points.shape[1]]] = learned.hidden_labels[g]
    by_place = np.ones(n_columns)
    by_place[places] = spread
    truth, guess, simplest = numbers[:, kept]
    column, counts = places[group[kept]], trial.stands_for[kept]
    return HiddenValues(trial.rows, trial.row[kept], column, trial.split[kept], truth, guess, simplest, counts, by_place)


def give_verdict(found: Findings) -> str:
    """What a person should know, in plain words."""
    lines = []
    with_holes = found.n_missing > 0
    if not with_holes.any():
        lines.append(NOTHING_LEARNED)
    else:
        checked = with_holes & (found.n_hidden > 0)
        lines += _about_numbers(found, checked & ~found.is_label & (found.spread > 0)) + _about_categories(
            found, checked & found.is_label
        )
        if lines:
            trusted = found.weights[with_holes].mean(axis=0)
            order = [k for k in np.argsort(-trusted, kind="stable").tolist() if trusted[k] >= 0.005]
            lines.append("Most trusted: " + ", ".join(f"{found.asked[k]} {trusted[k]:.0%}" for k in order) + ".")
        else:
            lines.append("There were too few observed values to check the imputation on: treat the imputed ones as guesses.")
        if len(found.asked) > 1 or found.weights.shape[1] > 1:
            lines += _about_hopeless(found, with_holes)
        lines += _about_unseen(found)
    lines += [f"Left out: {name} ({why})." for name, why in found.left_out.items()]
    lines.append(
        "No check on observed values can tell whether values are missing because of what they are (the rich not stating their "
        "income): if so, imputed values are off in that direction by more than stated here."
    )
    return "\n".join(lines)


def _about_numbers(found: Findings, chosen: NDArray[np.bool_]) -> list[str]:
    if not chosen.any():
        return []
    places = np.flatnonzero(chosen).tolist()
    own, mean = (
        mean_over_missing([found.scores[found.names[g]][who]["mae"] / found.spread[g] for g in places], found.n_missing[chosen])
        for who in (STACK, MEAN)
    )
    imputed = "what draws are made around was" if found.draws else "the imputed ones were"
    return [
        f"On {found.n_hidden[chosen].sum():,} observed numbers that were hidden the way values are missing, {imputed} "
        f"off by {own:.2f} standard deviations on average, {_compared(own, mean)} column means ({mean:.2f})."
    ]


def _about_categories(found: Findings, chosen: NDArray[np.bool_]) -> list[str]:
    if not chosen.any():
        return []
    places = np.flatnonzero(chosen).tolist()
    own, most = (
        mean_over_missing([found.scores[found.names[g]][who]["wrong"] for g in places], found.n_missing[chosen])
        for who in (STACK, MEAN)
    )
    return [
        f"Of hidden categories, {own:.0%} were imputed wrongly, {_compared(own, most)} the most frequent ones ({most:.0%})."
    ]


def _compared(own: float, plain: float) -> str:
    return "no better than" if own >= _A_TIE * plain else f"{1 - own / plain:.0%} less than"


def _about_hopeless(found: Findings, with_holes: NDArray[np.bool_]) -> list[str]:
    names = [str(found.names[g]) for g in np.flatnonzero(found.no_better & with_holes).tolist()]
    if not names:
        return []
    filled = "draws around it were" if found.draws else "that is what was"
    return [
        f"Nothing was better than the mean (or the most frequent value) in {listed(names, _MOST_NAMED)}: "
        f"{filled} filled in, and other columns say little about it."
    ]


def _about_unseen(found: Findings) -> list[str]:
    lines = [
        f"{share(region.share)} of the values missing in {column} are where {other} is {number(region.low)} to "
        f"{number(region.high)}, and there {'none' if region.n_observed == 0 else f'only {region.n_observed:,}'} of {column} "
        "was observed: imputed values rest on what holds elsewhere, and may be further off than stated here."
        for column, other, region in found.unseen[:_MOST_NAMED]
    ]
    if len(found.unseen) > _MOST_NAMED:
        lines.append(f"The same holds for {count(len(found.unseen) - _MOST_NAMED, 'other column')}.")
    return lines
