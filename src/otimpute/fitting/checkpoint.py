"""The state of a long fit in a file, written now and then: a fit that was killed goes on from there to the same result."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._archive import read_archive, write_archive
from .._files import remove_parts
from .._stored import Place
from .._warn import warn_user
from ..exceptions import OtimputeWarning, StoredFileError
from .state_tree import StateTree

SECONDS_BETWEEN = 30.0
COSTS_BETWEEN = 50  # a save is followed by so many times its duration without one: at most 2 % of a fit go into saving
_KIND = "checkpoint"
_STATE = StateTree()
_WITHOUT_INFLUENCE = {"callbacks", "checkpoint", "device", "max_seconds", "n_jobs", "verbose"}
_MOST_LISTED = 100
_ROWS_AT_A_TIME = 65_536


class Checkpoint:
    """Where a fit keeps its state; without a path nothing is kept and nothing found.

    ``identity`` says which fit it is (see `identity_of`): a file of another one is refused, never overwritten.
    ``seed`` is the one given, or that of the fit to be continued.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any], seed: int):
        self.path, self.seed = path, seed
        self._identity = identity
        self._due = time.perf_counter() + SECONDS_BETWEEN
        self._found: Any = None
        if path is not None and path.exists():
            self._identity, self.seed, self._found = self._read(path)

    def load(self) -> dict[str, Any] | None:
        """The state to go on from, which is what was stored last; None where a fit begins."""
        found, self._found = self._found, None  # not kept: it is as large as the fit
        if found is None and self.path is not None and self.path.exists():
            *_, found = self._read(self.path)
        return found  # type: ignore[no-any-return]

    def offer(self, state: Callable[[], dict[str, Any]], *, now: bool = False) -> None:
        """Store the state a fit is in if the last time was long enough ago, or ``now``; the fit goes on if that fails."""
        clock = time.perf_counter()
        if self.path is None or not (now or clock >= self._due):
            return
        arrays: dict[str, NDArray[Any]] = {}
        document = {"identity": self._identity, "seed": self.seed, "state": _STATE.pack(state(), Place.root("state", arrays))}
        with _a_warning_at_most(f"could not write the checkpoint {self.path}, the fit goes on"):
            write_archive(self.path, _KIND, document, arrays)
        end = time.perf_counter()
        self._due = end + max(SECONDS_BETWEEN, COSTS_BETWEEN * (end - clock))

    def finish(self) -> None:
        """Remove the file: the fit is done."""
        if self.path is not None:
            with _a_warning_at_most(f"could not remove the checkpoint {self.path} of a fit that is done"):
                written = self.path.resolve()  # where a link leads to
                written.unlink(missing_ok=True)
                remove_parts(written)

    def _read(self, path: Path) -> tuple[dict[str, Any], int, dict[str, Any]]:
        advice = "delete it to begin anew, or pass another path" if _is_checkpoint(path) else "pass another path"
        try:
            document, arrays = read_archive(path, _KIND)
            identity, seed = dict(document["identity"]), int(document["seed"])
        except (StoredFileError, KeyError, TypeError, ValueError) as error:
            raise StoredFileError(f"checkpoint {path} cannot be used: {error}; {advice}") from error
        differences = [
            f"{name}={identity.get(name)!r}, got {value!r}"
            for name, value in self._identity.items()
            if identity.get(name) != value and not (name == "random_state" and value is None)
        ]
        if differences:
            raise StoredFileError(f"checkpoint {path} belongs to a fit with {'; with '.join(differences[:3])}; {advice}")
        try:
            return identity, seed, dict(_STATE.unpack(document["state"], Place.root("state", arrays)))
        except (StoredFileError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise StoredFileError(f"checkpoint {path} holds no state of a fit ({error}); {advice}") from error


NO_CHECKPOINT = Checkpoint(None, {}, seed=0)


def _is_checkpoint(path: Path) -> bool:
    """Whether a file was written as one, even if it is no longer whole; others are not ours to delete."""
    with path.open("rb") as file:
        beginning = file.read(80)
    return beginning.startswith(b"OTIMPUTE") and b'{"kind": "checkpoint"' in beginning


def checkpoint_path(checkpoint: Any) -> Path | None:
    """The parameter as a path at which a file can be made, or an error that says why not."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"checkpoint must be the path of a file or None, got {checkpoint!r}")
    path = Path(checkpoint)
    if path.is_dir():
        raise ValueError(f"checkpoint must be the path of a file, got the folder {str(checkpoint)!r}; add a file name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise OSError(f"checkpoint {path} cannot be written: {error}; pass a path in a folder you may write to") from error


def identity_of(
    name: str, parameters: Mapping[str, Any], values: NDArray[np.floating], missing: NDArray[np.bool_], layout: Any
) -> dict[str, Any]:
    """What tells one fit from another: imputer, version, parameters that matter, and the table, ``layout`` its columns."""
    content = hashlib.sha256(f"{values.dtype} {layout}".encode())
    for begin in range(0, len(values), _ROWS_AT_A_TIME):
        chunk = slice(begin, begin + _ROWS_AT_A_TIME)
        content.update(np.where(missing[chunk], 0, values[chunk]).tobytes())  # holes may hold anything
        content.update(missing[chunk].tobytes())
    return {
        "imputer": name,
        "otimpute": __version__,
        **{key: _described(value) for key, value in parameters.items() if key not in _WITHOUT_INFLUENCE},
        "table": f"{values.shape[0]} rows, {values.shape[1]} columns, checksum {content.hexdigest()[:16]}",
    }


def _described(value: Any) -> Any:
    """A parameter in JSON: plain values as they are, tables by a checksum, modules by name and shapes, functions by name.

    >>> _described({"age": {"bounds": (0, np.inf)}}), _described(len)
    ({'age': {'bounds': [0, 'inf']}}, 'len')
    >>> _described(np.random.default_rng(0)) is None
    True
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(key): _described(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(_described, value), key=str)
    if isinstance(value, (list, tuple)) and len(value) <= _MOST_LISTED:
        return [_described(item) for item in value]
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        array = np.asarray(value)
        content = array.tobytes() if array.dtype.kind in "biuf" else str(array.tolist()).encode()
        return f"{array.dtype} of shape {array.shape}, checksum {hashlib.sha256(content).hexdigest()[:16]}"
    if hasattr(value, "state_dict") and not isinstance(value, type):
        tensors = {key: tensor for key, tensor in value.state_dict().items() if hasattr(tensor, "shape")}
        shapes = {key: f"{tensor.dtype} {tuple(tensor.shape)}" for key, tensor in tensors.items()}
        return {type(value).__qualname__: shapes}
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return repr(value)


@contextmanager
def _a_warning_at_most(what: str) -> Iterator[None]:
    """What goes wrong with a file is said, but ends no fit."""
    try:
        yield
    except OSError as error:
        warn_user(f"{what}: {error}", OtimputeWarning)
