"""Torch, where it is installed: asked for by name, on one thread, with a seed of its own; weights as arrays."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from ._optional import require
from .exceptions import StoredFileError


def torch_for(purpose: str) -> Any:
    """The package torch, or an error that says how to get it."""
    return require("torch", purpose, "torch")


_session = threading.RLock()  # torch's random state and thread count belong to the process: one fit at a time


@contextmanager
def torch_session(seed: int, wanted: bool = True) -> Iterator[None]:
    """Torch with this seed and on one thread; its own random state and number of threads come back afterwards."""
    if not wanted:
        yield
        return
    torch = torch_for("training torch modules")
    with _session, torch.random.fork_rng(devices=[]):
        n_threads = torch.get_num_threads()
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)


def weights_of(module: Any, what: str) -> dict[str, NDArray[Any]]:
    """A module's state as arrays by name."""
    weights = {}
    for name, value in module.state_dict().items():
        try:
            weights[name] = value.numpy()
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{name!r} in the state of {what} cannot be an array in a file: {error}") from error
    return weights


def take_weights(module: Any, weights: Mapping[str, NDArray[Any]], what: str) -> None:
    """Put stored weights into a module of the same make, which may have been made on the device ``meta``, without memory."""
    torch = torch_for("loading torch modules")
    own, tensors = module.state_dict(), {name: torch.tensor(array) for name, array in weights.items()}
    if own.keys() != tensors.keys():
        raise StoredFileError(
            f"{what} has the weights {', '.join(own) or 'none'}, but the file {', '.join(tensors) or 'none'}; "
            "pass one made as for the fit"
        )
    for name, tensor in tensors.items():
        expected, found = ((tuple(each.shape), each.dtype) for each in (own[name], tensor))
        if expected != found:
            raise StoredFileError(
                f"{name!r} of {what} has shape {expected[0]} and type {expected[1]}, but in the file {found[0]} and "
                f"{found[1]}; pass one made as for the fit"
            )
    module.load_state_dict(tensors, assign=any(each.is_meta for each in own.values()))
