"""Sinkhorn on a matrix that one thread block holds in registers. Triton; the maths is in README.md.

Clouds come in units where ε = 1. Their matrix ``G`` of products is padded to a power of two: points beyond the clouds have no
weight, and their potential F is −∞, so that they enter no maximum; what they come to is finite. The names are those of
`_loops`: ``K_ij = exp(G_ij + F_i + H_j)``.

Scalings are the fast way, for which float32 is not always wide enough; they say so, and the same iterations in the log domain
follow. Those start from ``G`` again, which would not fit into registers beside ``K`` all the while.
"""

from __future__ import annotations

import triton
import triton.language as tl

# As on the CPU: smaller factors would be lost in products with small weights.
_SMALLEST_EXPONENT = tl.constexpr(-69.0)
_LARGEST_EXPONENT = tl.constexpr(80.0)
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
    """Sinkhorn between two clouds by scalings, started from ``F`` alone.

    Returns the potentials F and H; the plan ``K``; its row and column weights ``a u`` and ``b v``; the ℓ1 error of the column
    marginal before the last half step; and whether float32 was enough.
    """
    exponents = G + F[:, None]
    H = -tl.max(exponents, axis=0)  # the largest entry of each column becomes one: safe for any start
    K = tl.exp(tl.maximum(exponents + H[None, :], _SMALLEST_EXPONENT))
    t = tl.sum(K * a[:, None], axis=0)
    v = t
    u = tl.zeros_like(F)
    for _ in range(N_ITERATIONS):
        v = _inverse(t)
        u = _inverse(tl.sum(K * (b * v)[None, :], axis=1))
        t = tl.sum(K * (a * u)[:, None], axis=0)
    error = tl.sum(b * tl.abs(v * t - 1), axis=0)
    v = _inverse(t)
    fine = _in_range(u, a > 0) * _in_range(t, b > 0)
    return F + tl.log(u), H + tl.log(v), K, a * u, b * v, error, fine


@triton.jit
def balance_logarithms(G, F, a, b, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same in the log domain."""
    H = _log_columns(G, F, a)
    change = H
    for _ in range(N_ITERATIONS):
        F = _log_rows(G, H, b)
        updated = _log_columns(G, F, a)
        change = H - updated
        H = updated
    error = tl.sum(tl.where(b > 0, b * tl.abs(tl.exp(change) - 1), 0.0), axis=0)
    K = tl.exp(tl.minimum(G + F[:, None] + H[None, :], _LARGEST_EXPONENT))
    return F, H, K, a, b, error


@triton.jit
def balance_self(G, F, a, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sinkhorn of a cloud with itself by averaged symmetric updates ``u ← √(u / K(a u))``.

    Returns the potential, the plan, its column weights, and whether float32 was enough.
    """
    exponents = tl.maximum(G + F[:, None] + F[None, :], _SMALLEST_EXPONENT)
    K = tl.exp(tl.minimum(exponents, _LARGEST_EXPONENT))
    u = tl.zeros_like(a) + 1
    t = u
    for _ in range(N_ITERATIONS):
        t = tl.sum(K * (a * u)[None, :], axis=1)
        u = tl.sqrt(u * _inverse(t))
    fine = _in_range(u, a > 0) * _in_range(t, a > 0)
    return F + tl.log(u), K, a * u, fine


@triton.jit
def balance_self_logarithms(G, F, a, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same in the log domain."""
    for _ in range(N_ITERATIONS):
        F = (F + _log_rows(G, F, a)) / 2
    K = tl.exp(tl.minimum(G + F[:, None] + F[None, :], _LARGEST_EXPONENT))
    return F, K, a


@triton.jit
def _log_rows(G, H, b):  # type: ignore[no-untyped-def]
    """``F_i = −log Σ_j b_j exp(G_ij + H_j)``."""
    exponents = G + tl.where(b > 0, H + tl.log(b), -float("inf"))[None, :]
    largest = tl.max(exponents, axis=1)
    return -(largest + tl.log(tl.sum(tl.exp(exponents - largest[:, None]), axis=1)))


@triton.jit
def _log_columns(G, F, a):  # type: ignore[no-untyped-def]
    """``H_j = −log Σ_i a_i exp(G_ij + F_i)``."""
    exponents = G + tl.where(a > 0, F + tl.log(a), -float("inf"))[:, None]
    largest = tl.max(exponents, axis=0)
    return -(largest + tl.log(tl.sum(tl.exp(exponents - largest[None, :]), axis=0)))
