"""One Ctrl-C ends a fit, which keeps what it reached; a second right after it ends the loop the fit is in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SECOND_INTERRUPT = 2.0  # seconds within which another Ctrl-C is meant for the whole program
_last = [-float("inf")]


@dataclass
class Interrupt:
    """Whether Ctrl-C ended a block."""

    happened: bool = False


@contextmanager
def one_interrupt() -> Iterator[Interrupt]:
    """Let one Ctrl-C end the block quietly; the next one soon after goes through."""
    interrupt = Interrupt()
    try:
        yield interrupt
    except KeyboardInterrupt:
        if time.perf_counter() - _last[0] < _SECOND_INTERRUPT:
            raise
        _last[0] = time.perf_counter()
        interrupt.happened = True
