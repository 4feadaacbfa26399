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
    return _compile(function)


def compiled_into_callers(function: Callable[..., Any]) -> Any:
    """Compile `function` as part of each function that calls it, never on its own.

    Otherwise a process that compiles uses the function's own machine code, and one that finds its callers on disk uses the
    copy in there. The compiler may order the sums of the two differently, so that results would depend on which process it is.
    """
    return _compile(function, forceinline=True)


def _compile(function: Callable[..., Any], **more: Any) -> Any:
    options: dict[str, Any] = {"nogil": True, "fastmath": True, "error_model": "numpy", **more}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return numba.njit(**options)(function)
