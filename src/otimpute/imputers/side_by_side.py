"""Fits that run side by side on a GPU, which moves thirty of them in the time of one.

All fits are prepared, those that are alike descend together, and all are finished: three plain loops on one thread, so that
Ctrl-C, warnings and generators that fits share are what they are in a loop over the fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from traceback import clear_frames
from typing import Any

from .._threads import single_blas_thread
from ..estimator import BaseImputer, FitTask
from .sinkhorn.descent import Descended, DescentProblem, descend_on_gpu
from .sinkhorn.sinkhorn_imputer import DescentStart, SinkhornImputer

_MOST_TOGETHER = 32  # each holds a copy of its table


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
    fits = [FitInParts(imputer, X) for imputer, X in zip(imputers, tables, strict=True)]
    results: list[Any] = []
    for begin in range(0, len(fits), _MOST_TOGETHER):
        some = fits[begin : begin + _MOST_TOGETHER]
        errors = [_error_of(fit.prepare) for fit in some]
        descend_together([fit for fit, error in zip(some, errors, strict=True) if error is None])
        errors = [error or _error_of(fit.finish) for fit, error in zip(some, errors, strict=True)]
        results += [error or fit.completed for fit, error in zip(some, errors, strict=True)]
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def _error_of(part: Callable[[], None]) -> Exception | None:
    try:
        part()
    except Exception as error:
        return error
    return None


class FitInParts:
    """An imputer's ``fit_transform`` in two parts, between which `descend_together` is called; ``completed`` is its result.

    A fit for the CPU, one that somebody watches or limits, and one of another imputer is done with the first part.
    """

    completed: Any = None

    def __init__(self, imputer: BaseImputer, X: Any):
        self._imputer, self._X = imputer, X
        self._task: FitTask | None = None
        self._start: DescentStart | None = None
        self._result: Descended | Exception | None = None

    def prepare(self) -> None:
        """The first part."""
        imputer = self._imputer
        if not isinstance(imputer, SinkhornImputer) or imputer.is_watched:
            self.completed = imputer.fit_transform(self._X)
            return
        task = self._task = imputer.begin_fit(self._X)
        with single_blas_thread():
            start = imputer.prepare(task.values, task.missing, task.layout, task.seed)
        self._start = start
        if not start.device.is_gpu:
            self.finish()

    @property
    def problem(self) -> DescentProblem | None:
        """What is to be solved on a GPU."""
        return None if self._start is None else self._start.problem

    def give(self, result: Descended | Exception) -> None:
        """Tell where the descent has led."""
        self._result = result

    def finish(self) -> None:
        """The last part; it raises what the descent raised, unless the CPU can take over."""
        imputer, task, start = self._imputer, self._task, self._start
        if task is None or start is None or not isinstance(imputer, SinkhornImputer):
            return
        with single_blas_thread():
            fit = imputer.finish(start, task.missing, self._descended)
        imputer.end_fit(task, fit)
        self.completed, self._start = imputer.complete_table(task, fit), None

    def _descended(self) -> Descended:
        if not isinstance(self._result, Descended):
            raise self._result or RuntimeError("descend_together must be called before")
        return self._result


def descend_together(fits: Sequence[FitInParts]) -> None:
    """Solve what prepared fits wait for, all of a kind at once."""
    groups: dict[Any, list[FitInParts]] = defaultdict(list)
    for fit in fits:
        if fit.problem is not None:
            groups[fit.problem.kind].append(fit)
    for group in groups.values():
        _descend_for(group)


def _descend_for(group: Sequence[FitInParts]) -> None:
    """Give each its result. A group that fails is tried again in halves: fewer need less memory, and an error is of one."""
    try:
        results = descend_on_gpu([fit.problem for fit in group if fit.problem is not None])
    except Exception as error:
        _let_go_of_memory(error)
        if len(group) == 1:
            group[0].give(error)
        else:
            middle = len(group) // 2
            _descend_for(group[:middle])
            _descend_for(group[middle:])
    else:
        for fit, result in zip(group, results, strict=True):
            fit.give(result)


def _let_go_of_memory(error: BaseException) -> None:
    """Free what the calls that an error came through held: tables on the GPU, whose memory others need."""
    clear_frames(error.__traceback__)
    if error.__cause__ is not None:
        _let_go_of_memory(error.__cause__)
