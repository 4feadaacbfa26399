"""Where a fit is computed, and what happens when a GPU fails: the only place that decides either."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from ._gpu import gpu_failures, gpu_trouble, interpreted, tensors_on
from ._warn import warn_user
from .exceptions import GpuError, OtimputeWarning

_WORTH_A_GPU = 20  # seconds of the CPU; a GPU's code takes as long to compile when it is first used
PAIRS_A_SECOND = 1e8  # of rows, that the CPU compares

Result = TypeVar("Result")

_loading = threading.Lock()


class Device:
    """The device of a fit that takes the CPU about so long; "auto" leaves short work and what a GPU fails at to the CPU."""

    def __init__(self, asked: str, cpu_seconds: float):
        self._asked = asked
        if asked == "auto":
            self.is_gpu = cpu_seconds >= _WORTH_A_GPU and gpu_trouble() is None and not interpreted()
        else:
            self.is_gpu = asked == "cuda"

    @property
    def name(self) -> str:
        """As imputers say it in ``device_``."""
        return "cuda" if self.is_gpu else "cpu"

    def run(self, on_gpu: Callable[[], Result], on_cpu: Callable[[], Result]) -> Result:
        """Compute a fit, or a part of it: on the GPU until that fails, from then on on the CPU."""
        if self.is_gpu:
            try:
                return on_gpu()
            except GpuError as error:
                if self._asked == "cuda":
                    raise
                warn_user(f'{error}. With device="auto" the CPU takes over', OtimputeWarning)
                self.is_gpu = False
        return on_cpu()

    def run_torch(self, what: str, fit: Callable[[str | None], Result]) -> Result:
        """The same for ``fit`` that has torch compute: it gets the device of its tensors, or None for the CPU's own code."""

        def on_gpu() -> Result:
            with gpu_failures(what):
                place = tensors_on('device="cuda"')
                _load_linear_algebra(place)
                return fit(place)

        return self.run(on_gpu, lambda: fit(None))


def _load_linear_algebra(place: str) -> None:
    """Have torch load its libraries, which fails if several threads are the first to need them."""
    torch = import_module("torch")
    with _loading:
        torch.linalg.cholesky(torch.ones(1, 1, dtype=torch.float64, device=place))
