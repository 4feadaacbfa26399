"""Entropic transport and the debiased Sinkhorn divergence between weighted clouds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_count, check_real
from ..exceptions import NotConvergedWarning
from .kernels.contract import Kernel, Potentials
from .kernels.select import select_kernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SinkhornDivergence:
    """The divergence between two clouds (or a batch of pairs of clouds), its gradient, and how the solver ended.

    With a batch axis every field has it first; without, ``value`` is a float.
    """

    value: Any
    gradient_x: Array
    gradient_y: Array
    f: Array
    g: Array
    self_f: Array
    self_g: Array
    marginal_error: float
    n_iterations: int
    converged: bool
    status: str


def sinkhorn_divergence(
    x: ArrayLike,
    y: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    epsilon: float,
    tolerance: float = 1e-4,
    max_iterations: int = 2000,
    kernel: str = "auto",
) -> SinkhornDivergence:
    """Debiased Sinkhorn divergence ``S(α, β) = OT(α, β) − ½ OT(α, α) − ½ OT(β, β)`` and its gradient.

    ``OT(α, β) = min_P ⟨P, C⟩ + ε KL(P ‖ a⊗b)`` with ``C = ½‖x − y‖²``, over couplings P of the marginals a and b.

    Parameters
    ----------
    x, y : arrays [N, D] and [M, D], or batches [B, N, D] and [B, M, D]
        The points.
    a, b : arrays [N] and [M] (or with the batch axis), optional
        Their weights, non-negative with sum one; uniform if not given.
    epsilon : float
        Entropic strength, in the unit of the cost.
    tolerance : float
        Stop when the marginals of the plan are this close (ℓ1) to ``a`` and ``b``.
    max_iterations : int
        Or after this many sweeps; then ``converged`` is False and a `NotConvergedWarning` says what to do.
    kernel : {"auto", "cpu", "reference"}
        Who computes; the reference is slow and exact.

    Returns
    -------
    SinkhornDivergence
        ``value``, ``gradient_x [.., N, D]`` and ``gradient_y`` in closed form (the envelope theorem: the difference of two
        barycentric projections), the potentials, and ``status``.

    Examples
    --------
    Two unit masses at distance 1 cost one half, whatever ε:

    >>> result = sinkhorn_divergence([[0.0]], [[1.0]], epsilon=0.1)
    >>> round(result.value, 6)
    0.5
    >>> result.gradient_x.round(6)
    array([[-1.]])
    """
    epsilon = check_real("epsilon", epsilon, above=0)
    tolerance = check_real("tolerance", tolerance, at_least=0)
    max_iterations = check_count("max_iterations", max_iterations)
    x, y, batched = _clouds(x, y)
    a, b = _weights("a", a, x), _weights("b", b, y)
    solver = select_kernel(kernel)
    cross = solver.cross(x, y, a, b, epsilon, tolerance, max_iterations)
    self_x = solver.itself(x, a, epsilon, tolerance, max_iterations)
    self_y = solver.itself(y, b, epsilon, tolerance, max_iterations)
    # At the optimum OT = ⟨a, f⟩ + ⟨b, g⟩; for a self term both potentials are the same.
    value = (a * (cross.f - self_x.f)).sum(axis=1) + (b * (cross.g - self_y.f)).sum(axis=1)
    gradient_x = _gradient(solver, x, y, a, b, self_x.f, cross.g, epsilon)
    gradient_y = _gradient(solver, y, x, b, a, self_y.f, cross.f, epsilon)
    error = float(max(part.error.max() for part in (cross, self_x, self_y)))
    if not np.isfinite(value).all():
        error = float("inf")
    converged = error <= tolerance
    status = _status(cross, error, tolerance, max_iterations, epsilon)
    if not converged:
        warnings.warn(status, NotConvergedWarning, stacklevel=2)
    fields = (value, gradient_x, gradient_y, cross.f, cross.g, self_x.f, self_y.f)
    if not batched:
        fields = (float(value[0]), *(field[0] for field in fields[1:]))
    return SinkhornDivergence(*fields, error, int(cross.n_iterations.max()), converged, status)


def _gradient(solver: Kernel, x: Array, y: Array, a: Array, b: Array, self_f: Array, g: Array, epsilon: float) -> Array:
    """∂S/∂x_k = a_k (T_xx(x_k) − T_xy(x_k))."""
    to_itself = solver.project(x, x, a, self_f, epsilon)
    to_other = solver.project(x, y, b, g, epsilon)
    return a[:, :, None] * (to_itself - to_other)


def _status(cross: Potentials, error: float, tolerance: float, max_iterations: int, epsilon: float) -> str:
    sweeps = int(cross.n_iterations.max())
    if error <= tolerance:
        return f"converged in {sweeps} sweeps, marginal error {error:.2g}"
    if not np.isfinite(error):
        return f"the solver left the finite range at epsilon={epsilon:g}; rescale the points or pass a larger epsilon"
    return (
        f"not converged: marginal error {error:.2g} > tolerance {tolerance:g} after {max_iterations} sweeps; "
        f"raise max_iterations, or epsilon (now {epsilon:g}), or tolerance"
    )


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
