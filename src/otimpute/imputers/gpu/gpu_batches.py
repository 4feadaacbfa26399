"""Pairs of batches that are compared on a GPU, for algorithms whose models are trained on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._gpu import gpu_failures
from ..._warn import warn_user
from ...exceptions import GpuError, OtimputeWarning
from ..batches.divergence import CROSS, SELF, BatchPlan, Geometry, TableCells
from ..batches.pair_threads import Batches, PairThreads
from .gpu_tables import LN_2, GpuTables

if TYPE_CHECKING:
    from ..round_robin.trained_columns import TrainedColumn


class GpuBatches(Batches):
    """Batches whose rows are sent to a GPU, all pairs of a step at once, and whose gradients come back.

    All state is here, so that a training can go on without the GPU if that fails, where it ``may_fall_back``.
    """

    device = "cuda"  # until it fails

    def __init__(self, cells: TableCells, geometry: Geometry, threads: PairThreads, *, may_fall_back: bool):
        super().__init__(cells, geometry, threads)
        self._may_fall_back = may_fall_back
        self._pairs: dict[int, _Pairs] = {}  # by batch size

    @property
    def in_compiled_code(self) -> bool:
        """Pairs are not."""
        return False

    def pair_gradients(self, plan: BatchPlan, batch_size: int) -> None:
        """Gradients, in all columns, of the pairs drawn last."""
        _, found = self.workspaces_for(batch_size, self.cells.values.shape[1])
        gradient = self._compare(plan, batch_size, both_sides=True)
        if gradient is None:
            super().pair_gradients(plan, batch_size)
        else:
            found.gradient[..., : self.geometry.n_columns] = gradient[..., : self.geometry.n_columns]

    def column_gradients(self, trained_column: TrainedColumn) -> None:
        """Gradients, in the trained_column's column, of the pairs drawn last."""
        _, found = self.workspaces_for(trained_column.batch_size, 1)
        gradient = self._compare(trained_column.plan, trained_column.batch_size, both_sides=trained_column.target.both_sides)
        if gradient is None:
            super().column_gradients(trained_column)
        else:
            found.gradient[..., 0] = gradient[..., trained_column.target.column]

    def _compare(self, plan: BatchPlan, batch_size: int, *, both_sides: bool) -> NDArray[np.float32] | None:
        """Gradients ``[P, 2, m, d]`` of what was drawn, the rest where it belongs; None once the GPU has failed."""
        if self.device == "cpu":
            return None
        found, cells = self._room[1], self.cells
        try:
            with gpu_failures(f"the comparison of {len(found.rows)} pairs of {batch_size} rows"):
                if batch_size not in self._pairs:
                    self._pairs[batch_size] = _Pairs(self.geometry, len(found.rows), batch_size, plan)
                pairs = self._pairs[batch_size]
                gradient, potentials = pairs.compare(cells.values[found.rows], cells.potentials[found.rows], both_sides)
                found.loss[:], found.error[:] = pairs.found()
        except GpuError as error:
            if not self._may_fall_back:
                raise
            warn_user(f'{error}. With device="auto" the CPU takes over', OtimputeWarning)
            self.device, self._pairs = "cpu", {}
            return None
        found.self_potential[:], found.cross_potential[:] = potentials[:, SELF], potentials[:, CROSS]
        return gradient


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
