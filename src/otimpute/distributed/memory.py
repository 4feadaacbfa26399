"""Memory that a process gave free, kept for its next arrays while there is work to do."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SETTING = "MALLOC_TRIM_THRESHOLD_"  # of the GNU C library
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # its names for what `mallopt` sets
_DEFAULT, _LARGEST = 1 << 17, 1 << 25  # bytes: what the library starts with, and as far as it would go by itself
_lock = threading.Lock()
_n_inside = 0


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep memory for the next arrays in a process that is told to give it back to the system at once.

    Dask starts its workers that way. Every array beyond 128 kB is then asked of the system anew, which took a quarter of the
    time of an `AutoImputer`. Once the last thread is out, what is free goes back, and the setting is as it was. Elsewhere
    nothing is changed: the C library learns by itself which sizes come again.
    """
    global _n_inside
    if not (_SETTING in os.environ and sys.platform == "linux" and hasattr(_library(), "mallopt")):
        yield
        return
    with _lock:
        _n_inside += 1
        if _n_inside == 1:
            _set(_LARGEST, 2 * _LARGEST)
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _set(_DEFAULT, _given())
                _library().malloc_trim(0)


def _given() -> int:
    try:
        return int(os.environ[_SETTING])
    except ValueError:  # the library takes no notice of it either
        return _DEFAULT


def _set(mmap_threshold: int, trim_threshold: int) -> None:
    _library().mallopt(_MMAP_THRESHOLD, mmap_threshold)
    _library().mallopt(_TRIM_THRESHOLD, trim_threshold)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
