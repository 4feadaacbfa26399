"""The state of a fit, nested values with arrays and torch tensors, as a JSON document and named arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .._optional import require
from .._stored import Place, Plain


class StateTree(Plain):
    """Plain values and torch tensors.

    >>> import numpy as np
    >>> place = Place.root("state", {})
    >>> tree = StateTree().pack({"step": 3, 0: [float("nan"), np.arange(2)]}, place)
    >>> StateTree().unpack(tree, place)
    {'step': 3, 0: [nan, array([0, 1])]}
    """

    def pack(self, value: Any, place: Place) -> Any:  # noqa: D102
        torch = sys.modules.get("torch")  # where it was never imported there are no tensors
        if torch is not None and isinstance(value, torch.Tensor):  # as bytes: torch has types that NumPy lacks
            content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
            return {"tensor": [place.keep(content), str(value.dtype).removeprefix("torch."), list(value.shape)]}
        return super().pack(dict(value) if isinstance(value, Mapping) else value, place)

    def unpack(self, tree: Any, place: Place) -> Any:  # noqa: D102
        match tree:
            case {"tensor": [str(name), str(kind), list(shape)]}:
                torch = require("torch", "reading torch modules", "torch")
                dtype = getattr(torch, kind, None)
                if not isinstance(dtype, torch.dtype):
                    place.fail(f"has {kind!r}, which is no type of a torch tensor")
                content = torch.from_numpy(place.take(name))
                return (content.view(dtype) if len(content) else torch.empty(0, dtype=dtype)).reshape(shape)
        return super().unpack(tree, place)
