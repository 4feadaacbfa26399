"""A process that completes files: a task as a line of JSON in, its outcome as a line of JSON out."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType

from .._optional import require
from .files import FileTask, impute_file


def main() -> None:
    """Serve on stdin and stdout until there are no more tasks; the argument is a model file."""
    # Libraries may print to stdout, so replies need a stream of their own.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this; a file that was begun is cleaned up
    signal.signal(signal.SIGTERM, _end)
    warnings.simplefilter("ignore")  # once per file is too often; fitting has told them
    require("pyarrow", "Parquet files", "cli").set_cpu_count(1)
    model = Path(sys.argv[1]).read_bytes()
    for line in sys.stdin.buffer:
        outcome = impute_file(model, FileTask(*json.loads(line)))
        replies.write(json.dumps(outcome.as_dict()).encode() + b"\n")
        replies.flush()


def _end(signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Leave in the ordinary way, so that nothing half written stays."""
    raise SystemExit(1)


if __name__ == "__main__":
    main()
