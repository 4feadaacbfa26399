"""Algorithm 1's steps on a GPU: the state of one fit or of several, and blocks of steps without a look from the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._gpu import tensors_on
from .._torch import torch_for
from ._batches import Geometry, Plan

if TYPE_CHECKING:
    from torch import Tensor

FloatArray = NDArray[np.float64]

_LN_2 = math.log(2)  # logarithms are to base 2 on the device
_STEPS_PER_GRAPH = 10
_WIDEST_CHUNK = 64  # columns that a thread block handles at a time
_ENTRIES = 16  # rows that a thread block moves
_PRECISION = "tf32x3"  # of products: three passes in tf32 are as good as float32, one is not


@dataclass(frozen=True)
class Fit:
    """A table to complete."""

    values: NDArray[np.float32]  # [n, at least d]
    free: NDArray[np.bool_]  # [n, d]
    geometry: Geometry
    plan: Plan


class GpuSteps:
    """Tables of one shape on the GPU, and steps that move their free cells; the methods are those of `_descent.Steps`."""

    def __init__(self, fits: Sequence[Fit], n_steps: int, batch_size: int, n_pairs: int):
        device = self._device = tensors_on('device="cuda"')
        torch = self._torch = torch_for("a fit on a GPU")
        from . import _gpu_kernels

        self._kernels = _gpu_kernels
        self._m, self._n_pairs = batch_size, n_pairs
        self.n_fits, (self.n_rows, self._d), plan = len(fits), fits[0].free.shape, fits[0].plan
        self.rows_per_step = 2 * batch_size * n_pairs
        self._iterations = plan.n_cross_iterations, plan.n_self_iterations
        self._chunk = min(_WIDEST_CHUNK, max(16, _power_of_two(self._d)))
        self._stride = -(-self._d // self._chunk) * self._chunk
        shape = len(fits), self.n_rows, self._stride
        self._values, self._free = self._zeros(*shape), self._zeros(*shape, kind=torch.uint8)
        for fit, values, free in zip(fits, self._values, self._free, strict=True):
            values[:, : self._d] = torch.from_numpy(fit.values[:, : self._d])
            free[:, : self._d] = torch.from_numpy(fit.free)
        self._squares, self._totals, self._mapped = self._zeros(*shape), self._zeros(*shape), self._zeros(*shape)
        self._norms, self._last_steps = self._zeros(*shape[:2]), self._zeros(*shape[:2], kind=torch.int32) - 1
        self._potentials = self._zeros(*shape[:2], 2)
        self._to_metric, self._from_metric = self._metrics([fit.geometry for fit in fits])
        self._of_rows = {
            "METRIC": self._to_metric.ndim == 3, "STRIDE": self._stride, "ENTRIES": _ENTRIES, "CHUNK": self._chunk,
            "PRECISION": _PRECISION, "num_warps": 2, "num_stages": 1,
        }  # fmt: skip
        self._units = [_LN_2 / fit.geometry.inverse_epsilon for fit in fits]  # of a loss on the device
        self._seeds = torch.tensor([_signed(fit.plan.seed) for fit in fits], device=device)
        self._pools, self._pool_sizes = self._make_pools([fit.plan for fit in fits])
        self._rates = self._zeros(n_steps)
        self._clock = self._zeros(2, kind=torch.int32)  # the next step, and where the window began
        self._found = self._zeros(n_steps, len(fits), n_pairs, 4)
        entries = len(fits), n_pairs, 2, 2, batch_size  # the fourth axis: own and cross term; the third: sides
        self._projected, self._new_potentials = self._zeros(*entries, self._stride), self._zeros(*entries)
        self._rows = self._zeros(_STEPS_PER_GRAPH, len(fits), n_pairs * 2 * batch_size, kind=torch.int32)
        self._order, self._sorted_rows = torch.zeros_like(self._rows), torch.zeros_like(self._rows)
        self._graph: Any = None
        self._map_all()

    def take(self, first: int, rates: FloatArray, window_start: int) -> tuple[FloatArray, FloatArray]:
        """Take a step with each of the ``rates``; returns their losses and marginal errors, both ``[steps, fits]``."""
        count = len(rates)
        self._rates[first : first + count] = self._torch.from_numpy(rates)
        self._clock.copy_(self._torch.tensor([first, window_start], dtype=self._torch.int32))
        left = count
        while left:
            now = min(left, _STEPS_PER_GRAPH)
            if now < _STEPS_PER_GRAPH or self._device != "cuda":
                self._enqueue(now)
            elif self._graph is None:
                self._enqueue(now)  # compiles, which must not happen while a graph is recorded
                self._record()
            else:
                self._graph.replay()
            left -= now
        found = self._found[first : first + count].double().mean(dim=2).cpu().numpy()
        return found[..., :3].sum(axis=2) * self._units, found[..., 3]

    def window_means(self, window_start: int, step: int) -> list[Tensor]:
        """Of each fit, the mean of every cell since the window began; another window begins."""
        means = []
        for values, totals, last_steps, free in zip(self._values, self._totals, self._last_steps, self._free, strict=True):
            rest = (step - last_steps.clamp(min=window_start)).unsqueeze(-1)
            means.append(((totals + rest * values) / (step - window_start))[free > 0])
        self._totals.zero_()
        return means

    def read(self, fit: int) -> Tensor:
        """The cells of a fit as they are."""
        return self._values[fit][self._free[fit] > 0]

    @staticmethod
    def on_host(cells: Tensor) -> NDArray[np.float32]:
        """Cells as an array of NumPy's."""
        array: NDArray[np.float32] = cells.cpu().numpy()
        return array

    def from_host(self, cells: NDArray[np.floating]) -> Tensor:
        """And back."""
        tensor: Tensor = self._torch.tensor(cells, device=self._device)
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
            "potentials": self.on_host(self._potentials[0].double() * _LN_2),  # so exact that they come back bit for bit
            "last_step": np.append(self.on_host(self._last_steps[0]), np.int32(-1)),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a `state`."""
        free, moments = self._free[0] > 0, self.from_host(state["moments"])
        self._values[0][free], self._squares[0][free], self._totals[0][free] = self.from_host(state["values"]), *moments.T
        self._last_steps[0] = self.from_host(state["last_step"][:-1])
        self._potentials[0] = self.from_host(state["potentials"]) / _LN_2
        self._map_all()

    def close(self) -> None:
        """Give the memory back."""
        self._graph = None

    def _enqueue(self, count: int) -> None:
        """Ask for the next steps."""
        kernels, m, n_pairs, n_fits = self._kernels, self._m, self._n_pairs, self.n_fits
        padded = max(16, _power_of_two(m))
        kernels.draw_rows[(count * n_fits * n_pairs * 2,)](
            self._clock, self._seeds, self._pools, self._pool_sizes, self._rows,
            n_fits, n_pairs, self.n_rows, m, POOLS=self._pools.numel() > 0, M=padded,
        )  # fmt: skip
        sorted_rows, order = self._rows[:count].sort(dim=-1, stable=True)
        self._sorted_rows[:count], self._order[:count] = sorted_rows, order
        n_blocks = -(-n_pairs * 2 * m // _ENTRIES)
        for ahead in range(count):
            kernels.compare_batches[(3 * n_fits * n_pairs,)](
                self._mapped, self._norms, self._potentials, self._rows[ahead], self._projected, self._new_potentials,
                self._found, self._clock, ahead, n_fits, n_pairs, self.n_rows, m,
                M=padded, STRIDE=self._stride, CHUNK=self._chunk, N_CROSS=self._iterations[0], N_SELF=self._iterations[1],
                PRECISION=_PRECISION, num_warps=_warps(padded), num_stages=1,
            )  # fmt: skip
            kernels.move_values[(n_blocks, n_fits)](
                self._values, self._mapped, self._norms, self._squares, self._totals, self._free, self._last_steps,
                self._potentials, self._projected, self._new_potentials, self._order[ahead], self._sorted_rows[ahead],
                self._to_metric, self._from_metric, self._rates, self._clock, ahead,
                n_pairs, self.n_rows, m,
                **self._of_rows,
            )  # fmt: skip
        self._clock[0] += count

    def _record(self) -> None:
        """Record a block of steps: replaying it takes the host a few microseconds instead of one launch after the other."""
        self._graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(self._graph):
            self._enqueue(_STEPS_PER_GRAPH)

    def _metrics(self, geometries: Sequence[Geometry]) -> tuple[Tensor, Tensor]:
        """What turns rows into ``mapped`` ones, and displacements of those into gradients: matrices, or numbers."""
        torch, d = self._torch, self._d
        scales = np.sqrt([geometry.inverse_epsilon / _LN_2 for geometry in geometries])
        if geometries[0].metric.shape[0] == 0:
            return tuple(torch.tensor(s, dtype=torch.float32, device=self._device) for s in (scales, 1 / scales))
        to_metric = self._zeros(len(geometries), self._stride, self._stride)
        from_metric = torch.zeros_like(to_metric)
        for k, (geometry, scale) in enumerate(zip(geometries, scales, strict=True)):
            matrix = torch.from_numpy(geometry.metric[:d, :d].astype(np.float64))
            to_metric[k, :d, :d], from_metric[k, :d, :d] = matrix * scale, matrix / scale
        return to_metric, from_metric

    def _make_pools(self, plans: Sequence[Plan]) -> tuple[Tensor, Tensor]:
        torch, pools = self._torch, [(plan.x_rows, plan.y_rows) for plan in plans]
        sizes = torch.tensor([[len(pool) or self.n_rows for pool in both] for both in pools], dtype=torch.int32)
        if all(len(pool) == 0 for both in pools for pool in both):
            return self._zeros(0, kind=torch.int32), sizes.to(self._device)
        padded = np.zeros((len(pools), 2, self.n_rows), np.int32)
        for k, both in enumerate(pools):
            for side, pool in enumerate(both):
                padded[k, side, : len(pool)] = pool
        return torch.from_numpy(padded).to(self._device), sizes.to(self._device)

    def _map_all(self) -> None:
        """Bring all rows into the metric, as single ones are in each step."""
        self._kernels.map_all[(-(-self.n_rows // _ENTRIES), self.n_fits)](
            self._values, self._mapped, self._norms, self._to_metric, self.n_rows, **self._of_rows
        )

    def _zeros(self, *shape: int, kind: Any = None) -> Tensor:
        zeros: Tensor = self._torch.zeros(shape, dtype=kind or self._torch.float32, device=self._device)
        return zeros


def _power_of_two(least: int) -> int:
    """The power of two at or above ``least``."""
    return 1 << (least - 1).bit_length()


def _signed(seed: int) -> int:
    """The same 64 bits as torch knows them."""
    return seed - 2**64 if seed >= 2**63 else seed


def _warps(size: int) -> int:
    return 4 if size <= 64 else 8
