"""Sinkhorn on a matrix that one thread block holds in registers. Triton; the maths is in README.md.

Logarithms are to base 2, for which a GPU has instructions: clouds come in units where ε = log₂ e, and, with the names that
`loops` has, ``K_ij = 2^(G_ij + F_i + H_j)``. The matrix ``G`` of products is padded to a power of two: points beyond the
clouds have no weight, and their sums are set to one, for infinity times no weight would be NaN everywhere.

Everything is a sum over rows. Threads hold pieces of rows, so that sums over columns would take five times as long: matrices
between two clouds are therefore held twice, ``G`` and its transpose ``G_back``. Plans are held with the weights of the points
that are summed over: ``P_ij = K_ij b_j``, ``P_back_ji = K_ij a_i``.

Scalings are the fast way. After one iteration in the log domain float32 is nearly always wide enough for them; where it is not
they say so, and the caller asks for all iterations in the log domain. Those start from ``G`` again, which would not fit into
registers beside plans all the while.
"""

from __future__ import annotations

import triton
import triton.language as tl

_LARGEST_EXPONENT = tl.constexpr(115.0)
# What float32 cannot hold is below 2⁻¹²⁶: times two scalings of at most 2⁵⁰ it is too little to be seen in a sum.
_LARGEST_SCALING = tl.constexpr(1e15)


@triton.jit
def balance(G, G_back, F, a, b, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sinkhorn between two clouds, started from ``F`` alone: one iteration in the log domain, the others by scalings.

    Returns the potentials F and H; the plans; what their columns are to be scaled by, ``v`` and ``u``; the sums of their rows
    when they are; the ℓ1 error of the column marginal before the last half step; and whether float32 was enough.
    """
    H, _ = _log_sums(G_back, F, a)
    F, exponents = _log_sums(G, H, b)
    P = tl.exp2(exponents + F[:, None])
    P_back = tl.exp2(G_back + _weighted(F, a)[None, :] + H[:, None])
    u = tl.zeros_like(F) + 1
    before = tl.zeros_like(H) + 1
    t = _sums(P_back, u, b)
    v = _inverse(t)
    farthest_u, farthest_v = u, tl.maximum(v, t)
    for _ in range(1, N_ITERATIONS):
        s = _sums(P, v, a)
        u = _inverse(s)
        t = _sums(P_back, u, b)
        before = v
        v = _inverse(t)
        farthest_u = tl.maximum(farthest_u, tl.maximum(u, s))
        farthest_v = tl.maximum(farthest_v, tl.maximum(v, t))
    error = tl.sum(b * tl.abs(before * t - 1), axis=0)
    fine = _in_range(farthest_u, u, a) * _in_range(farthest_v, v, b)
    return F + tl.log2(u), H + tl.log2(v), P, P_back, v, u, _sums(P, v, a), t, error, fine


@triton.jit
def balance_logarithms(G, G_back, F, a, b, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same in the log domain throughout; plans up to a factor a row, which is all that projections need."""
    H, _ = _log_sums(G_back, F, a)
    change = H
    for _ in range(N_ITERATIONS):
        F, _ = _log_sums(G, H, b)
        updated, _ = _log_sums(G_back, F, a)
        change = H - updated
        H = updated
    error = tl.sum(tl.where(b > 0, b * tl.abs(tl.exp2(change) - 1), 0.0), axis=0)
    P = _shares(G, H, b)
    P_back = _shares(G_back, F, a)
    return F, H, P, P_back, tl.zeros_like(H) + 1, tl.zeros_like(F) + 1, tl.sum(P, axis=1), tl.sum(P_back, axis=1), error


@triton.jit
def balance_self(G, F, a, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sinkhorn of a cloud with itself by averaged symmetric updates ``u ← √(u / P u)``.

    Returns the potential, the plan, what its columns are to be scaled by, the sums of its rows when they are, and whether
    float32 was enough.
    """
    P = tl.exp2(tl.minimum(G + F[:, None] + _weighted(F, a)[None, :], _LARGEST_EXPONENT))
    u = tl.zeros_like(a) + 1
    farthest = u
    for _ in range(N_ITERATIONS):
        t = _sums(P, u, a)
        u = tl.sqrt(u * _inverse(t))
        farthest = tl.maximum(tl.maximum(farthest, t), tl.maximum(u, _inverse(u)))
    fine = _in_range(farthest, u, a)
    return F + tl.log2(u), P, u, _sums(P, u, a), fine


@triton.jit
def balance_self_logarithms(G, F, a, N_ITERATIONS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same in the log domain."""
    for _ in range(N_ITERATIONS):
        updated, _ = _log_sums(G, F, a)
        F = (F + updated) / 2
    P = _shares(G, F, a)
    return F, P, tl.zeros_like(F) + 1, tl.sum(P, axis=1)


@triton.jit
def _weighted(potential, weights):  # type: ignore[no-untyped-def]
    """Potentials as they stand in sums over their points: −∞ where there is none."""
    return tl.where(weights > 0, potential + tl.log2(weights), -float("inf"))


@triton.jit
def _log_sums(G, H, b):  # type: ignore[no-untyped-def]
    """``F_i = −log₂ Σ_j b_j 2^(G_ij + H_j)``, and the exponents with their weights."""
    exponents = G + _weighted(H, b)[None, :]
    largest = tl.max(exponents, axis=1)
    return -(largest + tl.log2(tl.sum(tl.exp2(exponents - largest[:, None]), axis=1))), exponents


@triton.jit
def _shares(G, H, b):  # type: ignore[no-untyped-def]
    """``b_j 2^(G_ij + H_j)``, divided by the largest of its row."""
    exponents = G + _weighted(H, b)[None, :]
    return tl.exp2(exponents - tl.max(exponents, axis=1)[:, None])


@triton.jit
def _sums(P, scalings, weights):  # type: ignore[no-untyped-def]
    """Sums of the scaled rows; 1 for points without weight."""
    return tl.where(weights > 0, tl.sum(P * scalings[None, :], axis=1), 1.0)


@triton.jit
def _inverse(values):  # type: ignore[no-untyped-def]
    """``1 / values`` of positive numbers: one instruction and a product instead of a division's six."""
    root = tl.rsqrt(values)
    return root * root


@triton.jit
def _in_range(farthest, scaling, weights):  # type: ignore[no-untyped-def]
    """1 if scalings of points that have a weight, and their inverses, always were in range, 0 otherwise (and for NaN)."""
    fine = (farthest <= _LARGEST_SCALING) & (scaling > 0)
    return tl.min(tl.where(weights > 0, fine, True).to(tl.int32), axis=0)
