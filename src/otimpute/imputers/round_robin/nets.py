"""One small network per column, trained by compiled code: Algorithm 3's innermost loop.

A network is a list of layer ``sizes`` (inputs first, one output last) with ReLU between layers; a linear model has none
between. Its parameters lie in one vector: weights and biases, layer by layer. Activations are ``units [sum(sizes), R]``, a
column of numbers per row of the table, so that a row's result does not depend on which rows it is computed with.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._compile import compiled, compiled_once
from ..._stored import stored
from ..batches.divergence import collect_rows, column_gradient, draw_pair, list_free_rows

_ADAM_FIRST = 0.9
_ADAM_SECOND = 0.999
_ADAM_EPSILON = 1e-8


class Nets(NamedTuple):
    """The networks of all columns and their optimizer's state."""

    sizes: NDArray[np.int64]
    parameters: NDArray[np.floating]  # [d, p]
    moments: NDArray[np.floating]  # [2, d, p]: Adam's running means of the gradient and of its square
    n_updates: NDArray[np.int64]  # [d]
    groups: NDArray[np.int64]  # [d]: columns that must not predict each other share theirs


@stored(free="0")
class Target(NamedTuple):
    """The column whose network is being trained."""

    column: int
    free: NDArray[np.bool_]  # [n_rows]: where the network's prediction stands in the table
    both_sides: bool  # whether the first batch may contain free rows
    low: float  # predictions are held within these
    high: float


def n_parameters(sizes: NDArray[np.int64]) -> int:
    """How many numbers a network has.

    >>> n_parameters(np.array([3, 1])), n_parameters(np.array([3, 6, 3, 1]))
    (4, 49)
    """
    return int(np.sum((sizes[:-1] + 1) * sizes[1:]))


@compiled
def forward(sizes, parameters, units):  # type: ignore[no-untyped-def]
    """Compute all layers from the inputs in the first rows of ``units``; the output is its last row."""
    begin = 0
    p = 0
    n_rows = units.shape[1]
    zero = units.dtype.type(0)
    for layer in range(sizes.shape[0] - 1):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        below = units[begin : begin + n_in]
        above = units[begin + n_in : begin + n_in + n_out]
        n4 = n_in // 4 * 4
        for o in range(n_out):
            weights = parameters[p + o * n_in : p + (o + 1) * n_in]
            bias = parameters[p + n_out * n_in + o]
            for r in range(n_rows):
                above[o, r] = bias
            for k in range(0, n4, 4):
                for r in range(n_rows):
                    above[o, r] += (
                        weights[k] * below[k, r]
                        + weights[k + 1] * below[k + 1, r]
                        + weights[k + 2] * below[k + 2, r]
                        + weights[k + 3] * below[k + 3, r]
                    )
            for k in range(n4, n_in):
                for r in range(n_rows):
                    above[o, r] += weights[k] * below[k, r]
            if layer < sizes.shape[0] - 2:
                for r in range(n_rows):
                    above[o, r] = max(above[o, r], zero)
        begin += n_in
        p += (n_in + 1) * n_out


@compiled
def backward(sizes, parameters, units, deltas, gradient):  # type: ignore[no-untyped-def]
    """Gradient with respect to the parameters; the last row of ``deltas`` holds the one with respect to the output."""
    p = parameters.shape[0]
    end = units.shape[0]
    for layer in range(sizes.shape[0] - 2, -1, -1):
        n_in = sizes[layer]
        n_out = sizes[layer + 1]
        delta = deltas[end - n_out : end]
        below = units[end - n_out - n_in : end - n_out]
        p -= (n_in + 1) * n_out
        if n_in > 0:
            np.dot(delta, below.T, gradient[p : p + n_in * n_out].reshape(n_out, n_in))
        for o in range(n_out):
            total = units.dtype.type(0)
            for r in range(units.shape[1]):
                total += delta[o, r]
            gradient[p + n_in * n_out + o] = total
        if layer > 0:
            weights = parameters[p : p + n_in * n_out].reshape(n_out, n_in)
            delta_below = deltas[end - n_out - n_in : end - n_out]
            np.dot(weights.T, delta, delta_below)
            for k in range(n_in):
                for r in range(units.shape[1]):
                    if below[k, r] <= 0:
                        delta_below[k, r] = 0
        end -= n_out


@compiled
def _adam(parameters, gradient, moments, column, n_updates, rate, l2):  # type: ignore[no-untyped-def]
    kind = parameters.dtype.type
    first, second = kind(_ADAM_FIRST), kind(_ADAM_SECOND)
    one = kind(1)
    step = kind(rate / (1 - _ADAM_FIRST**n_updates))
    correction = kind(1 / (1 - _ADAM_SECOND**n_updates))
    for i in range(parameters.shape[0]):
        g = gradient[i] + kind(l2) * parameters[i]
        mean = first * moments[0, column, i] + (one - first) * g
        square = second * moments[1, column, i] + (one - second) * g * g
        moments[0, column, i] = mean
        moments[1, column, i] = square
        parameters[i] -= step * mean / (math.sqrt(square * correction) + kind(_ADAM_EPSILON))


@compiled
def gather_inputs(values, rows, column, groups, inputs):  # type: ignore[no-untyped-def]
    """All columns but one, of some rows, into ``inputs [d − 1, R]``.

    Its siblings, columns of the same group, are missing with it and must not speak for it: they are shown as 0.
    """
    for r in range(rows.shape[0]):
        for k in range(groups.shape[0] - 1):
            inputs[k, r] = values[rows[r], k + (k >= column)]
    for k in range(groups.shape[0] - 1):
        if groups[k + (k >= column)] == groups[column]:
            inputs[k, : rows.shape[0]] = 0


@compiled
def write_predictions(values, rows, target, predictions):  # type: ignore[no-untyped-def]
    """Put predictions, held within the target's limits, into its column."""
    low = values.dtype.type(target.low)
    high = values.dtype.type(target.high)
    for r in range(rows.shape[0]):
        values[rows[r], target.column] = min(max(predictions[r], low), high)


@compiled_once
def begin_update(cells, plan, found, target, nets, step, listed, buffer):  # type: ignore[no-untyped-def]
    """Draw the batches of an update and predict their free entries; returns how many rows those are."""
    for pair in range(found.rows.shape[0]):
        draw_pair(plan, cells.values.shape[0], step, pair, found.rows)
    n_listed = list_free_rows(cells, found.rows, target.free, step, listed)
    height = nets.sizes.sum()
    units = buffer[0, : height * n_listed].reshape(height, n_listed)
    gather_inputs(cells.values, listed[:n_listed], target.column, nets.groups, units)
    forward(nets.sizes, nets.parameters[target.column], units)
    write_predictions(cells.values, listed[:n_listed], target, units[height - 1])
    return n_listed


@compiled_once
def finish_update(cells, found, target, nets, n_listed, buffer, gradient, rate, l2):  # type: ignore[no-untyped-def]
    """From the gradients of the pairs to new parameters; no batch with a free row, no step."""
    height = nets.sizes.sum()
    units = buffer[0, : height * n_listed].reshape(height, n_listed)
    deltas = buffer[1, : height * n_listed].reshape(height, n_listed)
    collect_rows(cells, found, target.free, target.both_sides, deltas[height - 1].reshape(n_listed, 1))
    if n_listed == 0:
        return
    parameters = nets.parameters[target.column]
    backward(nets.sizes, parameters, units, deltas, gradient)
    nets.n_updates[target.column] += 1
    _adam(parameters, gradient, nets.moments, target.column, nets.n_updates[target.column], rate, l2)


@compiled
def run_updates(cells, geometry, plan, work, found, target, nets, first, count, listed, buffer, gradient, rate, l2):  # type: ignore[no-untyped-def]
    """Update one network ``count`` times, on one thread."""
    for step in range(first, first + count):
        n_listed = begin_update(cells, plan, found, target, nets, step, listed, buffer)
        for pair in range(found.rows.shape[0]):
            column_gradient(cells, geometry, plan, work, target.column, target.both_sides, pair, found)
        finish_update(cells, found, target, nets, n_listed, buffer, gradient, rate, l2)
