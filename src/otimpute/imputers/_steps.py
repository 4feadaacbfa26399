"""Compiled gradient steps of Algorithm 1: batches in, imputed values moved.

The state is laid out so that the cost of a step does not depend on the number of rows: whatever a dense optimizer would do
to rows outside the batch (decay their squared gradients, add them to the running mean) is done when they are next drawn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from ..transport.kernels._loops import balance, balance_self, half_squared_norms
from ._pairs import draw_rows

_RMSPROP_DECAY = 0.99
_RMSPROP_EPSILON = 1e-8


class Cells(NamedTuple):
    """The table being completed and, packed row by row, one parameter per missing value.

    What a step needs of a row lies together: in a long table every array touched is a wait for memory.
    """

    values: NDArray[np.floating]  # [n_rows, width]: the columns, a column of ones, zeros up to the padded width
    rows: NDArray[np.int32]  # [n_rows + 1, 4]: FIRST_CELL, LAST_STEP, PLACE, unused; row i's cells end where row i + 1's begin
    potentials: NDArray[np.floating]  # [n_rows, 2], in units of ε: warm starts of the SELF and CROSS terms
    column: NDArray[np.int32]  # [n_cells]
    moments: NDArray[np.floating]  # [n_cells, 2]: SQUARE (RMSprop's mean squared gradient), TOTAL (over the window's steps)


FIRST_CELL, LAST_STEP, PLACE = 0, 1, 2
SELF, CROSS = 0, 1
SQUARE, TOTAL = 0, 1


class Geometry(NamedTuple):
    """The cost ½‖(x − y) A‖² in units of ε, or the one with imputed coordinates down-weighted."""

    metric: NDArray[np.floating]  # [width, width]: A, symmetric, zero in the padding; [0, 0] for the identity
    precision: NDArray[np.floating]  # [width, width]: A², which turns a displacement into a gradient; or [0, 0]
    inverse_epsilon: float
    imputed_weight: float  # below 1, the metric is not used
    n_columns: int


class Plan(NamedTuple):
    """How batches are drawn and how far each Sinkhorn loop goes."""

    seed: int
    x_rows: NDArray[np.int64]  # rows the first batch is drawn from; empty means all rows
    y_rows: NDArray[np.int64]
    n_cross_iterations: int
    n_self_iterations: int


class Workspace(NamedTuple):
    """Buffers of one thread."""

    x: NDArray[np.floating]  # [m, width]
    y: NDArray[np.floating]
    zx: NDArray[np.floating]  # [width, m]: the batches in the metric of the cost, coordinate by coordinate
    zy: NDArray[np.floating]
    similarity: NDArray[np.floating]  # [m, m]
    plan: NDArray[np.floating]  # [m, m]
    weighted: NDArray[np.floating]  # [m, width]
    projected: NDArray[np.floating]  # [m, width]
    weights: NDArray[np.floating]  # [m]: 1/m
    vectors: NDArray[np.floating]  # [8, m]
    importance: NDArray[np.floating]  # [2, m, width], this and the next only when imputed coordinates are down-weighted
    left: NDArray[np.floating]  # [2, m, 3 width]
    right: NDArray[np.floating]


class Gradients(NamedTuple):
    """What the pairs of one step found, in pair order."""

    rows: NDArray[np.int64]  # [n_pairs, 2, m]
    gradient: NDArray[np.floating]  # [n_pairs, 2, m, width]
    self_potential: NDArray[np.floating]  # [n_pairs, 2, m]
    cross_potential: NDArray[np.floating]
    loss: NDArray[np.float64]  # [n_pairs]
    error: NDArray[np.float64]  # [n_pairs]: marginal error of the cross term where its loop was cut


@compiled
def _gather(cells, pool, seed, step, pair, side, rows, out):  # type: ignore[no-untyped-def]
    """Draw a batch and copy its rows."""
    n_rows = cells.values.shape[0] if pool.shape[0] == 0 else pool.shape[0]
    draw_rows(seed, step, pair, side, n_rows, rows)
    for i in range(rows.shape[0]):
        if pool.shape[0] > 0:
            rows[i] = pool[rows[i]]
        row = rows[i]
        for k in range(out.shape[1]):
            out[i, k] = cells.values[row, k]


@compiled
def _weigh_coordinates(cells, geometry, rows, points, importance, left, right):  # type: ignore[no-untyped-def]
    """Spread ``Σ_k w_ik w_jk (x_ik − x_jk)²`` over three blocks of columns, so that it is one matrix product."""
    width = points.shape[1]
    for i in range(rows.shape[0]):
        for k in range(geometry.n_columns):
            importance[i, k] = 1
        for p in range(cells.rows[rows[i], FIRST_CELL], cells.rows[rows[i] + 1, FIRST_CELL]):
            importance[i, cells.column[p]] = geometry.imputed_weight
        for k in range(geometry.n_columns):
            w = importance[i, k]
            x = points[i, k]
            left[i, k] = w * x * x
            left[i, width + k] = w
            left[i, 2 * width + k] = -2 * w * x
            right[i, k] = w
            right[i, width + k] = w * x * x
            right[i, 2 * width + k] = w * x


@compiled
def _similarity(work, geometry, first, second):  # type: ignore[no-untyped-def]
    """Minus the cost between batches ``first`` and ``second`` (0 = x, 1 = y), up to terms of one side only."""
    if geometry.imputed_weight < 1:
        # C_ij = ½ d Σ_k w_ik w_jk (x_ik − x_jk)² / Σ_k w_ik w_jk
        np.dot(work.left[first], work.right[second].T, work.similarity)
        np.dot(work.importance[first], work.importance[second].T, work.plan)
        zero = work.similarity.dtype.type(0)
        half_columns = work.similarity.dtype.type(geometry.n_columns / 2)
        for i in range(work.similarity.shape[0]):
            for j in range(work.similarity.shape[1]):
                work.similarity[i, j] = -half_columns * max(work.similarity[i, j], zero) / work.plan[i, j]
    else:
        u = work.zx if first == 0 else work.zy
        v = work.zx if second == 0 else work.zy
        np.dot(u.T, v, work.similarity)


@compiled
def _add_projection(work, transposed, weights, points, n_columns, sign, gradient):  # type: ignore[no-untyped-def]
    """``gradient += sign · T`` with T the row-normalised barycentric projection; the column of ones is the normaliser."""
    for i in range(points.shape[0]):
        for k in range(points.shape[1]):
            work.weighted[i, k] = weights[i] * points[i, k]
    if transposed:
        np.dot(work.plan.T, work.weighted, work.projected)
    else:
        np.dot(work.plan, work.weighted, work.projected)
    for i in range(gradient.shape[0]):
        scale = sign / work.projected[i, n_columns]
        for k in range(n_columns):
            gradient[i, k] += scale * work.projected[i, k]


@compiled
def pair_gradient(cells, geometry, plan, work, step, pair, out):  # type: ignore[no-untyped-def]
    """Divergence between two batches and its gradient with respect to both, written into slot ``pair`` of ``out``."""
    d = geometry.n_columns
    s = cells.values.dtype.type(geometry.inverse_epsilon)
    one = cells.values.dtype.type(1)
    a = work.weights
    norms = work.vectors[0:2]
    F, H, u, v = work.vectors[2], work.vectors[3], work.vectors[4], work.vectors[5]
    w, t = work.vectors[6], work.vectors[7]
    for side in range(2):
        rows = out.rows[pair, side]
        points = work.x if side == 0 else work.y
        _gather(cells, plan.x_rows if side == 0 else plan.y_rows, plan.seed, step, pair, side, rows, points)
        if geometry.imputed_weight < 1:
            norms[side] = 0
            _weigh_coordinates(cells, geometry, rows, points, work.importance[side], work.left[side], work.right[side])
        else:
            z = work.zx if side == 0 else work.zy
            if geometry.metric.shape[0] > 0:
                np.dot(geometry.metric, points.T, z)
            else:
                for i in range(a.shape[0]):
                    for k in range(d):
                        z[k, i] = points[i, k]
            half_squared_norms(z, norms[side])
            for i in range(a.shape[0]):
                norms[side, i] *= s
    loss = 0.0
    for side in range(2):
        rows = out.rows[pair, side]
        gradient = out.gradient[pair, side]
        gradient[:] = 0
        for i in range(a.shape[0]):
            F[i] = cells.potentials[rows[i], SELF] - norms[side, i]
        _similarity(work, geometry, side, side)
        balance_self(work.similarity, s, a, F, work.plan, u, w, t, plan.n_self_iterations, 0.0)
        _add_projection(work, False, w, work.x if side == 0 else work.y, d, one, gradient)
        for i in range(a.shape[0]):
            F[i] += norms[side, i]
            loss -= a[i] * F[i]
            out.self_potential[pair, side, i] = F[i]
    for i in range(a.shape[0]):
        F[i] = cells.potentials[out.rows[pair, 0, i], CROSS] - norms[0, i]
    _similarity(work, geometry, 0, 1)
    _, error = balance(work.similarity, s, a, a, F, H, work.plan, u, v, w, t, plan.n_cross_iterations, 0.0)
    _add_projection(work, False, w, work.y, d, -one, out.gradient[pair, 0])
    for i in range(a.shape[0]):
        w[i] = a[i] * u[i]
    _add_projection(work, True, w, work.x, d, -one, out.gradient[pair, 1])
    if geometry.precision.shape[0] > 0:
        for side in range(2):
            np.dot(out.gradient[pair, side], geometry.precision, work.projected)
            out.gradient[pair, side] = work.projected
    # The constant that can be moved between f and g is fixed so that a row's potential does not depend on its side.
    shift = 0.0
    for i in range(a.shape[0]):
        F[i] += norms[0, i]
        H[i] += norms[1, i]
        loss += a[i] * (F[i] + H[i])
        shift += a[i] * (F[i] - H[i]) / 2
    for i in range(a.shape[0]):
        out.cross_potential[pair, 0, i] = F[i] - shift
        out.cross_potential[pair, 1, i] = H[i] + shift
    out.loss[pair] = loss / s
    out.error[pair] = error


@compiled
def _collect(cells, found):  # type: ignore[no-untyped-def]
    """Store the new potentials and add up the gradients of rows drawn more than once; returns how many rows are different.

    Afterwards the first that many entries of ``found.rows`` and ``found.gradient``, read in order, are those rows' own.
    """
    gradient = found.gradient.reshape(-1, found.gradient.shape[3])
    rows = found.rows.reshape(-1)
    self_potential = found.self_potential.reshape(-1)
    cross_potential = found.cross_potential.reshape(-1)
    width = gradient.shape[1]
    n_different = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        cells.potentials[row, SELF] = self_potential[i]
        cells.potentials[row, CROSS] = cross_potential[i]
        place = cells.rows[row, PLACE]
        if place < n_different and rows[place] == row:
            for k in range(width):
                gradient[place, k] += gradient[i, k]
        else:
            cells.rows[row, PLACE] = n_different
            if i != n_different:
                rows[n_different] = row
                for k in range(width):
                    gradient[n_different, k] = gradient[i, k]
            n_different += 1
    return n_different


@compiled
def apply_step(cells, found, step, window_start, learning_rate):  # type: ignore[no-untyped-def]
    """RMSprop with the mean gradient over pairs; a row drawn several times gets the sum of its terms, once.

    Returns the means of loss and marginal error over the pairs.
    """
    n_rows = _collect(cells, found)
    gradient = found.gradient.reshape(-1, found.gradient.shape[3])
    rows = found.rows.reshape(-1)
    kind = cells.values.dtype.type
    scale = kind(1.0 / (found.rows.shape[0] * found.rows.shape[2]))
    rate = kind(learning_rate)
    keep = kind(_RMSPROP_DECAY)
    guard = kind(_RMSPROP_EPSILON)
    for i in range(n_rows):
        row = rows[i]
        last = cells.rows[row, LAST_STEP]
        gap = step - last if last >= 0 else 1
        decay = keep if gap == 1 else kind(_RMSPROP_DECAY**gap)
        elapsed = kind(step - max(last, window_start))
        for p in range(cells.rows[row, FIRST_CELL], cells.rows[row + 1, FIRST_CELL]):
            k = cells.column[p]
            g = gradient[i, k] * scale
            value = cells.values[row, k]
            square = cells.moments[p, SQUARE] * decay + (kind(1) - keep) * g * g
            cells.moments[p, SQUARE] = square
            cells.moments[p, TOTAL] += value * elapsed
            cells.values[row, k] = value - rate * g / (math.sqrt(square) + guard)
        cells.rows[row, LAST_STEP] = step
    return found.loss.mean(), found.error.mean()


@compiled
def index_cells(missing, rows, column):  # type: ignore[no-untyped-def]
    """Number the missing entries row by row: fill FIRST_CELL of ``rows`` and ``column``."""
    n_cells = 0
    for i in range(missing.shape[0]):
        rows[i, FIRST_CELL] = n_cells
        for k in range(missing.shape[1]):
            if missing[i, k]:
                column[n_cells] = k
                n_cells += 1
    rows[missing.shape[0], FIRST_CELL] = n_cells


@compiled
def close_window(cells, window_start, step, mean):  # type: ignore[no-untyped-def]
    """Mean of every cell over the steps ``window_start`` to ``step``, written into ``mean``; a new window begins."""
    length = cells.values.dtype.type(step - window_start)
    for row in range(cells.values.shape[0]):
        rest = cells.values.dtype.type(step - max(cells.rows[row, LAST_STEP], window_start))
        for p in range(cells.rows[row, FIRST_CELL], cells.rows[row + 1, FIRST_CELL]):
            mean[p] = (cells.moments[p, TOTAL] + rest * cells.values[row, cells.column[p]]) / length
            cells.moments[p, TOTAL] = 0


@compiled
def read_cells(cells, out):  # type: ignore[no-untyped-def]
    """Copy the current value of every cell into ``out``."""
    for row in range(cells.values.shape[0]):
        for p in range(cells.rows[row, FIRST_CELL], cells.rows[row + 1, FIRST_CELL]):
            out[p] = cells.values[row, cells.column[p]]


@compiled
def write_cells(cells, source):  # type: ignore[no-untyped-def]
    """Set the current value of every cell from ``source``."""
    for row in range(cells.values.shape[0]):
        for p in range(cells.rows[row, FIRST_CELL], cells.rows[row + 1, FIRST_CELL]):
            cells.values[row, cells.column[p]] = source[p]


@compiled
def run_steps(cells, geometry, plan, work, found, first_step, learning_rates, window_start, losses, errors):  # type: ignore[no-untyped-def]
    """Take ``len(learning_rates)`` steps on one thread."""
    for k in range(learning_rates.shape[0]):
        step = first_step + k
        for pair in range(found.rows.shape[0]):
            pair_gradient(cells, geometry, plan, work, step, pair, found)
        losses[k], errors[k] = apply_step(cells, found, step, window_start, learning_rates[k])
