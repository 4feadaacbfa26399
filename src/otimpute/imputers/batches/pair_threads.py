"""The pairs of a step, shared out among threads: each pair has its own place for its result, so the result is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .divergence import (
    BatchPlan,
    Geometry,
    Gradients,
    TableCells,
    Workspace,
    column_gradient,
    draw_pair,
    make_gradients,
    make_workspace,
    pair_gradient,
)

if TYPE_CHECKING:
    from ..._device import Device
    from ..round_robin.trained_columns import TrainedColumn

_EVALUATION = 10  # fixed pairs on which a loss is reported
_EVALUATION_STEP = 2**31 - 1  # a number that no step reaches
_EVALUATION_ITERATIONS = (200, 50)


class PairThreads:
    """Do something for every pair, on one thread or several."""

    def __init__(self, n_pairs: int, n_jobs: int):
        self.n_pairs, self.n_threads = n_pairs, min(n_jobs, n_pairs)
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def each_pair(self, task: Callable[[int, int], Any]) -> None:
        """Call ``task(thread, pair)`` for every pair."""

        def share(thread: int) -> None:
            for pair in range(thread, self.n_pairs, self.n_threads):
                task(thread, pair)

        others = [self._pool.submit(share, thread) for thread in range(1, self.n_threads)] if self._pool else []
        share(0)
        for other in others:
            other.result()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


class Batches:
    """The table under training, its geometry, and room for the pairs of batches drawn from it."""

    def __init__(self, cells: TableCells, geometry: Geometry, threads: PairThreads, device: Device):
        self.cells, self.geometry, self.threads, self.device = cells, geometry, threads, device
        self._size: tuple[int, int] = (0, 0)
        self._buffers: tuple[list[Workspace], Gradients] = ([], make_gradients(0, 0, 0, np.float32))

    def workspaces_for(self, batch_size: int, n_columns: int) -> tuple[list[Workspace], Gradients]:
        """Workspaces, one per thread, and gradients in so many columns, for batches of this size; the last ones are kept."""
        if self._size != (batch_size, n_columns):
            width, kind = self.cells.values.shape[1], self.cells.values.dtype
            workspaces = [make_workspace(batch_size, width, kind) for _ in range(self.threads.n_threads)]
            self._buffers = workspaces, make_gradients(self.threads.n_pairs, batch_size, n_columns, kind)
            self._size = batch_size, n_columns
        return self._buffers

    @property
    def in_compiled_code(self) -> bool:
        """Whether pairs are compared by compiled code on one thread, which may then as well do all else."""
        return self.threads.n_threads == 1

    def pair_gradients(self, plan: BatchPlan, batch_size: int) -> None:
        """Gradients, in all columns, of the pairs drawn last."""
        workspaces, found = self.workspaces_for(batch_size, self.cells.values.shape[1])
        cells, geometry = self.cells, self.geometry
        self.threads.each_pair(lambda thread, pair: pair_gradient(cells, geometry, plan, workspaces[thread], pair, found))

    def column_gradients(self, trained_column: TrainedColumn) -> None:
        """Gradients, in the trained_column's column, of the pairs drawn last."""
        workspaces, found = self.workspaces_for(trained_column.batch_size, 1)
        cells, geometry, plan, target = self.cells, self.geometry, trained_column.plan, trained_column.target
        self.threads.each_pair(
            lambda thread, pair: column_gradient(
                cells, geometry, plan, workspaces[thread], target.column, target.both_sides, pair, found
            )
        )

    def evaluate(self, draws: Sequence[tuple[BatchPlan, int]]) -> float:
        """The mean divergence of pairs that are the same each time, drawn by these plans and batch sizes in turn."""
        width, kind = self.cells.values.shape[1], self.cells.values.dtype
        cold = self.cells._replace(potentials=np.zeros_like(self.cells.potentials))
        losses = []
        for pair, (plan, batch_size) in enumerate(islice(cycle(draws), _EVALUATION)):
            plan = plan._replace(n_cross_iterations=_EVALUATION_ITERATIONS[0], n_self_iterations=_EVALUATION_ITERATIONS[1])
            work, found = make_workspace(batch_size, width, kind), make_gradients(1, batch_size, width, kind)
            draw_pair(plan, len(self.cells.values), _EVALUATION_STEP - pair, 0, found.rows)
            pair_gradient(cold, self.geometry, plan, work, 0, found)
            losses.append(found.loss[0])
        return float(np.mean(losses))
