"""What happens to workers in tests of engines: each fault happens once, whichever process gets there first.

Workers import this file by its name; the path to it is in PYTHONPATH (tests/distributed/conftest.py).
"""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Once:
    """Something that is done by the first process that comes along; ``marker`` is there afterwards."""

    marker: str

    def __call__(self) -> bool:
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class Mark:
    """Passes rows on, and leaves a file behind that says so."""

    marker: str

    def __call__(self, rows: Any) -> Any:
        Path(self.marker).touch()
        return rows


@dataclass(frozen=True)
class DieOnce:
    """Does a task, but the first worker ends at once, the hard way."""

    task: Any
    marker: str

    def __call__(self, *args: Any) -> Any:
        self.die()
        return self.task(*args)

    def die(self) -> None:
        """End this process, if it is the first."""
        if Once(self.marker)():
            os.kill(os.getpid(), signal.SIGKILL)


class DieAmidBatches(DieOnce):
    """The same for a task that is a stream: the worker ends after the first of its results."""

    def __call__(self, *args: Any) -> Iterator[Any]:
        for result in self.task(*args):
            yield result
            self.die()


def dying_actor(actor: type, marker: str) -> type:
    """The same for a class whose instances do tasks."""

    class Dying(actor):
        def __call__(self, *args: Any) -> Any:
            return DieOnce(super().__call__, marker)(*args)

    return Dying


def dying(task: Any, marker: str) -> Any:
    """The same for a function, as a function."""
    return lambda *args: DieOnce(task, marker)(*args)


def without_room(task: Any, n_bytes: int) -> Any:
    """A task on a machine that lets no file grow beyond so many bytes."""

    def on_a_full_disk(*args: Any) -> Any:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            return task(*args)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return on_a_full_disk


def describe_rows(batches: Iterable[Any]) -> bytes:
    """A fold: the keys of the rows, their schema, and which process read them."""
    keys, schemas = [], set()
    for batch in batches:
        keys += batch.column("key").to_pylist()
        schemas.add(str(batch.schema.remove_metadata()))
    return json.dumps({"keys": keys, "schemas": sorted(schemas), "processes": [os.getpid()]}).encode()


def combine_descriptions(states: Iterable[bytes]) -> bytes:
    """The same of several parts."""
    described = [json.loads(state) for state in states]
    return json.dumps(
        {
            "keys": [key for each in described for key in each["keys"]],
            "schemas": sorted({schema for each in described for schema in each["schemas"]}),
            "processes": sorted({process for each in described for process in each["processes"]}),
        }
    ).encode()
