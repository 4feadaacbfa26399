"""Hide observed values, and impute them by an imputer and by simple methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._random import generator, seed_from
from .._text import count
from ..catalogue import make_imputer
from ..estimator import BaseImputer, HiddenValues, Missingness, column_means, hide_like_missing
from ..exceptions import DivergedError
from ..table import Table, to_numbers
from ._before_after import Cells, numbers_in

Holes = NDArray[np.bool_]
Guess = Callable[[Holes, int], Cells]  # which coordinates are missing, and in which round -> one number per cell

MEAN = "column mean"  # the simplest imputation of numbers
_PEERS = {"KNN": "knn", "ICE": "ice"}
_SHARE_HIDDEN = 0.1
_ENOUGH_HIDDEN = 60  # per column
_MOST_ICE_COORDINATES = 150  # with more, ICE takes minutes
# Parameters of the original that must not apply to a refitted copy.
_OF_THE_ORIGINAL = {"verbose": 0, "checkpoint": None, "callbacks": None, "warm_start": False}
_ONE_SPLIT = {"n_splits": 1}  # enough to weight the experts for a check, in half the time
_FAILURES = (DivergedError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class HiddenTrial:
    """Hidden values and how methods imputed them."""

    column: NDArray[np.int64]  # [N]
    truth: Cells  # [N]
    weight: Cells  # [N]: weight of a value in its column
    guesses: dict[str, Cells]  # [N] by method; NaN where a method was not applied
    failures: dict[str, str]  # messages of methods that failed


@dataclass(frozen=True)
class HiddenRound:
    """Cells that are hidden together."""

    hidden: Holes  # [n, d]
    scored: Holes  # [n, d]: the hidden cells that are scored
    weight: Cells  # [n, d]: weight of each in its column


def draw_rounds(imputer: BaseImputer, rows: Table, most_rounds: int, rng: np.random.Generator) -> list[HiddenRound]:
    """Hide a tenth of the values of incomplete columns, in patterns like the missing ones; in more rounds if these are few."""
    usable = ~imputer.training_table_.empty
    layout = imputer.training_table_.layout
    groups = layout.groups[layout.own]
    columns = np.unique(groups)
    with_holes = rows.holes[:, columns].any(axis=0)
    if not with_holes.any():
        return []
    how = Missingness.of(rows.values[:, usable], rows.missing[:, usable], groups, rng)
    n_at_once = _SHARE_HIDDEN * float((~how.missing[:, with_holes]).sum(axis=0).mean())
    n_rounds = int(np.clip(np.ceil(_ENOUGH_HIDDEN / max(n_at_once, 1.0)), 1, most_rounds))
    rounds, used = [], np.zeros(rows.holes.shape, dtype=bool)
    for _ in range(n_rounds):
        hidden, weight = np.zeros(rows.holes.shape, dtype=bool), np.zeros(rows.holes.shape)
        hidden[:, columns], weight[:, columns] = hide_like_missing(how, np.where(with_holes, _SHARE_HIDDEN, 0.0), rng)
        rounds.append(HiddenRound(hidden, hidden & rows.holes.any(axis=0) & ~used, weight))
        used |= hidden
    return rounds


def run_trial(imputer: BaseImputer, rows: Table, rounds: Sequence[HiddenRound], methods: Mapping[str, Guess]) -> HiddenTrial:
    """Impute the hidden values of each round by all methods."""
    truth, groups = numbers_in(rows), imputer.training_table_.encoding.groups
    guesses: dict[str, list[Cells]] = {name: [np.empty(0)] for name in methods}
    failures: dict[str, str] = {}
    if len(groups) > _MOST_ICE_COORDINATES and "ICE" in methods:
        failures["ICE"] = f"it would take too long on {count(len(rows.codes), 'column')}"
    for k, each in enumerate(rounds):
        missing = rows.missing | each.hidden[:, groups]
        for name in [name for name in methods if name not in failures] if each.scored.any() else ():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the fit of the original already showed them
                    guesses[name].append(methods[name](missing, k)[each.scored])
            except _FAILURES as error:
                failures[name] = str(error)
    column = np.concatenate([np.empty(0, np.int64), *(np.nonzero(each.scored)[1] for each in rounds)])
    true = np.concatenate([np.empty(0), *(truth[each.scored] for each in rounds)])
    weight = np.concatenate([np.empty(0), *(each.weight[each.scored] for each in rounds)])
    complete = {name: np.concatenate(parts) for name, parts in guesses.items() if name not in failures}
    return HiddenTrial(column, true, weight, complete, failures)


def by_peers(original: BaseImputer, rows: Table, seed: int, *, rounded: bool = True) -> dict[str, Guess]:
    """Return simple methods, fitted on the values that are not hidden."""
    return {name: by_copy(make_imputer(peer, {}), original, rows, seed, rounded=rounded) for name, peer in _PEERS.items()}


def by_mean(original: BaseImputer, rows: Table, seed: int) -> Guess:
    """Return a method that imputes the mean or most frequent category of the values that are not hidden."""
    return by_copy(make_imputer("mean", {}), original, rows, seed)


def by_training_mean(original: BaseImputer, rows: Table) -> Guess:
    """Return a method that imputes the mean of the rows that the imputer was fitted on."""

    def guess(missing: Holes, _: int) -> Cells:
        trained = original.training_table_.rows.centre
        centre = np.where(np.isnan(trained), column_means(rows.values, missing), trained)
        return to_numbers(rows.codes, np.where(missing, centre, rows.values), original.integers)

    return guess


def by_record(noted: HiddenValues, numbers: Cells, rows: Table) -> Guess:
    """Return what an imputer recorded for the values hidden in its own fit; ``rows`` are those of that trial."""

    def guess(_: Holes, k: int) -> Cells:
        cells, table = noted.split == k, np.full(rows.holes.shape, np.nan)
        table[np.searchsorted(noted.rows, noted.row[cells]), noted.column[cells]] = numbers[cells]
        return table

    return guess


def in_part(guess: Guess, rows: Table, part: NDArray[np.int64], n_rounds: int) -> Guess:
    """Restrict a slow method to some of the rows in the first rounds; elsewhere it returns NaN."""

    def some(missing: Holes, k: int) -> Cells:
        numbers = np.full(rows.holes.shape, np.nan)
        if k < n_rounds:
            numbers[part] = guess(missing[part], k)
        return numbers

    return some


def by_model(imputer: BaseImputer, rows: Table) -> Guess:
    """Return the imputer itself as a method; the rows must be new to it."""

    def guess(missing: Holes, _: int) -> Cells:
        training = imputer.training_table_
        usable = ~training.empty
        cells = imputer.model_.impute_cells(*training.arrays_of(_hidden_in(rows, missing)))
        return _filled(imputer, rows, missing, usable, cells)

    return guess


def by_copy(imputer: BaseImputer, original: BaseImputer, rows: Table, seed: int, *, rounded: bool = True) -> Guess:
    """Return a method that fits a copy of an imputer on the values that are not hidden, encoded as by the original.

    Integers are rounded as in the imputed table, unless ``rounded`` is False.
    """

    def guess(missing: Holes, k: int) -> Cells:
        copy = clone(imputer)
        own = copy.get_params(deep=False)
        settings: dict[str, Any] = {}
        if own.get("n_splits", 0) is None:
            settings |= _ONE_SPLIT
        if not isinstance(own.get("initial", ""), str):
            settings["initial"] = "auto"  # a user's initial table has other rows
        copy.set_params(**{name: value for name, value in (_OF_THE_ORIGINAL | settings).items() if name in own})
        part = _hidden_in(rows, missing)
        training = original.training_table_.of_rows(part)  # a column may have no value in these rows
        usable = ~training.empty
        draw = seed_from(int(generator(seed + k, "copy").integers(2**31)))
        fit = copy.fit_cells(*training.arrays_of(part), training.layout, seed=draw)
        return _filled(original, rows, missing, usable, fit.cells, rounded=rounded)

    return guess


def _without(rows: Table, missing: Holes) -> NDArray[np.floating]:
    """Return the coordinates with NaN where hidden."""
    return np.where(missing, rows.values.dtype.type(np.nan), rows.values)


def _hidden_in(rows: Table, missing: Holes) -> Table:
    """Return the rows as a table in which more is missing."""
    return replace(rows, values=_without(rows, missing), missing=missing)


def _filled(imputer: BaseImputer, rows: Table, missing: Holes, usable: Holes, cells: Cells, *, rounded: bool = True) -> Cells:
    """Return one number per cell, after filling the ``usable`` columns with ``cells``, row by row."""
    completed = _without(rows, missing).astype(np.float64)
    block = completed[:, usable]
    block[missing[:, usable]] = cells
    completed[:, usable] = block
    return to_numbers(rows.codes, completed, imputer.integers if rounded else "float")
