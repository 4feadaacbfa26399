"""Whether to believe it: hide observed values, fill them in by the same method and by simple ones, and compare."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._random import generator
from .._words import count
from ..estimator import BaseImputer, hide_cells
from ..exceptions import DivergedError
from ..registry import make_imputer
from ..table import MomentCode
from ._seen import Cells, Seen, centre_and_spread, has_labels, labels_of, to_numbers
from .data import ColumnCheck, HiddenCheck, MethodScore

_SHARE_HIDDEN = 0.1
_MOST_ROWS = 2000
_MOST_COORDINATES = 40_000  # rows × coordinates: what is refitted should take seconds
_FEWEST_ROWS = 10
_ENOUGH_HIDDEN = 60  # of a column
_MOST_ROUNDS = 4
_MOST_POINTS = 120
_MOST_PAIRS = 12
_MOST_ICE_COORDINATES = 150  # of more, a chain of regressions takes minutes
MEAN, MOST_FREQUENT = "column mean", "most frequent value"  # the simplest guess at numbers, and what it is for categories
_PEERS = {MEAN: "mean", "KNN": "knn", "ICE": "ice"}
# Of a copy that is fitted again: what belongs to the original alone.
_OF_THE_ORIGINAL = {"verbose": 0, "checkpoint": None, "callbacks": None, "warm_start": False}
_ONE_SPLIT = {"n_splits": 1}  # enough to weigh experts for a check, at half the time
_FAILURES = (DivergedError, ArithmeticError, np.linalg.LinAlgError)
_UNITS = ((86_400 * 365.25, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True)
class _Trial:
    """What became of hidden values."""

    column: NDArray[np.int64]  # [N]
    truth: Cells  # [N]
    guesses: dict[str, Cells]  # [N] by method
    failures: dict[str, str]  # of methods that could not be tried


def check_on_hidden(imputer: BaseImputer, seen: Seen, seed: int) -> HiddenCheck | str:
    """How far off the method and its peers are on hidden values of columns with holes, or why that cannot be said."""
    rng = generator(seed, "check")
    most = min(_MOST_ROWS, max(_MOST_COORDINATES // max(seen.values.shape[1], 1), 200))
    if len(seen.before) > most:
        seen = seen.take(np.sort(rng.choice(len(seen.before), most, replace=False)))
    if not seen.holes.any():
        return "Nothing was missing, so there is nothing to check."
    if len(seen.before) < _FEWEST_ROWS:
        return "There are too few rows to hide some values and learn from the others."
    method = type(imputer).__name__
    trial = _try(imputer, {method: imputer, **{name: make_imputer(peer, {}) for name, peer in _PEERS.items()}}, seen, rng, seed)
    if method in trial.failures:
        return f"A copy of the imputer that was fitted with values hidden failed: {trial.failures[method]}."
    if not len(trial.truth):
        return "Columns with holes have too few observed values to hide some."
    words = [
        f"{count(len(trial.truth), 'observed value')} of columns with holes were hidden at random, a tenth of a column at a "
        f"time, in {count(len(seen.before), 'row')}; a copy of the imputer with the same settings was fitted to what was left.",
        "Values that are missing for a reason may be harder to guess than values hidden at random: true errors can be larger, "
        "and nothing in the table can show by how much.",
    ]
    return HiddenCheck(
        len(trial.truth), len(seen.before), method, words, _score_methods(seen, trial), _score_columns(seen, trial, method)
    )


def _try(imputer: BaseImputer, methods: dict[str, BaseImputer], seen: Seen, rng: np.random.Generator, seed: int) -> _Trial:
    """Hide a tenth of the columns with holes, again and again while these are few values, and have all methods fill them in."""
    groups = np.repeat(np.arange(len(seen.codes)), [code.width for code in seen.codes])
    with_holes = seen.holes[:, groups].any(axis=0) & ~imputer._empty
    n_at_once = _SHARE_HIDDEN * float((~seen.missing[:, with_holes]).sum(axis=0).mean()) if with_holes.any() else 1.0
    n_rounds = int(np.clip(np.ceil(_ENOUGH_HIDDEN / max(n_at_once, 1.0)), 1, _MOST_ROUNDS))
    used = np.zeros_like(seen.missing)
    columns, truths = [np.empty(0, np.int64)], [np.empty(0)]
    guesses: dict[str, list[Cells]] = {name: [np.empty(0)] for name in methods}
    failures: dict[str, str] = {}
    if len(groups) > _MOST_ICE_COORDINATES:
        failures["ICE"] = f"it would take too long on {count(len(seen.codes), 'column')}"
    for k in range(n_rounds):
        share_of_rest = _SHARE_HIDDEN / (1 - k * _SHARE_HIDDEN)  # what was hidden before is not hidden again
        hidden = hide_cells(seen.missing | used, np.where(with_holes, share_of_rest, 0.0), rng, groups)
        used |= hidden
        missing = seen.missing | hidden
        cells = np.zeros(seen.holes.shape, dtype=bool)
        cells[:, groups] |= hidden
        columns.append(np.nonzero(cells)[1])
        truths.append(seen.before[cells])
        for name in [name for name in methods if name not in failures] if cells.any() else ():
            try:
                guesses[name].append(_guess(methods[name], imputer, seen, missing, seed + k)[cells])
            except _FAILURES as error:
                failures[name] = str(error)
    complete = {name: np.concatenate(parts) for name, parts in guesses.items() if name not in failures}
    return _Trial(np.concatenate(columns), np.concatenate(truths), complete, failures)


def _guess(imputer: BaseImputer, original: BaseImputer, seen: Seen, missing: NDArray[np.bool_], seed: int) -> Cells:
    """One number per cell: the table as a fresh copy of the imputer completes it."""
    copy = clone(imputer)
    own = copy.get_params(deep=False)
    settings: dict[str, Any] = {"random_state": int(generator(seed, "copy").integers(2**31))}
    if own.get("n_splits", 0) is None:
        settings |= _ONE_SPLIT
    if not isinstance(own.get("initial", ""), str):
        settings["initial"] = "auto"  # a table of one's own has other rows
    copy.set_params(**{name: value for name, value in (_OF_THE_ORIGINAL | settings).items() if name in own})
    copy._adopt(original)
    usable = ~original._empty & ~missing.all(axis=0)  # other rows, or some of them, may lack what training had
    encoding = original._encoding
    copy._empty, copy._groups, copy._scaled = ~usable, encoding.groups[usable], encoding.scaled[usable]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the original's fit has said what there is to say
        cells = copy._fit_cells(seen.values[:, usable], missing[:, usable])
    completed = np.where(missing, np.nan, seen.values).astype(np.float64)
    block = completed[:, usable]
    block[missing[:, usable]] = cells
    completed[:, usable] = block
    return to_numbers(seen.codes, completed, original.integers)


def _score_methods(seen: Seen, trial: _Trial) -> list[MethodScore]:
    nominal = np.array([has_labels(code) for code in seen.codes])[trial.column]
    spread = centre_and_spread(seen.before)[1][trial.column]
    numbers = ~nominal & (spread > 0)
    scores = [
        MethodScore(
            name,
            float((np.abs(guess - trial.truth)[numbers] / spread[numbers]).mean()) if numbers.any() else None,
            float((guess != trial.truth)[nominal].mean()) if nominal.any() else None,
        )
        for name, guess in trial.guesses.items()
    ]
    return scores + [MethodScore(name, None, None, why) for name, why in trial.failures.items()]


def _score_columns(seen: Seen, trial: _Trial, method: str) -> list[ColumnCheck]:
    checks = []
    for k in np.unique(trial.column).tolist():
        code, cells = seen.codes[k], trial.column == k
        truth, guess = trial.truth[cells], trial.guesses[method][cells]
        nominal = has_labels(code)
        size, unit = _unit(truth) if isinstance(code, MomentCode) else (1.0, "")
        off = {
            name: (each[cells] != truth).astype(np.float64) if nominal else np.abs(each[cells] - truth) / size
            for name, each in trial.guesses.items()
        }
        scores = {name: float(each.mean()) for name, each in off.items()}
        plain = scores.get(MEAN, 0.0)
        points: list[list[float]] = []
        pairs: list[list[Any]] = []
        if nominal:
            names = Counter(zip(labels_of(code, truth), labels_of(code, guess), strict=True))
            pairs = [[*pair, n] for pair, n in sorted(names.items(), key=lambda item: (-item[1], item[0]))][:_MOST_PAIRS]
        else:
            some = np.linspace(0, len(truth) - 1, min(len(truth), _MOST_POINTS)).astype(np.int64)
            points = (np.column_stack([truth, guess])[some] / size).tolist()
        measure = "wrong" if nominal else "error"
        against = scores[method] / plain if plain else None
        lead = _lead(off[MEAN] - off[method]) if MEAN in off else None
        checks.append(ColumnCheck(seen.names[k], len(truth), measure, unit, method, scores, against, lead, points, pairs))
    return checks


def _lead(gains: Cells) -> float | None:
    """A mean in standard errors; None where these are 0 or unknown."""
    spread = float(gains.std(ddof=1)) if len(gains) > 1 else 0.0
    return float(gains.mean() / (spread / np.sqrt(len(gains)))) if 0 < spread < np.inf else None


def _unit(seconds: Cells) -> tuple[float, str]:
    """What to count a column's times in."""
    span = float(np.ptp(seconds))
    return next((unit for unit in _UNITS if span >= 2 * unit[0]), _UNITS[-1])
