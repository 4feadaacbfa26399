"""Run a suite: plan, leave out what is done, do the rest, keep every record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .._checks import check_choice, check_count, check_real
from .._optional import require
from ..catalogue import make_imputer
from ..datasets import DatasetUnavailableError, dataset_card, load_dataset
from .execute import execute
from .record import Record
from .store import Contents, Store
from .suite import Suite
from .task import Task

_LONGEST_TASK = 1e7  # seconds; timers do not bear any number


@dataclass
class RunReport:
    """What a run did."""

    n_tasks: int = 0
    n_already_done: int = 0
    n_elsewhere: int = 0  # another process did them meanwhile, or was at them
    done: list[Record] = field(default_factory=list)
    failed_before: list[Record] = field(default_factory=list)  # in an earlier run, and not repeated
    foreign: dict[Path, str] = field(default_factory=dict)  # files that are not trusted, so their tasks count as not done
    unavailable: dict[str, str] = field(default_factory=dict)  # data sets and imputers that cannot be had; their tasks wait


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands; what the ``on_progress`` function receives."""

    n_done: int  # before this run or in it
    n_tasks: int
    record: Record | None  # the one just written
    seconds_left: float | None  # None while nothing tells
    activity: str = ""  # what is done besides tasks


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    jobs: int = 1,
    shard: tuple[int, int] = (1, 1),
    device: str = "cpu",
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
    device : {"cpu", "cuda"}
        "cuda": methods that can compute on an NVIDIA GPU do, which makes other tasks of them (see `Suite.on_gpu`). Fits of
        `SinkhornImputer` that differ in their seed only run side by side; each task's time is then an equal share of theirs.
    data_home : path or None
        A folder of data sets as CSV files.
    max_seconds : float or None
        Stop a task after this time; its record then says "timeout". Tasks side by side may take so long for each of them.
    retry_failed : bool
        Also repeat tasks that failed or took too long.
    on_progress : function or None
        Called with a `RunProgress` while data sets are looked for and after every task.
    """
    check_count("jobs", jobs)
    check_count("shard's number of parts", shard[1])
    if not 1 <= shard[0] <= shard[1]:
        raise ValueError(f"shard must be i/n with i from 1 to n, got {shard[0]}/{shard[1]}")
    if max_seconds is not None:
        check_real("max_seconds", max_seconds, above=0, at_most=_LONGEST_TASK)
    if check_choice("device", device, ["cpu", "cuda"]) == "cuda":
        suite = suite.on_gpu()
    require("ot", "the exact Wasserstein distance", "bench")  # or every task would fail at its last step
    tell = on_progress or (lambda _: None)
    everything = suite.tasks()
    tasks = [task for task in everything if int(task.key, 16) % shard[1] == shard[0] - 1]
    report = RunReport(n_tasks=len(tasks))
    store = Store(folder)
    contents = store.read() if store.folder.exists() else Contents()
    report.foreign = contents.foreign
    found = [contents.records[task.key] for task in tasks if task.key in contents.records]
    kept = {record.task.key: record for record in found if record.status == "ok" or not retry_failed}
    report.n_already_done = len(kept)
    report.failed_before = [record for record in kept.values() if record.status != "ok"]
    for name in sorted({task.dataset for task in tasks if task.key not in kept}):  # here, before two workers both fetch it
        tell(RunProgress(len(kept), len(tasks), None, None, activity=f"looking for {name}"))
        try:
            load_dataset(name, data_home=data_home)
        except DatasetUnavailableError as error:
            report.unavailable[name] = str(error)
    for name in sorted({task.imputer for task in tasks if task.key not in kept}):
        try:
            make_imputer(name, {}).check_parameters()
        except ModuleNotFoundError as error:  # an optional package, and how to get it
            report.unavailable[name] = str(error)
    store.plan(suite.name, everything, contents)
    waiting = [t for t in tasks if t.key not in kept and not report.unavailable.keys() & {t.dataset, t.imputer}]
    if waiting:
        tell(RunProgress(len(kept), len(tasks), None, None, activity="starting (compiles once)"))
    estimate = _Estimate(contents.records.values(), waiting, jobs)
    doing = execute(waiting, store, jobs=jobs, data_home=data_home, max_seconds=max_seconds, retry_failed=retry_failed)
    for n_done, (task, record) in enumerate(doing, len(kept) + 1):
        if record is None:
            report.n_elsewhere += 1
        else:
            report.done.append(record)
        tell(RunProgress(n_done, len(tasks), record, estimate.after(task, record)))
    return report


class _Estimate:
    """Seconds left, from what tasks took: of the same data set and method, else of the same method, else of any.

    What another data set took is scaled by the number of cells, which is rough; it is replaced as soon as the set itself
    has been met, and suites meet every set in their first seed.
    """

    def __init__(self, records: Iterable[Record], waiting: Sequence[Task], jobs: int):
        self._taken: dict[tuple[str, ...], _Taken] = defaultdict(_Taken)
        self._waiting = Counter((task.dataset, task.method) for task in waiting)
        self._cells = {name: dataset_card(name).n * dataset_card(name).d for name in {task.dataset for task in waiting}}
        self._jobs = jobs
        for record in records:
            self._note(record)

    def after(self, task: Task, record: Record | None) -> float | None:
        """What is left when a task is done, by us or by another process."""
        self._waiting[task.dataset, task.method] -= 1
        if record is not None:
            self._note(record)
        if not self._taken[()].n:
            return None
        return sum(n * self._expected(*pair) for pair, n in self._waiting.items() if n) / self._jobs

    def _note(self, record: Record) -> None:
        if record.n and "task" in record.seconds:
            task = record.task
            for like in ((task.dataset, task.method), (task.method,), ()):
                self._taken[like].add(record.seconds["task"], record.n * record.d)

    def _expected(self, dataset: str, method: str) -> float:
        same = self._taken[dataset, method]
        if same.n:
            return same.seconds / same.n
        like = self._taken[method,] if self._taken[method,].n else self._taken[()]
        return like.seconds / like.cells * self._cells[dataset]


@dataclass
class _Taken:
    seconds: float = 0.0
    cells: int = 0
    n: int = 0

    def add(self, seconds: float, cells: int) -> None:
        self.seconds, self.cells, self.n = self.seconds + seconds, self.cells + cells, self.n + 1
