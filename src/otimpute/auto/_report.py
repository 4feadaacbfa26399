"""What the trial on hidden values showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimator import Comparison, Finding, HiddenValues, Measure, Overall, judge, judge_column, mean_over_missing, rate
from ..fitting import ColumnLayout
from ..table import ColumnCode, ColumnKind, NumberCode, category_of, observed_category_of, seconds_of
from ._columns import Cells
from ._experts import MEAN
from ._extrapolation import find_unseen_regions
from ._learn import Learned
from ._verdict import About, ColumnVerdict, Unseen, Verdict

STACK = "stack"  # the combination, by weights learned on other hidden values
_LEAST_TRUST = 0.005  # that is worth mentioning

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
    if code.kind == ColumnKind.BOOLEAN:
        return np.asarray(points[:, 0] >= 0.5, dtype=np.int64)
    return observed_category_of(code, points) if observed else category_of(code, points)


@dataclass(frozen=True)
class Findings:
    """What there is to say about a fit; columns are those with values."""

    names: Sequence[Any]  # [G]
    imputed: NDArray[np.bool_]  # [G]
    scores: Scores
    hidden_values: HiddenValues
    verdict: Verdict


def describe(
    learned: Learned,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    layout: ColumnLayout,
    rng: np.random.Generator,
) -> Findings:
    """What there is to say about a fit to a table, of which the values come without helpers.

    Only the missing entries that are ``wanted`` count as such.
    """
    columns = learned.model.columns
    first, groups = columns.is_first(np.arange(values.shape[1])), layout.groups[layout.own]
    places = groups[first]
    codes, names = [layout.codes[place] for place in places], [layout.names[place] for place in places]
    spread = columns.scaler.unit[layout.own][first] * np.array([seconds_of(code) for code in codes])
    is_number = [isinstance(code, NumberCode) and not code.has_labels for code in codes]
    numbers = np.flatnonzero(first)[is_number].tolist()
    hidden_values = _hidden_values(learned, codes, places, spread, len(layout.codes))
    n_missing = wanted[:, first].sum(axis=0)
    unseen = [
        Unseen(
            layout.names[groups[each.column]],
            layout.names[groups[each.other]],
            each.low,
            each.high,
            each.share,
            each.n_observed,
        )
        for each in find_unseen_regions(values, missing, numbers, rng)
        if (wanted[:, each.column] == missing[:, each.column]).all()  # others have regions in which there is nothing to see
    ]
    columns_found = [
        _about_column(name, code, int(place), hidden_values, int(n), len(missing), is_mean=bool(learned.weighed.no_better[g]))
        for g, (name, code, place, n) in enumerate(zip(names, codes, places, n_missing, strict=True))
        if n
    ]
    verdict = give_verdict(learned, columns_found, n_missing > 0, unseen)
    return Findings(names, layout.is_imputed[layout.own][first], score_columns(learned, codes, names), hidden_values, verdict)


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


def _about_column(
    name: Any, code: ColumnCode, place: int, hidden: HiddenValues, n_missing: int, n_rows: int, *, is_mean: bool
) -> ColumnVerdict:
    """What hidden values show about a column with holes."""
    mine = hidden.column == place
    truth, guess, simplest = (each[mine] for each in (hidden.truth, hidden.guess, hidden.simplest))
    own, plain = ((each != truth) * 1.0 if code.has_labels else np.abs(each - truth) for each in (guess, simplest))
    measure = Measure.WRONG if code.has_labels else Measure.ERROR
    spread = None if code.has_labels else float(hidden.spread[place])
    if not mine.any():
        return ColumnVerdict(name, measure, n_missing, 0, None, None, None, spread, Finding.TOO_FEW, is_mean)
    compared = Comparison.of(own, plain, hidden.stands_for[mine])
    found = judge_column(compared, is_label=code.has_labels, share_missing=n_missing / n_rows)
    return ColumnVerdict(
        name, measure, n_missing, compared.n_hidden, compared.own, compared.simplest, compared.lead, spread, found, is_mean
    )


def give_verdict(
    learned: Learned, columns: list[ColumnVerdict], with_holes: NDArray[np.bool_], unseen: list[Unseen]
) -> Verdict:
    """What a person should know."""
    panel = learned.model.panel
    overall = [each for each in (_over_columns(measure, columns) for measure in Measure) if each is not None]
    trusted = panel.weights[: len(with_holes)][with_holes].mean(axis=0) if with_holes.any() else np.zeros(len(panel.names))
    order = [k for k in np.argsort(-trusted, kind="stable").tolist() if trusted[k] >= _LEAST_TRUST]
    return Verdict(
        about=About.CHECKED if overall else About.UNCHECKED if columns else About.NOTHING_LEARNED,
        rating=rate([each.finding for each in overall], draws=learned.model.draws),
        overall=overall,
        columns=columns,
        trusted={panel.names[k]: float(trusted[k]) for k in order},
        n_asked=len(panel.names),
        unseen=unseen,
        left_out=dict(learned.left_out),
        draws=learned.model.draws,
    )


def _over_columns(measure: Measure, columns: Sequence[ColumnVerdict]) -> Overall | None:
    """Means over columns, each of which counts by its number of holes; numbers in standard deviations, if there are any."""
    chosen = [each for each in columns if each.measure is measure and each.n_hidden and each.spread != 0]
    if not chosen:
        return None
    n_missing = np.array([each.n_missing for each in chosen])
    own, simplest = (
        mean_over_missing([getattr(each, who) / (each.spread or 1.0) for each in chosen], n_missing)
        for who in ("own", "simplest")
    )
    return Overall(measure, sum(each.n_hidden for each in chosen), own, simplest, judge(own, simplest))
