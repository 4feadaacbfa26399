"""The experts that were fitted in the end, and how they are combined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import ListOf, stored
from ..estimator import BaseImputer, Fitted
from ..exceptions import DivergedError
from ._experts import CLASSES, MEAN, Question, ask, refines
from ._trial import Cells, Columns, Trial
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


def fit_panel(
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
    deadline: float = math.inf,
) -> tuple[Panel, Cells, dict[str, str]]:
    """Fit the experts that count on the whole table: the panel, its guesses, and who was left out in the end and why.

    Those without weight in any column are not fitted, unless ``needed``.
    """
    column = np.nonzero(missing)[1]
    left_out: dict[str, str] = {}

    def fit(names: list[str], table: NDArray[np.floating]) -> tuple[list[str], list[BaseImputer], list[Cells]]:
        limits = {name: math.inf if name in (MEAN, *needed) else deadline for name in names}
        questions = [Question(name, experts[name], table, missing, seed, limits[name]) for name in names]
        answers = ask(questions, asker, n_threads)
        left_out.update({name: answer.failure for name, answer in answers.items() if answer.cells is None})
        able = [name for name in names if name not in left_out]
        guesses = [columns.standardise(np.asarray(answers[name].cells), column) for name in able]
        return able, [answers[name].expert for name in able], guesses

    first, second = trial.names[: trial.n_first], trial.names[trial.n_first :]
    second = tuple(name for name in second if weights[:, trial.names.index(name)].any())
    starting = [bool(second) and bool(trial.first_weights[:, k].any()) for k in range(trial.n_first)]
    wanted = [name for k, name in enumerate(first) if weights[:, k].any() or starting[k] or name in (MEAN, *needed)]
    wanted += [name for name in needed if name not in first]  # there was no time to try it, or it failed
    names, fitted, guesses = fit(wanted, values)
    for name in needed:
        if name in left_out:
            raise DivergedError(f"the expert {name!r}, which draws are made with, failed: {left_out[name]}")
    first_weights = _share(_of(names, first, trial.first_weights), names)
    if second:
        start = combine(np.stack(guesses, axis=1), first_weights[columns.group[column]])
        refined = fit(list(second), columns.with_guess(values, missing, start))
        names, fitted, guesses = names + refined[0], fitted + refined[1], guesses + refined[2]
    final = _share(_of(names, trial.names, weights), names)
    return Panel(names, fitted, first_weights, final), np.stack(guesses, axis=1), left_out


def _of(names: list[str], tried: tuple[str, ...], weights: Cells) -> Cells:
    """The columns of ``weights`` that belong to ``names``; those that were not tried have none."""
    untried = np.zeros(len(weights))
    return np.stack([weights[:, tried.index(name)] if name in tried else untried for name in names], axis=1)


def _share(weights: Cells, names: list[str]) -> Cells:
    """Weights of those that are left, to sum to one again; the mean's where nobody else is."""
    alone = weights.sum(axis=1) == 0
    weights = np.where(alone[:, None], np.array(names) == MEAN, weights)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
