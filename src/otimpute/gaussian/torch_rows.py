"""Rows of an incomplete table under Gaussians on a GPU: what `em` and `mixture` do row by row, for many rows at once.

With Λ a component's precision, a row needs the inverse of its own block Λ_MM, that of its missing entries M. Rows with about
as many missing entries have blocks of one size, filled up with the identity, which torch factors in one call for all rows
and components. In float64, as on the CPU: precisions of columns that nearly repeat each other lose most digits of float32,
and blocks are small, so that memory takes the time and not arithmetic. Sums over rows are matrix products, not atomic
additions, so that a GPU gives the same bits every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

_STEP = 4  # sizes of blocks are multiples of it: fewer calls for more rows each
_MATRICES_AT_ONCE = 65_535  # as many as a GPU's grid has places; some libraries fail at more
_BYTES_AT_ONCE = 1 << 30


class Sums(NamedTuple):
    """Over rows, by component; and of squares of how far values moved that were filled in."""

    drift: NDArray[np.float64]  # [K, d]: distances from the component's mean
    scatter: NDArray[np.float64]  # [K, d, d]: products of these
    mass: NDArray[np.float64]  # [K]: shares
    moved: float


@dataclass(frozen=True)
class _Chunk:
    """Rows with blocks of one size q. There is a column more, of zeros, which fills blocks up: D = d + 1."""

    rows: slice  # of the table in its order
    seen: torch.Tensor  # [n, D]: whether observed
    places: torch.Tensor  # [n, q]: columns of the missing entries, then the additional one
    filling: torch.Tensor  # [n, q]: 1 where it is the additional one


@dataclass(frozen=True)
class _Weighed:
    """What is known of a chunk of rows under all components."""

    places: torch.Tensor  # [n, q]
    inverse_factor: torch.Tensor  # [K, n, q, q]: L⁻¹ of Λ_MM = L Lᵀ
    away: torch.Tensor  # [K, n, D]: how far from the component's mean the completed row is
    part: torch.Tensor  # [K, n]: how much of the row is the component's, times how often the row counts


class TorchRows:
    """A table with holes on torch's ``device``, for ``n_components`` Gaussians at a time; what is in the holes is replaced."""

    def __init__(
        self,
        values: NDArray[np.float64],
        missing: NDArray[np.bool_],
        n_components: int,
        device: str,
        row_weight: NDArray[np.float64] | None = None,  # [n, 1]: how often rows count
    ):
        n, d = values.shape
        self._device = device
        n_missing = missing.sum(axis=1)
        size = np.minimum(-(-np.maximum(n_missing, 1) // _STEP) * _STEP, d)
        order = np.argsort(size, kind="stable")
        place_of = np.empty(n, np.int64)
        place_of[order] = np.arange(n)
        row, column = np.nonzero(missing)
        self._entries = self._tensor(place_of[row] * (d + 1) + column)  # the missing ones, in the order of the table
        self._filled = self._tensor(np.column_stack([values[order], np.zeros(n)]))  # [n, D]
        self._weight = None if row_weight is None else self._tensor(row_weight[order])
        self._chunks = list(self._split(missing[order], size[order], n_components))
        self._moved = self._zeros()

    def _split(self, missing: NDArray[np.bool_], size: NDArray[np.int64], n_components: int) -> Iterator[_Chunk]:
        d = missing.shape[1]
        starts = np.flatnonzero(np.diff(size, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(size)], strict=True):
            q = int(size[start])
            n_matrices = min(_BYTES_AT_ONCE // (8 * (q * (d + 4 * q) + 4 * d)), _MATRICES_AT_ONCE)
            at_once = max(n_matrices // n_components, 1)
            for begin in range(start, end, at_once):
                rows = slice(begin, min(begin + at_once, end))
                holes = missing[rows]
                # Sorting puts the columns of missing entries first; the observed ones after them stand for filling.
                places = np.argsort(~holes, axis=1, kind="stable")[:, :q]
                filling = np.arange(q) >= holes.sum(axis=1)[:, None]
                seen = np.column_stack([~holes, np.zeros(len(holes), dtype=bool)])
                yield _Chunk(
                    rows, self._tensor(seen), self._tensor(np.where(filling, d, places)), self._tensor(filling.astype(float))
                )

    def learn(self, share: NDArray[np.float64], mean: NDArray[np.float64], covariance: NDArray[np.float64]) -> Sums:
        """Fill the holes with their expectation under Gaussians of these shares, means and covariances; sums over rows."""
        k, d = mean.shape
        drift, scatter, mass = (self._zeros(k, *shape) for shape in ((1, d + 1), (d + 1, d + 1), ()))
        for weighed in self._weigh(share, mean, covariance):
            part, away = weighed.part, weighed.away
            drift += part[:, None, :] @ away
            scatter += (part[..., None] * away).mT @ away
            scatter += self._conditional(weighed)
            mass += part.sum(1)
        drift, scatter = drift[:, 0, :d], scatter[:, :d, :d]
        return Sums(drift.cpu().numpy(), scatter.cpu().numpy(), mass.cpu().numpy(), float(self._moved))

    def fill(
        self, share: NDArray[np.float64], mean: NDArray[np.float64], covariance: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The expectation of the missing entries, in the order of the table."""
        for _ in self._weigh(share, mean, covariance):
            pass
        return self.holes()

    def holes(self) -> NDArray[np.float64]:
        """What was filled in last, in the order of the table."""
        return np.asarray(self._filled.flatten()[self._entries].cpu().numpy())

    def _weigh(
        self, share: NDArray[np.float64], mean: NDArray[np.float64], covariance: NDArray[np.float64]
    ) -> Iterator[_Weighed]:
        """Complete rows as each component would, find how much of a row each has, and fill in the expectation."""
        k, d = mean.shape
        centre, precision = self._zeros(k, 1, d + 1), self._zeros(k, d + 1, d + 1)
        centre[:, 0, :d], precision[:, :d, :d] = self._tensor(mean), self._tensor(np.linalg.inv(covariance))
        log_weight = self._tensor(np.log(share) - 0.5 * np.linalg.slogdet(covariance)[1])
        failed = torch.zeros((), dtype=torch.int32, device=self._device)
        self._moved = self._zeros()
        for chunk in self._chunks:
            rows, places = self._filled[chunk.rows], chunk.places
            away = torch.where(chunk.seen, rows - centre, 0.0)  # [K, n, D]
            pull = away @ precision
            block = precision[:, places[:, :, None], places[:, None, :]]  # [K, n, q, q]
            block.diagonal(dim1=-2, dim2=-1).add_(chunk.filling)
            factor, info = torch.linalg.cholesky_ex(block)
            failed = torch.maximum(failed, info.max())
            identity = torch.eye(places.shape[1], dtype=torch.float64, device=self._device).expand_as(factor)
            inverse_factor = torch.linalg.solve_triangular(factor, identity, upper=False)
            to = places.expand(k, *places.shape)
            solved = inverse_factor @ pull.gather(2, to)[..., None]  # [K, n, q, 1]
            distance = 0.5 * (away * pull).sum(2) - 0.5 * solved.square().sum((2, 3))
            log_missing = factor.diagonal(dim1=-2, dim2=-1).log().sum(2)
            part = torch.softmax(log_weight[:, None] - log_missing - distance, dim=0)
            away.scatter_(2, to, -(inverse_factor.mT @ solved)[..., 0])
            expected = (part[..., None] * (centre + away)).sum(0)
            moved = torch.where(chunk.seen, 0.0, expected - rows).square()
            rows.copy_(torch.where(chunk.seen, rows, expected))
            if self._weight is not None:
                weight = self._weight[chunk.rows]
                moved, part = moved * weight, part * weight[:, 0]
            self._moved += moved.sum()
            yield _Weighed(places, inverse_factor, away, part)
        if int(failed):
            raise np.linalg.LinAlgError("the covariance of the columns is not positive definite")

    def _conditional(self, weighed: _Weighed) -> torch.Tensor:
        """How rows may vary around what is expected: the sum of Λ_MM⁻¹ = L⁻ᵀ L⁻¹ over rows, as one product of all L⁻¹."""
        k, n, q, _ = weighed.inverse_factor.shape
        in_place = self._zeros(k, n, q, weighed.away.shape[2])
        in_place.scatter_(3, weighed.places[:, None, :].expand(k, n, q, q), weighed.inverse_factor)
        in_place *= weighed.part.sqrt()[..., None, None]
        stacked = in_place.view(k, n * q, -1)
        return stacked.mT @ stacked

    def _tensor(self, array: NDArray[np.generic]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self._device)
