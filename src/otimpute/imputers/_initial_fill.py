"""Where the descent begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..gaussian import GaussianModel
from ._working_copy import CHUNK


def fill_start(
    work: NDArray[np.float32],
    free: NDArray[np.bool_],
    model: GaussianModel | None,
    own: NDArray[np.float64] | None,
) -> None:
    """Write the start into the holes: column means (already there), a model's guess, or the user's own table."""
    for begin in range(0, len(work), CHUNK):
        chunk = slice(begin, begin + CHUNK)
        holes = free[chunk]
        block = work[chunk, : free.shape[1]]
        if own is not None:
            block[holes] = own[chunk][holes]
        elif model is not None:
            block[holes] = model.fill(block.astype(np.float64), holes)[holes]
