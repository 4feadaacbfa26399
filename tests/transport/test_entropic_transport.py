"""Entropic transport without debiasing."""

from __future__ import annotations

import numpy as np
import pytest

from kernels import KERNELS
from otimpute.transport import entropic_transport, sinkhorn_divergence


@pytest.fixture
def clouds() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = rng.random(7) + 0.1, rng.random(5) + 0.1
    return rng.normal(size=(7, 2)), rng.normal(size=(5, 2)) + 0.5, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("kernel", KERNELS)
def test_value_and_plan_are_those_of_pot(clouds, kernel: str) -> None:
    ot = pytest.importorskip("ot")
    x, y, a, b = clouds
    cost = 0.5 * ((x[:, None] - y[None]) ** 2).sum(axis=2)
    plan = ot.sinkhorn(a, b, cost, 0.3, stopThr=1e-13, numItermax=100_000)
    result = entropic_transport(x, y, a, b, epsilon=0.3, tol=1e-10, kernel=kernel)
    relative = plan / (a[:, None] * b[None])
    assert result.value == pytest.approx((plan * cost).sum() + 0.3 * (plan * np.log(relative)).sum(), abs=1e-8)
    ours = a[:, None] * b[None] * np.exp((result.f[:, None] + result.g[None] - cost) / 0.3)
    np.testing.assert_allclose(ours, plan, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_finite_differences(clouds, kernel: str) -> None:
    x, y, a, b = clouds
    settings = {"epsilon": 0.3, "tol": 1e-12, "kernel": kernel, "max_iter": 20_000}
    result = entropic_transport(x, y, a, b, **settings)
    for i, k in [(0, 0), (3, 1), (4, 0)]:
        for cloud, gradient in ((0, result.gradient_x), (1, result.gradient_y)):
            values = []
            for step in (1e-5, -1e-5):
                moved = [x.copy(), y.copy()]
                moved[cloud][i, k] += step
                values.append(entropic_transport(*moved, a, b, **settings).value)
            assert gradient[i, k] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-7)


def test_the_divergence_is_made_of_three_transports(clouds) -> None:
    x, y, a, b = clouds
    settings = {"epsilon": 0.3, "tol": 1e-10}
    cross = entropic_transport(x, y, a, b, **settings).value
    own = [entropic_transport(p, p, w, w, **settings).value for p, w in ((x, a), (y, b))]
    assert sinkhorn_divergence(x, y, a, b, **settings).value == pytest.approx(cross - sum(own) / 2, abs=1e-8)


def test_batches_and_single_problems_agree(clouds) -> None:
    x, y, a, b = clouds
    batch = entropic_transport(np.stack([x, x + 1]), np.stack([y, y]), a, b, epsilon=0.3)
    assert batch.value.shape == (2,)
    assert batch.gradient_x.shape == (2, 7, 2)
    assert batch.value[1] == pytest.approx(entropic_transport(x + 1, y, a, b, epsilon=0.3).value)
