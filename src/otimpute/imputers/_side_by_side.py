"""Fits that meet on a GPU, which moves thirty of them in the time of one.

A fit that gets to its descent does not descend: it lets the next fit begin, inside its own call, and the last one to get
there descends for all. Then they finish, the last one first. All this is one thread and one order, so that fits cannot wait
for each other in vain, and Ctrl-C, warnings and generators that fits share are what they are in a loop over the fits.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from traceback import clear_frames
from typing import Any, Generic, TypeVar

import numpy as np

from ..estimator import BaseImputer
from ..fitting import Callback
from ..fitting.checkpoint import NO_CHECKPOINT, Checkpoint
from ._descent import Descended, DescentSchedule, Score, descend
from ._gpu_steps import Fit, GpuSteps

_MOST_WAITING = 32  # each takes some ten frames of Python's stack, which ends at 1000
_here = threading.local()  # a party is of one call stack, and a stack is of one thread

Result = TypeVar("Result")


def fit_transform_many(imputers: Sequence[BaseImputer], tables: Sequence[Any]) -> list[Any]:
    """Fit each imputer to its table and return the completed tables; on a GPU, fits that are alike share its time.

    Seeds of an experiment, or several imputations of one table. What comes back is what a loop over ``fit_transform``
    returns, and without a GPU it is such a loop. On one, fits of `SinkhornImputer` run side by side if their tables have the
    same shape and their parameters are the same but for ``random_state``, ``epsilon`` (and what they learn from the table);
    those with ``verbose``, ``callbacks``, ``checkpoint`` or ``max_seconds`` run alone.

    Parameters
    ----------
    imputers : list of imputers
        No imputer twice: see `sklearn.base.clone`. They are fitted afterwards.
    tables : list of arrays or frames
        One for each imputer; the same one may come several times.

    Returns
    -------
    list
        What each ``fit_transform`` returned. If some raised an error, the others are fitted, then the first one is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from otimpute import SinkhornImputer, fit_transform_many
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) * [1.0, 2.0]
    >>> X_incomplete = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    >>> imputers = [SinkhornImputer(max_steps=50, random_state=seed) for seed in range(3)]
    >>> imputations = np.stack(fit_transform_many(imputers, [X_incomplete] * 3))
    >>> imputations.shape
    (3, 60, 2)
    >>> bool(imputations.std(axis=0)[np.isnan(X_incomplete)].min() > 0)
    True
    """
    if len(imputers) != len(tables):
        raise ValueError(f"each imputer needs its table, got {len(imputers)} imputers and {len(tables)} tables")
    if len(set(map(id, imputers))) < len(imputers):
        raise ValueError("an imputer can hold one fit only, got the same one twice; pass copies made by sklearn.base.clone")
    results = side_by_side([partial(imputer.fit_transform, X) for imputer, X in zip(imputers, tables, strict=True)])
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
    """What the calls return or raise; the fits in them meet."""
    party = _Party(calls)
    outer, _here.party = getattr(_here, "party", None), party
    try:
        party.begin_calls(until=lambda: False)
    finally:
        _here.party = outer
    return [party.results[k] for k in range(len(calls))]


@dataclass
class Descent:
    """What a fit wants done on the GPU, and what came of it."""

    fit: Fit
    schedule: DescentSchedule
    batch_size: int
    n_pairs: int
    score: Score | None
    result: Descended | Exception | None = field(default=None, init=False)

    def run(self, callbacks: Sequence[Callback], checkpoint: Checkpoint) -> Descended:
        """Descend: alone if somebody watches, or else with the other fits of a party."""
        party: _Party[Any] | None = getattr(_here, "party", None)
        if party is None or callbacks or checkpoint.path is not None or self.schedule.deadline < np.inf:
            return _descend([self], callbacks, checkpoint)[0]
        return party.descend(self)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What fits side by side have in common."""
        plan = self.fit.plan
        learns_metric, has_pools = len(self.fit.geometry.metric) > 0, len(plan.x_rows) > 0
        iterations = plan.n_cross_iterations, plan.n_self_iterations
        return self.fit.free.shape, self.schedule, self.batch_size, self.n_pairs, iterations, learns_metric, has_pools


class _Party(Generic[Result]):
    """Calls that are begun one inside the other, and the fits in them that wait to descend."""

    def __init__(self, calls: Sequence[Callable[[], Result]]):
        self.results: dict[int, Result | Exception] = {}
        self._to_begin: Iterator[tuple[int, Callable[[], Result]]] = iter(enumerate(calls))
        self._waiting: list[Descent] = []

    def begin_calls(self, until: Callable[[], bool]) -> None:
        """Begin what nobody has begun yet; an error is that call's alone, not of the one that it was begun in."""
        while not until() and (following := next(self._to_begin, None)) is not None:
            k, call = following
            try:
                self.results[k] = call()
            except Exception as error:
                self.results[k] = error

    def descend(self, descent: Descent) -> Descended:
        """Wait for the others, or be the one who descends for all."""
        self._waiting.append(descent)
        if len(self._waiting) < _MOST_WAITING:
            self.begin_calls(until=lambda: descent.result is not None)
        if descent.result is None:
            groups: dict[Any, list[Descent]] = defaultdict(list)
            for waiting in self._waiting:
                groups[waiting.kind].append(waiting)
            self._waiting = []
            for group in groups.values():
                _descend_for(group)
        assert descent.result is not None
        if isinstance(descent.result, Exception):
            raise descent.result
        return descent.result


def _descend_for(group: Sequence[Descent]) -> None:
    """Give each its result. A group that fails is tried again in halves: fewer need less memory, and an error is of one."""
    try:
        outcomes = _descend(group, [], NO_CHECKPOINT)
    except Exception as error:
        _let_go_of_memory(error)
        if len(group) == 1:
            group[0].result = error
        else:
            middle = len(group) // 2
            _descend_for(group[:middle])
            _descend_for(group[middle:])
    else:
        for descent, outcome in zip(group, outcomes, strict=True):
            descent.result = outcome


def _let_go_of_memory(error: BaseException) -> None:
    """Free what the calls that an error came through held: tables on the GPU, whose memory others need."""
    clear_frames(error.__traceback__)
    if error.__cause__ is not None:
        _let_go_of_memory(error.__cause__)


def _descend(group: Sequence[Descent], callbacks: Sequence[Callback], checkpoint: Checkpoint) -> list[Descended]:
    first = group[0]
    steps = GpuSteps([each.fit for each in group], first.schedule.n_steps, first.batch_size, first.n_pairs)
    return descend(steps, first.schedule, [each.score for each in group], callbacks, checkpoint)
