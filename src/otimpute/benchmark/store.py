"""A folder of records, one file per task; writes are atomic, and several processes may share it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._checks import check_choice
from .._files import appears_whole
from .outcome import Outcome
from .record import ForeignRecordError, Record
from .task import Task, canonical

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: two processes may then run the same task, which only costs time
    fcntl = None  # type: ignore[assignment]


@dataclass
class Contents:
    """The content of a folder."""

    planned: dict[str, Task] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    foreign: dict[Path, str] = field(default_factory=dict)  # files that are not intact records, and why

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes of all records of planned tasks."""
        _refuse_mixtures(self.planned.values())
        found = [self.records[key] for key in self.planned if key in self.records]
        return [outcome for record in found for outcome in record.outcomes()]

    def only(self, methods: Collection[str]) -> Contents:
        """Return the plan and records of these methods; of all if empty."""
        planned = {task.method for task in self.planned.values()}
        chosen = [check_choice("method", method, planned) for method in methods or planned]
        return replace(self, planned={key: task for key, task in self.planned.items() if task.method in chosen})

    def is_good(self, task: Task) -> bool:
        """Whether the task has a record and did not fail."""
        return task.key in self.records and self.records[task.key].is_good


class Store:
    """Reads and writes the plans and records of a folder."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._records = self.folder / "records"
        self._plans = self.folder / "plans"
        self._claims = self.folder / "claims"

    def plan(self, suite: str, tasks: Sequence[Task], contents: Contents | None = None) -> None:
        """Save the planned tasks, so that `read` knows which are missing; pass ``contents`` if already read."""
        contents = contents or (self.read() if self.folder.is_dir() else Contents())
        _refuse_mixtures([task for task in contents.planned.values() if contents.is_good(task)] + list(tasks))
        text = json.dumps({"suite": suite, "tasks": [task.as_dict() for task in tasks]})
        name = hashlib.sha256(canonical(sorted(task.key for task in tasks)).encode()).hexdigest()[:16]
        _write(self._plans / f"{name}.json", text)

    def read(self) -> Contents:
        """Read the folder; invalid files are listed but not used."""
        if not self.folder.is_dir():
            raise FileNotFoundError(f"no benchmark folder {str(self.folder)!r}; run a benchmark with --out {self.folder}")
        contents = Contents()
        for path in _files(self._records):
            try:
                contents.records[path.stem] = _read_record(path)
            except FileNotFoundError:  # another process has just replaced it
                pass
            except (ForeignRecordError, OSError) as error:
                contents.foreign[path] = str(error)
        shown: dict[tuple[str, str, str, int], Task] = {}
        for path in sorted(_files(self._plans), key=_age):
            try:
                tasks = [Task.from_dict(each) for each in json.loads(path.read_text(encoding="utf-8"))["tasks"]]
                contents.planned |= {task.key: task for task in tasks}
            except FileNotFoundError:
                continue
            except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
                contents.foreign[path] = f"not a plan: {type(error).__name__}: {error}"
                continue
            for task in tasks:  # a newly planned task with other parameters replaces one that failed
                before = shown.get(_shown_as(task), task)
                if before != task and not contents.is_good(before):
                    contents.planned.pop(before.key, None)
                shown[_shown_as(task)] = task
        return contents

    def has(self, task: Task, *, good: bool = False) -> bool:
        """Whether there is a valid record of the task; with ``good``, only if it did not fail."""
        try:
            record = _read_record(self._records / f"{task.key}.json")
        except (ForeignRecordError, OSError):
            return False
        return record.is_good or not good

    def write(self, record: Record) -> None:
        """Write a record atomically."""
        _write(self._records / f"{record.task.key}.json", record.to_json())

    @contextmanager
    def claim(self, task: Task) -> Iterator[bool]:
        """Lock the task; False if another process is running it. The lock of a killed process is released."""
        if fcntl is None:  # pragma: no cover
            yield True
            return
        self._claims.mkdir(parents=True, exist_ok=True)
        path = self._claims / task.key
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:  # a file system without locks: two processes may then run the same task
                pass
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)


def outcomes_in(folder: str | Path) -> list[Outcome]:
    """Return the outcomes of all planned tasks of a benchmark folder that have a record."""
    return Store(folder).read().outcomes()


def _shown_as(task: Task) -> tuple[str, str, str, int]:
    return task.dataset, task.setting, task.method, task.seed


def _refuse_mixtures(tasks: Iterable[Task]) -> None:
    """Raise if tables and figures could not tell two tasks of the folder apart."""
    shown: dict[tuple[str, str, str, int], Task] = {}
    for task in tasks:
        other = shown.setdefault(_shown_as(task), task)
        if other != task:
            raise ValueError(
                f"the folder would mix two tasks that are both shown as {task.method} on {task.dataset}, {task.setting}, seed "
                f"{task.seed}, with parameters {dict(other.parameters)} and {dict(task.parameters)}, test fractions "
                f"{other.test_fraction} and {task.test_fraction}, n_draws {other.n_draws} and {task.n_draws}; use a separate "
                "folder for each suite, or rename a method"
            )


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _files(folder: Path) -> list[Path]:
    """List the files of a folder, except temporary files."""
    return sorted(path for path in folder.glob("*") if not path.name.startswith("."))


def _read_record(path: Path) -> Record:
    if path.suffix != ".json":
        raise ForeignRecordError("its name is not that of a record")
    try:
        return Record.from_json(path.read_text(encoding="utf-8"), path.stem)
    except UnicodeDecodeError as error:
        raise ForeignRecordError(f"not text: {error.reason}") from None


def _write(path: Path, text: str) -> None:
    with appears_whole(path) as part:
        part.write_text(text, encoding="utf-8")
