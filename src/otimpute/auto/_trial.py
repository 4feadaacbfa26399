"""Experts are tried on observed values that are hidden from them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from ..baselines.gaussian_em import GaussianEMModel
from ..estimator import BaseImputer, Missingness, hide_like_missing
from ..fitting import CellModel, ColumnLayout, ask_model, columns_of, is_made_of
from ._choices import Choice, named_in
from ._columns import Cells, Columns
from ._experts import MEAN, Clock, ExpertFit, ExpertTask, fit_experts_to
from ._left_out import LeftOut
from ._weights import combine, learn_in_pools, learn_weights

_SHARE_HIDDEN = 0.15  # of a column's observed values in one split: more would make another table of it
_SHARE_OF_COMPLETE = 0.03  # of a column's without holes: those that help to fill the others mostly stay
_ENOUGH_HIDDEN = 200  # values of the typical column over all splits, to weigh experts
_ENOUGH_FOR_CHANCES = 600  # and to know the tails of their errors, or how likely rare classes are
_MOST_SPLITS = 8
_MOST_ROWS = 4000  # that are tried on; weights need no more
_MOST_CELLS, _FEWEST_ROWS = 200_000, 300  # where time is short
_FEWEST_VALUES = 100  # of a column, among rows that stand for all, if there are so many
_WITH_REFINING = 3.0  # times what a split takes without those who refine, roughly


@dataclass(frozen=True)
class Trial:
    """What came out: guesses for hidden cells and the truth, in standard deviations."""

    names: tuple[str, ...]  # of the experts that could be tried, those that refine last
    n_first: int  # how many do not refine
    first_weights: Cells  # [n_groups, n_first]: what those who refine start from
    guesses: Cells  # [N, E]
    truth: Cells  # [N]
    column: NDArray[np.int64]  # [N]: coordinate
    row: NDArray[np.int64]  # [N]
    split: NDArray[np.int64]  # [N]
    stands_for: Cells  # [N]: missing values that are like it, 1 on average
    conditional_std: Cells  # [N]: of a Gaussian given the rest of the row; 0 where none was asked
    left_out: Mapping[str, LeftOut]  # experts that could not be tried, and why
    rows: NDArray[np.int64]  # [R] of the table, that were tried on
    odds: Cells  # [R, n_groups]: of being missing, relative to the typical row
    seconds: Mapping[str, float]  # that an expert took for them
    fitted: Mapping[str, CellModel]  # what experts learned in the first split
    pool: NDArray[np.int64] | None = None  # [n_groups]: columns whose weights borrow from each other; None: all do
    row_weight: Cells | None = None  # [N]: how often the cell's row counts
    choices: Mapping[int, Choice] = field(default_factory=dict)  # by column, the experts that may count there; else all

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """Which experts may count in which columns ``[n_groups, E]``; None if all may everywhere."""
        if not self.choices:
            return None
        found = np.ones((len(self.first_weights), len(self.names)), dtype=bool)
        for g, choice in self.choices.items():
            found[g] = choice.among(self.names, self.left_out)
        return found

    def only(self, names: Collection[str]) -> Trial:
        """The same trial, had only these experts been asked."""
        chosen = [k for k, name in enumerate(self.names) if name in names]
        kept = tuple(self.names[k] for k in chosen)
        first = [k for k in chosen if k < self.n_first]
        start = share_out(self.first_weights[:, first], list(kept[: len(first)]))
        tells = any(is_made_of(self.fitted[name], GaussianEMModel) for name in kept)
        return replace(
            self,
            names=kept,
            n_first=len(first),
            first_weights=start,
            guesses=self.guesses[:, chosen],
            conditional_std=self.conditional_std * tells,
        )


def try_experts(
    experts: Mapping[str, BaseImputer],
    layout: ColumnLayout,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    columns: Columns,
    *,
    draws: bool = False,
    n_splits: int | None,
    seed: int,
    n_threads: int,
    stop_at: float = math.inf,
    progress: Callable[[int, int], None] = lambda *_: None,
    wanted: NDArray[np.bool_] | None = None,
    rows: NDArray[np.int64] | None = None,
    row_weight: Cells | None = None,
    choices: Mapping[int, Choice] | None = None,
) -> Trial:
    """Hide values several times the way values are missing, let all experts fill them in, and see.

    Experts that refine start from the best combination of the others, as they will in the end. Where time is short, there are
    fewer splits, and experts that take too long for one are left out, unless a column has a choice of its own that names them.
    Values are hidden in columns that are imputed; ``wanted`` are the missing entries that count as such, ``rows`` those to try,
    if they are chosen already.
    """
    rng = generator(seed, "hidden")
    rows = sample_rows_to_try(missing, rng, stop_at, row_weight) if rows is None else rows
    whole, whole_missing, values, missing = values, missing, values[rows], missing[rows]
    weight = None if row_weight is None else row_weight[rows]
    named = named_in(choices or {})
    how = Missingness.of(values, missing, columns.group, rng, None if wanted is None else wanted[rows])
    n_splits = n_splits or n_splits_for(missing, layout, columns, draws=draws)
    hidden, stands_for = _hide(how, layout, columns, n_splits, rng)
    holes_of_all = [whole_missing.copy() for _ in hidden]  # some of which is hidden in rows that are not tried
    for k, each in enumerate(holes_of_all):
        if layout.helpers is None:
            each[rows] |= hidden[k]
        else:
            more, stand_for = _in_company(layout, columns, whole_missing, rows, hidden[k], stands_for[k], rng)
            each |= more
            hidden[k], stands_for[k] = more[rows], stand_for[rows]
    holes = [each[rows] for each in holes_of_all]
    shown = (
        [layout.with_helpers_of(whole, each)[rows] for each in holes_of_all] if len(layout.helped) else [values] * len(holes)
    )
    first = [name for name, expert in experts.items() if not expert.refines]
    second = [name for name, expert in experts.items() if expert.refines]
    fits: dict[Any, ExpertFit] = {}  # by name and split; of the whole table by name

    def fit_all(names: list[str], starts: Sequence[Cells | None], n_after: int, time_after: float) -> list[str]:
        """Have all splits filled in, or as many as there is time for; who could do so."""
        begun, own_layout = time.perf_counter(), layout.of_some_rows()
        at_once = len(holes) if math.isinf(stop_at) else 1  # splits
        for s in range(0, len(holes), max(at_once, 1)):
            if s and time.perf_counter() + (time.perf_counter() - begun) / s * time_after > stop_at:
                del holes[s:]
                break
            tasks = [
                ExpertTask(
                    (name, split), experts[name], shown[split], holes[split], own_layout, seed, starts[split], weight,
                    in_any_case=name in named,
                )
                for split in range(s, s + at_once)
                for name in names
            ]  # fmt: skip
            clock = Clock(stop_at, len(names) + n_after if s == 0 else 1, n_threads)
            fits.update(fit_experts_to(tasks, n_threads, clock))
            progress(len(fits), (len(holes) + 1) * len(experts))
        return [name for name in names if all(fits[name, s].fit is not None for s in range(len(holes)))]

    def guesses_of(names: list[str]) -> list[Cells]:
        """Of cells that are missing or hidden, by split."""
        return [
            np.stack([columns.standardise(fits[name, s].cells, columns_of(hole)) for name in names], axis=1)
            if names
            else np.empty((int(hole.sum()), 0))
            for s, hole in enumerate(holes)
        ]

    # Where the first split shows that there is no time for all of them, those who refine are expected to take longer still.
    able = fit_all(first, [None] * len(holes), len(second), _WITH_REFINING if second else 1.0)
    of_first = guesses_of(able)
    column = np.concatenate([columns_of(each) for each in hidden[: len(holes)]])
    at_hidden = np.concatenate([guess[each[hole]] for guess, each, hole in zip(of_first, hidden, holes, strict=False)])
    standardised = columns.scaler.apply(np.where(missing, 0, values))
    truth = np.concatenate([standardised[each] for each in hidden[: len(holes)]])
    row = np.concatenate([np.nonzero(each)[0] for each in hidden[: len(holes)]])
    counts = None if weight is None else weight[row]
    first_weights = learn_weights(at_hidden - truth[:, None], columns.group[column], columns.width, counts)
    starts = [
        columns.restore(combine(guess, first_weights[columns.group[columns_of(hole)]]), hole)
        for guess, hole in zip(of_first, holes, strict=True)
    ]
    able_to_refine = fit_all(second, starts, 0, 1.0)
    names, n_done = (*able, *able_to_refine), len(holes)
    everyone = [np.hstack(both) for both in zip(of_first, guesses_of(able_to_refine), strict=False)]
    hidden = hidden[:n_done]
    row = np.concatenate([np.nonzero(each)[0] for each in hidden])
    column = np.concatenate([columns_of(each) for each in hidden])
    counts = None if weight is None else weight[row]
    like = np.concatenate([one[each] for one, each in zip(stands_for, hidden, strict=False)])
    return Trial(
        names=names,
        n_first=len(able),
        first_weights=first_weights,
        guesses=np.concatenate([guess[each[hole]] for guess, each, hole in zip(everyone, hidden, holes, strict=True)]),
        truth=np.concatenate([standardised[each] for each in hidden]),
        column=column,
        row=rows[row],
        split=np.repeat(np.arange(n_done), [int(each.sum()) for each in hidden]),
        stands_for=like if counts is None else _one_on_average(like * counts, columns.group[column]),
        conditional_std=np.concatenate(
            [
                conditional_std([fits[name, s].model for name in names], hole, columns)[each[hole]]
                for s, (hole, each) in enumerate(zip(holes, hidden, strict=True))
            ]
        ),
        left_out={key[0]: each.failure for key, each in fits.items() if each.failure is not None and key[0] not in names},
        rows=rows,
        odds=how.odds if weight is None else how.odds * weight[:, None],
        seconds={name: float(np.mean([fits[name, s].seconds for s in range(n_done)])) for name in names},
        fitted={name: fits[name, 0].model for name in names},
        row_weight=counts,
        choices=choices or {},
    )


def _one_on_average(counts: Cells, group: NDArray[np.int64]) -> Cells:
    """Counts of cells in proportion, 1 on average in every column."""
    n_cells, total = np.bincount(group), np.bincount(group, counts)
    return np.asarray(counts * (n_cells / np.maximum(total, 1e-300))[group])


def sample_rows_to_try(
    missing: NDArray[np.bool_], rng: np.random.Generator, stop_at: float, row_weight: Cells | None = None
) -> NDArray[np.int64]:
    """The rows that experts are tried on, fewer where time is short."""
    most = _MOST_ROWS if math.isinf(stop_at) else min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // missing.shape[1]))
    return sample_rows(missing, most, rng, row_weight)


def n_splits_for(missing: NDArray[np.bool_], layout: ColumnLayout, columns: Columns, *, draws: bool) -> int:
    """How many times values are to be hidden, until there are enough of the typical column that is imputed."""
    needs_chances = draws or any(code.has_labels for code in layout.codes)
    firsts = columns.is_first(np.arange(len(columns.group)))
    n_observed = (~missing[:, firsts & _to_hide(layout)]).sum(axis=0)
    at_once = float(np.median(n_observed)) * _SHARE_HIDDEN
    enough = _ENOUGH_FOR_CHANCES if needs_chances else _ENOUGH_HIDDEN
    return min(math.ceil(enough / max(at_once, 1.0)), _MOST_SPLITS)


def _to_hide(layout: ColumnLayout) -> NDArray[np.bool_]:
    """Coordinates of the columns that are imputed; of all columns where none is."""
    imputed = layout.is_imputed
    return imputed if imputed.any() else np.arange(len(layout)) < layout.own.stop


def _hide(
    how: Missingness, layout: ColumnLayout, columns: Columns, n_splits: int, rng: np.random.Generator
) -> tuple[list[NDArray[np.bool_]], list[Cells]]:
    """What is hidden in every split, and how many missing values each stands for."""
    share = np.where(how.wanted.any(axis=0), _SHARE_HIDDEN, _SHARE_OF_COMPLETE if how.wanted.any() else _SHARE_HIDDEN)
    share = np.where(_to_hide(layout)[columns.is_first(np.arange(len(columns.group)))], share, 0.0)
    chosen = [hide_like_missing(how, share, rng) for _ in range(n_splits)]
    return [hidden[:, columns.group] for hidden, _ in chosen], [weight[:, columns.group] for _, weight in chosen]


def _in_company(
    layout: ColumnLayout,
    columns: Columns,
    missing: NDArray[np.bool_],
    rows: NDArray[np.int64],
    hidden: NDArray[np.bool_],
    stands_for: Cells,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], Cells]:
    """What to hide of a whole table where others tell about a row: as much as was chosen in ``rows``, as missing values are."""
    first = np.flatnonzero(columns.is_first(np.arange(layout.own.stop)))
    chosen, counts = np.zeros((len(missing), len(first)), dtype=bool), np.zeros((len(missing), len(first)))
    chosen[rows], counts[rows] = hidden[:, first], stands_for[:, first]
    assert layout.helpers is not None
    chosen, counts = layout.helpers.hide_like_missing(missing[:, first], chosen, counts, rng)
    helpers = np.zeros((len(missing), len(layout.helped)))
    own = columns.group[layout.own]
    return np.hstack([chosen[:, own], helpers > 0]), np.hstack([counts[:, own], helpers])


def conditional_std(models: Sequence[CellModel], missing: NDArray[np.bool_], columns: Columns) -> Cells:
    """How far missing entries may lie from their expectation, as the first Gaussian among the experts has it; 0 without one."""
    for model in models:
        if is_made_of(model, GaussianEMModel):
            unit = columns.scaler.unit[columns_of(missing)]
            std = ask_model(model, missing, lambda each, seen, _: each.conditional_std(seen(missing)))
            return np.asarray(std / np.where(unit > 0, unit, np.inf))
    return np.zeros(int(missing.sum()))


def share_out(weights: Cells, names: Sequence[str]) -> Cells:
    """Weights of those that are left, to sum to one again; the mean's where nobody else is."""
    alone = weights.sum(axis=1) == 0
    weights = np.where(alone[:, None], np.array(names) == MEAN, weights)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def sample_rows(
    missing: NDArray[np.bool_], most: int, rng: np.random.Generator, row_weight: Cells | None = None
) -> NDArray[np.int64]:
    """All rows that count, or ``most`` of them and some more where a column would otherwise have hardly a value.

    >>> missing = np.ones((1000, 2), dtype=bool)
    >>> missing[:, 0], missing[990:, 1] = False, False
    >>> rows = sample_rows(missing, 200, np.random.default_rng(0))
    >>> (~missing[rows]).sum(axis=0).min().item(), 200 <= len(rows) <= 210
    (10, True)
    """
    if row_weight is not None:
        counting = np.flatnonzero(row_weight)
        return counting[sample_rows(missing[counting], most, rng)]
    if len(missing) <= most:
        return np.arange(len(missing))
    chosen = np.zeros(len(missing), dtype=bool)
    chosen[rng.choice(len(missing), most, replace=False)] = True
    for column in missing.T:
        observed = np.flatnonzero(~column)
        if np.count_nonzero(chosen[observed]) < _FEWEST_VALUES:
            chosen[rng.choice(observed, min(_FEWEST_VALUES, len(observed)), replace=False)] = True
    return np.flatnonzero(chosen)


def fold_of(trial: Trial, columns: Columns) -> NDArray[np.int64]:
    """Which hidden cells are judged by what was learned from the others: their split, or with one split halves of it."""
    return trial.split if trial.split.max(initial=0) else np.cumsum(columns.is_first(trial.column)) % 2


def _loss(errors: Cells, counts: Cells | float) -> float:
    """Squares, of large errors their size: one value far outside must not decide what is better."""
    size = np.abs(errors)
    return float((counts * np.where(size < 1, size**2, 2 * size - 1)).sum())


@dataclass(frozen=True)
class Weighed:
    """How much the experts of a trial count, and what their combination made of hidden cells."""

    weights: Cells  # [n_groups, E]
    guess: Cells  # [N]: by weights from other splits than the cell's own
    no_better: NDArray[np.bool_]  # [n_groups]: columns where nothing is better than the mean, which is what they get


def weigh(trial: Trial, columns: Columns) -> Weighed:
    """Weights by column, from errors on hidden cells."""
    group, counts, allowed = columns.group[trial.column], trial.row_weight, trial.allowed
    errors = trial.guesses - trial.truth[:, None]
    weights = learn_in_pools(errors, group, columns.width, trial.pool, counts, allowed)
    held_out = np.empty(len(trial.truth))
    fold = fold_of(trial, columns)
    for each in np.unique(fold):
        mine = fold == each
        other_counts = None if counts is None else counts[~mine]
        from_others = learn_in_pools(errors[~mine], group[~mine], columns.width, trial.pool, other_counts, allowed)
        held_out[mine] = combine(trial.guesses[mine], from_others[group[mine]])
    mean = trial.names.index(MEAN)
    no_better = np.zeros(columns.n_groups, dtype=bool)
    for g in range(columns.n_groups):
        cells = group == g
        if cells.any() and (allowed is None or allowed[g, mean]):
            own = 1.0 if counts is None else counts[cells]
            no_better[g] = _loss(held_out[cells] - trial.truth[cells], own) >= _loss(errors[cells, mean], own)
            if no_better[g]:
                weights[g] = np.eye(len(trial.names))[mean]
                held_out[cells] = trial.guesses[cells, mean]
    return Weighed(weights, held_out, no_better)
