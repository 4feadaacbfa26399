"""Who is asked: imputers by name, the same contract for all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_choice
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
    OutOfTime,
    RefiningImputer,
    SoftImputer,
    VAEACImputer,
)
from ..estimator import BaseImputer, Unfitted
from ..exceptions import DivergedError
from ..imputers import MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer

MEAN = "mean"  # always asked: others must be better
MIXTURE = "mixture"
OUT_OF_TIME = "there was no time for it"

EXPERTS: Mapping[str, Callable[[], BaseImputer]] = {
    # In the order in which they are asked: cheap ones first.
    MEAN: MeanImputer,
    "gaussian": GaussianEMImputer,
    "neighbours": KNNImputer,
    "transport": SinkhornImputer,
    MIXTURE: GaussianMixtureImputer,
    "chain": ICEImputer,
    "forest": MissForestImputer,
    "kernel": KernelRidgeImputer,
    "trees": ExtraTreesImputer,
}
DEFAULT = (MEAN, "gaussian", "transport", MIXTURE, "kernel", "trees")
CLASSES = (
    ExtraTreesImputer, GAINImputer, GaussianEMImputer, GaussianMixtureImputer, ICEImputer, KNNImputer, KernelRidgeImputer,
    MIWAEImputer, MeanImputer, MetaSinkhornImputer, MissForestImputer, RoundRobinImputer, SinkhornImputer, SoftImputer,
    VAEACImputer,
)  # fmt: skip


class Asked(Kind):
    """The parameter ``experts`` in a model file: None, or names and imputers."""

    _imputer = Unfitted(CLASSES)

    def pack(self, value: Any, place: Place) -> Any:
        if value is None:
            return None
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
            name = type(each).__name__
            while name in found:
                name += "'"
            found[name] = clone(each)
        else:
            raise TypeError(f"an expert must be one of {', '.join(EXPERTS)}, or one of otimpute's imputers, got {each!r}")
    for each in found.values():
        each._check_parameters()
    order = list(EXPERTS)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


@dataclass(frozen=True)
class Question:
    """A table with holes, for one expert to fill. Where the expert refines, a first guess stands in the holes."""

    key: Any  # who asks for what
    expert: BaseImputer
    values: NDArray[np.floating]
    missing: NDArray[np.bool_]
    seed: int
    deadline: float = math.inf


@dataclass(frozen=True)
class Answer:
    """What an expert made of a table, or why it did not."""

    expert: BaseImputer
    cells: NDArray[np.float64] | None
    failure: str = ""


def ask(questions: Sequence[Question], asker: BaseImputer, n_threads: int) -> dict[Any, Answer]:
    """Fit experts, some at a time; what comes out does not depend on how many."""
    if n_threads == 1 or len(questions) < 2:
        return {question.key: _answer(question, asker) for question in questions}
    with ThreadPoolExecutor(n_threads) as pool:
        answers = pool.map(lambda question: _answer(question, asker), questions)
        return dict(zip((question.key for question in questions), answers, strict=True))


def _answer(question: Question, asker: BaseImputer) -> Answer:
    expert = clone(question.expert)
    expert._adopt(asker)
    if "random_state" in expert.get_params(deep=False):
        expert.set_params(random_state=int(generator(question.seed, str(question.key)).integers(2**31)))
    if isinstance(expert, RefiningImputer):
        expert.starts_in_holes, expert.deadline = True, question.deadline
    elif math.isfinite(question.deadline) and "callbacks" in expert.get_params(deep=False):
        expert.set_params(callbacks=[lambda _: time.perf_counter() >= question.deadline])  # stops it, without a warning
    try:
        if time.perf_counter() >= question.deadline:
            raise OutOfTime
        cells = expert._fit_cells(question.values, question.missing)
    except OutOfTime:
        return Answer(expert, None, OUT_OF_TIME)
    except _FAILURES as error:
        return Answer(expert, None, str(error))
    if getattr(expert, "stop_reason_", "") == "interrupted":
        raise KeyboardInterrupt
    expert._is_fitted = True
    return Answer(expert, cells)


def refines(expert: BaseImputer) -> bool:
    """Whether an expert improves what others made of the holes."""
    return isinstance(expert, RefiningImputer)
