"""The GPU kernel, on a GPU if there is one, otherwise in Triton's interpreter; the contracts of all kernels are elsewhere."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from otimpute import sinkhorn_divergence
from otimpute._gpu import tensors_on
from otimpute.exceptions import GpuError
from otimpute.transport.kernels import cuda, reference
from otimpute.transport.kernels.select import select_kernel

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from otimpute.transport.kernels import streaming  # noqa: E402  # needs both

KINDS = {"float32": 2e-5, "float64": 1e-12}  # and what a softmin may be off


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def poisoned_buffers(monkeypatch):
    """Memory that nobody has written to is full of NaN."""
    for name in ("empty_like", "empty"):
        make = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *args, make=make, **kwargs: make(*args, **kwargs).fill_(float("nan")))
    new_empty = torch.Tensor.new_empty
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda *args, **kwargs: new_empty(*args, **kwargs).fill_(float("nan")))


def _tensors(kind: str, n: int, m: int, d: int, batches: int = 1) -> tuple[torch.Tensor, ...]:
    """Two clouds whose last point lies before NaN in memory, and heights of the second."""
    generator = torch.Generator().manual_seed(n + m + d)
    tensors = []
    for shape in ((batches, n, d), (batches, m, d), (batches, m)):
        values = torch.randn(shape, generator=generator, dtype=torch.float64).to(getattr(torch, kind))
        memory = torch.full((values.numel() + 10_000,), float("nan"), dtype=values.dtype, device=tensors_on("a test"))
        memory[: values.numel()] = values.flatten()
        tensors.append(memory[: values.numel()].view(shape))
    return tuple(tensors)


def _close(actual: torch.Tensor, expected: torch.Tensor, absolute: float) -> None:
    np.testing.assert_allclose(actual.cpu(), expected.cpu(), rtol=0, atol=absolute)


def _softmin(x: torch.Tensor, y: torch.Tensor, h: torch.Tensor, **options: Any) -> torch.Tensor:
    """Heights are given in two parts, which the kernel adds."""
    log_weights = _log_weights(h)
    return streaming.softmin(x, y, h - log_weights, log_weights, **options)


def _project(x: torch.Tensor, y: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    log_weights = _log_weights(h)
    return streaming.project(x, y, h - log_weights, log_weights, y)


def _log_weights(h: torch.Tensor) -> torch.Tensor:
    return torch.linspace(-2, 1, h.shape[1], dtype=h.dtype, device=h.device).expand_as(h)


SHAPES = [(1, 1, 1), (5, 3, 17), (64, 64, 64), (129, 65, 3), (3, 700, 2), (130, 70, 200)]


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_softmin_is_the_logarithm_of_the_sum(kind, n, m, d):
    x, y, h = _tensors(kind, n, m, d)
    expected = -torch.logsumexp(x.double() @ y.double().mT + h.double()[:, None, :], dim=2)
    _close(_softmin(x, y, h), expected, KINDS[kind])


@pytest.mark.parametrize("relaxation", [0.5, 1.0, 1.75])
def test_an_update_goes_as_far_towards_the_softmin_as_it_is_told(kind, relaxation):
    x, y, h = _tensors(kind, 5, 70, 3)
    before = torch.randn_like(x[..., 0])
    expected = before.lerp(_softmin(x, y, h), relaxation)
    _close(_softmin(x, y, h, before=before, relaxation=relaxation), expected, KINDS[kind])


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_project_is_the_average_by_softmax(kind, n, m, d):
    x, y, h = _tensors(kind, n, m, d)
    weights = torch.softmax(x.double() @ y.double().mT + h.double()[:, None, :], dim=2)
    _close(_project(x, y, h), weights @ y.double(), KINDS[kind])


def test_products_may_be_rounded_as_ieee_does():
    x, y, h = _tensors("float32", 5, 9, 3)
    _close(_softmin(x, y, h, precision="ieee"), _softmin(x, y, h), 1e-5)


def test_points_without_weight_add_nothing_even_if_a_whole_part_of_the_columns_has_none(kind):
    x, y, h = _tensors(kind, 5, 300, 3)
    h[:, :200] = -torch.inf
    _close(_softmin(x, y, h), _softmin(x, y[:, 200:], h[:, 200:]), KINDS[kind])
    _close(_project(x, y, h), _project(x, y[:, 200:], h[:, 200:]), KINDS[kind])


def test_exponents_of_any_size_neither_overflow_nor_vanish(kind):
    x, y, h = _tensors(kind, 5, 70, 3)
    for shift in (-1e4, 1e4):
        _close(_softmin(x, y, h + shift), _softmin(x, y, h) - shift, 1e4 * KINDS[kind])


def test_a_batch_is_its_members_one_by_one(kind):
    x, y, h = _tensors(kind, 7, 9, 3, batches=3)
    together = _softmin(x, y, h), _project(x, y, h)
    for k in range(3):
        member = slice(k, k + 1)
        _close(together[0][member], _softmin(x[member], y[member], h[member]), 0)
        _close(together[1][member], _project(x[member], y[member], h[member]), 0)


def _clouds(d: int, without_weight: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(9, d)), rng.normal(0.5, 1.0, size=(6, d))
    a, b = rng.uniform(0.2, 2.0, size=9), rng.uniform(0.2, 2.0, size=6)
    a[:without_weight] = b[:without_weight] = 0
    return x, y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
@pytest.mark.parametrize(("d", "share", "without_weight"), [(1, 0.1, 0), (3, 0.1, 2), (3, 10.0, 0), (64, 0.01, 0)])
def test_divergence_and_gradients_are_those_of_the_reference(d, share, without_weight, tolerance):
    clouds, epsilon = _clouds(d, without_weight), share * d
    result = sinkhorn_divergence(*clouds, epsilon=epsilon, tol=tolerance, kernel="cuda")
    exact = sinkhorn_divergence(*clouds, epsilon=epsilon, tol=1e-11, max_iter=20_000, kernel="reference")
    assert result.converged
    assert result.value == pytest.approx(exact.value, abs=tolerance * epsilon)
    np.testing.assert_allclose(result.gradient_x, exact.gradient_x, rtol=0, atol=100 * tolerance + 2e-5)
    np.testing.assert_allclose(result.gradient_y, exact.gradient_y, rtol=0, atol=100 * tolerance + 2e-5)
    assert np.isfinite(np.concatenate([result.f, result.g, result.self_f, result.self_g])).all()


def test_annealing_changes_the_way_and_not_the_end(monkeypatch):
    x, y, a, b = (part[None] for part in _clouds(2))
    solutions = []
    for above in (0.0, 1e9):
        monkeypatch.setattr(streaming, "_ANNEALED_ABOVE", above)
        solutions.append(cuda.cross(x, y, a, b, 0.1, 1e-7, 500))
    assert solutions[0].n_iterations != solutions[1].n_iterations
    sums = [solution.f[:, :, None] + solution.g[:, None, :] for solution in solutions]
    np.testing.assert_allclose(*sums, rtol=0, atol=1e-6)


def test_over_relaxation_needs_far_fewer_sweeps_than_the_reference():
    x, y, a, b = (part[None] for part in _clouds(1))
    slow = reference.cross(x, y, a, b, 0.01, 1e-4, 5000)
    quick = cuda.cross(x, y, a, b, 0.01, 1e-4, 5000)
    assert quick.error <= 1e-4
    assert quick.n_iterations[0] < slow.n_iterations[0] / 2


def test_sweeps_end_at_the_number_asked_for():
    x, y, a, b = (part[None] for part in _clouds(1))
    assert cuda.cross(x, y, a, b, 0.1, 0.0, 7).n_iterations == 7
    assert cuda.itself(x, a, 0.1, 0.0, 3).n_iterations == 3


@pytest.mark.parametrize(
    ("relaxation", "rate", "expected"), [(1.0, 0.0, 1.0), (1.5, 1.2, 1.0), (1.8, 0.5, 1.8), (1.0, 0.75, 4 / 3)]
)
def test_relaxation_follows_the_rate_of_convergence(relaxation, rate, expected):
    assert streaming._next_relaxation(relaxation, rate) == pytest.approx(expected)


def test_too_many_points_for_the_memory_are_refused_with_what_to_do(monkeypatch):
    def full(*_args):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(streaming, "cross", full)
    with pytest.raises(GpuError, match=r"shapes \(1, 9, 2\) and \(1, 6, 2\) does not fit .* pass .cpu., or less at a time"):
        sinkhorn_divergence(*_clouds(2), epsilon=0.1, kernel="cuda")


def test_without_a_gpu_the_error_says_what_to_do(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r'kernel="cuda" needs an NVIDIA GPU, but .* pass "cpu"'):
        sinkhorn_divergence([[0.0]], [[1.0]], epsilon=1.0, kernel="cuda")


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_without_its_packages_the_error_names_the_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=rf"but the package '{package}' is not installed \(pip install .otimpute\[gpu\]"):
        select_kernel("cuda").project(*(np.zeros((1, 1, 1)),) * 2, *(np.ones((1, 1)),) * 2, 1.0)
