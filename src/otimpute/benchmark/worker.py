"""A process that runs tasks: a JSON line in, a JSON line out.

On Linux it imports and compiles everything once and forks a child for each request, so that memory is measured per task and a
crash affects only one task. On other systems it exits after one request. With a GPU, which a forked child cannot use, it
handles all requests itself.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from .._gpu import gpu_trouble
from ..imputers import SinkhornImputer
from .record import Record, Status
from .run_task import impute_and_score, run_tasks
from .task import Task

FORKS = sys.platform == "linux"
READY = b"ready\n"


def main() -> None:
    """Serve on stdin and stdout; the arguments are a device and names of imputers."""
    # Libraries may print to stdout, so replies need a stream of their own.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.argv[2:], sys.stdin.buffer, channel, on_gpu=sys.argv[1] == "cuda")


def serve(imputers: Sequence[str], requests: BinaryIO, replies: BinaryIO, *, on_gpu: bool = False) -> None:
    """Answer requests for these imputers until there are no more."""
    if FORKS or on_gpu:
        _warm_up(imputers)
    if on_gpu:
        _warm_up_gpu()
    replies.write(READY)
    replies.flush()
    while line := requests.readline():
        request = json.loads(line)
        records = _in_child(request, requests, replies) if FORKS and not on_gpu else _do(request)
        replies.write(_as_text(records) + b"\n")
        replies.flush()
        if not (FORKS or on_gpu):
            return


def _do(request: dict[str, Any]) -> list[Record]:
    return run_tasks(_tasks(request), request["data_home"])


def _tasks(request: dict[str, Any]) -> list[Task]:
    return [Task.from_dict(each) for each in request["tasks"]]


def _as_text(records: Sequence[Record]) -> bytes:
    return json.dumps([record.to_json() for record in records]).encode()


def _in_child(request: dict[str, Any], requests: BinaryIO, replies: BinaryIO) -> list[Record]:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        replies.close()  # otherwise, if the worker is killed, the parent would still wait for this child
        with os.fdopen(outlet, "wb") as file:
            file.write(_as_text(_do(request)))
        os._exit(0)
    os.close(outlet)
    text = b""
    while True:
        ready, _, _ = select.select([inlet, requests.fileno()], [], [])
        if requests.fileno() in ready:  # readable before the reply means end of file: the parent is gone
            os.kill(child, signal.SIGKILL)
            sys.exit(1)
        if not (more := os.read(inlet, 65536)):
            break
        text += more
    os.close(inlet)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        reason = f"killed by signal {-status} (9: often out of memory)" if status < 0 else f"exit status {status}"
        return [Record(task, Status.FAILED, f"the process of the task died: {reason}") for task in _tasks(request)]
    return read_records(text, _tasks(request))


def read_records(text: bytes, tasks: Sequence[Task]) -> list[Record]:
    """Parse the records of the tasks from a reply."""
    return [Record.from_json(each, task.key) for each, task in zip(json.loads(text), tasks, strict=True)]


def _warm_up(imputers: Sequence[str]) -> None:
    """Run a small task with each imputer, so that imports and compilation do not count in the time of a task.

    A failure here ends the worker, as it would affect every task.
    """
    X = np.random.default_rng(0).normal(size=(40, 3))
    for name in imputers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            impute_and_score(Task("noise", "mcar", 0.3, name, name, seed=0, test_fraction=0.3), X)


def _warm_up_gpu() -> None:
    """Initialise the GPU and its compiler; kernels for tables of other widths are compiled on first use."""
    if gpu_trouble() is None:  # torch's networks have lower requirements than our kernels
        X = np.where(np.eye(4), np.nan, np.random.default_rng(0).normal(size=(4, 4)))
        SinkhornImputer(device="cuda", max_steps=2, random_state=0).fit(X)
