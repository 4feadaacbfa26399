"""Softmins and projections on a GPU without a matrix of pairs in memory. Imported only when asked for: needs torch and triton.

Clouds are ``[B, N, D]`` tensors in units where ε = 1: divided by √ε, near the origin. The norms of the cost ½‖x − y‖² are
folded into the potentials, ``F = f − ½‖x‖²`` and ``H = g − ½‖y‖²``, so that all that is left to do for pairs is x·y. The maths,
the reasons for the numbers below and the floors are in README.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..._gpu import tile_size
from .contract import N_ANNEALING_ITERATIONS, annealed_epsilons

_PROGRAMS = 264  # two for each of the 132 multiprocessors of an H100 or H200: fewer leave some idle
_SWEEPS_PER_LOOK = 4  # between two looks of the host at the error, each of which waits for the GPU
_ANNEALED_ABOVE = 1000.0  # costs in units of ε: below, over-relaxation alone takes fewer sweeps
_SLOWEST_RATE = 0.999  # of convergence that over-relaxation is tuned to

_LOG2_E = tl.constexpr(1.4426950408889634)  # the GPU has instructions for 2^x and log2, not for e^x and log
_LN_2 = tl.constexpr(0.6931471805599453)


class _Tiles(NamedTuple):
    """Rows and columns of a tile of pairs, coordinates multiplied at once, and who computes a tile."""

    rows: int
    columns: int
    chunk: int
    warps: int


_TILES = {torch.float32: _Tiles(rows=128, columns=64, chunk=64, warps=8), torch.float64: _Tiles(64, 64, 64, 8)}


@triton.jit
def _stream(  # type: ignore[no-untyped-def]
    x,
    y,
    h,
    log_weights,
    values,
    log_sums,
    means,
    n,
    m,
    D: tl.constexpr,
    N_VALUES: tl.constexpr,  # 0: no means are asked for
    VALUES: tl.constexpr,  # the power of two that holds them
    TILES_PER_PART: tl.constexpr,  # Triton's interpreter takes no other loop bounds with NumPy 2.4
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """For a block of rows and a part of the columns: log2 Σ_j w_ij and Σ_j w_ij v_j / Σ_j w_ij, w_ij = b_j exp(x_i·y_j + h_j).

    Tile by tile, with the largest exponent so far taken out of the sums, as in flash attention.
    """
    part, batch = tl.program_id(1), tl.program_id(2).to(tl.int64)
    first_row, first_column = tl.program_id(0) * ROWS, part * TILES_PER_PART * COLUMNS
    row, column, coordinate, value = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, CHUNK), tl.arange(0, VALUES)
    row_exists, value_exists = first_row + row < n, value < N_VALUES
    x += (batch * n + first_row) * D
    real = x.dtype.element_ty
    # Finite, so that a tile of points without weight (all exponents −∞) adds exp(−∞) = 0 and not exp(−∞ + ∞).
    largest = tl.full([ROWS], -1e30, real)
    total = tl.zeros([ROWS], real)
    weighted = tl.zeros([ROWS, VALUES], real)
    for tile in range(TILES_PER_PART):
        start = first_column + tile * COLUMNS
        column_exists = start + column < m
        y_tile = y + (batch * m + start) * D
        products = tl.zeros([ROWS, COLUMNS], real)
        for k in range(0, D, CHUNK):
            exists = k + coordinate < D
            x_at, y_at = x + k + row[:, None] * D + coordinate[None, :], y_tile + k + column[:, None] * D + coordinate[None, :]
            x_chunk = tl.load(x_at, mask=row_exists[:, None] & exists[None, :], other=0.0)
            y_chunk = tl.load(y_at, mask=column_exists[:, None] & exists[None, :], other=0.0)
            products = tl.dot(x_chunk, tl.trans(y_chunk), products, input_precision=PRECISION, out_dtype=real)
        heights = tl.load(h + batch * m + start + column, mask=column_exists, other=float("-inf"))
        heights += tl.load(log_weights + batch * m + start + column, mask=column_exists, other=0.0)
        exponents = (products + heights[None, :]) * _LOG2_E
        larger = tl.maximum(largest, tl.max(exponents, axis=1))
        weights = tl.exp2(exponents - larger[:, None])
        kept = tl.exp2(largest - larger)
        total = total * kept + tl.sum(weights, axis=1)
        if N_VALUES > 0:
            values_at = values + (batch * m + start) * N_VALUES + column[:, None] * N_VALUES + value[None, :]
            v = tl.load(values_at, mask=column_exists[:, None] & value_exists[None, :], other=0.0)
            weighted = tl.dot(weights, v, weighted * kept[:, None], input_precision=PRECISION, out_dtype=real)
        largest = larger
    out = (part * tl.num_programs(2) + batch) * n + first_row
    tl.store(log_sums + out + row, largest + tl.log2(total), mask=row_exists)
    if N_VALUES > 0:
        mean = weighted / tl.where(total > 0, total, 1)[:, None]
        means_at = means + out * N_VALUES + row[:, None] * N_VALUES + value[None, :]
        tl.store(means_at, mean, mask=row_exists[:, None] & value_exists[None, :])


@triton.jit
def _merge(log_sums, before, updated, relaxation, size, N_PARTS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """−log of the sum over parts, and from ``before`` so far towards it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    largest = tl.load(log_sums + at, mask=inside, other=0.0)
    for part in range(1, N_PARTS):
        largest = tl.maximum(largest, tl.load(log_sums + part * size + at, mask=inside, other=0.0))
    total = tl.zeros([BLOCK], log_sums.dtype.element_ty)
    for part in range(N_PARTS):
        total += tl.exp2(tl.load(log_sums + part * size + at, mask=inside, other=0.0) - largest)
    softmins = -_LN_2 * (largest + tl.log2(total))
    if before is not None:
        softmins -= (softmins - tl.load(before + at, mask=inside, other=0.0)) * (1 - relaxation)
    tl.store(updated + at, softmins, mask=inside)


class Solution(NamedTuple):
    """Potentials without the norms, the ℓ1 error of the second marginal for each problem of the batch, and sweeps done."""

    F: Tensor  # [B, N]
    H: Tensor  # [B, M]
    error: Tensor  # [B]
    n_sweeps: int


def softmin(
    x: Tensor,
    y: Tensor,
    h: Tensor,
    log_weights: Tensor,
    *,
    before: Tensor | None = None,
    relaxation: float = 1.0,
    precision: str = "tf32x3",
) -> Tensor:
    """``−log Σ_j b_j exp(x_i·y_j + h_j)``, as ``[B, N]``, or from ``before`` so far towards it.

    Two launches: where clouds are small, these are what takes time. Products of float32 are made by ``precision``, "tf32x3" or
    "ieee".
    """
    log_sums, _ = _streamed(x, y, h, log_weights, None, precision)
    updated = torch.empty_like(log_sums[0])
    before = None if before is None else before.contiguous()
    block = 256
    _merge[(triton.cdiv(updated.numel(), block),)](
        log_sums, before, updated, relaxation, updated.numel(), N_PARTS=len(log_sums), BLOCK=block
    )
    return updated


def project(x: Tensor, y: Tensor, h: Tensor, log_weights: Tensor, values: Tensor, precision: str = "tf32x3") -> Tensor:
    """Means of ``values_j`` by the same weights, as ``[B, N, V]``; few values at a time, which have to fit into registers."""
    chunks = []
    for chunk in values.split(_TILES[x.dtype].chunk, dim=2):
        log_sums, means = _streamed(x, y, h, log_weights, chunk.contiguous(), precision)
        shares = torch.softmax(log_sums * _LN_2.value, dim=0)
        chunks.append((shares[..., None] * means).sum(dim=0))
    return torch.cat(chunks, dim=2)


def cross(x: Tensor, y: Tensor, a: Tensor, b: Tensor, largest_cost: float, tolerance: float, max_sweeps: int) -> Solution:
    """Alternating updates, over-relaxed by as much as the rate of convergence allows."""
    log_a, log_b = a.log(), b.log()
    levels = annealed_epsilons(largest_cost, 1.0) if _ANNEALED_ABOVE < largest_cost < math.inf else [1.0]
    F, H = (-half_squared_norms(points) / levels[0] for points in (x, y))

    def sweep(x: Tensor, F: Tensor, H: Tensor, relaxation: float = 1.0) -> tuple[Tensor, Tensor]:
        F = softmin(x, y, H, log_b, before=F, relaxation=relaxation)
        return F, softmin(y, x, F, log_a, before=H, relaxation=relaxation)

    n_sweeps = 0
    for level in levels[:-1]:
        for _ in range(N_ANNEALING_ITERATIONS):
            F, H = sweep(x / level, F, H)
        F, H = 2 * F, 2 * H  # the same potentials in the unit of the next level, half of this
        n_sweeps += N_ANNEALING_ITERATIONS
    relaxation, last_error = 1.0, math.inf
    for n in _sweeps_between_looks(max_sweeps):
        for _ in range(n - 1):
            F, H = sweep(x, F, H, relaxation)
        F, updated = sweep(x, F, H)  # not relaxed: the first marginal is exact, so the error is that of the second
        error, H = _marginal_error(H, updated, b, log_b), updated
        n_sweeps += n
        largest_error = float(error.max())
        if not largest_error > tolerance:  # or if it is not a number
            break
        relaxation, last_error = _next_relaxation(relaxation, (largest_error / last_error) ** (1 / n)), largest_error
    return Solution(F, H, error, n_sweeps)


def itself(x: Tensor, a: Tensor, tolerance: float, max_sweeps: int) -> Solution:
    """Averaged updates. Potentials are within ½ log(1/min a) of the start and errors at least halve: no annealing needed."""
    log_a = a.log()
    F, n_sweeps = -half_squared_norms(x), 0
    for n in _sweeps_between_looks(max_sweeps):
        for _ in range(n):
            before, F = F, softmin(x, x, F, log_a, before=F, relaxation=0.5)
        error = _marginal_error(before, 2 * F - before, a, log_a)
        n_sweeps += n
        if not float(error.max()) > tolerance:
            break
    return Solution(F, F, error, n_sweeps)


def half_squared_norms(points: Tensor) -> Tensor:
    """½‖p‖² of all points ``[B, N, D]``."""
    return points.square().sum(dim=2) / 2


def _streamed(
    x: Tensor, y: Tensor, h: Tensor, log_weights: Tensor, values: Tensor | None, precision: str
) -> tuple[Tensor, Tensor]:
    """What `_stream` finds in each part of the columns: ``[parts, B, N]`` and ``[parts, B, N, V]``."""
    (n_batches, n, d), m = x.shape, y.shape[1]
    tiles = _TILES[x.dtype]
    n_row_blocks, n_tiles = triton.cdiv(n, tiles.rows), triton.cdiv(m, tiles.columns)
    tiles_per_part = _rounded_up(triton.cdiv(n_tiles, max(1, _PROGRAMS // (n_row_blocks * n_batches))))
    n_parts = triton.cdiv(n_tiles, tiles_per_part)
    n_values = 0 if values is None else values.shape[2]
    log_sums, means = x.new_empty(n_parts, n_batches, n), x.new_empty(n_parts, n_batches, n, n_values)
    _stream[(n_row_blocks, n_parts, n_batches)](
        x.contiguous(),
        y.contiguous(),
        h.contiguous(),
        log_weights.contiguous(),
        values,
        log_sums,
        means,
        n,
        m,
        D=d,
        N_VALUES=n_values,
        VALUES=tile_size(n_values),
        TILES_PER_PART=tiles_per_part,
        ROWS=tiles.rows,
        COLUMNS=tiles.columns,
        CHUNK=min(tiles.chunk, tile_size(d)),
        PRECISION=precision if x.dtype == torch.float32 else "ieee",
        num_warps=tiles.warps,
        num_stages=2,
    )
    return log_sums, means


def _rounded_up(count: int) -> int:
    """To three binary digits: few loops are compiled for clouds of many sizes, none is a quarter too long."""
    step: int = 2 ** max(0, count.bit_length() - 3)
    return -(-count // step) * step


def _marginal_error(before: Tensor, updated: Tensor, weights: Tensor, log_weights: Tensor) -> Tensor:
    """ℓ1 distance of the marginal from the weights; an update of the potential is the logarithm of their ratio."""
    return ((before - updated + log_weights).exp() - weights).abs().sum(dim=1)


def _sweeps_between_looks(max_sweeps: int) -> Iterator[int]:
    for done in range(0, max_sweeps, _SWEEPS_PER_LOOK):
        yield min(_SWEEPS_PER_LOOK, max_sweeps - done)


def _next_relaxation(relaxation: float, rate: float) -> float:
    """Young's optimum of successive over-relaxation for the rate of convergence seen with ``relaxation``."""
    if rate >= 1:
        return 1.0
    if rate <= relaxation - 1:  # at the optimum or beyond, where the rate says nothing more
        return relaxation
    unrelaxed = (rate + relaxation - 1) ** 2 / (rate * relaxation**2)  # the rate that plain updates would have
    return 2 / (1 + math.sqrt(1 - min(unrelaxed, _SLOWEST_RATE)))
