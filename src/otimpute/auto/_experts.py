"""Who is asked: imputers by name, the same contract for all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_choice
from .._deadline import OutOfTime
from .._random import generator
from .._stored import Kind, Place
from ..baselines import (
    ExtraTreesImputer,
    GAINImputer,
    GaussianEMImputer,
    GaussianMixtureImputer,
    ICEImputer,
    KernelRidgeImputer,
    KNNImputer,
    MeanImputer,
    MissForestImputer,
    MIWAEImputer,
    RefiningImputer,
    SoftImputer,
    StandardisedImputer,
    VAEACImputer,
)
from ..estimator import BaseImputer, StopReason, Unfitted
from ..exceptions import DivergedError
from ..imputers import MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer
from ._left_out import OUT_OF_TIME, LeftOut, Why
from ._scikit_learn import ScikitLearnImputer, is_scikit_learn

MEAN = "mean"  # always asked: others must be better
GAUSSIAN = "gaussian"  # cheap, and good enough to be fitted in the end whatever the time
SHRUNK = "shrunk"
MIXTURE = "mixture"
_ROWS_PER_COLUMN = 10  # of fewer a covariance is uncertain

EXPERTS: Mapping[str, Callable[[], BaseImputer]] = {
    # In the order in which they are asked: cheap ones first.
    MEAN: MeanImputer,
    GAUSSIAN: GaussianEMImputer,
    "neighbours": KNNImputer,
    "transport": SinkhornImputer,
    MIXTURE: GaussianMixtureImputer,
    "chain": ICEImputer,
    "forest": MissForestImputer,
    "kernel": KernelRidgeImputer,
    "trees": ExtraTreesImputer,
}
DEFAULT = (MEAN, GAUSSIAN, "transport", MIXTURE, "kernel", "trees")
CLASSES = (
    ExtraTreesImputer, GAINImputer, GaussianEMImputer, GaussianMixtureImputer, ICEImputer, KNNImputer, KernelRidgeImputer,
    MIWAEImputer, MeanImputer, MetaSinkhornImputer, MissForestImputer, RoundRobinImputer, SinkhornImputer, SoftImputer,
    VAEACImputer,
)  # fmt: skip


_NOT_STORED = (
    "model files hold otimpute's imputers only, and {!r} is an expert of scikit-learn's: leave it out, or pickle the "
    "fitted imputer"
)


class Asked(Kind):
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


def read_experts(experts: Any, device: str = "auto") -> dict[str, BaseImputer]:
    """The imputers meant by ``experts``, by name; the mean is always among them. Those named compute on the ``device``.

    >>> list(read_experts(["gaussian", KNNImputer(n_neighbors=3)]))
    ['mean', 'gaussian', 'KNNImputer']
    """
    wanted = DEFAULT if experts is None else experts
    if isinstance(wanted, str) or not isinstance(wanted, Sequence) or len(wanted) == 0:
        raise TypeError(f"experts must be a list of names or imputers such as ['gaussian', 'trees'], got {experts!r}")
    found: dict[str, BaseImputer] = {MEAN: MeanImputer()}
    for each in wanted:
        if isinstance(each, str):
            expert = EXPERTS[check_choice("a name in experts", each, EXPERTS)]()
            found[each] = expert.set_params(device=device) if hasattr(expert, "device") else expert
        elif isinstance(each, CLASSES):
            found[_unused(type(each).__name__, found)] = clone(each)
        elif is_scikit_learn(each) and not isinstance(each, BaseImputer):
            found[_unused(type(each).__name__, found)] = ScikitLearnImputer(clone(each))
        else:
            raise TypeError(
                f"an expert must be one of {', '.join(EXPERTS)}, or one of otimpute's imputers, or an imputer or regressor of "
                f"scikit-learn's, got {each!r}"
            )
    for each in found.values():
        each._check_parameters()
    order = list(EXPERTS)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


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


def add_shrunk(experts: dict[str, BaseImputer], n_rows: int, n_columns: int) -> dict[str, BaseImputer]:
    """With a Gaussian that leans on independent columns, where rows are too few for one that does not.

    Columns that are nearly the same curve want none of that, however few the rows: the trial decides.
    """
    if type(experts.get(GAUSSIAN)) is not GaussianEMImputer or n_rows >= _ROWS_PER_COLUMN * n_columns:
        return experts
    found: dict[str, BaseImputer] = {}
    for name, expert in experts.items():
        found[name] = expert
        if name == GAUSSIAN:
            found[SHRUNK] = GaussianEMImputer(prior_rows=max(n_columns / 4, 1.0))
    return found


@dataclass(frozen=True)
class Question:
    """A table with holes, for one expert to fill. Where the expert refines, a first guess stands in the holes."""

    key: Any  # who asks for what
    expert: BaseImputer
    values: NDArray[np.floating]
    missing: NDArray[np.bool_]
    seed: int


@dataclass(frozen=True)
class Answer:
    """What an expert made of a table, or why it did not, and how long it took."""

    expert: BaseImputer
    cells: NDArray[np.float64] | None
    failure: LeftOut | None = None
    seconds: float = 0.0


def ask(questions: Sequence[Question], asker: BaseImputer, n_threads: int, clock: Clock = NO_LIMIT) -> dict[Any, Answer]:
    """Fit experts, some at a time; what comes out does not depend on how many."""
    if n_threads == 1 or len(questions) < 2:
        return {question.key: _answer(question, asker, clock) for question in questions}
    with ThreadPoolExecutor(n_threads) as pool:
        answers = pool.map(lambda question: _answer(question, asker, clock), questions)
        return dict(zip((question.key for question in questions), answers, strict=True))


def _answer(question: Question, asker: BaseImputer, clock: Clock) -> Answer:
    begun, deadline = time.perf_counter(), clock.next_deadline()
    expert = clone(question.expert)
    expert._adopt(asker)
    if "random_state" in expert.get_params(deep=False):
        expert.set_params(random_state=int(generator(question.seed, str(question.key)).integers(2**31)))
    if isinstance(expert, RefiningImputer):
        expert.starts_in_holes = True
    try:
        cells = _fit_until(deadline, expert, question.values, question.missing)
    except OutOfTime:
        return Answer(expert, None, OUT_OF_TIME, time.perf_counter() - begun)
    except _FAILURES as error:
        return Answer(expert, None, LeftOut(Why.FAILED, str(error)), time.perf_counter() - begun)
    if getattr(expert, "stop_reason_", "") == StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    expert._is_fitted = True
    return Answer(expert, cells, seconds=time.perf_counter() - begun)


def _fit_until(
    deadline: float, expert: BaseImputer, values: NDArray[np.floating], missing: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Fit an expert that has to be done by then: some end early with what they have, others give up."""
    if math.isinf(deadline) or isinstance(expert, MeanImputer):
        return expert._fit_cells(values, missing)
    if isinstance(expert, StandardisedImputer):
        expert.deadline = deadline
        try:
            return expert._fit_cells(values, missing)
        finally:
            del expert.deadline  # it belongs to this fit
    if time.perf_counter() >= deadline:
        raise OutOfTime
    if "callbacks" not in expert.get_params(deep=False):
        return expert._fit_cells(values, missing)
    own = expert.callbacks
    expert.set_params(callbacks=[*(own or []), lambda _: time.perf_counter() >= deadline])  # stops it, without a warning
    try:
        return expert._fit_cells(values, missing)
    finally:
        expert.set_params(callbacks=own)  # a function made here could not be pickled


def refines(expert: BaseImputer) -> bool:
    """Whether an expert improves what others made of the holes."""
    return isinstance(expert, RefiningImputer)
