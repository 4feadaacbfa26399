"""Run a suite: plan, leave out what is done, do the rest, keep every record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .._checks import check_count, check_real
from ..datasets import DatasetUnavailableError, load_dataset
from .execute import execute
from .record import Record
from .store import Contents, Store
from .suite import Suite
from .task import Task


@dataclass
class RunReport:
    """What a run did."""

    n_tasks: int = 0
    n_already_done: int = 0
    n_elsewhere: int = 0  # another process was at them
    done: list[Record] = field(default_factory=list)
    foreign: dict[Path, str] = field(default_factory=dict)  # files not trusted, whose tasks were run again
    unavailable: dict[str, str] = field(default_factory=dict)  # data sets that could not be had, whose tasks wait


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands; what the ``on_progress`` function receives."""

    n_done: int
    n_tasks: int
    record: Record | None  # the one just written
    seconds_left: float | None  # None while nothing tells


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    jobs: int = 1,
    shard: tuple[int, int] = (1, 1),
    data_home: str | Path | None = None,
    max_seconds: float | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[RunProgress], None] | None = None,
) -> RunReport:
    """Do the tasks of a suite that have no record in ``folder`` yet.

    Stop it at any moment and call it again: only what is missing runs. Several calls may share a folder.

    Parameters
    ----------
    suite : Suite
        From `load_suite`, or a part of one by its ``only``.
    folder : path
        Where records are kept.
    jobs : int
        Tasks at a time, each on one thread. Scores do not depend on it.
    shard : (i, n)
        Do the i-th of n parts, to spread a suite over machines.
    data_home : path or None
        A folder of data sets as CSV files.
    max_seconds : float or None
        Stop a task after this time; its record then says "timeout".
    retry_failed : bool
        Also repeat tasks that failed or took too long.
    on_progress : function or None
        Called with a `RunProgress` after every task.
    """
    check_count("jobs", jobs)
    check_count("shard's number of parts", shard[1])
    if not 1 <= check_count("shard", shard[0]) <= shard[1]:
        raise ValueError(f"shard must be i/n with i from 1 to n, got {shard[0]}/{shard[1]}")
    if max_seconds is not None:
        check_real("max_seconds", max_seconds, above=0)
    store = Store(folder)
    everything = suite.tasks()
    store.plan(suite.name, everything)
    tasks = [task for task in everything if int(task.key, 16) % shard[1] == shard[0] - 1]
    report = RunReport(n_tasks=len(tasks))
    contents = store.read()
    report.foreign = contents.foreign
    report.unavailable = _unavailable({task.dataset for task in tasks}, data_home)
    kept = {key for key, record in contents.records.items() if record.status == "ok" or not retry_failed}
    for key in set(contents.records) - kept:
        store.discard(key)
    report.n_already_done = sum(task.key in kept for task in tasks)
    waiting = [task for task in tasks if task.key not in kept and task.dataset not in report.unavailable]
    estimate = _Estimate(contents, waiting, jobs)
    for n_done, record in enumerate(execute(waiting, store, jobs=jobs, data_home=data_home, max_seconds=max_seconds), 1):
        if record is None:
            report.n_elsewhere += 1
        else:
            report.done.append(record)
        if on_progress:
            on_progress(RunProgress(n_done, len(waiting), record, estimate.after(record)))
    return report


def _unavailable(datasets: set[str], data_home: str | Path | None) -> dict[str, str]:
    """Fetch what is needed before any worker does; say what cannot be had."""
    missing = {}
    for name in sorted(datasets):
        try:
            load_dataset(name, data_home=data_home)
        except DatasetUnavailableError as error:
            missing[name] = str(error)
    return missing


class _Estimate:
    """Seconds left, from what like tasks took: same data set and method, else same method, else any."""

    def __init__(self, contents: Contents, waiting: Sequence[Task], jobs: int):
        self._taken: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._waiting = {task.key: task for task in waiting}
        self._jobs = jobs
        for record in contents.records.values():
            self._note(record)

    def after(self, record: Record | None) -> float | None:
        if record is not None:
            self._waiting.pop(record.task.key, None)
            self._note(record)
        if not self._taken[()]:
            return None
        return sum(self._expected(task) for task in self._waiting.values()) / self._jobs

    def _note(self, record: Record) -> None:
        for like in _likes(record.task):
            self._taken[like].append(record.seconds.get("task", 0.0))

    def _expected(self, task: Task) -> float:
        taken = next(self._taken[like] for like in _likes(task) if self._taken[like])
        return sum(taken) / len(taken)


def _likes(task: Task) -> list[tuple[str, ...]]:
    return [(task.dataset, task.method), (task.method,), ()]
