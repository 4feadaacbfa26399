"""Compile numerical loops with numba, keeping the machine code on disk between processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any], *, inlined: bool = True) -> Any:
    """Compile `function` for speed: no GIL, no bounds checks, reassociated floating point.

    ``fastmath`` lets the compiler vectorise sums and maxima; code that must *see* a NaN therefore never
    lives in a compiled function (the descent checks its losses in plain NumPy).

    Reassociated sums depend on the code around them, so it must be sure which code runs. A function that is called but not
    inlined exists twice, alone and beside its caller, and the linker takes the one it met first: another one in a process
    that compiles than in the next, which loads. Functions are therefore ``inlined`` into their callers.

    numba stores machine code beside the source, or in the user's cache folder when the install is read-only.
    Where neither can be written (a container without a home folder) we compile in memory rather than fail.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": True, "error_model": "numpy", "forceinline": inlined}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return numba.njit(**options)(function)


def compiled_once(function: Callable[..., Any]) -> Any:
    """Compile a function that loops call on one thread, and Python on several: the same code must run in both.

    It is not inlined, and `load` brings it in before any loop brings its copy.
    """
    return compiled(function, inlined=False)


def load(function: Any, *arguments: Any) -> None:
    """Have the machine code for these arguments ready."""
    function.compile(tuple(numba.typeof(argument) for argument in arguments))
