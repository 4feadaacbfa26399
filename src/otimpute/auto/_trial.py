"""Experts are tried on observed values that are hidden from them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._stored import stored
from ..estimator import BaseImputer, hide_cells
from ..table import Standardiser
from ._experts import MEAN, Answer, Question, ask, refines
from ._weights import combine, learn_weights

_SHARE_HIDDEN = 0.15  # of a column's observed values in one split: more would make another table of it
_SHARE_OF_COMPLETE = 0.03  # of a column's without holes: those that help to fill the others mostly stay
_ENOUGH_HIDDEN = 1500  # values over all splits
_SPLITS = 3, 8  # fewest and most
_MOST_ROWS = 4000  # that are tried on; weights need no more
_FEWEST_VALUES = 100  # of a column, among rows that stand for all, if there are so many
_WITH_REFINING = 3.0  # times what a split takes without those who refine, roughly
_FARTHEST = 10.0  # spreads from the mean, both without the outermost values, that an observed value may seem to lie
_BEYOND = 1.0  # standard deviations that a guess may lie outside of what was observed

Cells = NDArray[np.float64]


@stored(group="columns", low="columns", high="columns")
@dataclass(frozen=True)
class Columns:
    """What the experts' guesses have in common: units, and which coordinates belong together."""

    scaler: Standardiser
    group: NDArray[np.int64]  # [D]: column of the table, counted among those with values
    low: Cells  # [D]: range of the observed values, in standard deviations
    high: Cells

    @classmethod
    def of(
        cls, values: NDArray[np.floating], missing: NDArray[np.bool_], groups: NDArray[np.int64], scaled: NDArray[np.bool_]
    ) -> Columns:
        """Learned from the observed values."""
        scaler = Standardiser.fit(values, missing, scaled=scaled)
        z = np.where(missing, np.nan, scaler.apply(np.where(missing, 0, values))).clip(-_FARTHEST, _FARTHEST)
        low, high = np.nanmin(z, axis=0), np.nanmax(z, axis=0)
        return cls(scaler, np.unique(groups, return_inverse=True)[1], low, high)

    def pull_in(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """A copy with observed values that are absurdly far away brought nearer.

        One mistyped number must not decide what the mean is, nor whom to trust.
        """
        pulled = np.array(values, dtype=np.float64)
        z = self.scaler.apply(np.where(missing, 0, values))
        far = (np.abs(z) > _FARTHEST) & ~missing
        pulled[far] = self.scaler.restore(np.sign(z[far]) * _FARTHEST, np.nonzero(far)[1])
        return pulled

    @property
    def width(self) -> NDArray[np.int64]:
        """How many coordinates each column of the table has."""
        return np.bincount(self.group)

    def is_first(self, column: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some coordinates are the first of their column: values are counted by these."""
        return np.asarray(np.r_[True, np.diff(self.group) > 0][column])

    @property
    def n_groups(self) -> int:
        """How many columns of the table there are."""
        return int(self.group.max()) + 1 if len(self.group) else 0

    def standardise(self, cells: Cells, column: NDArray[np.int64]) -> Cells:
        """An expert's guesses in standard deviations, brought back to where values were observed."""
        z = self.scaler.apply_entries(cells, column)
        return np.clip(z, self.low[column] - _BEYOND, self.high[column] + _BEYOND)

    def with_guess(self, values: NDArray[np.floating], missing: NDArray[np.bool_], guess: Cells) -> NDArray[np.float64]:
        """The table with standardised guesses in its holes."""
        filled = np.array(values, dtype=np.float64)
        filled[missing] = self.scaler.restore(guess, np.nonzero(missing)[1])
        return filled


@dataclass(frozen=True)
class Trial:
    """What came out: guesses for hidden cells and the truth, in standard deviations."""

    names: tuple[str, ...]  # of the experts that could be tried, those that refine last
    n_first: int  # how many do not refine
    first_weights: Cells  # [n_groups, n_first]: what those who refine start from
    guesses: Cells  # [N, E]
    truth: Cells  # [N]
    column: NDArray[np.int64]  # [N]: coordinate
    split: NDArray[np.int64]  # [N]
    left_out: Mapping[str, str]  # experts that could not be tried, and why


def try_experts(
    experts: Mapping[str, BaseImputer],
    asker: BaseImputer,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    columns: Columns,
    *,
    n_splits: int | None,
    seed: int,
    n_threads: int,
    deadline: float = math.inf,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Trial:
    """Hide values several times, let all experts fill them in, and see.

    Experts that refine start from the best combination of the others, as they will in the end.
    """
    rng = generator(seed, "hidden")
    rows = sample_rows(missing, _MOST_ROWS, rng)
    values, missing = values[rows], missing[rows]
    share = np.where(missing.any(axis=0), _SHARE_HIDDEN, _SHARE_OF_COMPLETE if missing.any() else _SHARE_HIDDEN)
    values_at_once = float(((~missing).sum(axis=0) * share)[columns.is_first(np.arange(missing.shape[1]))].sum())
    n_splits = n_splits or int(np.clip(np.ceil(_ENOUGH_HIDDEN / max(values_at_once, 1.0)), *_SPLITS))
    hidden = [hide_cells(missing, share, rng, columns.group) for _ in range(n_splits)]
    holes = [missing | each for each in hidden]
    first = [name for name, expert in experts.items() if not refines(expert)]
    second = [name for name, expert in experts.items() if refines(expert)]
    answers: dict[tuple[str, int], Answer] = {}

    def ask_all(names: list[str], tables: Sequence[NDArray[np.floating]]) -> tuple[list[str], list[Cells]]:
        """Guesses of those who answered in every split, for the cells that are missing or hidden there, by split."""
        begun = time.perf_counter()
        for s in range(len(holes)):
            if math.isfinite(deadline) and s and tables is untouched:  # those who refine will take longer still
                one_split = (time.perf_counter() - begun) / s
                del hidden[max(1, int((deadline - begun) / (_WITH_REFINING * one_split))) :]
                del holes[len(hidden) :]
                if s >= len(holes):
                    break
            limits = {name: math.inf if name == MEAN else deadline for name in names}
            questions = [Question((name, s), experts[name], tables[s], holes[s], seed, limits[name]) for name in names]
            answers.update(ask(questions, asker, n_threads))
            progress(len(answers), (len(holes) + 1) * len(experts))
        able = [name for name in names if all(answers[name, s].cells is not None for s in range(len(holes)))]
        guesses = []
        for s in range(len(holes)):
            column = np.nonzero(holes[s])[1]
            cells = [columns.standardise(np.asarray(answers[name, s].cells), column) for name in able]
            guesses.append(np.stack(cells, axis=1) if able else np.empty((len(column), 0)))
        return able, guesses

    untouched = [values] * len(holes)
    able, guesses = ask_all(first, untouched)
    truth = np.concatenate([columns.scaler.apply(np.where(missing, 0, values))[each] for each in hidden])
    column = np.concatenate([np.nonzero(each)[1] for each in hidden])
    split = np.repeat(np.arange(len(hidden)), [int(each.sum()) for each in hidden])
    at_hidden = [guess[each[hole]] for guess, each, hole in zip(guesses, hidden, holes, strict=True)]
    first_weights = learn_weights(np.concatenate(at_hidden) - truth[:, None], columns.group[column], columns.width)
    starts = [
        columns.with_guess(values, hole, combine(guess, first_weights[columns.group[np.nonzero(hole)[1]]]))
        for guess, hole in zip(guesses, holes, strict=True)
    ]
    able_to_refine, refined = ask_all(second, starts)
    at_hidden = [
        np.hstack([one, guess[each[hole]]]) for one, guess, each, hole in zip(at_hidden, refined, hidden, holes, strict=True)
    ]
    names = (*able, *able_to_refine)
    return Trial(
        names,
        len(able),
        first_weights,
        np.concatenate(at_hidden),
        truth,
        column,
        split,
        {name: max(answers[name, s].failure for s in range(len(holes))) for name in experts if name not in names},
    )


def sample_rows(missing: NDArray[np.bool_], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All rows, or ``most`` of them and some more where a column would otherwise have hardly a value.

    >>> missing = np.ones((1000, 2), dtype=bool)
    >>> missing[:, 0], missing[990:, 1] = False, False
    >>> rows = sample_rows(missing, 200, np.random.default_rng(0))
    >>> (~missing[rows]).sum(axis=0).min().item(), 200 <= len(rows) <= 210
    (10, True)
    """
    if len(missing) <= most:
        return np.arange(len(missing))
    chosen = np.zeros(len(missing), dtype=bool)
    chosen[rng.choice(len(missing), most, replace=False)] = True
    for column in missing.T:
        observed = np.flatnonzero(~column)
        if np.count_nonzero(chosen[observed]) < _FEWEST_VALUES:
            chosen[rng.choice(observed, min(_FEWEST_VALUES, len(observed)), replace=False)] = True
    return np.flatnonzero(chosen)


def column_weights(trial: Trial, columns: Columns) -> tuple[Cells, Cells, NDArray[np.bool_]]:
    """Weights ``[n_groups, E]``, guesses for hidden cells by weights from other splits, and columns where the mean is best."""
    group = columns.group[trial.column]
    errors = trial.guesses - trial.truth[:, None]
    weights = learn_weights(errors, group, columns.width)
    crossed = np.empty(len(trial.truth))
    # With one split, halves of the values stand in for other splits.
    fold = trial.split if trial.split.max(initial=0) else np.cumsum(columns.is_first(trial.column)) % 2
    for each in np.unique(fold):
        mine = fold == each
        from_others = learn_weights(errors[~mine], group[~mine], columns.width)
        crossed[mine] = combine(trial.guesses[mine], from_others[group[mine]])
    mean = trial.names.index(MEAN)
    no_better = np.zeros(columns.n_groups, dtype=bool)
    for g in range(columns.n_groups):
        cells = group == g
        if cells.any():
            no_better[g] = ((crossed - trial.truth)[cells] ** 2).sum() >= (errors[cells, mean] ** 2).sum()
            if no_better[g]:
                weights[g] = np.eye(len(trial.names))[mean]
                crossed[cells] = trial.guesses[cells, mean]
    return weights, crossed, no_better
