"""Hide observed values, and have an imputer and its peers fill them in."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._random import generator
from .._words import count
from ..estimator import BaseImputer, HiddenValues, column_means, hide_cells
from ..exceptions import DivergedError
from ..registry import make_imputer
from ..table import Table
from ._seen import Cells, numbers_in, to_numbers

Holes = NDArray[np.bool_]
Guess = Callable[[Holes, int], Cells]  # which coordinates are missing, and in which round -> one number per cell

MEAN = "column mean"  # the simplest guess at numbers
_PEERS = {"KNN": "knn", "ICE": "ice"}
_SHARE_HIDDEN = 0.1
_ENOUGH_HIDDEN = 60  # of a column
_MOST_ICE_COORDINATES = 150  # of more, a chain of regressions takes minutes
# Of a copy that is fitted again: what belongs to the original alone.
_OF_THE_ORIGINAL = {"verbose": 0, "checkpoint": None, "callbacks": None, "warm_start": False}
_ONE_SPLIT = {"n_splits": 1}  # enough to weigh experts for a check, at half the time
_FAILURES = (DivergedError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Trial:
    """What became of hidden values."""

    column: NDArray[np.int64]  # [N]
    truth: Cells  # [N]
    weight: Cells  # [N]: how much a value counts in its column
    guesses: dict[str, Cells]  # [N] by method; NaN where a method was not asked
    failures: dict[str, str]  # of methods that could not be tried

    def of_columns(self, chosen: NDArray[np.bool_]) -> Trial:
        """What became of values of the ``chosen [d]`` columns."""
        mine = chosen[self.column]
        guesses = {name: guess[mine] for name, guess in self.guesses.items()}
        return Trial(self.column[mine], self.truth[mine], self.weight[mine], guesses, self.failures)


def draw_rounds(imputer: BaseImputer, rows: Table, most_rounds: int, rng: np.random.Generator) -> list[Holes]:
    """Cells ``[n, d]`` to hide: a tenth of the columns with holes, again and again while these are few values."""
    groups = imputer._encoding.groups
    with_holes = rows.holes[:, groups].any(axis=0) & ~imputer._empty
    n_at_once = _SHARE_HIDDEN * float((~rows.missing[:, with_holes]).sum(axis=0).mean()) if with_holes.any() else 1.0
    n_rounds = int(np.clip(np.ceil(_ENOUGH_HIDDEN / max(n_at_once, 1.0)), 1, most_rounds))
    used, rounds = np.zeros_like(rows.missing), []
    for k in range(n_rounds):
        share_of_rest = _SHARE_HIDDEN / (1 - k * _SHARE_HIDDEN)  # what was hidden before is not hidden again
        hidden = hide_cells(rows.missing | used, np.where(with_holes, share_of_rest, 0.0), rng, groups)
        used |= hidden
        cells = np.zeros(rows.holes.shape, dtype=bool)
        cells[:, groups] |= hidden
        rounds.append(cells)
    return rounds


def run_trial(
    imputer: BaseImputer, rows: Table, rounds: list[Holes], methods: Mapping[str, Guess], weight: Guess | None = None
) -> Trial:
    """Have all methods fill in what is hidden in each round; values count alike unless a ``weight`` is given."""
    truth, groups = numbers_in(rows), imputer._encoding.groups
    guesses: dict[str, list[Cells]] = {name: [np.empty(0)] for name in methods}
    failures: dict[str, str] = {}
    if len(groups) > _MOST_ICE_COORDINATES and "ICE" in methods:
        failures["ICE"] = f"it would take too long on {count(len(rows.codes), 'column')}"
    weights = [np.empty(0)]
    for k, cells in enumerate(rounds):
        if not cells.any():
            continue
        missing = rows.missing | cells[:, groups]
        weights.append(np.ones(int(cells.sum())) if weight is None else weight(missing, k)[cells])
        for name in [name for name in methods if name not in failures]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the original's fit has said what there is to say
                    guesses[name].append(methods[name](missing, k)[cells])
            except _FAILURES as error:
                failures[name] = str(error)
    column = np.concatenate([np.empty(0, np.int64), *(np.nonzero(cells)[1] for cells in rounds)])
    true = np.concatenate([np.empty(0), *(truth[cells] for cells in rounds)])
    complete = {name: np.concatenate(parts) for name, parts in guesses.items() if name not in failures}
    return Trial(column, true, np.concatenate(weights), complete, failures)


def by_peers(original: BaseImputer, rows: Table, seed: int) -> dict[str, Guess]:
    """Simple methods, fitted to what is left of the rows."""
    return {name: by_copy(make_imputer(peer, {}), original, rows, seed) for name, peer in _PEERS.items()}


def by_mean(original: BaseImputer, rows: Table, seed: int) -> Guess:
    """The mean, or the most frequent category, of what is left of the rows."""
    return by_copy(make_imputer("mean", {}), original, rows, seed)


def by_training_mean(original: BaseImputer, rows: Table) -> Guess:
    """The mean of the rows that the imputer was fitted to."""

    def guess(missing: Holes, _: int) -> Cells:
        trained = original._training_rows.centre
        centre = np.where(np.isnan(trained), column_means(rows.values, missing), trained)
        return _numbers(original, rows, np.where(missing, centre, rows.values))

    return guess


def by_record(noted: HiddenValues, numbers: Cells, rows: Table) -> Guess:
    """What an imputer noted of each value that its own fit hid; ``rows`` are those of that trial, rounds its splits."""

    def guess(_: Holes, k: int) -> Cells:
        cells, table = noted.split == k, np.full(rows.holes.shape, np.nan)
        table[np.searchsorted(noted.rows, noted.row[cells]), noted.column[cells]] = numbers[cells]
        return table

    return guess


def in_part(guess: Guess, rows: Table, part: NDArray[np.int64], n_rounds: int) -> Guess:
    """A method that takes long, and is asked about some of the rows in the first rounds; elsewhere its guess is NaN."""

    def some(missing: Holes, k: int) -> Cells:
        numbers = np.full(rows.holes.shape, np.nan)
        if k < n_rounds:
            numbers[part] = guess(missing[part], k)
        return numbers

    return some


def by_model(imputer: BaseImputer, rows: Table) -> Guess:
    """The imputer itself, to which these are new rows."""

    def guess(missing: Holes, _: int) -> Cells:
        usable = ~imputer._empty
        cells = imputer._impute_cells(_without(rows, missing)[:, usable], missing[:, usable])
        return _filled(imputer, rows, missing, usable, cells)

    return guess


def by_copy(imputer: BaseImputer, original: BaseImputer, rows: Table, seed: int) -> Guess:
    """A fresh copy of an imputer, fitted to what is left of the rows, which it sees as the original does."""

    def guess(missing: Holes, k: int) -> Cells:
        copy = clone(imputer)
        own = copy.get_params(deep=False)
        settings: dict[str, Any] = {"random_state": int(generator(seed + k, "copy").integers(2**31))}
        if own.get("n_splits", 0) is None:
            settings |= _ONE_SPLIT
        if not isinstance(own.get("initial", ""), str):
            settings["initial"] = "auto"  # a table of one's own has other rows
        copy.set_params(**{name: value for name, value in (_OF_THE_ORIGINAL | settings).items() if name in own})
        copy._adopt(original)
        usable = ~original._empty & ~missing.all(axis=0)  # other rows, or some of them, may lack what training had
        encoding = original._encoding
        copy._empty, copy._groups, copy._scaled = ~usable, encoding.groups[usable], encoding.scaled[usable]
        cells = copy._fit_cells(_without(rows, missing)[:, usable], missing[:, usable])
        return _filled(original, rows, missing, usable, cells)

    return guess


def _without(rows: Table, missing: Holes) -> NDArray[np.floating]:
    """Coordinates in which nobody can find what is hidden."""
    return np.where(missing, rows.values.dtype.type(np.nan), rows.values)


def _filled(imputer: BaseImputer, rows: Table, missing: Holes, usable: Holes, cells: Cells) -> Cells:
    """One number per cell, of coordinates whose ``usable`` columns were filled with ``cells``, row by row."""
    completed = _without(rows, missing).astype(np.float64)
    block = completed[:, usable]
    block[missing[:, usable]] = cells
    completed[:, usable] = block
    return _numbers(imputer, rows, completed)


def _numbers(imputer: BaseImputer, rows: Table, completed: NDArray[np.floating]) -> Cells:
    return to_numbers(rows.codes, completed.astype(np.float64), imputer.integers)
