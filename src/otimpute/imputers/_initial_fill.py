"""Where the descent begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..gaussian import GaussianModel
from ._working_copy import CHUNK


def fill_from_model(work: NDArray[np.float32], free: NDArray[np.bool_], model: GaussianModel) -> None:
    """Write a model's guess into the holes, a block of rows at a time."""
    for begin in range(0, len(work), CHUNK):
        chunk = slice(begin, begin + CHUNK)
        block, holes = work[chunk, : free.shape[1]], free[chunk]
        block[holes] = model.fill(block.astype(np.float64), holes)[holes]
