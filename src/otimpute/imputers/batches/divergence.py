"""The Sinkhorn divergence between two batches of rows and its gradient: what every algorithm here descends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._compile import compiled, compiled_once
from ...transport.kernels.loops import balance, balance_self, half_squared_norms
from .pairs import draw_rows


class TableCells(NamedTuple):
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
    """The cost ½‖(x − y) A‖² in units of ε."""

    metric: NDArray[np.floating]  # [width, width]: A, symmetric, zero in the padding; [0, 0] for the identity
    precision: NDArray[np.floating]  # [width, width]: A², which turns a displacement into a gradient; or [0, 0]
    inverse_epsilon: float
    n_columns: int


class BatchPlan(NamedTuple):
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
    coordinate: NDArray[np.floating]  # [2, m]: the one coordinate of both batches that `column_gradient` projects


class Gradients(NamedTuple):
    """What the pairs of one step found, in pair order."""

    rows: NDArray[np.int64]  # [n_pairs, 2, m]
    gradient: NDArray[np.floating]  # [n_pairs, 2, m, width], or one column instead of width
    self_potential: NDArray[np.floating]  # [n_pairs, 2, m]
    cross_potential: NDArray[np.floating]
    loss: NDArray[np.float64]  # [n_pairs]
    error: NDArray[np.float64]  # [n_pairs]: marginal error of the cross term where its loop was cut


@compiled
def draw_pair(plan, n_rows, step, pair, rows):  # type: ignore[no-untyped-def]
    """Draw both batches of a pair into ``rows [n_pairs, 2, m]``."""
    for side in range(2):
        pool = plan.x_rows if side == 0 else plan.y_rows
        drawn = rows[pair, side]
        draw_rows(plan.seed, step, pair, side, n_rows if pool.shape[0] == 0 else pool.shape[0], drawn)
        if pool.shape[0] > 0:
            for i in range(drawn.shape[0]):
                drawn[i] = pool[drawn[i]]


@compiled
def list_free_rows(cells, rows, free, step, listed):  # type: ignore[no-untyped-def]
    """List the free ones among the drawn ``rows``, each once, and note their place; returns how many there are."""
    n_listed = 0
    for pair in range(rows.shape[0]):
        for side in range(2):
            for i in range(rows.shape[2]):
                row = rows[pair, side, i]
                if free[row] and cells.rows[row, LAST_STEP] != step:
                    cells.rows[row, LAST_STEP] = step
                    cells.rows[row, PLACE] = n_listed
                    listed[n_listed] = row
                    n_listed += 1
    return n_listed


@compiled
def _similarity(work, first, second):  # type: ignore[no-untyped-def]
    """Minus the cost between batches ``first`` and ``second`` (0 = x, 1 = y), up to terms of one side only."""
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
def _load_batch(cells, geometry, work, side, rows, norms):  # type: ignore[no-untyped-def]
    """Copy the rows of a batch, bring them into the metric of the cost, and take half their squared norms over ε."""
    points = work.x if side == 0 else work.y
    for i in range(rows.shape[0]):
        for k in range(points.shape[1]):
            points[i, k] = cells.values[rows[i], k]
    z = work.zx if side == 0 else work.zy
    if geometry.metric.shape[0] > 0:
        np.dot(geometry.metric, points.T, z)
    else:
        for i in range(rows.shape[0]):
            for k in range(geometry.n_columns):
                z[k, i] = points[i, k]
    half_squared_norms(z, norms)
    s = norms.dtype.type(geometry.inverse_epsilon)
    for i in range(rows.shape[0]):
        norms[i] *= s


@compiled
def _balance_self(cells, geometry, plan, work, side, rows, norms, potential):  # type: ignore[no-untyped-def]
    """Sinkhorn of a batch with itself from its rows' potentials; writes the new ``potential``, leaves plan and weights."""
    s = norms.dtype.type(geometry.inverse_epsilon)
    F, u, w, t = work.vectors[2], work.vectors[4], work.vectors[6], work.vectors[7]
    for i in range(rows.shape[0]):
        F[i] = cells.potentials[rows[i], SELF] - norms[i]
    _similarity(work, side, side)
    balance_self(work.similarity, s, work.weights, F, work.plan, u, w, t, plan.n_self_iterations, 0.0)
    for i in range(rows.shape[0]):
        potential[i] = F[i] + norms[i]


@compiled
def _balance_cross(cells, geometry, plan, work, rows, norms, potential):  # type: ignore[no-untyped-def]
    """Sinkhorn between the two batches from the first one's potentials; leaves the plan, its weights and scalings.

    Returns the marginal error.
    """
    s = norms.dtype.type(geometry.inverse_epsilon)
    a = work.weights
    F, H, u, v = work.vectors[2], work.vectors[3], work.vectors[4], work.vectors[5]
    w, t = work.vectors[6], work.vectors[7]
    for i in range(a.shape[0]):
        F[i] = cells.potentials[rows[0, i], CROSS] - norms[0, i]
    _similarity(work, 0, 1)
    _, error = balance(work.similarity, s, a, a, F, H, work.plan, u, v, w, t, plan.n_cross_iterations, 0.0)
    # The constant that can be moved between f and g is fixed so that a row's potential does not depend on its side.
    shift = 0.0
    for i in range(a.shape[0]):
        F[i] += norms[0, i]
        H[i] += norms[1, i]
        shift += a[i] * (F[i] - H[i]) / 2
    for i in range(a.shape[0]):
        potential[0, i] = F[i] - shift
        potential[1, i] = H[i] + shift
    return error


@compiled_once
def pair_gradient(cells, geometry, plan, work, pair, out):  # type: ignore[no-untyped-def]
    """Divergence between the two batches ``out.rows[pair]`` and its gradient with respect to both, m times as large."""
    d = geometry.n_columns
    one = cells.values.dtype.type(1)
    a = work.weights
    rows = out.rows[pair]
    norms = work.vectors[0:2]
    u, w = work.vectors[4], work.vectors[6]
    for side in range(2):
        _load_batch(cells, geometry, work, side, rows[side], norms[side])
    loss = 0.0
    for side in range(2):
        gradient = out.gradient[pair, side]
        gradient[:] = 0
        potential = out.self_potential[pair, side]
        _balance_self(cells, geometry, plan, work, side, rows[side], norms[side], potential)
        _add_projection(work, False, w, work.x if side == 0 else work.y, d, one, gradient)
        for i in range(a.shape[0]):
            loss -= a[i] * potential[i]
    out.error[pair] = _balance_cross(cells, geometry, plan, work, rows, norms, out.cross_potential[pair])
    _add_projection(work, False, w, work.y, d, -one, out.gradient[pair, 0])
    for i in range(a.shape[0]):
        w[i] = a[i] * u[i]
    _add_projection(work, True, w, work.x, d, -one, out.gradient[pair, 1])
    if geometry.precision.shape[0] > 0:
        for side in range(2):
            np.dot(out.gradient[pair, side], geometry.precision, work.projected)
            out.gradient[pair, side] = work.projected
    for side in range(2):
        for i in range(a.shape[0]):
            loss += a[i] * out.cross_potential[pair, side, i]
    out.loss[pair] = loss / geometry.inverse_epsilon


@compiled_once
def column_gradient(cells, geometry, plan, work, column, both_sides, pair, out):  # type: ignore[no-untyped-def]
    """The gradient of `pair_gradient` in one ``column`` only, into ``out.gradient[..., 0]``; no loss.

    A projection is then two matrix–vector products. Unless ``both_sides`` can have changed, the first batch's own term,
    potential and gradient, which nobody asks for, are left out.
    """
    one = cells.values.dtype.type(1)
    a = work.weights
    rows = out.rows[pair]
    norms = work.vectors[0:2]
    u, w = work.vectors[4], work.vectors[6]
    first = 0 if both_sides else 1
    for side in range(2):
        _load_batch(cells, geometry, work, side, rows[side], norms[side])
        # What a displacement contributes to the gradient in this column: its entry there, or its product with a row of A².
        points = work.x if side == 0 else work.y
        for i in range(a.shape[0]):
            q = points[i, column]
            if geometry.precision.shape[0] > 0:
                q = cells.values.dtype.type(0)
                for k in range(geometry.n_columns):
                    q += points[i, k] * geometry.precision[column, k]
            work.coordinate[side, i] = q
    for side in range(first, 2):
        potential = out.self_potential[pair, side]
        out.gradient[pair, side] = 0
        _balance_self(cells, geometry, plan, work, side, rows[side], norms[side], potential)
        _project_rows(work.plan, w, work.coordinate[side], one, out.gradient[pair, side, :, 0])
    out.error[pair] = _balance_cross(cells, geometry, plan, work, rows, norms, out.cross_potential[pair])
    if both_sides:
        _project_rows(work.plan, w, work.coordinate[1], -one, out.gradient[pair, 0, :, 0])
    for i in range(a.shape[0]):
        w[i] = a[i] * u[i]
    _project_columns(work.plan, w, work.coordinate[0], -one, work.vectors[2], work.vectors[3], out.gradient[pair, 1, :, 0])


@compiled
def _project_rows(plan, weights, coordinate, sign, gradient):  # type: ignore[no-untyped-def]
    """``gradient_i += sign · Σ_j K_ij w_j q_j / Σ_j K_ij w_j``."""
    for i in range(plan.shape[0]):
        total = plan.dtype.type(0)
        mass = plan.dtype.type(0)
        for j in range(plan.shape[1]):
            share = plan[i, j] * weights[j]
            mass += share
            total += share * coordinate[j]
        gradient[i] += sign * total / mass


@compiled
def _project_columns(plan, weights, coordinate, sign, total, mass, gradient):  # type: ignore[no-untyped-def]
    """The same with the transposed plan; ``total`` and ``mass`` are buffers."""
    total[:] = 0
    mass[:] = 0
    for i in range(plan.shape[0]):
        weight = weights[i]
        weighted = weight * coordinate[i]
        for j in range(plan.shape[1]):
            mass[j] += weight * plan[i, j]
            total[j] += weighted * plan[i, j]
    for j in range(plan.shape[1]):
        gradient[j] += sign * total[j] / mass[j]


@compiled
def collect_rows(cells, found, free, both_sides, gradient):  # type: ignore[no-untyped-def]
    """Store the new potentials; add up the ``gradient [R, columns]`` of each listed row over pairs and sides.

    Unless ``both_sides`` can have changed, the first one was not compared with itself and no row in it is free.
    """
    scale = cells.values.dtype.type(1.0 / (found.rows.shape[0] * found.rows.shape[2]))
    gradient[:] = 0
    for pair in range(found.rows.shape[0]):
        for side in range(2):
            for i in range(found.rows.shape[2]):
                row = found.rows[pair, side, i]
                if both_sides or side == 1:
                    cells.potentials[row, SELF] = found.self_potential[pair, side, i]
                cells.potentials[row, CROSS] = found.cross_potential[pair, side, i]
                if free[row]:
                    place = cells.rows[row, PLACE]
                    for k in range(gradient.shape[1]):
                        gradient[place, k] += scale * found.gradient[pair, side, i, k]


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


def make_cells(values: NDArray[np.float32], missing: NDArray[np.bool_]) -> TableCells:
    """State for a working copy whose holes already hold their start."""
    n_cells = int(missing.sum())
    if n_cells > np.iinfo(np.int32).max:
        raise ValueError(f"{n_cells} values are missing, more than the 2³¹ − 1 one fit can hold; impute parts of the rows")
    rows = np.full((len(values) + 1, 4), -1, np.int32)
    rows[:, PLACE] = 0
    column = np.empty(n_cells, np.int32)
    index_cells(missing, rows, column)
    kind = values.dtype
    return TableCells(values, rows, np.zeros((len(values), 2), kind), column, np.zeros((n_cells, 2), kind))


def make_geometry(metric: NDArray[np.float64], epsilon: float, n_columns: int, width: int) -> Geometry:
    """The cost for a working copy of ``width`` padded columns; ``metric`` is A, or [0, 0] for the identity."""
    d = len(metric)
    padded, precision = (np.zeros((width, width) if d else (0, 0), np.float32) for _ in range(2))
    padded[:d, :d] = metric
    precision[:d, :d] = metric @ metric
    return Geometry(padded, precision, 1 / epsilon, n_columns)


def make_workspace(batch_size: int, width: int, kind: Any) -> Workspace:
    """Buffers for batches of one size."""

    def empty(*shape: int) -> NDArray[np.floating]:
        return np.zeros(shape, kind)

    m = batch_size
    return Workspace(
        x=empty(m, width), y=empty(m, width), zx=empty(width, m), zy=empty(width, m),
        similarity=empty(m, m), plan=empty(m, m), weighted=empty(m, width), projected=empty(m, width),
        weights=np.full(m, 1 / m, kind), vectors=empty(8, m), coordinate=empty(2, m),
    )  # fmt: skip


def make_gradients(n_pairs: int, batch_size: int, width: int, kind: Any) -> Gradients:
    """Room for what so many pairs find."""

    def empty(*shape: int) -> NDArray[np.floating]:
        return np.zeros((n_pairs, 2, batch_size, *shape), kind)

    rows = np.zeros((n_pairs, 2, batch_size), np.int64)
    return Gradients(rows, empty(width), empty(), empty(), np.zeros(n_pairs), np.zeros(n_pairs))
