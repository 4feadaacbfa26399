"""Compile numerical loops with numba, keeping the machine code on disk between processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Any:
    """Compile `function` for speed: no GIL, no bounds checks, reassociated floating point.

    ``fastmath`` lets the compiler vectorise sums and maxima; code that must *see* a NaN therefore never
    lives in a compiled function (the descent checks its losses in plain NumPy).

    numba stores machine code beside the source, or in the user's cache folder when the install is read-only.
    Where neither can be written (a container without a home folder) we compile in memory rather than fail.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return numba.njit(**options)(function)
