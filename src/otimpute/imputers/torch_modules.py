"""What we ask of torch modules that people bring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._torch import torch_for


def check_parameters(module: Any, what: str) -> list[Any]:
    """The trainable parameters of a module, or an error that says what is wrong with it."""
    torch = torch_for("training torch modules")
    if not isinstance(module, torch.nn.Module):
        instance = " (a class; pass an instance of it)" if isinstance(module, type) else ""
        raise TypeError(f"{what} must be a torch.nn.Module, got {module!r}{instance}")
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        raise ValueError(f"{what} has no trainable parameters, so there is nothing to learn; give it at least one")
    for parameter in module.parameters():
        if parameter.device.type != "cpu" or parameter.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"{what} must have parameters of type float32 or float64 on the CPU, got {parameter.dtype} on "
                f"{parameter.device}; call .float() or .to('cpu')"
            )
    return parameters


class Modes:
    """Which parts of a module are in training mode: as its maker left them while it is trained, none otherwise.

    Predictions never switch modes, so that several threads may ask a fitted module at once.
    """

    def __init__(self, module: Any):
        self._modes = [part.training for part in module.modules()]
        module.eval()

    @contextmanager
    def training(self, module: Any) -> Iterator[None]:
        """Training mode for a while."""
        for part, mode in zip(module.modules(), self._modes, strict=True):
            part.training = mode
        try:
            yield
        finally:
            module.eval()
