"""What a kernel must do. `reference` defines the numbers, every other kernel is compared with it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Potentials(NamedTuple):
    """Dual potentials of a batch of entropic problems and how far their marginals are from the prescribed ones."""

    f: Array  # [B, N]
    g: Array  # [B, M]
    error: Array  # [B]: ℓ1 distance of the plan's second marginal from b
    n_iterations: NDArray[np.int64]  # [B]


class Kernel(Protocol):
    """Entropic transport between batches of weighted clouds, for the cost ½‖x − y‖² and one ε > 0."""

    name: str

    def cross(
        self, x: Array, y: Array, a: Array, b: Array, epsilon: float, tolerance: float, max_iterations: int
    ) -> Potentials:
        """Potentials between ``x [B, N, D]`` and ``y [B, M, D]`` with weights ``a [B, N]``, ``b [B, M]``."""
        ...

    def itself(self, x: Array, a: Array, epsilon: float, tolerance: float, max_iterations: int) -> Potentials:
        """Potentials of a cloud against itself, with f = g."""
        ...

    def project(self, x: Array, y: Array, b: Array, g: Array, epsilon: float) -> Array:
        """Barycentric map ``T(x_i) = Σ_j softmax_j((g_j − c(x_i, y_j))/ε + log b_j) y_j``, as ``[B, N, D]``."""
        ...


def annealed_epsilons(largest_cost: float, epsilon: float) -> list[float]:
    """From the size of the cloud down to ``epsilon`` by halves: each solution starts the next, so small ε stays quick.

    >>> annealed_epsilons(4.0, 1.0)
    [4.0, 2.0, 1.0]
    """
    levels = [epsilon]
    while levels[-1] * 2 <= largest_cost and len(levels) < 60:
        levels.append(levels[-1] * 2)
    return levels[::-1]


# Sweeps at each level before the last: enough to move the potentials there, not to converge them.
N_ANNEALING_ITERATIONS = 5


def precision(x_norms: Array, y_norms: Array, largest: float, tolerance: float) -> np.dtype[Any]:
    """float32 where it is enough: it resolves marginals to 1e-6 and exponents of size E to E·1e-7.

    When ε exceeds all costs the divergence is a small difference of potentials of size ε, which float32 would lose.
    """
    exponent = 2 * max(x_norms.max(initial=0.0), y_norms.max(initial=0.0))
    enough = tolerance >= 1e-6 and exponent * 2.0**-23 < min(tolerance, 1e-4) and largest >= 1
    return np.dtype(np.float32 if enough else np.float64)
