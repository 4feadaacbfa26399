"""Where the descent begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._threads import each_in_threads
from ..gaussian import GaussianModel
from ._working_copy import chunks_of


def fill_from_model(work: NDArray[np.float32], free: NDArray[np.bool_], model: GaussianModel, n_threads: int = 1) -> None:
    """Write a model's guess into the holes, a block of rows at a time."""

    def fill_chunk(chunk: slice) -> None:
        block, holes = work[chunk, : free.shape[1]], free[chunk]
        block[holes] = model.fill(block.astype(np.float64), holes)[holes]

    each_in_threads(fill_chunk, chunks_of(len(work)), n_threads)
