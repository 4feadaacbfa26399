"""Where the descent begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._threads import each_in_threads
from ...gaussian import GaussianModel
from .working_copy import chunks_of, chunks_of_cells


def fill_from_model(work: NDArray[np.float32], free: NDArray[np.bool_], model: GaussianModel, n_threads: int = 1) -> None:
    """Write a model's guess into the holes, a block of rows at a time."""

    def fill_chunk(chunk: slice) -> None:
        block, holes = work[chunk, : free.shape[1]], free[chunk]
        block[holes] = model.fill(block.astype(np.float64), holes)[holes]

    each_in_threads(fill_chunk, chunks_of(len(work)), n_threads)


def add_noise(
    work: NDArray[np.float32], free: NDArray[np.bool_], spread: float, rng: np.random.Generator, n_threads: int = 1
) -> None:
    """Move all holes a little, each by its own normal number."""
    chunks = chunks_of_cells(free)
    noise = rng.standard_normal(chunks[-1][1].stop, dtype=np.float32)
    noise *= np.float32(spread)

    def move_chunk(chunk: tuple[slice, slice]) -> None:
        rows, cells = chunk
        work[rows, : free.shape[1]][free[rows]] += noise[cells]

    each_in_threads(move_chunk, chunks, n_threads)
