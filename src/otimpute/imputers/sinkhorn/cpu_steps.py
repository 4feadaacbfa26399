"""Algorithm 1's steps on the CPU: the cells of one fit, and compiled blocks of steps that move them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compile import load
from ..batches.divergence import (
    LAST_STEP,
    BatchPlan,
    Geometry,
    TableCells,
    draw_pair,
    make_gradients,
    make_workspace,
    pair_gradient,
)
from ..batches.pair_threads import PairThreads
from .compiled_steps import apply_step, close_window, read_cells, run_steps, write_cells


class CpuSteps:
    """Take steps, the pairs of each on as many threads as asked; the result does not depend on how many."""

    n_fits = 1

    def __init__(self, cells: TableCells, geometry: Geometry, plan: BatchPlan, batch_size: int, n_pairs: int, n_jobs: int):
        self.cells, self.geometry, self.plan = cells, geometry, plan
        self.n_rows, self.rows_per_step = len(cells.values), 2 * batch_size * n_pairs
        width, kind = cells.values.shape[1], cells.values.dtype
        self.threads = PairThreads(n_pairs, n_jobs)
        self.workspaces = [make_workspace(batch_size, width, kind) for _ in range(self.threads.n_threads)]
        self.found = make_gradients(n_pairs, batch_size, width, kind)
        load(pair_gradient, cells, geometry, plan, self.workspaces[0], 0, self.found)
        load(apply_step, cells, self.found, 0, 0, 0.0)

    def take(
        self, first: int, rates: NDArray[np.float64], window_start: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Take a step with each of the ``rates``; returns their losses and marginal errors, both ``[steps, fits]``."""
        losses, errors = np.empty(len(rates)), np.empty(len(rates))
        if len(self.workspaces) == 1:
            run_steps(
                self.cells, self.geometry, self.plan, self.workspaces[0], self.found,
                first, rates, window_start, losses, errors,
            )  # fmt: skip
        else:
            for k, rate in enumerate(rates):
                self.threads.each_pair(partial(self._pair, first + k))
                losses[k], errors[k] = apply_step(self.cells, self.found, first + k, window_start, rate)
        return losses[:, None], errors[:, None]

    def _pair(self, step: int, thread: int, pair: int) -> None:
        draw_pair(self.plan, len(self.cells.values), step, pair, self.found.rows)
        pair_gradient(self.cells, self.geometry, self.plan, self.workspaces[thread], pair, self.found)

    def window_means(self, window_start: int, step: int) -> list[NDArray[np.floating]]:
        """Of each fit, the mean of every cell since the window began; another window begins."""
        mean = np.empty(len(self.cells.column), self.cells.values.dtype)
        close_window(self.cells, window_start, step, mean)
        return [mean]

    def read(self, fit: int = 0) -> NDArray[np.floating]:  # noqa: ARG002 - there is one
        """The cells of a fit as they are."""
        values = np.empty(len(self.cells.column), self.cells.values.dtype)
        read_cells(self.cells, values)
        return values

    @staticmethod
    def on_host(cells: NDArray[np.floating]) -> NDArray[np.floating]:
        """TableCells as an array of NumPy's."""
        return cells

    from_host = on_host

    def steps_done(self) -> int:
        """How many steps the rows have seen."""
        return int(self.cells.rows[:-1, LAST_STEP].max()) + 1

    def state(self) -> dict[str, Any]:
        """What steps change; the rest of the table is as it was before."""
        return {
            "values": self.read(),
            "moments": self.cells.moments,
            "potentials": self.cells.potentials,
            "last_step": self.cells.rows[:, LAST_STEP],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a `state`."""
        write_cells(self.cells, state["values"])
        self.cells.moments[:], self.cells.potentials[:] = state["moments"], state["potentials"]
        self.cells.rows[:, LAST_STEP] = state["last_step"]

    def close(self) -> None:
        """End the threads."""
        self.threads.close()
