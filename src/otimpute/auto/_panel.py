"""The experts that were fitted in the end, and how they are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._stored import Kind, ListOf, Place, RecordOf, stored
from ..baselines import GaussianEMImputer
from ..baselines.gaussian_em import GaussianEMModel
from ..baselines.refining import RefiningModel
from ..estimator import BaseImputer
from ..exceptions import DivergedError
from ..fitting import BlockModel, CellModel, ColumnLayout, ModelOf, columns_of
from ._choices import Choice, named_in
from ._columns import Cells, Columns
from ._experts import MEAN, MIXTURE, MODELS, NO_LIMIT, Clock, ExpertFit, ExpertTask, fit_experts_to
from ._left_out import LeftOut
from ._trial import Trial, share_out
from ._weights import combine


class ModelOfExpert(Kind):
    """A model of one of otimpute's imputers inside another model; which columns vary may differ between them."""

    _record = ModelOf(RecordOf(MODELS))

    def pack(self, value: Any, place: Place) -> Any:
        models = value.models if isinstance(value, BlockModel) else [value]
        if not all(isinstance(each, MODELS) for each in models):
            raise TypeError(
                f"model files hold what otimpute's imputers learn, and {type(models[0]).__name__} is none of that: leave the "
                "expert out, or pickle the fitted imputer"
            )
        return self._record.pack(value, place)

    def unpack(self, tree: Any, place: Place) -> Any:
        alone = place.inside()
        alone.sizes.update({name: size for name, size in place.sizes.items() if name != "varying"})
        model = self._record.unpack(tree, alone)
        if getattr(model, "needs_code", False):
            place.fail("is made of code that no file holds")
        for check in alone.at_the_end:
            check()
        return model


@stored(models=ListOf(ModelOfExpert()), first_weights="G F", weights="G E")
@dataclass(frozen=True)
class Panel:
    """What experts learned, those that refine last, and how much each counts in each column."""

    names: list[str]  # [E]
    models: list[CellModel]  # [E]
    first_weights: Cells  # [G, F]: of those that do not refine, for the start of those that do
    weights: Cells  # [G, E]

    def __post_init__(self) -> None:
        n_first = self.first_weights.shape[1]
        sizes = len(self.names) == len(self.models) == self.weights.shape[1] >= n_first > 0
        needs_start = [isinstance(model, RefiningModel) and model.first_guess is None for model in self.models]
        least = min(self.weights.min(initial=0), self.first_weights.min(initial=0))
        if not sizes or any(needs_start[:n_first]) or least < 0:
            raise ValueError("experts and weights do not go together")

    def guess(self, values: NDArray[np.floating], missing: NDArray[np.bool_], columns: Columns) -> Cells:
        """All experts' guesses ``[N, E]`` for the missing entries of new rows, in standard deviations."""
        column = columns_of(missing)
        n_first = self.first_weights.shape[1]
        guesses = [columns.standardise(each.impute_cells(values, missing), column) for each in self.models[:n_first]]
        if n_first < len(self.models):
            first = combine(np.stack(guesses, axis=1), self.first_weights[columns.group[column]])
            start = columns.restore(first, missing)
            guesses += [
                columns.standardise(each.impute_cells(values, missing, start), column) for each in self.models[n_first:]
            ]
        return np.stack(guesses, axis=1)


def disagreement(guesses: Cells, weights: Cells) -> Cells:
    """How far the experts' guesses for a cell are apart: their weighted standard deviation."""
    away = guesses - combine(guesses, weights)[:, None]
    return np.asarray(np.sqrt((away**2 * weights).sum(axis=1)))


@dataclass(frozen=True)
class FittedExperts:
    """What became of the experts that were to be fitted to the whole table."""

    names: list[str]  # those that could be, the ones that refine last
    models: list[CellModel]
    first_weights: Cells
    guesses: Cells  # [N, E] for the missing cells
    left_out: Mapping[str, LeftOut]  # and why

    def panel(self, tried: Sequence[str], weights: Cells) -> Panel:
        """With the weights of those that were tried; others count nothing."""
        columns = {name: weights[:, k] for k, name in enumerate(tried)}
        own = np.stack([columns.get(name, np.zeros(len(weights))) for name in self.names], axis=1)
        return Panel(self.names, self.models, self.first_weights, own)


@dataclass(frozen=True)
class WholeTable:
    """What experts are fitted to in the end; those in ``needed`` whatever came out of the trial."""

    experts: Mapping[str, BaseImputer]
    layout: ColumnLayout
    values: NDArray[np.floating]
    missing: NDArray[np.bool_]
    columns: Columns
    seed: int
    n_threads: int
    choices: Mapping[int, Choice]
    needed: tuple[str, ...] = ()
    stop_at: float = np.inf
    row_weight: Cells | None = None

    def task(self, name: str, tried: CellModel | None, start: Cells | None = None) -> ExpertTask:
        """To fit an expert, of which this was learned in the trial."""
        expert, in_any_case = _as_tried(self.experts[name], tried), name in named_in(self.choices)
        return ExpertTask(
            name, expert, self.values, self.missing, self.layout, self.seed, start, self.row_weight, in_any_case=in_any_case
        )

    @property
    def foreseen(self) -> list[ExpertTask]:
        """What will be done in the end, as far as can be told before the trial; nothing where time is limited.

        A mixture nearly always counts somewhere. If it does not, threads made one in vain, which were idle mostly.
        """
        names = {*self.always, *self.needed, MIXTURE}
        return [] if np.isfinite(self.stop_at) else [self.task(name, None) for name in self.experts if name in names]

    @property
    def always(self) -> list[str]:
        """Those fitted in any case: error bars need a Gaussian."""
        of_gaussians = (name for name, expert in self.experts.items() if isinstance(expert, GaussianEMImputer))
        return [MEAN, *of_gaussians]


def fit_experts(table: WholeTable, trial: Trial, weights: Cells, done: Mapping[str, ExpertFit]) -> FittedExperts:
    """Fit the experts that count to the whole table, but for those that are ``done``.

    Those without weight in any column are not fitted, unless needed.
    """
    column = columns_of(table.missing)
    left_out: dict[str, LeftOut] = {}

    def fit(names: Sequence[str], clock: Clock, start: Cells | None = None) -> tuple[list[str], list[CellModel], list[Cells]]:
        tasks = [table.task(name, trial.fitted.get(name), start) for name in names if name not in done]
        fits = {**done, **fit_experts_to(tasks, table.n_threads, clock)}
        left_out.update({name: failure for name in names if (failure := fits[name].failure) is not None})
        able = [name for name in names if name not in left_out]
        guesses = [table.columns.standardise(fits[name].cells, column) for name in able]
        return able, [fits[name].model for name in able], guesses

    first, second = trial.names[: trial.n_first], trial.names[trial.n_first :]
    second = tuple(name for name in second if weights[:, trial.names.index(name)].any())
    starting = [bool(second) and bool(trial.first_weights[:, k].any()) for k in range(trial.n_first)]
    always = [name for name in first if name in table.always]
    counting = [name for k, name in enumerate(first) if weights[:, k].any() or starting[k] or name in always]
    wanted = [name for name in counting if name not in (*always, *table.needed)]
    whatever_the_time = [*always, *table.needed]
    if np.isinf(table.stop_at):  # all of them side by side
        whatever_the_time, wanted = [*whatever_the_time, *wanted], []
    names, fitted, guesses = fit(whatever_the_time, NO_LIMIT)
    others = fit(wanted, Clock(table.stop_at, len(wanted) + len(second), table.n_threads))
    names, fitted, guesses = names + others[0], fitted + others[1], guesses + others[2]
    for name in table.needed:
        if name in left_out:
            raise DivergedError(f"the expert {name!r}, which draws are made with, failed: {left_out[name]}")
    tried = {name: trial.first_weights[:, k] for k, name in enumerate(first)}
    nothing = np.zeros(table.columns.n_groups)
    first_weights = share_out(np.stack([tried.get(name, nothing) for name in names], axis=1), names)
    if second:
        first_guess = combine(np.stack(guesses, axis=1), first_weights[table.columns.group[column]])
        start = table.columns.restore(first_guess, table.missing)
        refined = fit(second, Clock(table.stop_at, len(second), table.n_threads), start)
        names, fitted, guesses = names + refined[0], fitted + refined[1], guesses + refined[2]
    return FittedExperts(names, fitted, first_weights, np.stack(guesses, axis=1), left_out)


def _as_tried(expert: BaseImputer, tried: CellModel | None) -> BaseImputer:
    """A Gaussian that was cut short in the trial gets no further in the end, so that what was found out is true of it."""
    models = tried.models if isinstance(tried, BlockModel) else [tried]
    methods = [each.method for each in models if isinstance(each, GaussianEMModel) and each.method is not None]
    if not all(method.converged for method in methods):
        expert = clone(expert).set_params(max_iter=max(method.n_iterations for method in methods))
    return expert
