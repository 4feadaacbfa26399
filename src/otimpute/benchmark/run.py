"""Run the tasks of a suite that have no record yet."""

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

_LONGEST_TASK = 1e7  # seconds; timers overflow with much larger numbers


@dataclass
class RunReport:
    """Summary of a run."""

    n_tasks: int = 0
    n_already_done: int = 0
    n_elsewhere: int = 0  # done meanwhile, or being done, by another process
    done: list[Record] = field(default_factory=list)
    failed_before: list[Record] = field(default_factory=list)  # in an earlier run, and not repeated
    foreign: dict[Path, str] = field(default_factory=dict)  # invalid files, whose tasks count as not done
    unavailable: dict[str, str] = field(default_factory=dict)  # data sets and imputers not available; their tasks are not run


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run, passed to the ``on_progress`` function."""

    n_done: int  # before this run or in it
    n_tasks: int
    record: Record | None  # the one just written
    seconds_left: float | None  # None while there is no estimate
    activity: str = ""  # current activity other than tasks


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
    """Run the tasks of a suite that have no record in ``folder`` yet.

    A run can be stopped at any time and called again to continue. Several calls may share a folder.

    Parameters
    ----------
    suite : Suite
        A suite from `load_suite`, or a part of it (see `Suite.only`).
    folder : path
        The folder of the records.
    jobs : int
        Number of tasks to run in parallel, each on one thread. Scores do not depend on it.
    shard : (i, n)
        Run only the i-th of n parts, to distribute a suite over machines.
    device : {"cpu", "cuda"}
        "cuda": methods that support it run on an NVIDIA GPU; these are different tasks (see `Suite.on_gpu`). Fits of
        `SinkhornImputer` that differ only in their seed run together; each task's time is then an equal share of the total.
    data_home : path or None
        A folder of data sets as CSV files.
    max_seconds : float or None
        Stop a task after this time; its record then says "timeout". For tasks that run together, the limit is the sum.
    retry_failed : bool
        Whether to repeat tasks that failed or timed out.
    on_progress : function or None
        Called with a `RunProgress` while data sets are searched and after every task.
    """
    check_count("jobs", jobs)
    check_count("shard's number of parts", shard[1])
    if not 1 <= shard[0] <= shard[1]:
        raise ValueError(f"shard must be i/n with i from 1 to n, got {shard[0]}/{shard[1]}")
    if max_seconds is not None:
        check_real("max_seconds", max_seconds, above=0, at_most=_LONGEST_TASK)
    if check_choice("device", device, ["cpu", "cuda"]) == "cuda":
        suite = suite.on_gpu()
    require("ot", "the exact Wasserstein distance", "bench")  # fail now: otherwise every task would fail at its last step
    tell = on_progress or (lambda _: None)
    everything = suite.tasks()
    tasks = [task for task in everything if int(task.key, 16) % shard[1] == shard[0] - 1]
    report = RunReport(n_tasks=len(tasks))
    store = Store(folder)
    contents = store.read() if store.folder.exists() else Contents()
    report.foreign = contents.foreign
    found = [contents.records[task.key] for task in tasks if task.key in contents.records]
    kept = {record.task.key: record for record in found if record.is_good or not retry_failed}
    report.n_already_done = len(kept)
    report.failed_before = [record for record in kept.values() if not record.is_good]
    for name in sorted({task.dataset for task in tasks if task.key not in kept}):  # so that no two workers download it
        tell(RunProgress(len(kept), len(tasks), None, None, activity=f"looking for {name}"))
        try:
            load_dataset(name, data_home=data_home)
        except DatasetUnavailableError as error:
            report.unavailable[name] = str(error)
    for name in sorted({task.imputer for task in tasks if task.key not in kept}):
        try:
            make_imputer(name, {}).check_parameters()
        except ModuleNotFoundError as error:  # an optional package is missing; the message says how to install it
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
    """Estimate of the seconds left, from tasks of the same data set and method, else of the same method, else of any.

    Times of other data sets are scaled by the number of cells. This is rough, but suites run every data set in their first
    seed, and its own time then replaces the estimate.
    """

    def __init__(self, records: Iterable[Record], waiting: Sequence[Task], jobs: int):
        self._taken: dict[tuple[str, ...], _Taken] = defaultdict(_Taken)
        self._waiting = Counter((task.dataset, task.method) for task in waiting)
        self._cells = {name: dataset_card(name).n * dataset_card(name).d for name in {task.dataset for task in waiting}}
        self._jobs = jobs
        for record in records:
            self._note(record)

    def after(self, task: Task, record: Record | None) -> float | None:
        """Return the seconds left after a task is done, by us or by another process."""
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
