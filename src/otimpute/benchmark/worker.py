"""A process that does tasks: a JSON line in, a JSON line out.

On Linux it loads and compiles everything once and forks a child for each task: the child's memory is the task's alone, and
whatever kills it kills nothing else. Elsewhere it serves one task and ends, which costs a start for each.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from .record import Record
from .run_task import impute_and_score, run_task
from .task import Task

FORKS = sys.platform == "linux"
READY = b"ready\n"


def main() -> None:
    """Serve on the standard streams; the arguments are names of imputers."""
    # Libraries may print: the channel of replies is kept from them.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.argv[1:], sys.stdin.buffer, channel)


def serve(imputers: Sequence[str], requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests, which will need these imputers, until there are no more."""
    if FORKS:
        _warm_up(imputers)
    replies.write(READY)
    replies.flush()
    while line := requests.readline():
        request = json.loads(line)
        record = _in_child(request, requests, replies) if FORKS else _do(request)
        replies.write(json.dumps(record.to_json()).encode() + b"\n")
        replies.flush()
        if not FORKS:
            return


def _do(request: dict[str, object]) -> Record:
    return run_task(Task.from_dict(request["task"]), request["data_home"])  # type: ignore[arg-type]


def _in_child(request: dict[str, object], requests: BinaryIO, replies: BinaryIO) -> Record:
    task = Task.from_dict(request["task"])  # type: ignore[arg-type]
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        replies.close()  # or whoever asked would wait for this child when the worker itself is killed
        with os.fdopen(outlet, "wb") as file:
            file.write(_do(request).to_json().encode())
        os._exit(0)
    os.close(outlet)
    text = b""
    while True:
        ready, _, _ = select.select([inlet, requests.fileno()], [], [])
        if requests.fileno() in ready:  # nobody asks before the answer: whoever asked is gone
            os.kill(child, signal.SIGKILL)
            sys.exit(1)
        if not (more := os.read(inlet, 65536)):
            break
        text += more
    os.close(inlet)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        reason = f"killed by signal {-status} (9: often out of memory)" if status < 0 else f"exit status {status}"
        return Record(task, "failed", f"the process of the task died: {reason}")
    return Record.from_json(text.decode(), task.key)


def _warm_up(imputers: Sequence[str]) -> None:
    """Load libraries and machine code now, by a small task with each imputer, so that no task pays for it.

    A failure here ends the worker: what cannot be loaded would spoil every task's figures, or fail them all.
    """
    X = np.random.default_rng(0).normal(size=(40, 3))
    for name in imputers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            impute_and_score(Task("noise", "mcar", 0.3, name, name, seed=0, test_fraction=0.3), X)
