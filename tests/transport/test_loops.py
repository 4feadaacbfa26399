"""The compiled loops of the cpu kernel on starts and numbers that the kernel itself seldom meets."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.special import logsumexp

from otimpute._fast_exp import exp
from otimpute.transport.kernels import loops


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def kind(request):
    return request.param


def _problem(n: int, m: int, kind) -> tuple[np.ndarray, ...]:
    """Similarities between two clouds, and weights."""
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    a, b = rng.uniform(0.2, 2.0, size=n), rng.uniform(0.2, 2.0, size=m)
    return (x @ y.T).astype(kind), (a / a.sum()).astype(kind), (b / b.sum()).astype(kind)


def _starts(n: int, kind) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [start.astype(kind) for start in (np.zeros(n), rng.normal(size=n) * 100, np.linspace(-400, 400, n))]


def test_exponential_of_an_array_is_that_of_numpy(kind):
    @numba.njit
    def exponentials(values):
        out = np.empty_like(values)
        for i in range(values.shape[0]):
            out[i] = exp(values[i])
        return out

    values = np.linspace(-69, 80, 20_001).astype(kind)
    np.testing.assert_allclose(exponentials(values), np.exp(values.astype(float)), rtol=4 * np.finfo(kind).eps)
    lower = exponentials(np.array([-70, -1e3, -1e30], dtype=kind))
    assert (lower <= np.exp(-69.0) * 1.001).all()
    assert (lower >= 0).all()


@pytest.mark.parametrize("start", [0, 1, 2])
def test_balance_reaches_the_same_plan_from_any_start(kind, start):
    G, a, b = _problem(6, 5, kind)
    F = _starts(6, kind)[start]
    H, v, w, t = (np.empty(5, kind) for _ in range(4))
    scale, tolerance = kind(2.0), 1e-5
    _, error = loops.balance(G, scale, a, b, F, H, np.empty_like(G), np.empty(6, kind), v, w, t, 5000, tolerance)
    plan = np.exp(2.0 * G.astype(float) + F[:, None] + H[None, :]) * a[:, None] * b[None, :]
    assert error <= tolerance
    np.testing.assert_allclose(plan.sum(axis=1), a, rtol=0, atol=10 * tolerance)
    np.testing.assert_allclose(plan.sum(axis=0), b, rtol=0, atol=10 * tolerance)


def test_every_iteration_is_exact_even_where_plans_span_more_than_float32_does(kind):
    a = np.full(12, 1 / 12, kind)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(2, 12, 2))
        G, start = (x @ y.T).astype(kind), (200 * rng.normal(size=12)).astype(kind)
        F, (H, u, v, w, t) = start.copy(), (np.empty(12, kind) for _ in range(5))
        loops.balance(G, kind(60), a, a, F, H, np.empty_like(G), u, v, w, t, 20, 0.0)
        exact_F = start.astype(float)
        exact_H = -logsumexp(60.0 * G + exact_F[:, None], b=1 / 12, axis=0)
        for _ in range(20):
            exact_F = -logsumexp(60.0 * G + exact_H, b=1 / 12, axis=1)
            exact_H = -logsumexp(60.0 * G + exact_F[:, None], b=1 / 12, axis=0)
        np.testing.assert_allclose(F, exact_F, rtol=0, atol=1e-3)
        np.testing.assert_allclose(H, exact_H, rtol=0, atol=1e-3)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_balance_self_reaches_the_same_plan_from_any_start(kind, start):
    points = np.random.default_rng(3).normal(size=(7, 2))
    G, a = (points @ points.T).astype(kind), _problem(7, 1, kind)[1]
    F = _starts(7, kind)[start]
    K, (u, w, t) = np.empty_like(G), (np.empty(7, kind) for _ in range(3))
    tolerance = 1e-5
    _, error = loops.balance_self(G, kind(2.0), a, F, K, u, w, t, 5000, tolerance)
    plan = np.exp(2.0 * G.astype(float) + F[:, None] + F[None, :]) * a[:, None] * a[None, :]
    assert error <= tolerance
    np.testing.assert_allclose(plan.sum(axis=1), a, rtol=0, atol=10 * tolerance)
    # The plan the loop leaves behind, scaled by u on both sides, is the plan of the potentials.
    np.testing.assert_allclose((w / a)[:, None] * K * (w / a)[None, :] * np.outer(a, a), plan, rtol=0, atol=1e-4)
