"""Records: the stored results of tasks."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from .._text import Keyword
from ..catalogue import METRICS
from .outcome import Outcome
from .task import Task, canonical

FORMAT = 1
SCORES = tuple(METRICS)


class Status(Keyword):
    """How a task ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"


class ForeignRecordError(ValueError):
    """A file is not an intact record of the task it is named after."""


@dataclass(frozen=True)
class Record:
    """The result of a task, also if it failed."""

    task: Task
    status: Status
    error: str = ""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by part of the table, by metric
    seconds: Mapping[str, float] = field(default_factory=dict)  # "fit", "transform", "draws", "task" (all of it)
    n_together: int = 1  # number of tasks fitted together on a GPU; times are equal shares of the total
    peak_mib: float = 0.0  # of the imputing process
    added_mib: float = 0.0  # increase of that peak by imputing, hence a lower bound
    flags: tuple[str, ...] = ()  # suspicious properties of the result
    warnings: tuple[str, ...] = ()
    n: int = 0
    d: int = 0
    n_missing: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether there is a result."""
        return self.status == Status.OK

    def to_json(self) -> str:
        """Return the record as JSON with a checksum of its content."""
        content = {"format": FORMAT, **asdict(self), "task": self.task.as_dict()}
        return json.dumps({**content, "sha256": _checksum(content)}, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, key: str) -> Self:
        """Read a record of the task ``key``; anything else raises `ForeignRecordError` with the reason."""
        try:
            content = json.loads(text)
            checksum = content.pop("sha256")
            if content.pop("format") != FORMAT:
                raise ForeignRecordError(f"written in another format than {FORMAT}")
            if checksum != _checksum({"format": FORMAT, **content}):
                raise ForeignRecordError("content and checksum differ: the file was damaged or edited")
            task = Task.from_dict(content.pop("task"))
            content.setdefault("n_together", 1)  # missing in old records
            content["status"] = Status(content["status"])
            content["flags"], content["warnings"] = tuple(content["flags"]), tuple(content["warnings"])
            record = cls(task, **{each.name: content[each.name] for each in fields(cls) if each.name != "task"})
        except ForeignRecordError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ForeignRecordError(f"not a record: {type(error).__name__}: {error}") from None
        if task.key != key:
            raise ForeignRecordError(f"contains task {task.key}, which does not match its name")
        return record

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcome of each part of the table; NaN if the task failed, so that no mean ignores it."""
        task, good = self.task, self.is_good
        for part, clock in (("train", "fit"), ("test", "transform")):
            if part == "test" and not task.test_fraction:
                continue
            scores = self.scores.get(part, {}) if good else dict.fromkeys(SCORES, math.nan)
            seconds, added_mib = (self.seconds[clock], self.added_mib) if good else (math.nan, math.nan)
            yield Outcome(task.dataset, task.setting, task.method, task.seed, part, scores, seconds, added_mib, self.n, self.d)


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()
