"""Where a fit is computed, and what happens when a GPU fails: the only place that decides either."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..._gpu import gpu_trouble, interpreted
from ..._warn import warn_user
from ...exceptions import GpuError, OtimputeWarning

_WORTH_A_GPU = 2e9  # pairs of rows compared: about 20 s of a CPU; a GPU's code takes as long to compile when it is first used

Result = TypeVar("Result")


class Device:
    """The device of a fit that compares so many pairs of rows; "auto" leaves short work and what a GPU fails at to the CPU."""

    def __init__(self, asked: str, n_compared: float):
        self._asked = asked
        if asked == "auto":
            self.is_gpu = n_compared >= _WORTH_A_GPU and gpu_trouble() is None and not interpreted()
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
