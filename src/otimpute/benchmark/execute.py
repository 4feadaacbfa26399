"""Run tasks in parallel, each in its own process, and write their records."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ..catalogue import make_imputer
from ..imputers import SinkhornImputer
from .record import Record, Status
from .store import Store
from .task import Task
from .worker import FORKS, READY, read_records

# -P: files in the current folder must not shadow libraries.
_WORKER = [sys.executable, "-P", "-c", "from otimpute.benchmark.worker import main; main()"]
_ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"], "1"
)
_NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # torch cannot train in a forked child of a process that has used a GPU


def execute(
    tasks: Sequence[Task],
    store: Store,
    *,
    jobs: int = 1,
    data_home: str | Path | None = None,
    max_seconds: float | None = None,
    retry_failed: bool = False,
) -> Iterator[tuple[Task, Record | None]]:
    """Run the tasks, ``jobs`` at a time; yield each with its record once written, or with None if another process has it.

    Every task runs on one thread in a fresh process, so that results depend neither on ``jobs`` nor on the order. Tasks on a
    GPU share a process, and a group that is fitted together there counts as one.
    """
    from joblib import Parallel, delayed

    def pool_for(device: str) -> _Pool:
        imputers = {task.imputer for task in tasks if task.on_gpu == (device == "cuda")}
        return _Pool(sorted(imputers), data_home, max_seconds, device)

    pools = {device: pool_for(device) for device in ("cpu", "cuda")}

    def do(group: Sequence[Task]) -> list[tuple[Task, Record | None]]:
        with ExitStack() as claims:
            mine = [
                task for task in group if claims.enter_context(store.claim(task)) and not store.has(task, good=retry_failed)
            ]
            records = pools["cuda" if group[0].on_gpu else "cpu"].ask(mine) if mine else []
            for record in records:
                store.write(record)
        done = {record.task: record for record in records}
        return [(task, done.get(task)) for task in group]

    try:
        parallel = Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")
        yield from chain.from_iterable(parallel(delayed(do)(group) for group in _groups(tasks)))
    finally:
        for pool in pools.values():
            pool.close()


def _groups(tasks: Iterable[Task]) -> list[list[Task]]:
    """Group the tasks that are fitted together on a GPU: those that differ only in their seed. Others are groups of one."""
    groups: dict[Task, list[Task]] = {}
    for task in tasks:
        meets = task.on_gpu and isinstance(make_imputer(task.imputer, task.parameters), SinkhornImputer)
        groups.setdefault(replace(task, seed=0) if meets else task, []).append(task)
    return list(groups.values())


class _Pool:
    """Idle workers; a thread takes one, sends it a request, and puts it back."""

    def __init__(self, imputers: Sequence[str], data_home: str | Path | None, max_seconds: float | None, device: str = "cpu"):
        self._imputers, self._device = imputers, device
        self._data_home = None if data_home is None else str(data_home)
        self._max_seconds = max_seconds
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._all: list[_Worker] = []
        self._closed = False

    def ask(self, tasks: Sequence[Task]) -> list[Record]:
        """Return the records of the tasks; if one of a group fails, retry it alone, as another may have caused the failure."""
        records = self._ask_once(tasks)
        if len(tasks) == 1:
            return records
        return [record if record.is_good else self._ask_once([record.task])[0] for record in records]

    def _ask_once(self, tasks: Sequence[Task]) -> list[Record]:
        worker = self._take()
        request = {"tasks": [task.as_dict() for task in tasks], "data_home": self._data_home}
        reply, timed_out = worker.ask(request, None if self._max_seconds is None else self._max_seconds * len(tasks))
        if reply is not None:
            records = read_records(reply, tasks)
            if not timed_out and worker.serves_again(records):
                self._idle.put(worker)
            else:
                worker.stop()
            return records
        if self._closed:
            raise KeyboardInterrupt
        last_words = worker.stop()
        if timed_out:
            seconds = {"task": float(self._max_seconds or 0)}
            return [
                Record(task, Status.TIMEOUT, f"took longer than {self._max_seconds:g} s", seconds=seconds) for task in tasks
            ]
        return [Record(task, Status.FAILED, f"the worker died: {last_words}") for task in tasks]

    def _take(self) -> _Worker:
        with suppress(queue.Empty):
            while True:
                if (worker := self._idle.get_nowait()).is_alive():
                    return worker
        worker = _Worker(self._imputers, self._device)
        self._all.append(worker)
        worker.wait_until_ready()
        return worker

    def close(self) -> None:
        self._closed = True
        for worker in self._all:
            worker.stop()


class _Worker:
    """A process of `otimpute.benchmark.worker`."""

    def __init__(self, imputers: Sequence[str], device: str):
        self._device = device
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self._process = subprocess.Popen(
            [*_WORKER, device, *imputers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **_ONE_THREAD, **({} if device == "cuda" else _NO_GPU)},
            start_new_session=True,  # so that we handle Ctrl-C, and can kill the worker together with its children
        )

    def serves_again(self, records: Sequence[Record]) -> bool:
        """Whether the worker can be reused after these records; after a GPU failure, its process cannot."""
        return all(record.is_good for record in records) if self._device == "cuda" else FORKS

    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait for imports and compilation, so that they do not count in the time of a task."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != READY:
            raise ChildProcessError(f"a worker could not start, so no task can run: {self.stop() or 'it said nothing'}")

    def ask(self, request: Any, max_seconds: float | None) -> tuple[bytes | None, bool]:
        """Return its reply, or None if it died or timed out, and whether it timed out (and was killed)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timed_out = threading.Event()

        def stop_late() -> None:
            timed_out.set()
            self._kill()

        timer = threading.Timer(max_seconds, stop_late) if max_seconds else None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            if timer:
                timer.start()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):  # it died or was stopped between two tasks
            line = b""
        finally:
            if timer:
                timer.cancel()
        return line if line.endswith(b"\n") else None, timed_out.is_set()

    def stop(self) -> str:
        """Kill it and its children; return the end of its stderr."""
        self._kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # it did not read everything
                    stream.close()
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        last_words = self._errors.read().decode(errors="replace")[-1000:].strip()
        self._errors.close()
        return last_words

    def _kill(self) -> None:
        if self._process.returncode is not None:  # its process id may have been reused
            return
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:  # pragma: no cover - Windows
                self._process.kill()
