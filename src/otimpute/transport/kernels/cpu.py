"""The fast CPU kernel: compiled loops, float32 wherever float32 is enough. The maths is in README.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _loops
from .contract import N_ANNEALING_ITERATIONS, Array, Potentials, annealed_epsilons

name = "cpu"


def cross(x: Array, y: Array, a: Array, b: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Sinkhorn scalings on the similarity matrix x·y, folded into the potentials whenever they grow large."""
    n_batches, n, m = len(x), x.shape[1], y.shape[1]
    f, g = np.empty((n_batches, n)), np.empty((n_batches, m))
    error, n_iterations = np.empty(n_batches), np.zeros(n_batches, dtype=np.int64)
    for batch in range(n_batches):
        similarity, x_norms, y_norms, largest = _similarity(x[batch], y[batch], epsilon, tolerance)
        kind = similarity.dtype
        weights_a, weights_b = a[batch].astype(kind), b[batch].astype(kind)
        plan = np.empty_like(similarity)
        F, u = np.empty(n, kind), np.empty(n, kind)
        H, v, w, t = (np.empty(m, kind) for _ in range(4))
        f[batch] = 0
        for level in annealed_epsilons(largest, epsilon):
            s = kind.type(1 / level)
            F[:] = (f[batch] - x_norms) * s
            last = level == epsilon
            done, error[batch] = _loops.balance(
                similarity, s, weights_a, weights_b, F, H, plan, u, v, w, t,
                max_iterations if last else N_ANNEALING_ITERATIONS, tolerance if last else 0.0,
            )  # fmt: skip
            n_iterations[batch] += done
            f[batch] = F * level + x_norms
            g[batch] = H * level + y_norms
    return Potentials(f, g, error, n_iterations)


def itself(x: Array, a: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Averaged symmetric scalings."""
    n_batches, n = len(x), x.shape[1]
    f = np.empty((n_batches, n))
    error, n_iterations = np.empty(n_batches), np.zeros(n_batches, dtype=np.int64)
    for batch in range(n_batches):
        similarity, norms, _, largest = _similarity(x[batch], x[batch], epsilon, tolerance)
        kind = similarity.dtype
        weights = a[batch].astype(kind)
        plan = np.empty_like(similarity)
        F, u, w, t = (np.empty(n, kind) for _ in range(4))
        f[batch] = 0
        for level in annealed_epsilons(largest, epsilon):
            s = kind.type(1 / level)
            F[:] = (f[batch] - norms) * s
            last = level == epsilon
            done, error[batch] = _loops.balance_self(
                similarity, s, weights, F, plan, u, w, t,
                max_iterations if last else N_ANNEALING_ITERATIONS, tolerance if last else 0.0,
            )  # fmt: skip
            n_iterations[batch] += done
            f[batch] = F * level + norms
    return Potentials(f, f, error, n_iterations)


def project(x: Array, y: Array, b: Array, g: Array, epsilon: float) -> Array:
    """Row-normalised plan times the target points, the largest score of each row shifted to zero."""
    projected = np.empty_like(x)
    for batch in range(len(x)):
        similarity, _, y_norms, _ = _similarity(x[batch], y[batch], epsilon, 0.0)
        scores = (similarity + (g[batch] - y_norms).astype(similarity.dtype)) / similarity.dtype.type(epsilon)
        scores -= scores.max(axis=1, keepdims=True)
        plan = np.exp(scores) * b[batch].astype(similarity.dtype)
        projected[batch] = plan @ y[batch] / plan.sum(axis=1, dtype=np.float64)[:, None]
    return projected


def _similarity(x: Array, y: Array, epsilon: float, tolerance: float) -> tuple[Any, Array, Array, float]:
    """``x·y`` after centring, the half squared norms that make it a cost, and the largest cost.

    float32 resolves exponents of size E to E·6e-8; where that is coarser than the marginal error asked for (or than 1e-4,
    when none is asked), the same loops run in float64.
    """
    centre = (x.mean(axis=0) + y.mean(axis=0)) / 2
    x, y = x - centre, y - centre
    x_norms, y_norms = _half_squared_norms(x), _half_squared_norms(y)
    similarity = x @ y.T
    largest = float(max(0.0, (x_norms[:, None] + y_norms[None, :] - similarity).max(initial=0.0)))
    exponent = 2 * float(max(x_norms.max(initial=0.0), y_norms.max(initial=0.0))) / epsilon
    kind: Any = np.float32 if exponent * 2.0**-23 < min(tolerance or 1e-4, 1e-4) else np.float64
    return similarity.astype(kind), x_norms, y_norms, largest


def _half_squared_norms(points: Array) -> NDArray[np.float64]:
    norms = np.empty(len(points))
    _loops.half_squared_norms(np.ascontiguousarray(points.T), norms)
    return norms
