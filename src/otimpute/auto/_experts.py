"""Who is asked: imputers by name, the same contract for all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_choice
from .._deadline import OutOfTime, check_deadline
from .._random import generator, seed_from
from .._stored import Kind, Place
from .._threads import Workers
from ..baselines import GaussianEMImputer, MeanImputer
from ..catalogue import EXPERTS, METHODS, imputer_classes
from ..estimator import BaseImputer, Unfitted
from ..exceptions import DivergedError
from ..fitting import CellFit, CellModel, Cells, ColumnLayout, StopReason, blocks_of, fit_within_predictors
from ._choices import names_to_add
from ._left_out import OUT_OF_TIME, LeftOut, Why
from ._scikit_learn import ScikitLearnImputer, is_scikit_learn

MEAN = "mean"  # always asked: others must be better
GAUSSIAN = "gaussian_em"  # cheap, and good enough to be fitted in the end whatever the time
SHRUNK = "gaussian_em_shrunk"
MIXTURE = "gaussian_mixture"
_ROWS_PER_COLUMN = 10  # of fewer a covariance is uncertain
_MOST_COLUMNS_OF_MIXTURE = 200
_WIDE = 100  # coordinates: of more, a Gaussian makes fewer rounds, and fewer with their square
_ROUNDS_OF_WIDE, _FEWEST_ROUNDS = 50, 6

DEFAULT = (MEAN, GAUSSIAN, MIXTURE, "kernel_ridge", "extra_trees")
CLASSES = tuple(imputer_classes(EXPERTS).values())
MODELS: tuple[type, ...] = tuple(cls.model_class for cls in CLASSES)  # that a model file may hold


_NOT_STORED = (
    "model files hold otimpute's imputers only, and {!r} is an expert of scikit-learn's: leave it out, or pickle the "
    "fitted imputer"
)


class ExpertsParameter(Kind):
    """The parameter ``experts`` in a model file: None, or names and imputers."""

    _imputer = Unfitted(CLASSES)

    def pack(self, value: Any, place: Place) -> Any:
        if value is None:
            return None
        for each in value:
            if is_scikit_learn(each) and not isinstance(each, BaseImputer):
                raise TypeError(_NOT_STORED.format(each))
        return [each if isinstance(each, str) else self._imputer.pack(each, place.at(k)) for k, each in enumerate(value)]

    def unpack(self, tree: Any, place: Place) -> Any:
        if tree is None:
            return None
        if not isinstance(tree, list):
            place.fail("must be a list of experts")
        return [each if isinstance(each, str) else self._imputer.unpack(each, place.at(k)) for k, each in enumerate(tree)]


# What a fit may raise on a table that does not suit it. Anything else is a mistake, ours or a user's, and is not hidden.
_FAILURES = (DivergedError, ArithmeticError, np.linalg.LinAlgError)


def read_experts(experts: Any, device: str = "auto", n_jobs: int | None = None, methods: Any = None) -> dict[str, BaseImputer]:
    """The imputers meant by ``experts``, by name; the mean is always among them, and so are those that ``methods`` names.

    Those named compute on the ``device``, and with so many threads.

    >>> from otimpute.baselines import KNNImputer
    >>> list(read_experts(["gaussian_em", KNNImputer(n_neighbors=3)]))
    ['mean', 'gaussian_em', 'KNNImputer']
    """
    wanted = DEFAULT if experts is None else experts
    if isinstance(wanted, str) or not isinstance(wanted, Sequence) or len(wanted) == 0:
        raise TypeError(f"experts must be a list of names or imputers such as ['gaussian_em', 'extra_trees'], got {experts!r}")
    found: dict[str, BaseImputer] = {MEAN: MeanImputer()}

    def make(name: str) -> BaseImputer:
        expert, given = METHODS[name].make(), {"device": device, "n_jobs": n_jobs}
        made: BaseImputer = expert.set_params(**{name: value for name, value in given.items() if hasattr(expert, name)})
        return made

    for each in wanted:
        if isinstance(each, str):
            found[each] = make(check_choice("a name in experts", each, EXPERTS))
        elif isinstance(each, BaseImputer):
            found[_unused(type(each).__name__, found)] = clone(each)
        elif is_scikit_learn(each):
            found[_unused(type(each).__name__, found)] = ScikitLearnImputer(clone(each))
        else:
            raise TypeError(
                f"an expert must be one of {', '.join(EXPERTS)}, or an imputer (of otimpute, scikit-learn or your own), or a "
                f"regressor of scikit-learn, got {each!r}"
            )
    found.update({name: make(name) for name in names_to_add(methods, found)})
    for each in found.values():
        each.check_parameters()
    return dict(sorted(found.items(), key=lambda item: EXPERTS.index(item[0]) if item[0] in EXPERTS else len(EXPERTS)))


class Clock:
    """Shares out what is left of the time: whoever is next gets an even part of it, and what they save goes to the others."""

    def __init__(self, stop_at: float, n_to_come: int, n_at_once: int = 1) -> None:
        self.stop_at, self.n_to_come, self.n_at_once = stop_at, n_to_come, n_at_once

    def next_deadline(self) -> float:
        """When the next one should be done, in terms of `time.perf_counter`."""
        if math.isinf(self.stop_at):
            return math.inf
        now = time.perf_counter()
        part = min(self.n_at_once / max(self.n_to_come, 1), 1.0)
        self.n_to_come -= 1
        return now + (self.stop_at - now) * part


NO_LIMIT = Clock(math.inf, 0)


def _unused(name: str, names: Collection[str]) -> str:
    while name in names:
        name += "'"
    return name


def suit_to_size(
    experts: Mapping[str, BaseImputer], n_rows: int, layout: ColumnLayout, asked_for: Collection[str] = ()
) -> dict[str, BaseImputer]:
    """The experts for a table of this size; studied in docs/studies/auto.md.

    Where rows are few for its covariance, the Gaussian gets company of one that leans on independent columns: columns that are
    nearly the same curve want none of that, however few the rows, so the trial decides. In wide tables the Gaussian makes fewer
    rounds, for the last ones only fit noise, and a mixture adds nothing: it is left out there unless it was ``asked_for``.

    >>> wide = ColumnLayout.of_numbers(range(300))
    >>> list(suit_to_size(read_experts(None), 2000, wide))
    ['mean', 'gaussian_em', 'gaussian_em_shrunk', 'kernel_ridge', 'extra_trees']
    """
    together = [block.columns for block in blocks_of(layout)] or [np.arange(len(layout))]
    width = max(map(len, together))  # in coordinates
    n_columns = max(len(np.unique(layout.groups[columns])) for columns in together)
    found: dict[str, BaseImputer] = {}
    for name, expert in experts.items():
        if name == MIXTURE and n_columns > _MOST_COLUMNS_OF_MIXTURE and name not in asked_for:
            continue
        found[name] = expert
        if name == GAUSSIAN and isinstance(expert, GaussianEMImputer):
            if width > _WIDE:
                rounds = max(_FEWEST_ROUNDS, int(_ROUNDS_OF_WIDE * (_WIDE / width) ** 2))
                found[name] = clone(expert).set_params(max_iter=min(rounds, expert.max_iter))
            if n_rows < _ROWS_PER_COLUMN * width:
                found[SHRUNK] = clone(found[name]).set_params(prior_rows=max(width / 4, 1.0))
    return found


@dataclass(frozen=True)
class ExpertTask:
    """An array with missing entries for one expert to impute; those that refine get a start."""

    key: Any  # which expert, and in which split
    expert: BaseImputer
    values: NDArray[np.floating]
    missing: NDArray[np.bool_]
    layout: ColumnLayout
    seed: int
    start: Cells | None = None
    row_weight: Cells | None = None  # [n]: how often rows count, all more than 0
    in_any_case: bool = False  # whatever the time


@dataclass(frozen=True)
class ExpertFit:
    """What an expert made of an array, or why it did not, and how long it took."""

    fit: CellFit | None
    failure: LeftOut | None = None
    seconds: float = 0.0

    @property
    def cells(self) -> Cells:
        """The imputed entries."""
        return self._done.cells

    @property
    def model(self) -> CellModel:
        """What was learned."""
        return self._done.model

    @property
    def _done(self) -> CellFit:
        if self.fit is None:
            raise ValueError(f"the expert did not succeed: {self.failure}")
        return self.fit


def fit_experts_to(tasks: Sequence[ExpertTask], n_threads: int, clock: Clock = NO_LIMIT) -> dict[Any, ExpertFit]:
    """Fit experts, some at a time; what comes out does not depend on how many.

    Experts use threads of their own as well: what one does alone goes on beside the others.
    """
    with Workers(n_threads) as workers:
        fits = workers.map(lambda task: _fit_expert(task, clock), tasks)
    return dict(zip((task.key for task in tasks), fits, strict=True))


def _fit_expert(task: ExpertTask, clock: Clock) -> ExpertFit:
    begun, deadline = time.perf_counter(), math.inf if task.in_any_case else clock.next_deadline()
    seed = seed_from(int(generator(task.seed, str(task.key)).integers(2**31)))
    try:
        if not task.expert.ends_early:
            check_deadline(deadline)
        fit = fit_within_predictors(
            task.expert, task.values, task.missing, task.layout, seed=seed, start=task.start, deadline=deadline,
            sample_weight=task.row_weight,
        )  # fmt: skip
    except OutOfTime:
        return ExpertFit(None, OUT_OF_TIME, time.perf_counter() - begun)
    except _FAILURES as error:
        return ExpertFit(None, LeftOut(Why.FAILED, str(error)), time.perf_counter() - begun)
    if fit.summary.stop_reason == StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return ExpertFit(fit, seconds=time.perf_counter() - begun)
