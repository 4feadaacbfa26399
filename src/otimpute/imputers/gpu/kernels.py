"""Steps of Algorithm 1 on a GPU, in Triton: draw rows, compare batches, move values. Imported only when asked for.

Several fits of tables of one shape run side by side; every array has them as its first axis. Numbers and order of
operations are those of `_steps` and `_batches`, but for the layout: state lies in dense arrays of the table's shape, because
threads that read neighbouring numbers are faster than ones that follow an index.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

from ..._splitmix import GOLDEN, MIX_1, MIX_2
from ...transport.kernels.on_chip import balance, balance_logarithms, balance_self, balance_self_logarithms
from ..batches.pairs import FEWEST_BITS, ROUNDS
from ..sinkhorn.compiled_steps import RMSPROP_DECAY, RMSPROP_EPSILON

_GOLDEN, _MIX_1, _MIX_2 = (tl.constexpr(int(number)) for number in (GOLDEN, MIX_1, MIX_2))
_ROUNDS, _FEWEST_BITS = tl.constexpr(ROUNDS), tl.constexpr(FEWEST_BITS)
_RMSPROP_DECAY, _RMSPROP_EPSILON = tl.constexpr(RMSPROP_DECAY), tl.constexpr(RMSPROP_EPSILON)
_LOG2_RMSPROP_DECAY = tl.constexpr(math.log2(RMSPROP_DECAY))
_CROSS = tl.constexpr(2)  # after the first batch with itself and the second with itself


@triton.jit
def _mix(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> 30)) * _MIX_1
    value = (value ^ (value >> 27)) * _MIX_2
    return value ^ (value >> 31)


@triton.jit
def draw_rows(clock, seeds, pools, pool_sizes, rows, n_fits, n_pairs, n_rows, m, POOLS: tl.constexpr, M: tl.constexpr):  # type: ignore[no-untyped-def]
    """Batches ``rows [steps, fits, pairs, 2, m]`` of the next steps; `_pairs.draw_rows` says how. A program draws one."""
    program = tl.program_id(0)
    side = program % 2
    pair = program // 2 % n_pairs
    fit = program // (2 * n_pairs) % n_fits
    step = tl.load(clock) + program // (2 * n_pairs * n_fits)
    size = tl.load(pool_sizes + 2 * fit + side)
    n_bits = _FEWEST_BITS + 0
    while (1 << n_bits.to(tl.int64)) < size:
        n_bits += 1
    low_bits = ((n_bits + 1) // 2).to(tl.uint64)
    one = tl.full([], 1, tl.uint64)
    low_mask = (one << low_bits) - one
    high_mask = (one << (n_bits // 2).to(tl.uint64)) - one
    key = _mix(tl.load(seeds + fit).to(tl.uint64) + _GOLDEN)
    key = _mix(key + step.to(tl.uint64) * _GOLDEN)
    key = _mix(key + (2 * pair + side + 1).to(tl.uint64) * _GOLDEN)
    lane = tl.arange(0, M)
    position = lane.to(tl.uint64)
    outside = lane < m
    while tl.max(outside.to(tl.int32), axis=0) > 0:
        low = position & low_mask
        high = position >> low_bits
        round_key = key
        for _ in tl.static_range(_ROUNDS // 2):
            low ^= (((high + round_key) * _MIX_1) >> 32) & low_mask
            round_key = round_key * _MIX_2 + _GOLDEN
            high ^= (((low + round_key) * _MIX_1) >> 32) & high_mask
            round_key = round_key * _MIX_2 + _GOLDEN
        position = tl.where(outside, (high << low_bits) | low, position)
        outside = (position >= size.to(tl.uint64)) & (lane < m)
    drawn = position.to(tl.int32)
    if POOLS:
        drawn = tl.load(pools + (2 * fit + side).to(tl.int64) * n_rows + drawn, mask=lane < m, other=0)
    tl.store(rows + program.to(tl.int64) * m + lane, drawn, mask=lane < m)


@triton.jit
def _load_chunk(mapped, rows, there, column, STRIDE: tl.constexpr, CHUNK: tl.constexpr):  # type: ignore[no-untyped-def]
    columns = column + tl.arange(0, CHUNK)
    return tl.load(mapped + rows.to(tl.int64)[:, None] * STRIDE + columns[None, :], mask=there[:, None], other=0.0)


@triton.jit
def _products(  # type: ignore[no-untyped-def]
    mapped, x_rows, y_rows, there, M: tl.constexpr, STRIDE: tl.constexpr, CHUNK: tl.constexpr, PRECISION: tl.constexpr
):
    """``x yᵀ`` of two batches."""
    G = tl.zeros([M, M], tl.float32)
    for column in range(0, STRIDE, CHUNK):
        x = _load_chunk(mapped, x_rows, there, column, STRIDE, CHUNK)
        y = _load_chunk(mapped, y_rows, there, column, STRIDE, CHUNK)
        G = tl.dot(x, tl.trans(y), G, input_precision=PRECISION)
    return G


@triton.jit
def _store_projection(  # type: ignore[no-untyped-def]
    projected, mapped, plan, rows, weights, masses, there, STRIDE: tl.constexpr, CHUNK: tl.constexpr, PRECISION: tl.constexpr
):
    """Rows of the plan times the weighted points of a batch, over the rows' masses."""
    for column in range(0, STRIDE, CHUNK):
        points = _load_chunk(mapped, rows, there, column, STRIDE, CHUNK) * weights[:, None]
        means = tl.dot(plan, points, input_precision=PRECISION) / masses[:, None]
        tl.store(projected + column + tl.arange(0, CHUNK)[None, :], means, mask=there[:, None])


# Compiled once for all steps of a block, which differ in this number and in where their rows begin.
@triton.jit(do_not_specialize=["step_ahead"], do_not_specialize_on_alignment=["rows"])
def compare_batches(  # type: ignore[no-untyped-def]
    mapped, norms, potentials, rows, projected, new_potentials, found, clock, step_ahead,
    n_fits, n_pairs, n_rows, m,
    M: tl.constexpr, STRIDE: tl.constexpr, CHUNK: tl.constexpr, N_CROSS: tl.constexpr, N_SELF: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One of the three terms of a pair's divergence: where it carries each point, its potentials, its share of the loss.

    ``mapped [fits, n, STRIDE]`` are the rows in the metric of the cost, ε being log₂ e, ``norms [fits, n]`` half their squared
    norms; ``potentials [fits, n, 2]``.
    Out: ``projected [fits, pairs, 2 terms, 2 sides, m, STRIDE]``, ``new_potentials [fits, pairs, 2 terms, 2 sides, m]`` and
    ``found [steps, fits, pairs, 4]`` (three shares of the loss, in the same units, and the marginal error).
    """
    program = tl.program_id(0)
    term = _CROSS - program // (n_fits * n_pairs)  # cross terms take longest: they come first
    pair_of_fit = program % (n_fits * n_pairs)
    fit = (pair_of_fit // n_pairs).to(tl.int64)
    step = tl.load(clock).to(tl.int64) + step_ahead
    lane = tl.arange(0, M)
    there = lane < m
    a = tl.where(there, 1.0 / m, 0.0)
    mapped += fit * n_rows * STRIDE
    norms += fit * n_rows
    potentials += fit * n_rows * 2
    rows += pair_of_fit * 2 * m
    places = new_potentials + pair_of_fit * 4 * m + lane
    projected += pair_of_fit.to(tl.int64) * 4 * m * STRIDE + lane[:, None] * STRIDE
    found += (step * n_fits * n_pairs + pair_of_fit) * 4
    if term == _CROSS:
        x_rows = tl.load(rows + lane, mask=there, other=0)
        y_rows = tl.load(rows + m + lane, mask=there, other=0)
        x_norms = tl.load(norms + x_rows, mask=there, other=0.0)
        y_norms = tl.load(norms + y_rows, mask=there, other=0.0)
        warm = tl.load(potentials + 2 * x_rows.to(tl.int64) + 1, mask=there, other=0.0) - x_norms
        G = _products(mapped, x_rows, y_rows, there, M, STRIDE, CHUNK, PRECISION)
        G_back = _products(mapped, y_rows, x_rows, there, M, STRIDE, CHUNK, PRECISION)
        F, H, P, P_back, v, u, masses, masses_back, error, fine = balance(G, G_back, warm, a, a, N_CROSS)
        if fine == 0:
            G = _products(mapped, x_rows, y_rows, there, M, STRIDE, CHUNK, PRECISION)
            G_back = _products(mapped, y_rows, x_rows, there, M, STRIDE, CHUNK, PRECISION)
            F, H, P, P_back, v, u, masses, masses_back, error = balance_logarithms(G, G_back, warm, a, a, N_CROSS)
        F += x_norms
        H += y_norms
        # The constant that can be moved between f and g is fixed so that a row's potential does not depend on its side.
        f_mean, g_mean = tl.sum(tl.where(there, a * F, 0.0), axis=0), tl.sum(tl.where(there, a * H, 0.0), axis=0)
        shift = (f_mean - g_mean) / 2
        tl.store(places + 2 * m, F - shift, mask=there)
        tl.store(places + 3 * m, H + shift, mask=there)
        tl.store(found + 2, f_mean + g_mean)
        tl.store(found + 3, error)
        cross = projected + 2 * m * STRIDE
        _store_projection(cross, mapped, P, y_rows, v, masses, there, STRIDE, CHUNK, PRECISION)
        _store_projection(cross + m * STRIDE, mapped, P_back, x_rows, u, masses_back, there, STRIDE, CHUNK, PRECISION)
    else:
        x_rows = tl.load(rows + term * m + lane, mask=there, other=0)
        x_norms = tl.load(norms + x_rows, mask=there, other=0.0)
        warm = tl.load(potentials + 2 * x_rows.to(tl.int64), mask=there, other=0.0) - x_norms
        G = _products(mapped, x_rows, x_rows, there, M, STRIDE, CHUNK, PRECISION)
        F, P, u, masses, fine = balance_self(G, warm, a, N_SELF)
        if fine == 0:
            G = _products(mapped, x_rows, x_rows, there, M, STRIDE, CHUNK, PRECISION)
            F, P, u, masses = balance_self_logarithms(G, warm, a, N_SELF)
        F += x_norms
        tl.store(places + term * m, F, mask=there)
        tl.store(found + term, -tl.sum(tl.where(there, a * F, 0.0), axis=0))
        _store_projection(projected + term * m * STRIDE, mapped, P, x_rows, u, masses, there, STRIDE, CHUNK, PRECISION)


@triton.jit
def _map_rows(  # type: ignore[no-untyped-def]
    values, mapped, norms, to_metric, fit, own_row, there, METRIC: tl.constexpr, STRIDE: tl.constexpr, CHUNK: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Bring rows into the metric of the cost, and in units where ε is log₂ e."""
    norm = tl.zeros([own_row.shape[0]], tl.float32)
    inside = tl.arange(0, CHUNK)
    for column in range(0, STRIDE, CHUNK):
        if METRIC:
            row = tl.zeros([own_row.shape[0], CHUNK], tl.float32)
            for source in range(0, STRIDE, CHUNK):
                matrix = to_metric + (fit * STRIDE + source + inside[:, None]) * STRIDE + column + inside[None, :]
                row = tl.dot(
                    _load_chunk(values, own_row, there, source, STRIDE, CHUNK), tl.load(matrix), row, input_precision=PRECISION
                )
        else:
            row = _load_chunk(values, own_row, there, column, STRIDE, CHUNK) * tl.load(to_metric + fit)
        norm += 0.5 * tl.sum(row * row, axis=1)
        tl.store(mapped + own_row[:, None] * STRIDE + column + inside[None, :], row, mask=there[:, None])
    tl.store(norms + own_row, norm, mask=there)


@triton.jit
def map_all(  # type: ignore[no-untyped-def]
    values, mapped, norms, to_metric, n_rows,
    METRIC: tl.constexpr, STRIDE: tl.constexpr, ENTRIES: tl.constexpr, CHUNK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """`_map_rows` for all rows of all fits."""
    fit = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ENTRIES + tl.arange(0, ENTRIES)
    own_row = fit * n_rows + row
    _map_rows(values, mapped, norms, to_metric, fit, own_row, row < n_rows, METRIC, STRIDE, CHUNK, PRECISION)


@triton.jit
def _displacement(projected, order, rows, row, first, place, m, n_entries, column, STRIDE: tl.constexpr, CHUNK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum of (own term − cross term) over all entries that drew a row; ``place`` is where each row's run begins."""
    columns = column + tl.arange(0, CHUNK)[None, :]
    total = tl.zeros([row.shape[0], CHUNK], tl.float32)
    ahead = 0
    more = first
    while tl.max(more.to(tl.int32), axis=0) > 0:
        entry = tl.load(order + place + ahead, mask=more, other=0)
        start = ((entry // (2 * m) * 4 * m + entry % (2 * m)).to(tl.int64) * STRIDE)[:, None] + columns
        own = tl.load(projected + start, mask=more[:, None], other=0.0)
        cross = tl.load(projected + start + 2 * m * STRIDE, mask=more[:, None], other=0.0)
        total += own - cross
        ahead += 1
        more = more & (place + ahead < n_entries)
        more = more & (tl.load(rows + place + ahead, mask=more, other=-1) == row)
    return total


@triton.jit(do_not_specialize=["step_ahead"], do_not_specialize_on_alignment=["order", "sorted_rows"])
def move_values(  # type: ignore[no-untyped-def]
    values, mapped, norms, squares, totals, free, last_steps, potentials,
    projected, new_potentials, order, sorted_rows, to_metric, from_metric, rates, clock, step_ahead,
    n_pairs, n_rows, m,
    METRIC: tl.constexpr, STRIDE: tl.constexpr, ENTRIES: tl.constexpr, CHUNK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """RMSprop with the mean gradient over pairs; a row drawn several times gets the sum of its terms, once.

    ``order`` sorts the drawn entries of a fit by row; a program takes some of them and acts where a row's run begins.
    ``from_metric`` turns displacements into gradients, ``to_metric`` rows into ``mapped`` ones; numbers without METRIC.
    """
    fit = tl.program_id(1).to(tl.int64)
    n_entries = n_pairs * 2 * m
    place = tl.program_id(0) * ENTRIES + tl.arange(0, ENTRIES)
    exists = place < n_entries
    order += fit * n_entries
    sorted_rows += fit * n_entries
    row = tl.load(sorted_rows + place, mask=exists, other=-1)
    first = exists & (row != tl.load(sorted_rows + place - 1, mask=exists & (place > 0), other=-1))
    projected += fit * n_entries * 2 * STRIDE
    step = tl.load(clock) + step_ahead
    window_start = tl.load(clock + 1)
    rate = tl.load(rates + step)
    own_row = fit * n_rows + row.to(tl.int64)
    last = tl.load(last_steps + own_row, mask=first, other=0)
    gap = tl.where(last >= 0, step - last, 1).to(tl.float32)
    decay = tl.where(gap == 1, _RMSPROP_DECAY, tl.exp2(gap * _LOG2_RMSPROP_DECAY))[:, None]
    elapsed = (step - tl.maximum(last, window_start)).to(tl.float32)[:, None]
    scale = 1.0 / (n_pairs * m)
    inside = tl.arange(0, CHUNK)
    for column in range(0, STRIDE, CHUNK):
        if METRIC:
            gradient = tl.zeros([ENTRIES, CHUNK], tl.float32)
            for source in range(0, STRIDE, CHUNK):
                moved = _displacement(projected, order, sorted_rows, row, first, place, m, n_entries, source, STRIDE, CHUNK)
                matrix = from_metric + (fit * STRIDE + source + inside[:, None]) * STRIDE + column + inside[None, :]
                gradient = tl.dot(moved, tl.load(matrix), gradient, input_precision=PRECISION)
        else:
            gradient = _displacement(projected, order, sorted_rows, row, first, place, m, n_entries, column, STRIDE, CHUNK)
            gradient *= tl.load(from_metric + fit)
        gradient *= scale
        cells = own_row[:, None] * STRIDE + column + inside[None, :]
        moves = first[:, None] & (tl.load(free + cells, mask=first[:, None], other=0) > 0)
        value = tl.load(values + cells, mask=first[:, None], other=0.0)
        square = tl.load(squares + cells, mask=moves, other=0.0) * decay + (1 - _RMSPROP_DECAY) * gradient * gradient
        tl.store(squares + cells, square, mask=moves)
        tl.store(totals + cells, tl.load(totals + cells, mask=moves, other=0.0) + value * elapsed, mask=moves)
        value -= tl.where(moves, rate * gradient / (tl.sqrt(square) + _RMSPROP_EPSILON), 0.0)
        tl.store(values + cells, value, mask=moves)
    tl.debug_barrier()  # what other threads of this program wrote is read next
    _map_rows(values, mapped, norms, to_metric, fit, own_row, first, METRIC, STRIDE, CHUNK, PRECISION)
    # Of a row drawn several times the last potentials count, as they would one entry after the other.
    ends = exists & (row != tl.load(sorted_rows + place + 1, mask=place + 1 < n_entries, other=-1))
    entry = tl.load(order + place, mask=ends, other=0)
    new = new_potentials + fit * n_entries * 2 + entry // (2 * m) * 4 * m + entry % (2 * m)
    tl.store(potentials + 2 * own_row, tl.load(new, mask=ends), mask=ends)
    tl.store(potentials + 2 * own_row + 1, tl.load(new + 2 * m, mask=ends), mask=ends)
    tl.store(last_steps + own_row, tl.zeros_like(row) + step, mask=first)
