"""Which kernel, by name; imported only when asked for, so that naming one does not load the others."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from ..._checks import check_choice
from .contract import Kernel

_MODULES = {"auto": ".cpu", "cpu": ".cpu", "cuda": ".cuda", "reference": ".reference"}


def select_kernel(name: str) -> Kernel:
    """``"cpu"`` (compiled), ``"cuda"`` (a GPU), ``"reference"`` (the slow definition), or ``"auto"``.

    ``"auto"`` is the CPU: a GPU is never taken unasked.

    >>> select_kernel("reference").name
    'reference'
    """
    module = import_module(_MODULES[check_choice("kernel", name, _MODULES)], __package__)
    return cast(Kernel, module)
