"""Compiled gradient steps of Algorithm 1: batches in, imputed values moved.

The state is laid out so that the cost of a step does not depend on the number of rows: whatever a dense optimizer would do
to rows outside the batch (decay their squared gradients, add them to the running mean) is done when they are next drawn.
"""

from __future__ import annotations

import math

from ..._compile import compiled, compiled_once
from ..batches.divergence import CROSS, FIRST_CELL, LAST_STEP, PLACE, SELF, SQUARE, TOTAL, draw_pair, pair_gradient

RMSPROP_DECAY = 0.99
RMSPROP_EPSILON = 1e-8


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


@compiled_once
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
    keep = kind(RMSPROP_DECAY)
    guard = kind(RMSPROP_EPSILON)
    for i in range(n_rows):
        row = rows[i]
        last = cells.rows[row, LAST_STEP]
        gap = step - last if last >= 0 else 1
        decay = keep if gap == 1 else kind(RMSPROP_DECAY**gap)
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
            draw_pair(plan, cells.values.shape[0], step, pair, found.rows)
            pair_gradient(cells, geometry, plan, work, pair, found)
        losses[k], errors[k] = apply_step(cells, found, step, window_start, learning_rates[k])
