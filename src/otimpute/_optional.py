"""Import packages that are not core dependencies, or say how to get them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from .exceptions import NotInstalledError


def require(module: str, purpose: str, extra: str = "") -> ModuleType:
    """Import ``module``, or explain which extra of otimpute brings it; without an extra it is installed by itself.

    >>> require("no_such_package", "drawing", "report")
    Traceback (most recent call last):
    otimpute.exceptions.NotInstalledError: drawing needs the package 'no_such_package': pip install "otimpute[report]"
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        package = module.partition(".")[0]
        wanted = f'"otimpute[{extra}]"' if extra else package
        raise NotInstalledError(f"{purpose} needs the package {package!r}: pip install {wanted}", name=package) from None
