"""Gaussians and mixtures by torch are those of the CPU's own code. Torch's CPU stands in for a GPU where there is none."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal

from otimpute._deadline import OutOfTime
from otimpute.gaussian import fit_gaussian, fit_mixture

torch = pytest.importorskip("torch", reason="torch is not installed")
torch_rows = pytest.importorskip("otimpute.gaussian.torch_rows")

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NO_GPU)])


def rows_with_holes(n: int, d: int, rate: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bent rows; the first has no observed value, the second no hole."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, min(d, 4)))
    values = np.tanh(factors @ rng.normal(size=(factors.shape[1], d))) + 0.3 * rng.normal(size=(n, d))
    values /= values.std(axis=0)
    missing = rng.random((n, d)) < rate
    missing[0], missing[1] = True, False
    return np.where(missing, np.nan, values), missing


@DEVICES
@pytest.mark.parametrize(("n", "d", "rate"), [(40, 1, 0.2), (200, 5, 0.5), (300, 30, 0.2), (60, 40, 0.6)])
def test_em_on_a_gpu_is_that_on_the_cpu(n: int, d: int, rate: float, device: str) -> None:
    values, missing = rows_with_holes(n, d, rate)
    cpu = fit_gaussian(values, missing, tolerance=1e-4, max_iterations=100)
    gpu = fit_gaussian(values, missing, tolerance=1e-4, max_iterations=100, torch_device=device)
    assert (gpu.n_iterations, gpu.converged) == (cpu.n_iterations, cpu.converged)
    np.testing.assert_allclose(gpu.mean, cpu.mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(gpu.covariance, cpu.covariance, rtol=0, atol=1e-10)
    np.testing.assert_allclose(cpu.fill(values, missing, torch_device=device), cpu.fill(values, missing), rtol=0, atol=1e-10)


@DEVICES
@pytest.mark.parametrize(
    ("n_components", "tolerance"),
    # Of more than eight the CPU leaves out those that have less than a millionth of a row.
    [(1, 1e-9), (3, 1e-9), (8, 1e-9), (20, 1e-4)],
)
def test_a_mixture_on_a_gpu_is_that_on_the_cpu(n_components: int, tolerance: float, device: str) -> None:
    values, missing = rows_with_holes(400, 7)
    start = fit_gaussian(values, missing).fill(values, missing)
    cpu, gpu = (
        fit_mixture(values, missing, n_components, start=start, rng=np.random.default_rng(1), torch_device=each)
        for each in (None, device)
    )
    assert gpu.n_iterations == cpu.n_iterations
    for name in ("share", "mean", "covariance"):
        np.testing.assert_allclose(getattr(gpu, name), getattr(cpu, name), rtol=0, atol=tolerance, err_msg=name)
        assert type(getattr(gpu, name)) is np.ndarray
    filled = cpu.fill(values, missing, torch_device=device)
    np.testing.assert_allclose(filled, cpu.fill(values, missing), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(filled[~missing], values[~missing])


@DEVICES
def test_sums_over_rows_are_those_of_the_textbook(device: str) -> None:
    values, missing = rows_with_holes(30, 4)
    rng = np.random.default_rng(2)
    k, d = 12, 4
    mixing = rng.normal(size=(k, d, d)) + np.eye(d)
    share, mean, covariance = np.full(k, 1 / k), rng.normal(size=(k, d)), mixing @ mixing.transpose(0, 2, 1) / d
    log_density, completed, varies = np.zeros((30, k)), np.empty((30, k, d)), np.zeros((30, k, d, d))
    for i, (row, hole) in enumerate(zip(values, missing, strict=True)):
        seen = ~hole
        for c in range(k):
            inside = covariance[c][np.ix_(seen, seen)]
            if seen.any():
                log_density[i, c] = multivariate_normal.logpdf(row[seen], mean[c, seen], inside)
            slope = covariance[c][np.ix_(hole, seen)] @ np.linalg.inv(inside)
            completed[i, c] = row
            completed[i, c, hole] = mean[c, hole] + slope @ (row[seen] - mean[c, seen])
            varies[i, c][np.ix_(hole, hole)] = covariance[c][np.ix_(hole, hole)] - slope @ covariance[c][np.ix_(seen, hole)]
    part = softmax(log_density, axis=1)
    away = completed - mean
    rows = torch_rows.TorchRows(np.where(missing, 5.0, values), missing, k, device)
    sums = rows.learn(share, mean, covariance)
    np.testing.assert_allclose(sums.mass, part.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(sums.drift, np.einsum("nk,nka->ka", part, away), atol=1e-10)
    products = away[..., :, None] * away[..., None, :] + varies
    np.testing.assert_allclose(sums.scatter, np.einsum("nk,nkab->kab", part, products), atol=1e-10)
    expected = np.einsum("nk,nka->na", part, completed)[missing]
    np.testing.assert_allclose(rows.holes(), expected, atol=1e-10)
    assert sums.moved == pytest.approx(((expected - 5) ** 2).sum())


@DEVICES
@pytest.mark.parametrize("limit", ["_BYTES_AT_ONCE", "_MATRICES_AT_ONCE"])
def test_little_memory_at_a_time_gives_the_same(limit: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, missing = rows_with_holes(50, 6)
    share, mean, covariance = np.array([0.25, 0.75]), np.array([[0.0] * 6, [1.0] * 6]), np.array([np.eye(6), 2 * np.eye(6)])
    whole = torch_rows.TorchRows(values, missing, 2, device)
    monkeypatch.setattr(torch_rows, limit, 7)
    in_parts = torch_rows.TorchRows(values, missing, 2, device)
    assert len(in_parts._chunks) > len(whole._chunks)
    found, expected = (rows.learn(share, mean, covariance) for rows in (in_parts, whole))
    for name in ("drift", "scatter", "mass"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(in_parts.holes(), whole.holes(), rtol=1e-12, atol=1e-12)


@DEVICES
def test_the_same_fit_gives_the_same_bits(device: str) -> None:
    values, missing = rows_with_holes(200, 6)
    start = np.where(missing, 0.0, values)
    one, other = (
        fit_mixture(values, missing, 5, start=start, rng=np.random.default_rng(0), torch_device=device) for _ in range(2)
    )
    np.testing.assert_array_equal(one.covariance, other.covariance)


@DEVICES
def test_deadlines_hold(device: str) -> None:
    values, missing = rows_with_holes(100, 5)
    past = time.perf_counter() - 1
    assert fit_gaussian(values, missing, tolerance=0.0, deadline=past, torch_device=device).n_iterations == 2
    with pytest.raises(OutOfTime):
        fit_mixture(
            values, missing, 3, start=np.where(missing, 0.0, values), rng=np.random.default_rng(0), deadline=past,
            torch_device=device,
        )  # fmt: skip


@DEVICES
def test_what_is_no_covariance_is_an_error(device: str) -> None:
    values, missing = rows_with_holes(20, 3)
    rows = torch_rows.TorchRows(values, missing, 1, device)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        rows.learn(np.ones(1), np.zeros((1, 3)), np.diag([1.0, -1.0, 1.0])[None])
