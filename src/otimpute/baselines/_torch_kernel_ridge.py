"""Kernel ridge regression on a GPU: the rounds of `KernelRidgeImputer`, one column after the other, all rows at once.

In float64 throughout: normal equations need it, and where float32 would do the arithmetic is too little to matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from .._deadline import check_deadline

if TYPE_CHECKING:
    from .kernel_ridge import KernelRound, RowKernel
    from .standardised import Holes

_SIMILARITIES_AT_ONCE = 1 << 26  # half a GiB

Weights = tuple[NDArray[np.float32], ...]  # weights, slopes, centre, low, high: the arrays of a `KernelRound`


class TorchKernelRidge:
    """A round over the columns ``targets``, on torch's ``device``: learned from some rows, applied to all."""

    def __init__(
        self,
        kernel: RowKernel,
        targets: list[NDArray[np.int64]],
        landmarks: NDArray[np.float32],  # [d, R]
        device: str,
        deadline: float,
    ):
        self._kernel, self._targets, self._device, self._deadline = kernel, targets, device, deadline
        self._landmarks = self._tensor(landmarks)

    def learn(
        self,
        rows: NDArray[np.float32],
        holes: Holes,
        ridge: float,
        landmark_noise: float,
        row_weight: NDArray[np.float64] | None = None,
    ) -> Weights:
        """The weights; landmarks as many as rows are the rows."""
        at, x, seen = self._landmarks, self._tensor(rows), torch.from_numpy(~holes).to(self._device)
        (d, n_landmarks), n = at.shape, len(rows)
        weights, slopes = torch.zeros_like(at), self._zeros(d, d)
        centre, low, high = (self._zeros(d) for _ in range(3))
        failed = torch.zeros((), dtype=torch.int32, device=self._device)
        weight = None if row_weight is None else torch.from_numpy(row_weight[:, None]).to(self._device)
        for columns in self._targets:
            check_deadline(self._deadline)
            if holes[:, columns[0]].all():  # possible among a sample of the rows
                continue
            own = slice(int(columns[0]), int(columns[-1]) + 1)
            known = seen[:, own][:, :1]
            truth = x[:, own]
            centre[own] = torch.where(known, truth, 0.0).sum(0) / known.sum()
            if weight is not None:
                counts = torch.where(known, weight, 0.0)
                centre[own] = (counts * torch.where(known, truth, 0.0)).sum(0) / counts.sum()
            low[own], high[own] = torch.where(known, truth, torch.inf).amin(0), torch.where(known, truth, -torch.inf).amax(0)
            straight = self._kernel.scales(d - len(columns))[1]
            of_rows = torch.where(known, self._similar(x, own, straight), 0.0)
            right = torch.where(known, truth - centre[own], 0.0)
            if n_landmarks == n:
                system = torch.where(known.mT, of_rows, 0.0)
                on_diagonal = ridge if weight is None else (ridge / weight)[:, 0]
            else:  # minimise ‖truth − of_rows w‖² + ridge wᵀ of_landmarks w
                system, on_diagonal = ridge * self._similar(at.mT, own, straight), ridge * landmark_noise
                counted = of_rows if weight is None else weight * of_rows
                system += of_rows.mT @ counted
                right = counted.mT @ right
            system.diagonal().add_(on_diagonal)
            factor, info = torch.linalg.cholesky_ex(system)
            failed = torch.maximum(failed, info)
            found = torch.cholesky_solve(right, factor)
            weights[own], slopes[own] = found.mT, straight * (at @ found).mT
            slopes[own, own] = 0
        if int(failed):
            raise np.linalg.LinAlgError("the kernel is not positive: some values are too large")
        return tuple(each.float().cpu().numpy() for each in (weights, slopes, centre, low, high))

    def apply(self, learned: KernelRound, rows: NDArray[np.float32], holes: Holes) -> NDArray[np.float32]:
        """Rows with every missing entry predicted from the other columns."""
        x, weights, slopes = (self._tensor(each) for each in (rows, learned.weights, learned.slopes))
        centre, low, high = (self._tensor(each) for each in (learned.centre, learned.low, learned.high))
        following = rows.copy()
        at_once = max(_SIMILARITIES_AT_ONCE // weights.shape[1], 1)
        for columns in self._targets:
            check_deadline(self._deadline)
            own = slice(int(columns[0]), int(columns[-1]) + 1)
            incomplete = np.flatnonzero(holes[:, columns[0]])
            for begin in range(0, len(incomplete), at_once):
                some = incomplete[begin : begin + at_once]
                inputs = x[torch.from_numpy(some).to(self._device)]
                predicted = centre[own] + self._similar(inputs, own) @ weights[own].mT + inputs @ slopes[own].mT
                following[some, own] = torch.clamp(predicted, low[own], high[own]).float().cpu().numpy()
        return following

    def _similar(self, x: torch.Tensor, without: slice, straight: float = 0.0) -> torch.Tensor:
        """Kernels [n, R] of rows with landmarks, without some columns."""
        x, at = x.clone(), self._landmarks.clone()
        x[:, without], at[without] = 0, 0
        product = x @ at
        distance = x.square().sum(1, keepdim=True) + at.square().sum(0) - 2 * product
        bump = float(self._kernel.scales(len(at) - (without.stop - without.start))[0])
        return torch.exp(bump * distance.clamp(min=0)) + straight * product

    def _tensor(self, array: NDArray[np.float32]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float64)).to(self._device)

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self._device)
