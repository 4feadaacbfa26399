"""Nested dicts and lists of numbers, arrays and torch tensors, as a JSON document and named arrays; and back, the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import require
from ..exceptions import StoredFileError


def pack(tree: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON of a state; its arrays and tensors are put into ``arrays`` and referred to by name.

    >>> arrays = {}
    >>> pack({"step": 3, 0: [float("nan"), np.arange(2)]}, arrays)
    {'dict': [['step', 3], [0, [{'float': 'nan'}, {'array': '0'}]]]}
    >>> unpack(_, arrays)
    {'step': 3, 0: [nan, array([0, 1])]}
    """
    if tree is None or isinstance(tree, (bool, int, str)):
        return tree
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else {"float": str(tree)}
    if isinstance(tree, list):
        return [pack(item, arrays) for item in tree]
    if isinstance(tree, tuple):
        return {"tuple": [pack(item, arrays) for item in tree]}
    if isinstance(tree, Mapping):  # as pairs, for keys may be numbers
        return {"dict": [[key, pack(value, arrays)] for key, value in tree.items()]}
    name = str(len(arrays))
    if isinstance(tree, np.ndarray):
        arrays[name] = tree
        return {"array": name}
    torch = require("torch", "storing torch modules", "torch")
    if isinstance(tree, torch.Tensor):  # as bytes: torch has types that NumPy lacks
        arrays[name] = tree.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        return {"tensor": [name, str(tree.dtype).removeprefix("torch."), list(tree.shape)]}
    raise TypeError(f"a state holds numbers, text, lists, dicts, arrays and tensors, got {tree!r}")


def unpack(document: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The state that `pack` was given."""
    match document:
        case list():
            return [unpack(item, arrays) for item in document]
        case {"float": str(text)}:
            return float(text)
        case {"tuple": list(items)}:
            return tuple(unpack(item, arrays) for item in items)
        case {"dict": list(pairs)}:
            return {key: unpack(value, arrays) for key, value in pairs}
        case {"array": str(name)}:
            return arrays[name]
        case {"tensor": [str(name), str(kind), list(shape)]}:
            torch = require("torch", "reading torch modules", "torch")
            dtype = getattr(torch, kind, None)
            if not isinstance(dtype, torch.dtype):
                raise StoredFileError(f"{kind!r} is no type of a torch tensor")
            content = torch.from_numpy(arrays[name])
            return (content.view(dtype) if len(content) else torch.empty(0, dtype=dtype)).reshape(shape)
        case None | bool() | int() | float() | str():
            return document
    raise StoredFileError(f"a state cannot hold {document!r}")
