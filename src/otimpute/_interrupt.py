"""One Ctrl-C ends a fit, which keeps what it reached; a second right after it ends the loop the fit is in."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_SECOND_INTERRUPT = 2.0  # seconds within which another Ctrl-C is meant for the whole program
_last = [-float("inf")]


@dataclass
class Interrupt:
    """Whether Ctrl-C ended a block, or asks it to end."""

    happened: bool = False


@contextmanager
def one_interrupt(*, waits: bool = False) -> Iterator[Interrupt]:
    """Let one Ctrl-C end the block quietly; the next one soon after goes through.

    A block that keeps a checkpoint has it wait: the first Ctrl-C is only noted, and the block ends itself where its state is
    whole. That takes a signal handler, which only the main thread can set, and which must not replace somebody else's.
    """
    interrupt = Interrupt()

    def note(signum: int, frame: Any) -> None:
        if interrupt.happened or _is_second():
            signal.default_int_handler(signum, frame)
        interrupt.happened = True

    waits = waits and threading.current_thread() is threading.main_thread()
    waits = waits and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if waits:
        signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    except KeyboardInterrupt:
        if _is_second():
            raise
        interrupt.happened = True
    finally:
        if waits:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_second() -> bool:
    """Whether a Ctrl-C follows another at once; if not, it is the first."""
    now = time.perf_counter()
    if now - _last[0] < _SECOND_INTERRUPT:
        return True
    _last[0] = now
    return False
