"""Pairs of batches that are compared on a GPU, for algorithms whose models are trained on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._device import Device
from ..._gpu import gpu_failures
from ..batches.divergence import CROSS, SELF, BatchPlan, Geometry, Gradients, TableCells
from ..batches.pair_threads import Batches, PairThreads
from .gpu_tables import LN_2, GpuTables

if TYPE_CHECKING:
    from ..round_robin.trained_columns import TrainedColumn


class GpuBatches(Batches):
    """Batches whose rows are sent to a GPU, all pairs of a step at once, and whose gradients come back.

    All state is here, so that a training can go on without the GPU if that fails.
    """

    def __init__(self, cells: TableCells, geometry: Geometry, threads: PairThreads, device: Device):
        super().__init__(cells, geometry, threads, device)
        self._pairs: dict[int, _Pairs] = {}  # by batch size

    @property
    def in_compiled_code(self) -> bool:
        """Pairs are not."""
        return False

    def pair_gradients(self, plan: BatchPlan, batch_size: int) -> None:
        """Gradients, in all columns, of the pairs drawn last."""
        _, found = self.workspaces_for(batch_size, self.cells.values.shape[1])
        on_cpu = partial(super().pair_gradients, plan, batch_size)
        self._compare(found, plan, slice(self.geometry.n_columns), both_sides=True, on_cpu=on_cpu)

    def column_gradients(self, trained_column: TrainedColumn) -> None:
        """Gradients, in the trained_column's column, of the pairs drawn last."""
        _, found = self.workspaces_for(trained_column.batch_size, 1)
        target, on_cpu = trained_column.target, partial(super().column_gradients, trained_column)
        column = slice(target.column, target.column + 1)
        self._compare(found, trained_column.plan, column, both_sides=target.both_sides, on_cpu=on_cpu)

    def _compare(
        self, found: Gradients, plan: BatchPlan, columns: slice, *, both_sides: bool, on_cpu: Callable[[], None]
    ) -> None:
        """Gradients, in some columns, of what was drawn, and all else that is ``found``."""
        n_pairs, _, batch_size = found.rows.shape

        def on_gpu() -> None:
            with gpu_failures(f"the comparison of {n_pairs} pairs of {batch_size} rows"):
                if batch_size not in self._pairs:
                    self._pairs[batch_size] = _Pairs(self.geometry, n_pairs, batch_size, plan)
                pairs, cells = self._pairs[batch_size], self.cells
                gradient, potentials = pairs.compare(cells.values[found.rows], cells.potentials[found.rows], both_sides)
                found.loss[:], found.error[:] = pairs.found()
            found.self_potential[:], found.cross_potential[:] = potentials[:, SELF], potentials[:, CROSS]
            part = gradient[..., columns]
            found.gradient[..., : part.shape[-1]] = part

        self.device.run(on_gpu, on_cpu)
        if not self.device.is_gpu:
            self._pairs = {}  # memory that others may need


class _Pairs:
    """Room for so many pairs on the device: a table that has nothing but their rows."""

    def __init__(self, geometry: Geometry, n_pairs: int, batch_size: int, plan: BatchPlan):
        iterations = plan.n_cross_iterations, plan.n_self_iterations
        tables = self.tables = GpuTables([geometry], n_pairs * 2 * batch_size, 1, batch_size, n_pairs, iterations)
        from_metric = tables.from_metric[0].cpu().numpy()
        self._metric: NDArray[np.float32] = from_metric[: tables.d, : tables.d] if from_metric.ndim == 2 else from_metric
        self._rows = tables.torch.arange(tables.n_rows, dtype=tables.torch.int32, device=tables.device)[None]

    def compare(
        self, values: NDArray[np.float32], potentials: NDArray[np.float32], both_sides: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Gradients ``[P, 2, m, d]`` of ``values [P, 2, m, width]`` and new potentials ``[P, 2 terms, 2 sides, m]``."""
        tables, torch = self.tables, self.tables.torch
        tables.values[0, :, : tables.d] = torch.from_numpy(values).flatten(0, 2)[:, : tables.d]
        tables.potentials[0] = torch.from_numpy(potentials).flatten(0, 2) / LN_2
        tables.map_all()
        tables.compare(self._rows, 0, first_term=0 if both_sides else 1)
        moved = (tables.projected[0, :, SELF] - tables.projected[0, :, CROSS])[..., : tables.d].cpu().numpy()
        # Not by torch, which a user may have told to be quick about products.
        gradient = moved @ self._metric if self._metric.ndim == 2 else moved * self._metric
        return gradient, (tables.new_potentials[0] * LN_2).cpu().numpy()

    def found(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Losses and marginal errors ``[P]``."""
        found = self.tables.found[0, 0].double().cpu().numpy()
        return found[:, :3].sum(axis=1) * self.tables.units[0], found[:, 3]
