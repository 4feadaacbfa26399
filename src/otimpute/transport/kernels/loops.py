"""Compiled loops of the CPU kernel: Sinkhorn on a matrix that is already on chip. The maths is in README.md.

Everything here speaks of the *scaled log-plan*: for a similarity matrix ``G`` (minus the cost, up to terms that depend on
one side only), a scale ``s = 1/ε`` and log-scalings ``F`` and ``H``, the plan relative to the product of the marginals is
``K_ij = exp(s·G_ij + F_i + H_j)``. All functions run in float32 or float64, whichever they are given.
"""

from __future__ import annotations

import math

from ..._compile import compiled
from ..._fast_exp import exp
from ..cost import half_squared_norms as _half_squared_norms

half_squared_norms = compiled(_half_squared_norms)

# Scalings outside this range are folded into the potentials. In float32 the factors of the plan are at least exp(−69) = 1e-30
# (`exp` says why): times two scalings of at most 1e11 that is too little to be seen in a sum, as what is smaller would be.
_LARGEST_SCALING = 1e11
_LARGEST_SCALING_FLOAT64 = 1e20  # any up to 1e140 would do
_LARGEST_EXPONENT = 80.0
_WORST_ERROR = 2.0  # the ℓ1 distance of two distributions that share nothing


@compiled
def _build_plan(G, s, F, H, K):  # type: ignore[no-untyped-def]
    """``K_ij = exp(s·G_ij + F_i + H_j)``; exponents are capped, never infinite."""
    cap = G.dtype.type(_LARGEST_EXPONENT)
    for i in range(G.shape[0]):
        shift = F[i]
        for j in range(G.shape[1]):
            K[i, j] = exp(min(s * G[i, j] + (shift + H[j]), cap))


@compiled
def _build_plan_by_columns(G, s, F, K, H):  # type: ignore[no-untyped-def]
    """The same with ``H_j`` chosen such that the largest entry of each column is one: safe for any ``F``.

    By columns because a maximum that runs down the rows vectorises across the columns; one along a row would not.
    """
    for j in range(G.shape[1]):
        H[j] = s * G[0, j] + F[0]
    for i in range(1, G.shape[0]):
        shift = F[i]
        for j in range(G.shape[1]):
            H[j] = max(H[j], s * G[i, j] + shift)
    for j in range(G.shape[1]):
        H[j] = -H[j]
    for i in range(G.shape[0]):
        shift = F[i]
        for j in range(G.shape[1]):
            K[i, j] = exp(s * G[i, j] + (shift + H[j]))


@compiled
def _row_sums(K, w, out):  # type: ignore[no-untyped-def]
    """``out = K w``."""
    for i in range(K.shape[0]):
        total = K.dtype.type(0)
        for j in range(K.shape[1]):
            total += K[i, j] * w[j]
        out[i] = total


@compiled
def rows_in_log_domain(G, s, H, b, F):  # type: ignore[no-untyped-def]
    """``F_i = −log Σ_j b_j exp(s·G_ij + H_j)``, safe for any magnitude."""
    for i in range(G.shape[0]):
        largest = s * G[i, 0] + H[0]
        for j in range(1, G.shape[1]):
            largest = max(largest, s * G[i, j] + H[j])
        total = G.dtype.type(0)
        for j in range(G.shape[1]):
            total += b[j] * exp(s * G[i, j] + H[j] - largest)
        F[i] = -(largest + math.log(total))


@compiled
def _sweep(K, a, w, u, t):  # type: ignore[no-untyped-def]
    """One Sinkhorn iteration in one pass over ``K``: ``u = 1 / (K w)``, then ``t = Kᵀ(a u)``, four rows at a time."""
    n, m = K.shape
    one = K.dtype.type(1)
    for j in range(m):
        t[j] = 0
    n4 = n // 4 * 4
    for i in range(0, n4, 4):
        r0 = K.dtype.type(0)
        r1 = K.dtype.type(0)
        r2 = K.dtype.type(0)
        r3 = K.dtype.type(0)
        for j in range(m):
            r0 += K[i, j] * w[j]
            r1 += K[i + 1, j] * w[j]
            r2 += K[i + 2, j] * w[j]
            r3 += K[i + 3, j] * w[j]
        u[i] = one / r0
        u[i + 1] = one / r1
        u[i + 2] = one / r2
        u[i + 3] = one / r3
        r0 = a[i] * u[i]
        r1 = a[i + 1] * u[i + 1]
        r2 = a[i + 2] * u[i + 2]
        r3 = a[i + 3] * u[i + 3]
        for j in range(m):
            t[j] += r0 * K[i, j] + r1 * K[i + 1, j] + r2 * K[i + 2, j] + r3 * K[i + 3, j]
    for i in range(n4, n):
        r0 = K.dtype.type(0)
        for j in range(m):
            r0 += K[i, j] * w[j]
        u[i] = one / r0
        r0 = a[i] * u[i]
        for j in range(m):
            t[j] += r0 * K[i, j]


@compiled
def _scale_columns(K, a, b, v, w):  # type: ignore[no-untyped-def]
    """``v = 1 / (Kᵀ a)`` and ``w = b v``."""
    for j in range(K.shape[1]):
        v[j] = 0
    for i in range(K.shape[0]):
        weight = a[i]
        for j in range(K.shape[1]):
            v[j] += weight * K[i, j]
    for j in range(K.shape[1]):
        v[j] = K.dtype.type(1) / v[j]
        w[j] = b[j] * v[j]


@compiled
def _within(values, bound):  # type: ignore[no-untyped-def]
    """Whether all ``values`` lie in ``[1/bound, bound]`` (so also: none is zero)."""
    smallest = values[0]
    largest = values[0]
    for i in range(1, values.shape[0]):
        smallest = min(smallest, values[i])
        largest = max(largest, values[i])
    return smallest * bound >= 1 and largest <= bound


@compiled
def balance(G, s, a, b, F, H, K, u, v, w, t, n_iterations, tolerance):  # type: ignore[no-untyped-def]
    """Sinkhorn between two clouds, started from ``F`` alone; ``F`` and ``H`` hold the result.

    Stops after ``n_iterations`` or when the ℓ1 error of the column marginal is at most ``tolerance``. On return ``K`` with
    ``w = b·v`` gives the row projections and ``K`` with ``a·u`` the column projections; neither is folded into ``K``.
    Returns (iterations, error); the error is that of the iteration before where the last one was folded into the potentials.
    """
    bound = G.dtype.type(_LARGEST_SCALING if G.itemsize == 4 else _LARGEST_SCALING_FLOAT64)
    one = G.dtype.type(1)
    _build_plan_by_columns(G, s, F, K, H)
    _scale_columns(K, a, b, v, w)
    error = _WORST_ERROR
    done = 0
    while done < n_iterations:
        _sweep(K, a, w, u, t)
        done += 1
        if not (_within(u, bound) and _within(t, bound)):
            # Too far off for plain scalings: one safe half step per side, then go on from there.
            for j in range(H.shape[0]):
                H[j] += math.log(v[j])
            rows_in_log_domain(G, s, H, b, F)
            _build_plan_by_columns(G, s, F, K, H)
            _scale_columns(K, a, b, v, w)
            for i in range(F.shape[0]):
                u[i] = 1
            continue
        error = 0.0
        for j in range(H.shape[0]):
            error += b[j] * abs(v[j] * t[j] - one)
            v[j] = one / t[j]
            w[j] = b[j] * v[j]
        if error <= tolerance:
            break
    for i in range(F.shape[0]):
        F[i] += math.log(u[i])
    for j in range(H.shape[0]):
        H[j] += math.log(v[j])
    return done, error


@compiled
def balance_self(G, s, a, F, K, u, w, t, n_iterations, tolerance):  # type: ignore[no-untyped-def]
    """Sinkhorn of a cloud with itself by averaged symmetric updates ``u ← √(u / K(a u))``; ``F`` is updated in place.

    On return ``K`` with ``w = a·u`` gives the projections. Returns (iterations, error).
    """
    bound = G.dtype.type(_LARGEST_SCALING if G.itemsize == 4 else _LARGEST_SCALING_FLOAT64)
    one = G.dtype.type(1)
    n = F.shape[0]
    _build_plan(G, s, F, F, K)
    for i in range(n):
        u[i] = 1
        w[i] = a[i]
    error = _WORST_ERROR
    done = 0
    while done < n_iterations:
        _row_sums(K, w, t)
        done += 1
        if not (_within(u, bound) and _within(t, bound)):
            for i in range(n):
                w[i] = F[i] + math.log(u[i])
            rows_in_log_domain(G, s, w, a, F)
            for i in range(n):
                F[i] = (F[i] + w[i]) / 2
                u[i] = 1
                w[i] = a[i]
            _build_plan(G, s, F, F, K)
            continue
        error = 0.0
        for i in range(n):
            error += a[i] * abs(u[i] * t[i] - one)
            u[i] = math.sqrt(u[i] / t[i])
            w[i] = a[i] * u[i]
        if error <= tolerance:
            break
    for i in range(n):
        F[i] += math.log(u[i])
    return done, error
