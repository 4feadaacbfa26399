"""Tables on a GPU, and the comparison of batches of their rows: what every algorithm there needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._gpu import tensors_on, tile_size
from ..._torch import torch_for
from ..batches.divergence import CROSS, SELF, Geometry

if TYPE_CHECKING:
    from torch import Tensor

LN_2 = math.log(2)  # logarithms are to base 2 on the device
_LARGEST_ON_CHIP = 128  # rows of a batch: registers hold the matrix of two such batches
_WIDEST_CHUNK = 64  # columns that a thread block handles at a time
ENTRIES = 16  # rows that a thread block maps or moves
_PRECISION = "tf32x3"  # of products: three passes in tf32 are as good as float32, one is not


class GpuTables:
    """Tables of one shape, whose rows are compared in a metric; room for what the pairs of a step find.

    With F fits, P pairs and m rows in a batch, ``projected [F, P, 2 terms, 2 sides, m, stride]`` says where the own and the
    cross term carry each row, in the metric; ``new_potentials [F, P, 2, 2, m]`` are theirs, and ``found [steps, F, P, 4]`` the
    three shares of the loss and the marginal error.
    """

    def __init__(
        self,
        geometries: Sequence[Geometry],
        n_rows: int,
        n_steps: int,
        batch_size: int,
        n_pairs: int,
        iterations: tuple[int, int],
    ):
        self.device = tensors_on('device="cuda"')
        self.torch = torch_for("a fit on a GPU")
        from . import kernels

        self.kernels = kernels
        self.n_fits, self.n_rows, self.d = len(geometries), n_rows, geometries[0].n_columns
        self.m, self.n_pairs, self.iterations = batch_size, n_pairs, iterations
        chunk = min(_WIDEST_CHUNK, tile_size(self.d))
        self.stride = -(-self.d // chunk) * chunk
        self.values, self.mapped = (self.zeros(self.n_fits, n_rows, self.stride) for _ in range(2))
        self.norms, self.potentials = self.zeros(self.n_fits, n_rows), self.zeros(self.n_fits, n_rows, 2)
        self.to_metric, self.from_metric = self._metrics(geometries)
        self.units = [LN_2 / geometry.inverse_epsilon for geometry in geometries]  # of a loss on the device
        entries = self.n_fits, n_pairs, 2, 2, batch_size
        self.projected, self.new_potentials = self.zeros(*entries, self.stride), self.zeros(*entries)
        self.found = self.zeros(n_steps, self.n_fits, n_pairs, 4)
        self.clock = self.zeros(2, kind=self.torch.int32)  # the next step, and where the window began
        self._columns = {"STRIDE": self.stride, "CHUNK": chunk, "PRECISION": _PRECISION, "num_stages": 1}
        self.of_rows = {"METRIC": self.to_metric.ndim == 3, "ENTRIES": ENTRIES, "num_warps": 2, **self._columns}

    def zeros(self, *shape: int, kind: Any = None) -> Tensor:
        """A tensor of zeros on the device."""
        zeros: Tensor = self.torch.zeros(shape, dtype=kind or self.torch.float32, device=self.device)
        return zeros

    def map_all(self) -> None:
        """Bring all rows into the metric, as single ones are in each step."""
        self.kernels.map_all[(-(-self.n_rows // ENTRIES), self.n_fits)](
            self.values, self.mapped, self.norms, self.to_metric, self.n_rows, **self.of_rows
        )

    def compare(self, rows: Tensor, ahead: int, first_term: int = 0) -> None:
        """Compare the batches ``rows [F, P · 2 · m]`` of a step ``ahead`` of the clock, in the terms from ``first_term`` on."""
        if self.m > _LARGEST_ON_CHIP:
            self._compare_streaming(rows, ahead)
            return
        padded = tile_size(self.m)
        self.kernels.compare_batches[((3 - first_term) * self.n_fits * self.n_pairs,)](
            self.mapped, self.norms, self.potentials, rows, self.projected, self.new_potentials,
            self.found, self.clock, ahead, self.n_fits, self.n_pairs, self.n_rows, self.m,
            M=padded, N_CROSS=self.iterations[0], N_SELF=self.iterations[1],
            num_warps=4 if padded <= 64 else 8, **self._columns,
        )  # fmt: skip

    def _compare_streaming(self, rows: Tensor, ahead: int) -> None:
        """The same for batches whose matrix fits nowhere but in memory, where it is never written."""
        from ...transport.kernels.streaming import project, softmin

        torch, n_problems = self.torch, self.n_fits * self.n_pairs
        offsets = torch.arange(self.n_fits, device=self.device)[:, None] * self.n_rows
        places = (rows.long() + offsets).view(n_problems, 2, self.m)
        mapped = self.mapped.flatten(0, 1)[places]
        scaled = mapped * LN_2  # of one side: products in natural units
        norms = self.norms.flatten()[places] * LN_2
        warm = self.potentials.flatten(0, 1)[places] * LN_2 - norms[..., None]
        log_weights = torch.full_like(norms, -math.log(self.m))
        projected, new = self.projected.flatten(0, 1), self.new_potentials.flatten(0, 1)
        # Own terms of both sides at once: they are twice as many clouds.
        clouds, heights, F = (each.flatten(0, 1) for each in (mapped, log_weights, warm[..., SELF]))
        for _ in range(self.iterations[1]):
            F = softmin(scaled.flatten(0, 1), clouds, F, heights, before=F, relaxation=0.5)
        projected[:, SELF] = project(scaled.flatten(0, 1), clouds, F, heights, clouds).view_as(mapped)
        own = F.view_as(norms) + norms
        x, y, x_scaled, y_scaled = (each[:, side].contiguous() for each in (mapped, scaled) for side in range(2))
        weights = log_weights[:, 0].contiguous()
        F = warm[:, 0, :, CROSS]
        H = softmin(y_scaled, x, F, weights)
        before = H
        for _ in range(self.iterations[0]):
            F = softmin(x_scaled, y, H, weights)
            before, H = H, softmin(y_scaled, x, F, weights)
        error = ((before - H).exp() - 1).abs().mean(dim=1)
        projected[:, CROSS, 0] = project(x_scaled, y, H, weights, y)
        projected[:, CROSS, 1] = project(y_scaled, x, F, weights, x)
        F, H = F + norms[:, 0], H + norms[:, 1]
        # The constant that can be moved between f and g is fixed so that a row's potential does not depend on its side.
        shift = ((F - H).mean(dim=1) / 2)[:, None]
        new[:, SELF], new[:, CROSS] = own / LN_2, torch.stack([F - shift, H + shift], dim=1) / LN_2
        found = torch.stack([*(-own.mean(dim=2) / LN_2).T, (F + H).mean(dim=1) / LN_2, error], dim=1)
        self.found.index_copy_(0, (self.clock[:1] + ahead).long(), found.view(1, self.n_fits, self.n_pairs, 4))

    def _metrics(self, geometries: Sequence[Geometry]) -> tuple[Tensor, Tensor]:
        """What turns rows into ``mapped`` ones, and displacements of those into gradients: matrices, or numbers."""
        torch, d = self.torch, self.d
        scales = np.sqrt([geometry.inverse_epsilon / LN_2 for geometry in geometries])
        if geometries[0].metric.shape[0] == 0:
            to_metric, from_metric = (torch.tensor(s, dtype=torch.float32, device=self.device) for s in (scales, 1 / scales))
            return to_metric, from_metric
        to_metric, from_metric = (self.zeros(len(geometries), self.stride, self.stride) for _ in range(2))
        for k, (geometry, scale) in enumerate(zip(geometries, scales, strict=True)):
            matrix = torch.from_numpy(geometry.metric[:d, :d].astype(np.float64))
            to_metric[k, :d, :d], from_metric[k, :d, :d] = matrix * scale, matrix / scale
        return to_metric, from_metric
