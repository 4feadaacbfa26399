"""From a table to a model: try the experts, fit those that count, calibrate what is said about their errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._row_noise import keys_by_place
from .._threads import Workers
from ..estimator import BaseImputer
from ..fitting import ColumnLayout
from ..table import ColumnKind, NumberCode
from ._blocks import try_in_blocks
from ._choices import Choice
from ._class_chances import ClassChances, HiddenLabels, calibrate, class_chances
from ._columns import Cells, Columns
from ._draws import DrawRule
from ._error_bars import ErrorBars, describe_cells
from ._experts import MIXTURE, ExpertFit, ExpertTask, fit_experts_to
from ._left_out import OUT_OF_TIME, LeftOut
from ._model import AutoModel
from ._panel import FittedExperts, WholeTable, disagreement, fit_experts
from ._time_plan import plan_final_fit
from ._trial import Trial, Weighed, fold_of, sample_rows, weigh

_MOST_ROWS = 50_000  # that experts are fitted on; further rows are new ones to them
_FOR_TRIAL = 0.5  # of the time there is


@dataclass(frozen=True)
class Learned:
    """A model, the table as it fills it, and how that was found out."""

    model: AutoModel
    cells: Cells  # [N]: the missing entries
    bars: Cells  # [N]: how far off they may be
    trial: Trial
    weighed: Weighed
    hidden_labels: Mapping[int, NDArray[np.int64]]  # by column that has labels: those imputed for hidden values
    left_out: Mapping[str, LeftOut]


def learn(
    experts: Mapping[str, BaseImputer],
    layout: ColumnLayout,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    *,
    draws: bool,
    fractions: bool,  # whether booleans may be fractions
    n_splits: int | None,
    limit: float,
    seed: int,
    n_threads: int,
    progress: Callable[[int, int], None],
    wanted: NDArray[np.bool_] | None = None,
    row_weight: Cells | None = None,
    choices: Mapping[int, Choice] | None = None,
) -> Learned:
    """Learn from a table with holes within about ``limit`` seconds; those ``wanted`` are to be imputed."""
    begun = time.perf_counter()
    columns = Columns.of(values, missing, layout, row_weight)
    values = columns.clip_outliers(values, missing)
    rows = sample_rows(missing, _MOST_ROWS, generator(seed, "rows to fit"), row_weight)
    table = WholeTable(
        experts, layout, values[rows], missing[rows], columns, seed, n_threads, choices or {},
        needed=(MIXTURE,) if draws else (), stop_at=begun + limit,
        row_weight=None if row_weight is None else row_weight[rows],
    )  # fmt: skip

    def try_them() -> Trial:
        return try_in_blocks(
            experts, layout, values, missing, columns, wanted=missing if wanted is None else wanted, draws=draws,
            n_splits=n_splits, seed=seed, n_threads=n_threads, stop_at=begun + _FOR_TRIAL * limit, progress=progress,
            row_weight=row_weight, choices=choices or {},
        )  # fmt: skip

    trial, done = _beside(try_them, table.foreseen, n_threads)
    tried, weighed = trial.names, weigh(trial, columns)
    if np.isfinite(limit):
        trial, weighed, n_rows = plan_final_fit(
            trial, weighed, columns, values, missing, needed=table.needed,
            most_rows=_MOST_ROWS, seconds_left=begun + limit - time.perf_counter(),
        )  # fmt: skip
        rows = sample_rows(missing, n_rows, generator(seed, "rows to fit"), row_weight)
        table = replace(
            table, values=values[rows], missing=missing[rows], row_weight=None if row_weight is None else row_weight[rows]
        )
    no_time = {name: OUT_OF_TIME for name in tried if name not in trial.names}
    fitted = fit_experts(table, trial, weighed.weights, done)
    if fitted.left_out.keys() & set(trial.names):  # what is said must be about those that are left
        trial = replace(trial.only(fitted.names), left_out={**trial.left_out, **fitted.left_out})
        weighed = weigh(trial, columns)
    model, hidden_labels = _calibrated(fitted, trial, weighed, columns, layout, values, missing, draws, fractions, seed)
    keys = keys_by_place(len(values), seed)
    if draws and missing.any():
        guess = model.weighted(missing[rows], fitted.guesses)
        model = model.with_draws_scaled(trial, weighed, values[rows], missing[rows], guess)
    elif draws:  # of a complete table, what was hidden first is taken for missing
        first = trial.split == 0
        hidden = np.zeros(missing.shape, dtype=bool)
        hidden[trial.row[first], trial.column[first]] = True
        model = model.with_draws_scaled(trial, weighed, values[trial.rows], hidden[trial.rows], weighed.guess[first])
    with Workers(n_threads) as workers:
        cells, bars = _fill(model, values, missing, rows, fitted.guesses, keys, workers)
    return Learned(model, cells, bars, trial, weighed, hidden_labels, {**trial.left_out, **no_time, **fitted.left_out})


def _beside(
    try_them: Callable[[], Trial], tasks: Sequence[ExpertTask], n_threads: int
) -> tuple[Trial, Mapping[str, ExpertFit]]:
    """The trial, and beside it what several threads find the time for: the last fits of some experts, by name."""
    found: list[Trial] = []
    done: dict[str, ExpertFit] = {}
    work: list[Callable[[], None]] = [lambda: found.append(try_them())]
    if n_threads > 1:
        work += [lambda task=task: done.update(fit_experts_to([task], n_threads)) for task in tasks]  # type: ignore[misc]
    with Workers(n_threads) as workers:
        workers.map(lambda part: part(), work)
    return found[0], done


def _calibrated(
    fitted: FittedExperts,
    trial: Trial,
    weighed: Weighed,
    columns: Columns,
    layout: ColumnLayout,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    draws: bool,
    fractions: bool,
    seed: int,
) -> tuple[AutoModel, dict[int, NDArray[np.int64]]]:
    """The model, with error bars and chances of categories learned from hidden values, and the labels it has for these."""
    group = columns.group[trial.column]
    described = describe_cells(disagreement(trial.guesses, weighed.weights[group]), trial.conditional_std)
    error_bars = ErrorBars.fit(weighed.guess - trial.truth, described, group, columns.n_groups, trial.stands_for)
    std, fold = error_bars.at(described, group), fold_of(trial, columns)
    classes: list[ClassChances] = []
    hidden: list[HiddenLabels] = []
    for first in np.flatnonzero(columns.is_first(np.arange(len(columns.group)))[layout.own]).tolist():
        place = int(layout.groups[first])
        found = class_chances(place, first, layout.codes[place], columns, values, missing, trial, fractions=fractions)
        if found is not None:
            mine, width = np.flatnonzero(group == columns.group[first]), found.corners.shape[1]
            guess, truth = (each[mine].reshape(-1, width) for each in (weighed.guess, trial.truth))
            classes.append(found)
            own = mine[::width]
            hidden.append(HiddenLabels(guess, std[own], truth, trial.stands_for[own], fold[own]))
    numbers = [code if isinstance(code, NumberCode) else NumberCode(ColumnKind.NUMBER) for code in layout.code_of_each]
    low, high = (np.where(np.isfinite(each), each, np.nan) for each in np.array([(one.low, one.high) for one in numbers]).T)
    classes = calibrate(classes, hidden)
    model = AutoModel(
        columns, fitted.panel(trial.names, weighed.weights), error_bars, classes, DrawRule.plain(columns.n_groups),
        low, high, draws, seed,
    )  # fmt: skip
    return model, _labels_of_hidden(classes, hidden, columns)


def _labels_of_hidden(
    classes: Sequence[ClassChances], hidden: Sequence[HiddenLabels], columns: Columns
) -> dict[int, NDArray[np.int64]]:
    """By column of labels, those imputed for hidden values by chances that were calibrated on others."""
    labels = {
        int(columns.group[each.first]): np.empty(len(one.fold), np.int64) for each, one in zip(classes, hidden, strict=True)
    }
    folds = np.unique(np.concatenate([np.empty(0, np.int64), *(one.fold for one in hidden)]))
    for fold in folds.tolist():
        calibrated = calibrate(classes, [one.take(one.fold != fold) for one in hidden])
        for each, one in zip(calibrated, hidden, strict=True):
            mine = one.fold == fold
            labels[int(columns.group[each.first])][mine] = each.likeliest(one.points[mine], one.std[mine])
    is_label = {int(columns.group[each.first]): each.is_label for each in classes}
    return {group: found for group, found in labels.items() if is_label[group]}


def _fill(
    model: AutoModel,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    rows: NDArray[np.int64],
    guesses: Cells,
    keys: NDArray[np.uint64],
    workers: Workers,
) -> tuple[Cells, Cells]:
    """Imputed entries of the whole table, from the guesses for the fitted ``rows``; the others are new rows."""
    fitted = model.combine(values[rows], missing[rows], guesses, keys[rows])
    if len(rows) == len(values):
        return fitted
    is_fitted = np.zeros(len(values), dtype=bool)
    is_fitted[rows] = True
    of_fitted, others = is_fitted[np.nonzero(missing)[0]], ~is_fitted
    cells, bars = np.empty(int(missing.sum())), np.empty(int(missing.sum()))
    cells[of_fitted], bars[of_fitted] = fitted
    cells[~of_fitted], bars[~of_fitted] = model.impute(values[others], missing[others], keys[others], workers)
    return cells, bars
