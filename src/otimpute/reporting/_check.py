"""Check an imputer on hidden values: hide observed values, impute them by the imputer and simple methods, and compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._text import count, share
from ..estimator import (
    BaseImputer,
    Comparison,
    Finding,
    HiddenValues,
    Measure,
    Overall,
    judge,
    judge_column,
    mean_over_missing,
)
from ..table import MomentCode, Table, labels_of
from ._before_after import Cells, names_of, rows_of, spread_of, unit_of
from ._trial import (
    MEAN,
    HiddenRound,
    HiddenTrial,
    by_copy,
    by_mean,
    by_model,
    by_peers,
    by_record,
    by_training_mean,
    draw_rounds,
    in_part,
    run_trial,
)
from .data import ColumnCheck, HiddenCheck, MethodScore

_MOST_ROWS = 2000
_MOST_COORDINATES = 40_000  # rows × coordinates: refitting should take seconds
_FEWEST_ROWS = 10
_MOST_FITS = 4
_MOST_ROUNDS = 10  # if no fit is needed: every value is hidden once
_MOSTLY = 0.5  # estimated fraction of the rows that were in training
_MOST_POINTS = 120
_MOST_PAIRS = 12
MOST_FREQUENT = "most frequent value"  # the counterpart of the mean for categories
_CAVEAT = (
    "If values are missing because of the values themselves, they may be harder to impute than hidden values: true errors can "
    "then be larger, and the data cannot show by how much. Averages weight each column by its number of missing values."
)


@dataclass(frozen=True)
class _Check:
    """A trial and how it was made."""

    trial: HiddenTrial
    filled_by: str
    n_rows: int
    words: str
    spread: Cells | None = None  # [d]: unit of the errors, if not the standard deviations of the table


def check_on_hidden(imputer: BaseImputer, table: Table, max_rows: int, seed: int) -> HiddenCheck | str:
    """Score the imputer and simple methods on hidden values of incomplete columns; a string says why this is not possible.

    An imputer is tested as it is on rows that it was not fitted on. On its training rows it has already seen the values: then
    a copy is fitted on the remaining values, or the hidden values that the imputer recorded in its own fit are used.
    """
    if not table.holes.any():
        return "Nothing was missing, so there is nothing to check."
    if len(table.holes) < _FEWEST_ROWS:
        return "There are too few rows to hide some values and fit on the others."
    most = min(max_rows, _MOST_ROWS, max(_MOST_COORDINATES // max(table.values.shape[1], 1), 200))
    check = _own_trial(imputer, table, most, seed) or _new_trial(imputer, table, most, seed)
    trial, method = check.trial, type(imputer).__name__
    if method in trial.failures:
        who = "The imputer" if check.filled_by == "model" else "A copy of the imputer fitted without the hidden values"
        return f"{who} failed: {trial.failures[method]}."
    if not len(trial.truth):
        return "Columns with missing values have too few observed values to hide some."
    columns = _score_columns(table, names_of(imputer), check, method)
    n_missing = table.holes.sum(axis=0)[np.unique(trial.column)]
    methods = [_score_method(name, columns, n_missing) for name in trial.guesses]
    methods += [MethodScore(name, None, None, why) for name, why in trial.failures.items()]
    overall = [each for each in (_overall(measure, methods, columns, method) for measure in Measure) if each is not None]
    return HiddenCheck(
        len(trial.truth), check.n_rows, method, check.filled_by, [check.words, _CAVEAT], methods, overall, columns
    )


def _new_trial(imputer: BaseImputer, table: Table, most: int, seed: int) -> _Check:
    rng, method = generator(seed, "check"), type(imputer).__name__
    is_model, places, note = _rows_to_judge_by(imputer, table)
    if len(places) > most:
        places = np.sort(rng.choice(places, most, replace=False))
    rows = rows_of(table, places)
    if is_model:
        methods = {method: by_model(imputer, rows), MEAN: by_training_mean(imputer, rows)}
    else:
        methods = {method: by_copy(imputer, imputer, rows, seed), MEAN: by_mean(imputer, rows, seed)}
    rounds = draw_rounds(imputer, rows, _MOST_ROUNDS if is_model else _MOST_FITS, rng)
    peers = by_peers(imputer, rows, seed)
    methods |= {name: in_part(guess, rows, np.arange(len(places)), _MOST_FITS) for name, guess in peers.items()}
    trial = run_trial(imputer, rows, rounds, methods)
    words = (
        f"{count(len(trial.truth), 'observed value')} of columns with missing values were hidden in patterns like those of the "
        f"missing values, a tenth of a column at a time, in {count(len(places), 'row')} {note}"
    )
    return _Check(trial, "model" if is_model else "copy", len(places), words)


def _rows_to_judge_by(imputer: BaseImputer, table: Table) -> tuple[bool, NDArray[np.int64], str]:
    """Return whether the imputer can be tested as it is, the rows to test on, and a note about them."""
    known, all_rows = imputer.training_table_.rows, np.arange(len(table.holes))
    copied = "a copy of the imputer with the same settings was fitted on the remaining values."
    if known.are_all_of(table.values, table.missing):
        return False, all_rows, f"of the table; {copied}"
    seen, share_seen = known.among(table.values, table.missing)
    new, all_known = np.flatnonzero(~seen), len(known.keys) == known.n_rows
    if len(new) < _FEWEST_ROWS or (not all_known and share_seen > _MOSTLY):
        return False, all_rows, f"of the table; {share(share_seen)} of its rows were in training, so {copied}"
    left_out = (
        f" Rows that were in training, {share(share_seen)} of the table, are excluded from this check." if seen.any() else ""
    )
    return (
        True,
        new,
        "that the imputer was not fitted on; it imputed them without being refitted. The column mean is that of the training "
        f"rows; KNN and ICE were fitted on the remaining values of these rows, at most four times.{left_out}",
    )


def _own_trial(imputer: BaseImputer, table: Table, most: int, seed: int) -> _Check | None:
    """Return the trial that the imputer recorded in its own fit, if it did so and this is its training table."""
    noted: HiddenValues | None = getattr(imputer, "hidden_values_", None)
    if noted is None or not len(noted.row) or not imputer.training_table_.rows.are_all_of(table.values, table.missing):
        return None
    rows, method = rows_of(table, noted.rows), type(imputer).__name__
    guesses = by_record(noted, noted.guess, rows)
    weights = by_record(noted, noted.stands_for, rows)
    rounds = []
    for k in range(int(noted.split.max()) + 1):
        hidden = ~np.isnan(guesses(rows.missing, k))
        rounds.append(HiddenRound(hidden, hidden & table.holes.any(axis=0), weights(rows.missing, k)))
    part = np.arange(len(noted.rows))
    if len(part) > most:
        part = np.sort(generator(seed, "check").choice(part, most, replace=False))
    peers = by_peers(imputer, rows_of(rows, part), seed, rounded=False)
    methods = {
        method: guesses,
        MEAN: by_record(noted, noted.simplest, rows),
        **{name: in_part(guess, rows, part, _MOST_FITS) for name, guess in peers.items()},
    }
    trial = run_trial(imputer, rows, rounds, methods)
    some = "" if len(part) == len(rows.holes) and len(rounds) <= _MOST_FITS else " (KNN and ICE only some of them)"
    words = (
        f"{count(len(trial.truth), 'observed value')} of columns with missing values were hidden during the fit, in patterns "
        f"like those of the missing values, in {count(len(noted.rows), 'row')}; the other methods imputed the same ones{some}."
    )
    if getattr(imputer, "target", "") == "distribution":
        words += " The scores are those of the expected values around which values are drawn; single draws have larger errors."
    return _Check(trial, "trial", len(noted.rows), words, noted.spread)


def _score_columns(table: Table, names: Sequence[str], check: _Check, method: str) -> list[ColumnCheck]:
    """Return the scores of every column with hidden values, in the order of the table."""
    checks, trial = [], check.trial
    for k in np.unique(trial.column).tolist():
        code, cells = table.codes[k], trial.column == k
        truth, guess = trial.truth[cells], trial.guesses[method][cells]
        weight, share_missing = trial.weight[cells], float(table.holes[:, k].mean())
        size, unit = unit_of(truth) if isinstance(code, MomentCode) else (1.0, "")
        off = {name: _off(truth, each[cells], size, labels=code.has_labels) for name, each in trial.guesses.items()}
        scores = {name: _average(each, weight) for name, each in off.items() if not np.isnan(each).all()}
        spread = None if code.has_labels else (spread_of(table, k) if check.spread is None else float(check.spread[k])) / size
        compared = Comparison.of(off[method], off[MEAN], weight) if MEAN in off else None
        finding = judge_column(compared, is_label=code.has_labels, share_missing=share_missing) if compared else Finding.TOO_FEW
        points: list[list[float]] = []
        pairs: list[list[Any]] = []
        if code.has_labels:
            both = Counter(zip(labels_of(code, truth), labels_of(code, guess), strict=True))
            pairs = [[*pair, n] for pair, n in sorted(both.items(), key=lambda item: (-item[1], item[0]))][:_MOST_PAIRS]
        else:
            some = np.linspace(0, len(truth) - 1, min(len(truth), _MOST_POINTS)).astype(np.int64)
            points = (np.column_stack([truth, guess])[some] / size).tolist()
        checks.append(
            ColumnCheck(
                names[k], len(truth), Measure.WRONG if code.has_labels else Measure.ERROR, unit, spread, method, scores,
                compared.own / compared.simplest if compared and compared.simplest else None,
                compared.lead if compared else None, finding, points, pairs,
            )
        )  # fmt: skip
    return checks


def _score_method(method: str, columns: Sequence[ColumnCheck], n_missing: NDArray[np.int64]) -> MethodScore:
    """Average over columns, weighted by their missing values; constant columns are ignored, as their spread is 0."""

    def average(measure: Measure) -> float | None:
        parts = [
            (n, each.scores[method] / (each.spread or 1.0))
            for n, each in zip(n_missing.tolist(), columns, strict=True)
            if each.measure is measure and method in each.scores and each.spread != 0
        ]
        return mean_over_missing([score for _, score in parts], np.array([n for n, _ in parts])) if parts else None

    return MethodScore(method, average(Measure.ERROR), average(Measure.WRONG))


def _overall(measure: Measure, methods: Sequence[MethodScore], columns: Sequence[ColumnCheck], method: str) -> Overall | None:
    """Return the finding over all columns; None if all are constant."""
    scores = {each.method: getattr(each, measure) for each in methods}
    own, simplest = scores[method], scores.get(MEAN)
    if own is None or simplest is None:
        return None
    n_hidden = sum(each.n_hidden for each in columns if each.measure is measure and each.spread != 0)
    return Overall(measure, n_hidden, own, simplest, judge(own, simplest))


def _average(off: Cells, weight: Cells) -> float:
    known = ~np.isnan(off)
    return float(np.average(off[known], weights=weight[known]))


def _off(truth: Cells, guess: Cells, size: float, *, labels: bool) -> Cells:
    """Return the absolute error of each guess, or whether it is wrong; NaN where there is none."""
    return np.where(np.isnan(guess), np.nan, guess != truth) if labels else np.abs(guess - truth) / size
