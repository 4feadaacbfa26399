"""Whether there is a GPU that our kernels can use, and what to say when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ._checks import check_choice
from ._optional import require
from .exceptions import GpuError

_OLDEST = 8, 0  # compute capability: older ones have no products in tf32


def gpu_trouble() -> str | None:
    """Why there is no GPU to use, or None if there is one, or Triton's interpreter in its place."""
    for package in ("torch", "triton"):
        if find_spec(package) is None:
            return f'the package {package!r} is not installed (pip install "otimpute[gpu]")'
    try:
        torch = import_module("torch")
        if interpreted():
            return None
        if not torch.cuda.is_available():
            return f"torch {torch.__version__} finds none here, or was built without CUDA"
        if (capability := torch.cuda.get_device_capability()) < _OLDEST:
            return f"{torch.cuda.get_device_name()} has compute capability {_dotted(capability)}, less than {_dotted(_OLDEST)}"
        _try_kernel()
    except Exception as error:  # no compiler, no room for its files, a driver that answers others only, a broken package
        return f"it cannot be used ({type(error).__name__}: {_first_line(error)})"
    return None


@cache
def _try_kernel() -> None:
    """Compile and run a kernel, which takes more than a GPU: a compiler, a place for files."""
    from ._gpu_probe import answer

    torch = import_module("torch")
    place = torch.zeros(1, device="cuda")
    answer[(1,)](place)
    if float(place) != 1:
        raise RuntimeError("a kernel ran and did nothing")


def check_device(device: str) -> None:
    """The parameter ``device`` of an imputer: a choice, and "cuda" only where there is a GPU."""
    if check_choice("device", device, ["auto", "cpu", "cuda"]) == "cuda":
        tensors_on('device="cuda"')


def tensors_on(asked_by: str) -> str:
    """The torch device of our kernels: the GPU, or the CPU where Triton's interpreter stands in for one; or an error."""
    if (trouble := gpu_trouble()) is not None:
        raise ValueError(f'{asked_by} needs an NVIDIA GPU, but {trouble}; pass "cpu"')
    return "cpu" if interpreted() else "cuda"


def interpreted() -> bool:
    """Whether kernels are run by Triton's interpreter."""
    return bool(require("triton", "a GPU", "gpu").knobs.runtime.interpret)


@contextmanager
def gpu_failures(what: str) -> Iterator[None]:
    """Say what to do when the GPU runs out of memory, or dies, during ``what``."""
    torch, triton = require("torch", what, "gpu"), require("triton", what, "gpu")
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise GpuError(
            f'{what} does not fit into the memory of the GPU ({_first_line(error)}); pass "cpu", or less at a time'
        ) from error
    except (RuntimeError, triton.runtime.errors.TritonError) as error:
        if isinstance(error, RuntimeError) and "CUDA" not in str(error):
            raise
        raise GpuError(
            f'the GPU failed during {what} ({_first_line(error)}); your table is as it was; start Python again, or pass "cpu"'
        ) from error


def tile_size(least: int) -> int:
    """The power of two that holds so many and is not too few for a product of tiles.

    >>> tile_size(5), tile_size(17)
    (16, 32)
    """
    return max(16, 1 << (least - 1).bit_length())


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]
