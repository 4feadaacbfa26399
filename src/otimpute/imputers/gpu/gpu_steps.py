"""Algorithm 1's steps on a GPU: the state of one fit or of several, and blocks of steps without a look from the host."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._gpu import gpu_failures, tile_size
from ..batches.divergence import BatchPlan, Geometry
from .gpu_tables import ENTRIES, LN_2, GpuTables

if TYPE_CHECKING:
    from torch import Tensor

FloatArray = NDArray[np.float64]

_STEPS_PER_GRAPH = 10
_recording = threading.Lock()


@dataclass(frozen=True)
class GpuFit:
    """A table to complete."""

    values: NDArray[np.float32]  # [n, at least d]
    free: NDArray[np.bool_]  # [n, d]
    geometry: Geometry
    plan: BatchPlan


class GpuSteps:
    """Tables of one shape on the GPU, and steps that move their free cells; the methods are those of `_descent.Steps`."""

    def __init__(self, fits: Sequence[GpuFit], n_steps: int, batch_size: int, n_pairs: int):
        (self.n_rows, d), self.n_fits = fits[0].free.shape, len(fits)
        self.rows_per_step = 2 * batch_size * n_pairs
        self._what = f"{'a fit' if len(fits) == 1 else f'{len(fits)} fits'} of {self.n_rows} × {d} values"
        with gpu_failures(self._what):
            self._set_up(fits, n_steps, batch_size, n_pairs)

    def _set_up(self, fits: Sequence[GpuFit], n_steps: int, batch_size: int, n_pairs: int) -> None:
        """Take everything to the device."""
        plan = fits[0].plan
        iterations = plan.n_cross_iterations, plan.n_self_iterations
        tables = GpuTables([fit.geometry for fit in fits], self.n_rows, n_steps, batch_size, n_pairs, iterations)
        self._tables, self._torch = tables, tables.torch
        shape = tables.values.shape
        self._free = tables.zeros(*shape, kind=self._torch.uint8)
        for fit, values, free in zip(fits, tables.values, self._free, strict=True):
            values[:, : tables.d] = self._torch.from_numpy(fit.values[:, : tables.d])
            free[:, : tables.d] = self._torch.from_numpy(fit.free)
        self._squares, self._totals = tables.zeros(*shape), tables.zeros(*shape)
        self._last_steps = tables.zeros(*shape[:2], kind=self._torch.int32) - 1
        self._seeds = self._torch.tensor([fit.plan.seed for fit in fits], device=tables.device)
        self._pools, self._pool_sizes = self._make_pools([fit.plan for fit in fits])
        self._rates = tables.zeros(n_steps)
        self._rows = tables.zeros(_STEPS_PER_GRAPH, self.n_fits, self.rows_per_step, kind=self._torch.int32)
        self._order, self._sorted_rows = self._torch.zeros_like(self._rows), self._torch.zeros_like(self._rows)
        self._graph: Any = None
        tables.map_all()

    def take(self, first: int, rates: FloatArray, window_start: int) -> tuple[FloatArray, FloatArray]:
        """Take a step with each of the ``rates``; returns their losses and marginal errors, both ``[steps, fits]``."""
        with gpu_failures(self._what):
            return self._take(first, rates, window_start)

    def _take(self, first: int, rates: FloatArray, window_start: int) -> tuple[FloatArray, FloatArray]:
        count = len(rates)
        self._rates[first : first + count] = self._torch.from_numpy(rates)
        self._tables.clock.copy_(self._torch.tensor([first, window_start], dtype=self._torch.int32))
        left = count
        while left:
            now = min(left, _STEPS_PER_GRAPH)
            if now < _STEPS_PER_GRAPH or self._tables.device != "cuda":
                self._enqueue(now)
            elif self._graph is None:
                self._enqueue(now)  # compiles, which must not happen while a graph is recorded
                self._record()
            else:
                self._graph.replay()
            left -= now
        found = self._tables.found[first : first + count].double().mean(dim=2).cpu().numpy()
        return found[..., :3].sum(axis=2) * self._tables.units, found[..., 3]

    def window_means(self, window_start: int, step: int) -> list[Tensor]:
        """Of each fit, the mean of every cell since the window began; another window begins."""
        with gpu_failures(self._what):
            return self._window_means(window_start, step)

    def _window_means(self, window_start: int, step: int) -> list[Tensor]:
        means = []
        for values, totals, last_steps, free in zip(
            self._tables.values, self._totals, self._last_steps, self._free, strict=True
        ):
            rest = (step - last_steps.clamp(min=window_start)).unsqueeze(-1)
            means.append(((totals + rest * values) / (step - window_start))[free > 0])
        self._totals.zero_()
        return means

    def read(self, fit: int) -> Tensor:
        """The cells of a fit as they are."""
        return self._tables.values[fit][self._free[fit] > 0]

    @staticmethod
    def on_host(cells: Tensor) -> NDArray[np.float32]:
        """Cells as an array of NumPy's."""
        array: NDArray[np.float32] = cells.cpu().numpy()
        return array

    def from_host(self, cells: NDArray[np.floating]) -> Tensor:
        """And back."""
        tensor: Tensor = self._torch.tensor(cells, device=self._tables.device)
        return tensor

    def steps_done(self) -> int:
        """How many steps the rows have seen."""
        return int(self._last_steps.max()) + 1

    def state(self) -> dict[str, Any]:
        """What steps change, of the first fit, as the CPU has it."""
        free = self._free[0] > 0
        moments = self._torch.stack([self._squares[0][free], self._totals[0][free]], dim=1)
        return {
            "values": self.on_host(self.read(0)),
            "moments": self.on_host(moments),
            "potentials": self.on_host(self._tables.potentials[0].double() * LN_2),  # so exact that they come back bit for bit
            "last_step": np.append(self.on_host(self._last_steps[0]), np.int32(-1)),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a `state`."""
        free, moments = self._free[0] > 0, self.from_host(state["moments"])
        self._tables.values[0][free], self._squares[0][free], self._totals[0][free] = (
            self.from_host(state["values"]),
            *moments.T,
        )
        self._last_steps[0] = self.from_host(state["last_step"][:-1])
        self._tables.potentials[0] = self.from_host(state["potentials"]) / LN_2
        self._tables.map_all()

    def close(self) -> None:
        """Give the memory back."""
        self._graph = None

    def _enqueue(self, count: int) -> None:
        """Ask for the next steps."""
        tables, n_pairs, m = self._tables, self._tables.n_pairs, self._tables.m
        tables.kernels.draw_rows[(count * self.n_fits * n_pairs * 2,)](
            tables.clock, self._seeds, self._pools, self._pool_sizes, self._rows,
            self.n_fits, n_pairs, self.n_rows, m, POOLS=self._pools.numel() > 0, M=tile_size(m),
        )  # fmt: skip
        self._sorted_rows[:count], self._order[:count] = self._rows[:count].sort(dim=-1, stable=True)
        for ahead in range(count):
            tables.compare(self._rows[ahead], ahead)
            tables.kernels.move_values[(-(-self.rows_per_step // ENTRIES), self.n_fits)](
                tables.values, tables.mapped, tables.norms, self._squares, self._totals, self._free, self._last_steps,
                tables.potentials, tables.projected, tables.new_potentials, self._order[ahead], self._sorted_rows[ahead],
                tables.to_metric, tables.from_metric, self._rates, tables.clock, ahead, n_pairs, self.n_rows, m,
                **tables.of_rows,
            )  # fmt: skip
        tables.clock[0] += count

    def _record(self) -> None:
        """Record a block of steps: replaying it takes the host a few microseconds instead of one launch after the other."""
        graph = self._torch.cuda.CUDAGraph()
        with _recording, self._torch.cuda.graph(graph, capture_error_mode="thread_local"):  # others may use the GPU meanwhile
            self._enqueue(_STEPS_PER_GRAPH)
        self._graph = graph

    def _make_pools(self, plans: Sequence[BatchPlan]) -> tuple[Tensor, Tensor]:
        torch, pools, device = self._torch, [(plan.x_rows, plan.y_rows) for plan in plans], self._tables.device
        sizes = torch.tensor([[len(pool) or self.n_rows for pool in both] for both in pools], dtype=torch.int32)
        if all(len(pool) == 0 for both in pools for pool in both):
            return self._tables.zeros(0, kind=torch.int32), sizes.to(device)
        padded = np.zeros((len(pools), 2, self.n_rows), np.int32)
        for k, both in enumerate(pools):
            for side, pool in enumerate(both):
                padded[k, side, : len(pool)] = pool
        return torch.from_numpy(padded).to(device), sizes.to(device)
