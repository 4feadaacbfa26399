"""The definition: NumPy, float64, log domain, one line per formula. Slow on purpose; the oracle of every other kernel."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from ..cost import half_squared_distances
from .contract import N_ANNEALING_ITERATIONS, Array, Potentials, annealed_epsilons

name = "reference"


def cross(x: Array, y: Array, a: Array, b: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Alternating log-domain updates f ← softmin(C − g), g ← softmin(Cᵀ − f), ε annealed."""
    cost = half_squared_distances(x, y)
    log_a, log_b = log_of(a), log_of(b)
    f, g = np.zeros_like(a), np.zeros_like(b)
    error, n_iterations = np.full(len(x), np.inf), 0
    for level in annealed_epsilons(float(cost.max(initial=0.0)), epsilon):
        for _ in range(max_iterations if level == epsilon else N_ANNEALING_ITERATIONS):
            f = softmin(cost, g, log_b, level)
            updated = softmin(cost.swapaxes(1, 2), f, log_a, level)
            error = (b * np.abs(np.exp((g - updated) / level) - 1)).sum(axis=1)
            g = updated
            n_iterations += 1
            if level == epsilon and error.max() <= tolerance:
                break
    return Potentials(f, g, error, np.full(len(x), n_iterations))


def itself(x: Array, a: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
    """Averaged symmetric updates f ← ½(f + softmin(C − f)), ε annealed."""
    cost = half_squared_distances(x, x)
    log_a = log_of(a)
    f = np.zeros_like(a)
    error, n_iterations = np.full(len(x), np.inf), 0
    for level in annealed_epsilons(float(cost.max(initial=0.0)), epsilon):
        for _ in range(max_iterations if level == epsilon else N_ANNEALING_ITERATIONS):
            updated = softmin(cost, f, log_a, level)
            error = (a * np.abs(np.exp((f - updated) / level) - 1)).sum(axis=1)
            f = (f + updated) / 2
            n_iterations += 1
            if level == epsilon and error.max() <= tolerance:
                break
    return Potentials(f, f, error, np.full(len(x), n_iterations))


def project(x: Array, y: Array, b: Array, g: Array, epsilon: float) -> Array:
    """Row-normalised plan times the target points."""
    scores = (g[:, None, :] - half_squared_distances(x, y)) / epsilon + log_of(b)[:, None, :]
    plan: Array = softmax(scores, axis=2)
    return plan @ y


def softmin(cost: Array, potential: Array, log_weights: Array, epsilon: float) -> Array:
    """``−ε log Σ_j exp((g_j − C_ij)/ε + log b_j)``, the heart of Sinkhorn's algorithm."""
    scores = (potential[:, None, :] - cost) / epsilon + log_weights[:, None, :]
    log_sums: Array = logsumexp(scores, axis=2)
    return -epsilon * log_sums


def log_of(weights: Array) -> Array:
    """Logarithm of weights, some of which may be zero."""
    with np.errstate(divide="ignore"):  # a point without weight has log-weight −∞, which logsumexp handles
        return np.log(weights)
