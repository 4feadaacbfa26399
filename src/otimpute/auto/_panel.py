"""The experts that were fitted in the end, and how they are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._stored import ListOf, stored
from ..baselines import GaussianEMImputer
from ..estimator import BaseImputer, Fitted
from ..exceptions import DivergedError
from ._experts import CLASSES, MEAN, NO_LIMIT, Clock, Question, ask, refines
from ._left_out import LeftOut
from ._trial import Cells, Columns, Trial, share_out
from ._weights import combine


@stored(experts=ListOf(Fitted(CLASSES)), first_weights="G F", weights="G E")
@dataclass(frozen=True)
class Panel:
    """Fitted experts, those that refine last, and how much each counts in each column."""

    names: list[str]  # [E]
    experts: list[BaseImputer]  # [E]
    first_weights: Cells  # [G, F]: of those that do not refine, for the start of those that do
    weights: Cells  # [G, E]

    def __post_init__(self) -> None:
        n_first = sum(not refines(expert) for expert in self.experts)
        in_order = all(refines(expert) == (k >= n_first) for k, expert in enumerate(self.experts))
        sizes = len(self.names) == len(self.experts) == self.weights.shape[1] and self.first_weights.shape[1] == n_first
        given = all(expert.starts_in_holes for expert in self.experts[n_first:])
        least = min(self.weights.min(initial=0), self.first_weights.min(initial=0))
        if not (n_first and in_order and sizes and given) or least < 0:
            raise ValueError("experts and weights do not go together")

    def guess(self, values: NDArray[np.floating], missing: NDArray[np.bool_], columns: Columns) -> Cells:
        """All experts' guesses ``[N, E]`` for the missing entries of new rows, in standard deviations."""
        column = np.nonzero(missing)[1]
        n_first = self.first_weights.shape[1]
        guesses = [columns.standardise(each._impute_cells(values, missing), column) for each in self.experts[:n_first]]
        if n_first < len(self.experts):
            start = combine(np.stack(guesses, axis=1), self.first_weights[columns.group[column]])
            filled = columns.with_guess(values, missing, start)
            guesses += [columns.standardise(each._impute_cells(filled, missing), column) for each in self.experts[n_first:]]
        return np.stack(guesses, axis=1)


def disagreement(guesses: Cells, weights: Cells) -> Cells:
    """How far the experts' guesses for a cell are apart: their weighted standard deviation."""
    away = guesses - combine(guesses, weights)[:, None]
    return np.asarray(np.sqrt((away**2 * weights).sum(axis=1)))


@dataclass(frozen=True)
class FittedExperts:
    """What became of the experts that were to be fitted to the whole table."""

    names: list[str]  # those that could be, the ones that refine last
    experts: list[BaseImputer]
    first_weights: Cells
    guesses: Cells  # [N, E] for the missing cells
    left_out: Mapping[str, LeftOut]  # and why

    def panel(self, tried: Sequence[str], weights: Cells) -> Panel:
        """With the weights of those that were tried; others count nothing."""
        columns = {name: weights[:, k] for k, name in enumerate(tried)}
        own = np.stack([columns.get(name, np.zeros(len(weights))) for name in self.names], axis=1)
        return Panel(self.names, self.experts, self.first_weights, own)


def fit_experts(
    experts: Mapping[str, BaseImputer],
    asker: BaseImputer,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    columns: Columns,
    trial: Trial,
    weights: Cells,
    *,
    needed: tuple[str, ...] = (),
    seed: int,
    n_threads: int,
    stop_at: float = np.inf,
) -> FittedExperts:
    """Fit the experts that count to the whole table. Those without weight in any column are not fitted, unless ``needed``."""
    column = np.nonzero(missing)[1]
    left_out: dict[str, LeftOut] = {}

    def fit(names: list[str], table: NDArray[np.floating], clock: Clock) -> tuple[list[str], list[BaseImputer], list[Cells]]:
        questions = [Question(name, _as_tried(experts[name], trial.fitted.get(name)), table, missing, seed) for name in names]
        answers = ask(questions, asker, n_threads, clock)
        left_out.update({name: answer.failure for name, answer in answers.items() if answer.failure is not None})
        able = [name for name in names if name not in left_out]
        guesses = [columns.standardise(np.asarray(answers[name].cells), column) for name in able]
        return able, [answers[name].expert for name in able], guesses

    first, second = trial.names[: trial.n_first], trial.names[trial.n_first :]
    second = tuple(name for name in second if weights[:, trial.names.index(name)].any())
    starting = [bool(second) and bool(trial.first_weights[:, k].any()) for k in range(trial.n_first)]
    always = [name for name in first if name == MEAN or isinstance(experts[name], GaussianEMImputer)]  # error bars need it
    counting = [name for k, name in enumerate(first) if weights[:, k].any() or starting[k] or name in always]
    wanted = [name for name in counting if name not in (*always, *needed)]
    names, fitted, guesses = fit([*always, *needed], values, NO_LIMIT)  # whatever the time
    others = fit(wanted, values, Clock(stop_at, len(wanted) + len(second), n_threads))
    names, fitted, guesses = names + others[0], fitted + others[1], guesses + others[2]
    for name in needed:
        if name in left_out:
            raise DivergedError(f"the expert {name!r}, which draws are made with, failed: {left_out[name]}")
    tried = {name: trial.first_weights[:, k] for k, name in enumerate(first)}
    nothing = np.zeros(columns.n_groups)
    first_weights = share_out(np.stack([tried.get(name, nothing) for name in names], axis=1), names)
    if second:
        start = combine(np.stack(guesses, axis=1), first_weights[columns.group[column]])
        refined = fit(list(second), columns.with_guess(values, missing, start), Clock(stop_at, len(second), n_threads))
        names, fitted, guesses = names + refined[0], fitted + refined[1], guesses + refined[2]
    return FittedExperts(names, fitted, first_weights, np.stack(guesses, axis=1), left_out)


def _as_tried(expert: BaseImputer, tried: BaseImputer | None) -> BaseImputer:
    """A Gaussian that was cut short in the trial gets no further in the end, so that what was found out is true of it."""
    if isinstance(tried, GaussianEMImputer) and not getattr(tried, "converged_", True):
        expert = clone(expert).set_params(max_iter=tried.n_iter_)
    return expert
