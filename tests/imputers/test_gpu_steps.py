"""Algorithm 1 on a GPU does what it does on the CPU. Without a GPU, Triton's interpreter runs the same code, slowly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import otimpute.fitting.checkpoint as checkpoints
import otimpute.imputers.gpu.gpu_steps as gpu_steps
import otimpute.imputers.gpu.gpu_tables as gpu_tables
from kernels import HAS_GPU
from otimpute import SinkhornImputer, _gpu
from otimpute import _device as device
from otimpute.exceptions import GpuError, OtimputeWarning
from otimpute.imputers.batches.divergence import BatchPlan, make_cells, make_geometry
from otimpute.imputers.batches.pairs import ALL_ROWS
from otimpute.imputers.gpu.gpu_steps import GpuFit, GpuSteps
from otimpute.imputers.gpu.gpu_tables import GpuTables
from otimpute.imputers.preparation.working_copy import padded_width
from otimpute.imputers.sinkhorn.cpu_steps import CpuSteps

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")  # of the interpreter; a GPU says nothing

A_FEW = 1e-5  # steps so short that a gradient that is zero but for rounding, whose sign is chance, moves nothing far


def table(n: int, d: int, seed: int = 0, *, rate: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Working copy, holes, and a metric."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(n, d))
    free = rng.random(X.shape) < rate
    work = np.zeros((n, padded_width(d)), np.float32)
    work[:, :d], work[:, d] = X / X.std(axis=0), 1
    return work, free, np.linalg.inv(np.linalg.cholesky(np.cov(work[:, :d].T) + np.eye(d) / 2))


def both(
    fits: list[tuple[np.ndarray, np.ndarray, Any]],
    plans: list[BatchPlan],
    m: int,
    n_pairs: int,
    n_steps: int,
    rate: float = A_FEW,
) -> tuple[list[CpuSteps], GpuSteps, list[tuple[np.ndarray, np.ndarray]]]:
    """All fits on the CPU, one after the other, and on the GPU, side by side; losses and errors of both."""
    rates = np.full(n_steps, rate)
    alone = [
        CpuSteps(make_cells(work.copy(), free), geometry, plan, m, n_pairs, 1)
        for (work, free, geometry), plan in zip(fits, plans, strict=True)
    ]
    of_cpu = [steps.take(0, rates, 0) for steps in alone]
    on_gpu = GpuSteps([GpuFit(*fit, plan) for fit, plan in zip(fits, plans, strict=True)], n_steps, m, n_pairs)
    of_gpu = on_gpu.take(0, rates, 0)
    return alone, on_gpu, [(np.concatenate([found[k] for found in of_cpu], axis=1), of_gpu[k]) for k in range(2)]


def assert_alike(alone: list[CpuSteps], on_gpu: GpuSteps, found: list[tuple[np.ndarray, np.ndarray]], n_steps: int) -> None:
    for of_cpu, of_gpu in found:
        np.testing.assert_allclose(of_gpu, of_cpu, rtol=2e-4, atol=2e-5)
    for fit, steps in enumerate(alone):
        np.testing.assert_allclose(on_gpu.on_host(on_gpu.read(fit)), steps.read(), atol=3e-4)
        np.testing.assert_allclose(
            np.log(2) * on_gpu.on_host(on_gpu._tables.potentials[fit]), steps.cells.potentials, atol=2e-3
        )
    for fit, mean in enumerate(on_gpu.window_means(0, n_steps)):
        np.testing.assert_allclose(on_gpu.on_host(mean), alone[fit].window_means(0, n_steps)[0], atol=3e-4)


@pytest.mark.parametrize(
    ("n", "d", "m", "n_pairs", "metric"),
    [(40, 5, 16, 1, True), (60, 3, 13, 3, False), (30, 70, 8, 1, True), (20, 1, 10, 2, False)],
)
def test_steps_are_those_of_the_cpu(n: int, d: int, m: int, n_pairs: int, metric: bool) -> None:
    work, free, A = table(n, d)
    geometry = make_geometry(A @ A.T if metric else np.zeros((0, 0)), 0.1 * d, d, work.shape[1])
    plan = BatchPlan(2**63 - 5, ALL_ROWS, ALL_ROWS, 20, 3)
    assert_alike(*both([(work, free, geometry)], [plan], m, n_pairs, 2), 2)


def test_large_batches_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_tables, "_LARGEST_ON_CHIP", 8)
    fits = []
    for seed, epsilon in ((0, 0.3), (1, 0.6)):
        work, free, A = table(24, 4, seed)
        fits.append((work, free, make_geometry(A @ A.T, epsilon, 4, work.shape[1])))
    assert_alike(*both(fits, [BatchPlan(seed, ALL_ROWS, ALL_ROWS, 20, 3) for seed in (7, 8)], 9, 2, 2), 2)


def test_rows_of_one_sided_batches_come_from_their_pools() -> None:
    work, free, _ = table(40, 4)
    free[:25] = False
    geometry = make_geometry(np.zeros((0, 0)), 0.4, 4, work.shape[1])
    assert_alike(*both([(work, free, geometry)], [BatchPlan(3, np.arange(25), np.arange(25, 40), 20, 3)], 8, 1, 2), 2)


def test_fits_side_by_side_do_not_touch_each_other() -> None:
    fits = []
    for seed, epsilon in ((0, 0.3), (1, 0.6)):
        work, free, A = table(24, 4, seed)
        fits.append((work, free, make_geometry(A @ A.T, epsilon, 4, work.shape[1])))
    assert_alike(*both(fits, [BatchPlan(seed, ALL_ROWS, ALL_ROWS, 20, 3) for seed in (7, 8)], 8, 2, 2), 2)


@pytest.mark.parametrize("m", [12, 16])
def test_comparisons_are_exact_even_where_plans_span_more_than_float32_does(m: int) -> None:
    n_pairs, epsilon = 20, 1 / 60
    tables = GpuTables([make_geometry(np.zeros((0, 0)), epsilon, 2, 8)], 2 * m * n_pairs, 1, m, n_pairs, (20, 3))
    rng = np.random.default_rng(0)
    points, start = rng.normal(size=(2 * m * n_pairs, 2)).astype(np.float32), 200 * rng.normal(size=(2 * m * n_pairs, 2))
    tables.values[0, :, :2] = torch.tensor(points)
    tables.potentials[0] = torch.tensor(start / np.log(2))
    tables.map_all()
    tables.compare(torch.arange(2 * m * n_pairs, dtype=torch.int32, device=tables.device)[None], 0)
    potentials = np.log(2) * tables.new_potentials[0].cpu().numpy()
    projected = (tables.projected[0] * tables.from_metric[0]).cpu().numpy()[..., :2]
    errors = tables.found[0, 0, :, 3].cpu().numpy()
    clouds, starts = points.reshape(n_pairs, 2, m, 2).astype(float), start.reshape(n_pairs, 2, m, 2)
    for pair, ((x, y), (x_start, _)) in enumerate(zip(clouds, starts, strict=True)):
        own, cross = (-((x[:, None] - points) ** 2).sum(axis=2) / (2 * epsilon) for points in (x, y))
        f = x_start[:, 1]
        g = before = -logsumexp(f + cross.T, axis=1, b=1 / m)
        for _ in range(20):
            f = -logsumexp(g + cross, axis=1, b=1 / m)
            before, g = g, -logsumexp(f + cross.T, axis=1, b=1 / m)
        shift = (f.mean() - g.mean()) / 2
        np.testing.assert_allclose(potentials[pair, 1], [f - shift, g + shift], rtol=0, atol=2e-3)
        np.testing.assert_allclose(projected[pair, 1], [softmax(g + cross, 1) @ y, softmax(f + cross.T, 1) @ x], atol=2e-3)
        np.testing.assert_allclose(errors[pair], np.abs(np.exp(before - g) - 1).mean(), atol=2e-3)
        f = x_start[:, 0]
        for _ in range(3):
            f = (f - logsumexp(f + own, axis=1, b=1 / m)) / 2
        np.testing.assert_allclose(potentials[pair, 0, 0], f, rtol=0, atol=2e-3)
        np.testing.assert_allclose(projected[pair, 0, 0], softmax(f + own, 1) @ x, rtol=0, atol=2e-3)


def test_a_small_epsilon_and_a_batch_that_fills_no_tile_give_what_the_cpu_gives() -> None:
    work, free, _ = table(60, 3)
    geometry = make_geometry(np.zeros((0, 0)), 1e-3, 3, work.shape[1])
    _, steps, found = both([(work, free, geometry)], [BatchPlan(0, ALL_ROWS, ALL_ROWS, 20, 3)], 13, 1, 10)
    assert np.isfinite(steps.on_host(steps.read(0))).all()
    for of_cpu, of_gpu in found:
        np.testing.assert_allclose(of_gpu, of_cpu, rtol=0.05)


BETWEEN_KERNELS = pytest.mark.skipif(HAS_GPU, reason="only the interpreter lets a test come between two kernels")


@BETWEEN_KERNELS
def test_what_float32_cannot_scale_is_solved_in_the_log_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    from otimpute.imputers.gpu import kernels as gpu_kernels

    def not_fine(original: Any) -> Any:
        def balance(*arguments: Any) -> Any:
            *spoilt, fine = original(*arguments)
            return *(part * 0 for part in spoilt), fine * 0

        return balance

    for name in ("balance", "balance_self"):
        monkeypatch.setattr(gpu_kernels, name, not_fine(getattr(gpu_kernels, name)))
    work, free, A = table(24, 4)
    geometry = make_geometry(A @ A.T, 0.3, 4, work.shape[1])
    assert_alike(*both([(work, free, geometry)], [BatchPlan(7, ALL_ROWS, ALL_ROWS, 20, 3)], 8, 2, 2), 2)


@BETWEEN_KERNELS
@pytest.mark.parametrize("m", [13, 16])
def test_scalings_are_enough_for_ordinary_batches(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from otimpute.imputers.gpu import kernels as gpu_kernels

    for name in ("balance_logarithms", "balance_self_logarithms"):
        monkeypatch.setattr(gpu_kernels, name, lambda *_: pytest.fail("took the slow way"))
    work, free, A = table(40, 4)
    geometry = make_geometry(A @ A.T, 0.3, 4, work.shape[1])
    assert_alike(*both([(work, free, geometry)], [BatchPlan(7, ALL_ROWS, ALL_ROWS, 20, 3)], m, 2, 2), 2)


@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU, and so no graph")
@pytest.mark.parametrize("batch_size", [16, 150])
def test_recorded_steps_are_those_that_are_asked_for_one_by_one(batch_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at_once in (10, 1000):
        monkeypatch.setattr(gpu_steps, "_STEPS_PER_GRAPH", at_once)
        fits = []
        for seed in range(2):
            work, free, A = table(200, 5, seed)
            geometry = make_geometry(A @ A.T, 0.5, 5, work.shape[1])
            fits.append(GpuFit(work, free, geometry, BatchPlan(seed, ALL_ROWS, ALL_ROWS, 20, 3)))
        steps = GpuSteps(fits, 35, batch_size, 2)
        losses, _ = steps.take(0, np.full(35, 1e-2), 0)
        found.append((losses, *(steps.on_host(steps.read(fit)) for fit in range(2))))
    for recorded, plain in zip(*found, strict=True):
        np.testing.assert_array_equal(recorded, plain)


X = np.random.default_rng(0).normal(size=(40, 1)) * [1.0, 2.0, -1.0] + 0.3 * np.random.default_rng(1).normal(size=(40, 3))
X_incomplete = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
SHORT = {"random_state": 0, "max_steps": 6, "batch_size": 8}


def test_a_fit_on_a_gpu_gives_the_values_of_one_on_the_cpu() -> None:
    asked = {"validation_fraction": 0.1, "learning_rate": A_FEW, **SHORT}
    fitted = {device: SinkhornImputer(device=device, **asked) for device in ("cpu", "cuda")}
    cpu, gpu = (imputer.fit_transform(X_incomplete) for imputer in fitted.values())
    np.testing.assert_allclose(gpu, cpu, atol=1e-3)
    assert [imputer.device_ for imputer in fitted.values()] == ["cpu", "cuda"]
    for name, values in fitted["cpu"].history_.items():
        np.testing.assert_allclose(fitted["cuda"].history_[name], values, rtol=1e-2, atol=1e-3, err_msg=name)
    np.testing.assert_array_equal(SinkhornImputer(device="cuda", **asked).fit_transform(X_incomplete), gpu)


def test_a_fit_on_a_gpu_goes_on_from_its_checkpoint(tmp_path: Any) -> None:
    longer = {**SHORT, "max_steps": 12, "device": "cuda"}
    whole = SinkhornImputer(**longer).fit_transform(X_incomplete)
    imputer = SinkhornImputer(checkpoint=tmp_path / "fit", callbacks=lambda progress: progress.step < 12, **longer)
    imputer.fit(X_incomplete)
    assert imputer.stop_reason_ == "callback"
    continued = imputer.set_params(callbacks=None).fit_transform(X_incomplete)
    # The interpreter multiplies matrices by NumPy, where the last bits of a row may depend on its place in the block.
    np.testing.assert_allclose(continued, whole, rtol=0 if HAS_GPU else 1e-5)


def take_gpu_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have "auto" take the GPU, or the interpreter in its place, for any fit."""
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    monkeypatch.setattr(device, "interpreted", lambda: False)


def test_the_interpreter_is_never_taken_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    if not HAS_GPU:
        assert SinkhornImputer(**SHORT).fit(X_incomplete).device_ == "cpu"


@pytest.fixture
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu, "interpreted", lambda: False)


def test_without_a_gpu_cuda_is_an_error_that_says_what_to_do(no_interpreter: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r'device="cuda" needs an NVIDIA GPU, but torch .* finds none.*; pass "cpu"'):
        SinkhornImputer(device="cuda").fit(X_incomplete)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (6, 1))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Old Card")
    with pytest.raises(ValueError, match=r"Old Card has compute capability 6\.1, less than 8\.0"):
        SinkhornImputer(device="cuda").fit(X_incomplete)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))

    def no_compiler() -> None:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.")

    monkeypatch.setattr(_gpu, "_try_kernel", no_compiler)
    with pytest.raises(ValueError, match=r"it cannot be used \(RuntimeError: Failed to find C compiler"):
        SinkhornImputer(device="cuda").fit(X_incomplete)
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    assert SinkhornImputer(**SHORT).fit(X_incomplete).device_ == "cpu"
    monkeypatch.setattr(_gpu, "find_spec", lambda name: None if name == "triton" else SimpleNamespace())
    with pytest.raises(ValueError, match=r"'triton' is not installed \(pip install"):
        SinkhornImputer(device="cuda").fit(X_incomplete)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "does not fit into the memory of the GPU"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "the GPU failed during a fit of 40 × 3 values"),
    ],
)
def test_a_gpu_that_fails_is_an_error_or_a_stated_fall_back(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(GpuSteps, "_take", fail)
    with pytest.raises(GpuError, match=message):
        SinkhornImputer(device="cuda", **SHORT).fit(X_incomplete)
    take_gpu_for_anything(monkeypatch)
    imputer = SinkhornImputer(device="auto", **SHORT)
    with pytest.warns(OtimputeWarning, match=f'{message}.*With device="auto" the CPU takes over'):
        imputed = imputer.fit_transform(X_incomplete)
    assert imputer.device_ == "cpu"
    np.testing.assert_array_equal(imputed, SinkhornImputer(device="cpu", **SHORT).fit_transform(X_incomplete))


def test_the_cpu_goes_on_where_a_checkpoint_was_written(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    take, seen = GpuSteps.take, []

    def fail_later(self: Any, first: int, *arguments: Any) -> Any:
        if first > 0:
            raise GpuError("gone")
        return take(self, first, *arguments)

    monkeypatch.setattr(GpuSteps, "take", fail_later)
    take_gpu_for_anything(monkeypatch)
    for name in ("SECONDS_BETWEEN", "COSTS_BETWEEN"):
        monkeypatch.setattr(checkpoints, name, 0)
    imputer = SinkhornImputer(
        checkpoint=tmp_path / "fit", callbacks=lambda at: seen.append(at.step), **{**SHORT, "max_steps": 12}
    )
    with pytest.warns(OtimputeWarning, match="the CPU takes over"):
        imputer.fit(X_incomplete)
    assert len(seen) > 1
    assert (np.diff(seen) > 0).all()


def test_an_error_of_ours_is_not_blamed_on_the_gpu() -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("CUDA is what my callback talks about")

    with pytest.raises(RuntimeError, match="my callback") as caught:
        SinkhornImputer(device="cuda", callbacks=fail, **SHORT).fit(X_incomplete)
    assert not isinstance(caught.value, GpuError)


def test_short_fits_do_not_look_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "gpu_trouble", lambda: pytest.fail("looked"))
    assert SinkhornImputer(**SHORT).fit(X_incomplete).device_ == "cpu"
