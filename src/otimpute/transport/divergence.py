"""Entropic transport and the debiased Sinkhorn divergence between weighted clouds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .kernels.contract import Kernel, Potentials
from .kernels.select import select_kernel
from .problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EntropicTransport:
    """Entropic transport between two clouds (or a batch of pairs of clouds), its gradient, and how the solver ended.

    With a batch axis every array has it first; without, ``value`` is a float.
    """

    value: Any
    gradient_x: Array
    gradient_y: Array
    f: Array
    g: Array
    marginal_error: float
    n_iterations: int
    converged: bool
    status: str


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
    tol: float = 1e-4,
    max_iter: int = 2000,
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
    tol : float
        Stop when the marginals of the plan are this close (ℓ1) to ``a`` and ``b``.
    max_iter : int
        Or after this many sweeps; then ``converged`` is False and a `NotConvergedWarning` says what to do.
    kernel : {"auto", "cpu", "cuda", "reference"}
        Who computes. "auto" is the CPU; "cuda" is for large clouds, on an NVIDIA GPU (``pip install "otimpute[gpu]"``); the
        reference is slow and exact.

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
    problem = Problem.check(x, y, a, b, epsilon, tol, max_iter)
    solver = select_kernel(kernel)
    x, y, a, b, effort = problem.x, problem.y, problem.a, problem.b, (problem.epsilon, tol, max_iter)
    cross = solver.cross(x, y, a, b, *effort)
    self_x, self_y = solver.itself(x, a, *effort), solver.itself(y, b, *effort)
    # At the optimum OT = ⟨a, f⟩ + ⟨b, g⟩; for a self term both potentials are the same.
    value = (a * (cross.f - self_x.f)).sum(axis=1) + (b * (cross.g - self_y.f)).sum(axis=1)
    # ∂S/∂x_k = a_k (T_xx(x_k) − T_xy(x_k)), and the same with the roles exchanged.
    to_y, to_x = _projections(solver, problem, cross)
    gradient_x = a[:, :, None] * (solver.project(x, x, a, self_x.f, problem.epsilon) - to_y)
    gradient_y = b[:, :, None] * (solver.project(y, y, b, self_y.f, problem.epsilon) - to_x)
    fields = _unbatched(problem, value, gradient_x, gradient_y, cross.f, cross.g, self_x.f, self_y.f)
    return SinkhornDivergence(*fields, **problem.verdict([cross, self_x, self_y], value))


def entropic_transport(
    x: ArrayLike,
    y: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    epsilon: float,
    tol: float = 1e-4,
    max_iter: int = 2000,
    kernel: str = "auto",
) -> EntropicTransport:
    """Entropic transport ``OT(α, β)`` itself, without the debiasing of `sinkhorn_divergence`, whose parameters it shares.

    Examples
    --------
    Two equal masses that stay where they are cost nothing but the entropy of their plan, here ε log 2:

    >>> result = entropic_transport([[0.0], [9.0]], [[0.0], [9.0]], epsilon=0.1)
    >>> bool(abs(result.value - 0.1 * np.log(2)) < 1e-6)
    True
    """
    problem = Problem.check(x, y, a, b, epsilon, tol, max_iter)
    solver = select_kernel(kernel)
    cross = solver.cross(problem.x, problem.y, problem.a, problem.b, problem.epsilon, tol, max_iter)
    value = (problem.a * cross.f).sum(axis=1) + (problem.b * cross.g).sum(axis=1)
    to_y, to_x = _projections(solver, problem, cross)
    gradient_x = problem.a[:, :, None] * (problem.x - to_y)
    gradient_y = problem.b[:, :, None] * (problem.y - to_x)
    fields = _unbatched(problem, value, gradient_x, gradient_y, cross.f, cross.g)
    return EntropicTransport(*fields, **problem.verdict([cross], value))


def _projections(solver: Kernel, problem: Problem, cross: Potentials) -> tuple[Array, Array]:
    """Where each point of x goes in y, and each of y in x."""
    to_y = solver.project(problem.x, problem.y, problem.b, cross.g, problem.epsilon)
    to_x = solver.project(problem.y, problem.x, problem.a, cross.f, problem.epsilon)
    return to_y, to_x


def _unbatched(problem: Problem, value: Array, *fields: Array) -> tuple[Any, ...]:
    """Results in the form of the question: without a batch axis if none was given, the value then a float."""
    return (value, *fields) if problem.batched else (float(value[0]), *(field[0] for field in fields))
