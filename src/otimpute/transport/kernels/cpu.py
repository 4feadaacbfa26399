"""The fast CPU kernel: compiled loops, float32 wherever float32 is enough. The maths is in README.md."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ..cost import half_squared_distances
from . import loops
from .contract import N_ANNEALING_ITERATIONS, Array, Potentials, annealed_epsilons, precision
from .reference import log_of, softmin

name = "cpu"

# Points with less weight than this do not take part in the solve; their potentials follow from the others'.
_SMALLEST_WEIGHT = 1e-15


def cross(x: Array, y: Array, a: Array, b: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Sinkhorn scalings on the similarity matrix x·y, folded into the potentials whenever they grow large."""
    f, g = np.zeros_like(a), np.zeros_like(b)
    error, n_iterations = np.empty(len(x)), np.zeros(len(x), dtype=np.int64)
    for batch in range(len(x)):
        i, j = a[batch] > _SMALLEST_WEIGHT, b[batch] > _SMALLEST_WEIGHT
        similarity, x_norms, y_norms, largest = _similarity(x[batch, i], y[batch, j], epsilon)
        kind = precision(x_norms, y_norms, largest, tolerance)
        fixed = similarity.astype(kind), a[batch, i].astype(kind), b[batch, j].astype(kind)
        plan, F, H = np.empty_like(fixed[0]), np.empty(i.sum(), kind), np.empty(j.sum(), kind)
        buffers = (np.empty_like(F), *(np.empty_like(H) for _ in range(3)))
        potential = np.zeros(i.sum())
        for level in annealed_epsilons(largest, 1.0):
            F[:] = (potential - x_norms) / level
            steps = _effort(level, tolerance, max_iterations)
            done, error[batch] = loops.balance(fixed[0], kind.type(1 / level), fixed[1], fixed[2], F, H, plan, *buffers, *steps)
            n_iterations[batch] += done
            potential = F * level + x_norms
        f[batch, i], g[batch, j] = epsilon * potential, epsilon * (H + y_norms)
        f[batch, ~i] = _extend(x[batch, ~i], y[batch], b[batch], g[batch], epsilon)
        g[batch, ~j] = _extend(y[batch, ~j], x[batch], a[batch], f[batch], epsilon)
    return Potentials(f, g, error, n_iterations)


def itself(x: Array, a: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Averaged symmetric scalings."""
    f = np.zeros_like(a)
    error, n_iterations = np.empty(len(x)), np.zeros(len(x), dtype=np.int64)
    for batch in range(len(x)):
        i = a[batch] > _SMALLEST_WEIGHT
        similarity, norms, _, largest = _similarity(x[batch, i], x[batch, i], epsilon)
        kind = precision(norms, norms, largest, tolerance)
        fixed = similarity.astype(kind), a[batch, i].astype(kind)
        plan = np.empty_like(fixed[0])
        F, *buffers = (np.empty(i.sum(), kind) for _ in range(4))
        potential = np.zeros(i.sum())
        for level in annealed_epsilons(largest, 1.0):
            F[:] = (potential - norms) / level
            steps = _effort(level, tolerance, max_iterations)
            done, error[batch] = loops.balance_self(fixed[0], kind.type(1 / level), fixed[1], F, plan, *buffers, *steps)
            n_iterations[batch] += done
            potential = F * level + norms
        f[batch, i] = epsilon * potential
        f[batch, ~i] = _extend(x[batch, ~i], x[batch], a[batch], f[batch], epsilon)
    return Potentials(f, f, error, n_iterations)


def project(x: Array, y: Array, b: Array, g: Array, epsilon: float) -> Array:
    """Row-normalised plan times the target points, by one matrix product each way."""
    projected = np.empty_like(x)
    for batch in range(len(x)):
        similarity, _, y_norms, _ = _similarity(x[batch], y[batch], epsilon)
        plan: Array = softmax(similarity + (g[batch] / epsilon - y_norms + log_of(b[batch])), axis=1)
        projected[batch] = plan @ y[batch]
    return projected


class _Similarity(NamedTuple):
    """In units of ε: ``x·y`` after centring, the half squared norms that make it a cost, and the largest cost."""

    products: Array
    x_norms: Array
    y_norms: Array
    largest: float


def _similarity(x: Array, y: Array, epsilon: float) -> _Similarity:
    centre = (x.mean(axis=0) + y.mean(axis=0)) / 2
    x, y = (x - centre) / np.sqrt(epsilon), (y - centre) / np.sqrt(epsilon)
    x_norms, y_norms = _half_squared_norms(x), _half_squared_norms(y)
    products = x @ y.T
    largest = float(max(0.0, (x_norms[:, None] + y_norms[None, :] - products).max(initial=0.0)))
    return _Similarity(products, x_norms, y_norms, largest)


def _effort(level: float, tolerance: float, max_iterations: int) -> tuple[int, float]:
    """Iterations and tolerance at one level of annealing; only the last, level 1, is meant to converge."""
    return (max_iterations, tolerance) if level == 1.0 else (N_ANNEALING_ITERATIONS, 0.0)


def _extend(x: Array, y: Array, b: Array, g: Array, epsilon: float) -> Array:
    """The potential at points without weight."""
    if len(x) == 0:
        return np.empty(0)
    extended: Array = softmin(half_squared_distances(x, y)[None], g[None], log_of(b)[None], epsilon)[0]
    return extended


def _half_squared_norms(points: Array) -> NDArray[np.float64]:
    norms = np.empty(len(points))
    loops.half_squared_norms(np.ascontiguousarray(points.T), norms)
    return norms
