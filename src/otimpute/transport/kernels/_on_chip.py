"""Sinkhorn on a matrix that one thread block holds in registers. Triton; the maths is in README.md.

Logarithms are to base 2, for which a GPU has instructions: clouds come in units where ε = log₂ e, and, with the names that
`_loops` has, ``K_ij = 2^(G_ij + F_i + H_j)``. The matrix ``G`` of products is padded to a power of two: points beyond the
clouds have no weight, and their potential F is −∞, so that they enter no maximum; what they come to is finite.

Scalings are the fast way. After one iteration in the log domain float32 is nearly always wide enough for them; where it is not
they say so, and the caller asks for all iterations in the log domain. Those start from ``G`` again, which would not fit into
registers beside ``K`` all the while.
"""

from __future__ import annotations

import triton
import triton.language as tl

# As on the CPU: smaller factors would be lost in products with small weights.
_SMALLEST_EXPONENT = tl.constexpr(-100.0)
_LARGEST_EXPONENT = tl.constexpr(115.0)
_LARGEST_SCALING = tl.constexpr(1e20)


@triton.jit
def _in_range(values, there):  # type: ignore[no-untyped-def]
    """1 where all values that are there lie in a range that float32 can work with, 0 otherwise (NaN included)."""
    fine = (values * _LARGEST_SCALING >= 1) & (values <= _LARGEST_SCALING)
    return tl.min(tl.where(there, fine, True).to(tl.int32), axis=0)


@triton.jit
def _inverse(values):  # type: ignore[no-untyped-def]
    """``1 / values`` of positive numbers: one instruction and a product instead of a division's six."""
    root = tl.rsqrt(values)
    return root * root


@triton.jit
def balance(G, F, a, b, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sinkhorn between two clouds, started from ``F`` alone: one iteration in the log domain, the others by scalings.

    Returns the potentials F and H; the plan ``K``; its row and column weights ``a u`` and ``b v``; the ℓ1 error of the column
    marginal before the last half step; and whether float32 was enough.
    """
    H = _log_columns(G, F, a)
    F = _log_rows(G, H, b)
    K = tl.exp2(tl.maximum(G + F[:, None] + H[None, :], _SMALLEST_EXPONENT))
    u = tl.zeros_like(F) + 1
    v = tl.zeros_like(H) + 1
    t = tl.sum(K * a[:, None], axis=0)
    for _ in range(1, N_ITERATIONS):
        v = _inverse(t)
        u = _inverse(tl.sum(K * (b * v)[None, :], axis=1))
        t = tl.sum(K * (a * u)[:, None], axis=0)
    error = tl.sum(b * tl.abs(v * t - 1), axis=0)
    v = _inverse(t)
    fine = _in_range(u, a > 0) * _in_range(t, b > 0)
    return F + tl.log2(u), H + tl.log2(v), K, a * u, b * v, error, fine


@triton.jit
def balance_logarithms(G, F, a, b, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same in the log domain throughout."""
    H = _log_columns(G, F, a)
    change = H
    for _ in range(N_ITERATIONS):
        F = _log_rows(G, H, b)
        updated = _log_columns(G, F, a)
        change = H - updated
        H = updated
    error = tl.sum(tl.where(b > 0, b * tl.abs(tl.exp2(change) - 1), 0.0), axis=0)
    K = tl.exp2(tl.minimum(G + F[:, None] + H[None, :], _LARGEST_EXPONENT))
    return F, H, K, a, b, error


@triton.jit
def balance_self(G, F, a, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sinkhorn of a cloud with itself by averaged symmetric updates ``u ← √(u / K(a u))``.

    Returns the potential, the plan, its column weights, and whether float32 was enough.
    """
    exponents = tl.maximum(G + F[:, None] + F[None, :], _SMALLEST_EXPONENT)
    K = tl.exp2(tl.minimum(exponents, _LARGEST_EXPONENT))
    u = tl.zeros_like(a) + 1
    t = u
    for _ in range(N_ITERATIONS):
        t = tl.sum(K * (a * u)[None, :], axis=1)
        u = tl.sqrt(u * _inverse(t))
    fine = _in_range(u, a > 0) * _in_range(t, a > 0)
    return F + tl.log2(u), K, a * u, fine


@triton.jit
def balance_self_logarithms(G, F, a, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same in the log domain."""
    for _ in range(N_ITERATIONS):
        F = (F + _log_rows(G, F, a)) / 2
    K = tl.exp2(tl.minimum(G + F[:, None] + F[None, :], _LARGEST_EXPONENT))
    return F, K, a


@triton.jit
def _log_rows(G, H, b):  # type: ignore[no-untyped-def]
    """``F_i = −log₂ Σ_j b_j 2^(G_ij + H_j)``."""
    exponents = G + tl.where(b > 0, H + tl.log2(b), -float("inf"))[None, :]
    largest = tl.max(exponents, axis=1)
    return -(largest + tl.log2(tl.sum(tl.exp2(exponents - largest[:, None]), axis=1)))


@triton.jit
def _log_columns(G, F, a):  # type: ignore[no-untyped-def]
    """``H_j = −log₂ Σ_i a_i 2^(G_ij + F_i)``."""
    exponents = G + tl.where(a > 0, F + tl.log2(a), -float("inf"))[:, None]
    largest = tl.max(exponents, axis=0)
    return -(largest + tl.log2(tl.sum(tl.exp2(exponents - largest[None, :]), axis=0)))
