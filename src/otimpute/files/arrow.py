"""The optional package pyarrow, imported when a file is read or written and not before."""

from __future__ import annotations

from typing import Any, TypeAlias

from .._optional import require

# pyarrow brings no types that mypy can read; these names say what is meant.
ArrowArray: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowTable: TypeAlias = Any
ArrowType: TypeAlias = Any


def arrow(module: str = "pyarrow") -> Any:
    """The package pyarrow, or one of its modules.

    >>> arrow().array([1, None]).null_count
    1
    """
    return require(module, "reading and writing tables", "cli")


def compute() -> Any:
    """Functions on arrays of pyarrow."""
    return arrow("pyarrow.compute")
