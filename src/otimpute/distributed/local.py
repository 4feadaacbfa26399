"""The engine that needs nothing installed: processes of this machine, a file at a time each."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from .files import FileOutcome, FileTask, impute_file

_ATTEMPTS = 2  # a file whose worker died is tried once more
_SECONDS_TO_END = 20


def run_files(tasks: Sequence[FileTask], model: bytes, n_workers: int | None = None) -> Iterator[FileOutcome]:
    """Complete files in so many processes; with one it is this one. Outcomes come as they are ready.

    Whoever stops iterating stops the workers; files are then whole or not there.
    """
    n_workers = min(n_workers or n_cores(), len(tasks))
    if n_workers <= 1:
        yield from (impute_file(model, task) for task in tasks)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.otimpute"
        path.write_bytes(model)
        crew = _Crew(tasks, path)
        try:
            yield from crew.outcomes(n_workers)
        finally:
            crew.end()


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Crew:
    """Threads that feed a process each."""

    def __init__(self, tasks: Sequence[FileTask], model: Path) -> None:
        self._waiting = deque(tasks)
        self._n_tasks = len(tasks)
        self._model = model
        self._ready: queue.SimpleQueue[FileOutcome | BaseException] = queue.SimpleQueue()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._ended = self._complete = False

    def outcomes(self, n_workers: int) -> Iterator[FileOutcome]:
        for _ in range(n_workers):
            threading.Thread(target=self._feed, daemon=True).start()
        for _ in range(self._n_tasks):
            outcome = self._ready.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
        self._complete = True

    def end(self) -> None:
        """See to it that the workers end; those that have no more to do end by themselves."""
        with self._lock:
            self._ended = True
            processes = list(self._processes)
        for process in processes if not self._complete else []:
            process.terminate()
        for process in processes:
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _feed(self) -> None:
        """Hand tasks to a process, and start another one where it died."""
        process = None
        try:
            while not self._ended:
                try:
                    task = self._waiting.popleft()
                except IndexError:
                    break
                for attempt in range(_ATTEMPTS):
                    if process is None:
                        process = self._start()
                    reply = _ask(process, task)
                    if reply:
                        self._ready.put(FileOutcome(**json.loads(reply)))
                        break
                    if self._ended:
                        return
                    code = process.wait()
                    with self._lock:
                        self._processes.discard(process)
                    process = None
                    if attempt + 1 == _ATTEMPTS:
                        told = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
                        why = f"{task.source}: the worker process that completed it died ({told}), {_ATTEMPTS} times; "
                        advice = "is there enough memory? fewer workers need less"
                        self._ready.put(FileOutcome(task.source, task.target, error=why + advice))
        except BaseException as error:
            self._ready.put(error)
        finally:
            if process is not None:
                _close(process)

    def _start(self) -> subprocess.Popen[bytes]:
        # One thread each: there is a process per core.
        alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with self._lock:
            if self._ended:
                raise InterruptedError("the job was stopped")
            process = subprocess.Popen(
                [sys.executable, "-m", "otimpute.distributed.worker", str(self._model)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **alone},
            )  # fmt: skip
            self._processes.add(process)
        return process


def _ask(process: subprocess.Popen[bytes], task: FileTask) -> bytes:
    """Send a task and wait for the answer; nothing if the process has died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps([task.source, task.target]).encode() + b"\n")
        process.stdin.flush()
    except OSError:
        return b""
    reply = process.stdout.readline()
    return reply if reply.endswith(b"\n") else b""


def _close(process: subprocess.Popen[bytes]) -> None:
    """No more tasks: the process ends by itself."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
