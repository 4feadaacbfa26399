"""What is asked of a solver, checked; and how it ended, in words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_count, check_real
from ..exceptions import NotConvergedWarning
from .kernels.contract import Potentials

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Weighted clouds with a batch axis, and how well they are to be matched."""

    x: Array  # [B, N, D]
    y: Array  # [B, M, D]
    a: Array  # [B, N]
    b: Array  # [B, M]
    epsilon: float
    tolerance: float
    max_iterations: int
    batched: bool  # whether the caller gave the batch axis

    @classmethod
    def check(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        a: ArrayLike | None,
        b: ArrayLike | None,
        epsilon: float,
        tolerance: float,
        max_iterations: int,
    ) -> Problem:
        """Refuse what cannot be solved, with a reason."""
        epsilon = check_real("epsilon", epsilon, above=0)
        tolerance = check_real("tol", tolerance, at_least=0)
        max_iterations = check_count("max_iter", max_iterations)
        x, y, batched = _clouds(x, y)
        return cls(x, y, _weights("a", a, x), _weights("b", b, y), epsilon, tolerance, max_iterations, batched)

    def verdict(self, parts: list[Potentials], value: Array) -> dict[str, Any]:
        """The last four fields of a result: how the solver ended. Warns when it did not converge."""
        error = float(max(part.error.max() for part in parts)) if np.isfinite(value).all() else float("inf")
        sweeps = int(parts[0].n_iterations.max())
        converged = error <= self.tolerance
        if converged:
            status = f"converged in {sweeps} sweeps, marginal error {error:.2g}"
        elif np.isfinite(error):
            status = (
                f"not converged: marginal error {error:.2g} > tolerance {self.tolerance:g} after {self.max_iterations} sweeps; "
                f"raise max_iter, or epsilon (now {self.epsilon:g}), or tol"
            )
        else:
            status = (
                f"the solver left the finite range at epsilon={self.epsilon:g}; rescale the points or pass a larger epsilon"
            )
        if not converged:
            warnings.warn(status, NotConvergedWarning, stacklevel=3)
        return {"marginal_error": error, "n_iterations": sweeps, "converged": converged, "status": status}


def _clouds(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, bool]:
    x, y = _numbers("x", x), _numbers("y", y)
    if x.ndim != y.ndim or x.ndim not in (2, 3):
        raise ValueError(
            "x and y must both be [n_points, n_columns] or both [n_batches, n_points, n_columns], "
            f"got shapes {x.shape} and {y.shape}"
        )
    if x.shape[-1] != y.shape[-1] or x.shape[:-2] != y.shape[:-2] or 0 in x.shape or 0 in y.shape:
        raise ValueError(
            "x and y must have the same number of columns (and batches) and at least one point, "
            f"got shapes {x.shape} and {y.shape}"
        )
    batched = x.ndim == 3
    return (x, y, True) if batched else (x[None], y[None], False)


def _weights(name: str, weights: ArrayLike | None, points: Array) -> Array:
    if weights is None:
        return np.full(points.shape[:2], 1.0 / points.shape[1])
    array = _numbers(name, weights)
    if array.ndim == 1:
        array = np.broadcast_to(array, (len(points), len(array)))
    if array.shape != points.shape[:2]:
        raise ValueError(f"{name} must have one weight per point, shape {points.shape[:2]}, got {array.shape}")
    if (array < 0).any() or not np.allclose(array.sum(axis=1), 1.0, atol=1e-6):
        raise ValueError(f"{name} must be non-negative and sum to 1; divide it by its sum")
    normalised: Array = array / array.sum(axis=1, keepdims=True)
    return normalised


def _numbers(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numeric, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array
