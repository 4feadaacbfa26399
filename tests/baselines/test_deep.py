"""The deep methods are what their papers say, learn what there is to learn, and say so when they do not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="needs the extra torch")
import torch
from scipy.stats import norm
from scipy.stats import t as student_t

import otimpute
from every_imputer import grouped_table
from otimpute.baselines import GAINImputer, MIWAEImputer, VAEACImputer
from otimpute.baselines._networks import Gain, Miwae, Vaeac, _log_density, log_gamma_ratio
from otimpute.exceptions import DivergedError, FitStoppedWarning, OtimputeWarning

# Enough to learn a simple table, quick enough for a test.
QUICK: dict[type[Any], dict[str, Any]] = {
    MIWAEImputer: {"max_steps": 1200, "n_imputation_samples": 200},
    GAINImputer: {"max_steps": 3500, "alphas": (1.0, 10.0, 100.0)},
    VAEACImputer: {"max_steps": 400, "depth": 3, "width": 64, "learning_rate": 1e-3},
}
EVERY = pytest.mark.parametrize("kind", list(QUICK))


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Several test workers with several threads each get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(kind: type[Any], **parameters: Any) -> Any:
    return kind(**{"random_state": 0, "device": "cpu", **QUICK[kind], **parameters})


def gaussian(n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(n, 6))


def arc(n: int = 400) -> np.ndarray:
    angle = np.random.default_rng(0).uniform(0, math.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.02 * np.random.default_rng(1).normal(size=(n, 2))


def punch(X: np.ndarray, rate: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    missing = np.random.default_rng(2).random(X.shape) < rate
    missing &= ~missing.all(axis=1, keepdims=True)
    return np.where(missing, np.nan, X), missing


def against_mean(X: np.ndarray, X_incomplete: np.ndarray, X_imputed: np.ndarray) -> float:
    missing = np.isnan(X_incomplete)
    return float(np.abs(X_imputed - X)[missing].mean() / np.abs(np.nanmean(X_incomplete, axis=0) - X)[missing].mean())


@EVERY
def test_relations_of_a_correlated_gaussian_are_found_and_fill_new_rows(kind: type[Any]) -> None:
    X = gaussian()
    X_incomplete, _ = punch(X)
    imputer, new = make(kind), X_incomplete[300:]
    assert against_mean(X[:300], X_incomplete[:300], imputer.fit_transform(X_incomplete[:300])) < 0.75
    assert against_mean(X[300:], new, imputer.transform(new)) < 0.8
    np.testing.assert_allclose(imputer.transform(new[5:6]), imputer.transform(new)[5:6], atol=1e-5)  # rounding of float32


@EVERY
def test_a_curve_in_the_plane_is_found(kind: type[Any]) -> None:
    # Given the first coordinate of a half circle, the second is known; given the second, the first is not.
    X = arc()
    X_incomplete = X.copy()
    X_incomplete[::4, 1] = np.nan
    more = {"width": 32, "patience": 15, "max_steps": 5000} if kind is GAINImputer else {}
    assert against_mean(X, X_incomplete, make(kind, **more).fit_transform(X_incomplete)) < 0.75


@EVERY
def test_a_complete_training_table_serves_later_holes(kind: type[Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    imputer = make(kind).fit(np.hstack([x, -x, 2 * x]) + 0.01 * rng.normal(size=(200, 3)))
    assert imputer.transform([[1.0, np.nan, 2.0]]) == pytest.approx(np.array([[1.0, -1.0, 2.0]]), abs=0.6)


@EVERY
def test_categories_are_learned_from_other_columns(kind: type[Any]) -> None:
    complete, incomplete = grouped_table(n=200)
    found = make(kind).fit_transform(pd.DataFrame(incomplete))
    holes = [k for k, value in enumerate(incomplete["colour"]) if value is None]
    assert np.mean([found["colour"][k] == complete["colour"][k] for k in holes]) > 0.6  # one in three by chance


# MIWAE


def test_student_and_normal_densities() -> None:
    rng = np.random.default_rng(0)
    values, centre = torch.tensor(rng.normal(size=(2, 50)))
    scale, degrees = torch.tensor(rng.uniform(0.1, 2, 50)), torch.tensor(rng.uniform(3, 50, 50))
    expected = student_t.logpdf(values, degrees, centre, scale)
    np.testing.assert_allclose(_log_density(values, centre, scale, degrees), expected, atol=1e-6)
    infinite = torch.full_like(degrees, math.inf)
    np.testing.assert_allclose(_log_density(values, centre, scale, infinite), norm.logpdf(values, centre, scale), atol=1e-12)


def test_the_ratio_of_gammas() -> None:
    a = torch.linspace(1.5, 200, 2000, dtype=torch.float64)
    np.testing.assert_allclose(log_gamma_ratio(a), torch.lgamma(a + 0.5) - torch.lgamma(a), atol=1e-7)


def fitted_miwae(**parameters: Any) -> tuple[Miwae, torch.Tensor, torch.Tensor]:
    X_incomplete, missing = punch((gaussian() - gaussian().mean(axis=0)) / gaussian().std(axis=0))
    imputer = make(MIWAEImputer, max_steps=300, **parameters).fit(X_incomplete)
    network: Any = imputer._model.method.network.float()
    holes = torch.tensor(missing, dtype=torch.float32)
    return network, torch.tensor(np.where(missing, 0, X_incomplete), dtype=torch.float32), holes


def test_the_bound_rises_with_the_number_of_importance_samples() -> None:
    network, values, missing = fitted_miwae()
    torch.manual_seed(0)
    with torch.no_grad():
        bounds = [float(np.mean([network.bound(values, missing, k).mean() for _ in range(20)])) for k in (1, 5, 25, 125)]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0] + 0.05


def test_the_bound_tends_to_the_likelihood_and_weights_to_the_posterior() -> None:
    # One latent variable that the decoder passes on: values are z plus noise of spread .5, so all is known in closed form.
    network = Miwae(2, 1, 4, 20, student=False)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        first, _, second, _, last = network.decoder
        first.weight[0, 0] = second.weight[0, 0] = 1e-2  # tanh is the identity near 0
        last.weight[:2, 0] = 1e4
        last.bias[2:] = math.log(math.expm1(0.5 - 1e-3))
        values, missing = torch.tensor([[1.2, 0.0]]), torch.tensor([[0.0, 1.0]])
        torch.manual_seed(0)
        bound = network.bound(values, missing, 20_000)
        expected = network.expect(values, missing, torch.randn(20_000, 1, 1))
    assert float(bound) == pytest.approx(norm.logpdf(1.2, 0, math.sqrt(1 + 0.25)), abs=0.02)
    assert float(expected[0, 1]) == pytest.approx(1.2 / 1.25, abs=0.02)


def test_draws_of_miwae_keep_the_spread_that_expected_values_lose() -> None:
    X = gaussian()
    X_incomplete, missing = punch(X)
    spreads = {
        target: make(MIWAEImputer, target=target).fit_transform(X_incomplete)[missing].std()
        for target in ("values", "distribution")
    }
    assert spreads["values"] < 0.97 * spreads["distribution"]
    assert spreads["distribution"] == pytest.approx(X[missing].std(), rel=0.2)


# GAIN


def test_candidates_are_trained_as_if_each_were_alone() -> None:
    X = torch.tensor(gaussian(64), dtype=torch.float32)
    missing = (torch.rand(X.shape, generator=torch.Generator().manual_seed(0)) < 0.2).float()

    def train(alphas: list[float]) -> Gain:
        torch.manual_seed(1)
        network = Gain(6, 6, alphas)
        network.prepare(X * (1 - missing), missing)
        optimizers = network.optimizers(1e-3)
        for _ in range(5):
            network.update(optimizers, X * (1 - missing), missing)
        return network

    together = train([0.1, 10.0])
    together.keep(1)
    alone = train([10.0])
    assert together.state_dict().keys() == alone.state_dict().keys()
    for name, value in alone.state_dict().items():
        torch.testing.assert_close(together.state_dict()[name], value)


def test_gain_chooses_alpha_by_hidden_values_and_stays_within_the_observed_range() -> None:
    X_incomplete, _ = punch(gaussian())
    imputer = make(GAINImputer)
    X_imputed = imputer.fit_transform(X_incomplete)
    assert imputer.alpha_ in imputer.alphas
    assert (X_imputed >= np.nanmin(X_incomplete, axis=0) - 1e-3).all()
    assert (X_imputed <= np.nanmax(X_incomplete, axis=0) + 1e-3).all()
    assert make(GAINImputer, max_steps=20, alpha=3, validation_fraction=0).fit(X_incomplete).alpha_ == 3
    assert make(GAINImputer, max_steps=20).fit(X_incomplete[:30]).alpha_ == 10  # nothing to hide: what the docstring says


def test_gain_warns_of_columns_it_never_filled() -> None:
    X_incomplete, _ = punch(gaussian(80))
    X_incomplete[:, 2] = 1.0 + np.arange(80)
    imputer = make(GAINImputer, max_steps=5, validation_fraction=0).fit(X_incomplete)
    with pytest.warns(OtimputeWarning, match="columns 2 with missing values were complete in training"):
        imputer.transform(np.where(np.arange(6) == 2, np.nan, X_incomplete[:1]))


def test_the_discriminator_learns_to_tell_what_was_filled() -> None:
    # The two columns are equal; a generator that does not learn puts something else into the holes.
    torch.manual_seed(0)
    X = torch.rand(256, 1).repeat(1, 2)
    missing = torch.zeros_like(X)
    missing[::2, 1] = 1
    network = Gain(2, 16, [0.0])
    network.prepare(X * (1 - missing), missing)
    discriminator, _ = network.optimizers(1e-2)
    still = torch.optim.SGD(network.generator.parameters(), lr=0.0)
    for _ in range(500):
        network.update([discriminator, still], X * (1 - missing), missing)
    with torch.no_grad():
        completed = torch.where(missing > 0, network.guess(X * (1 - missing), missing)[0], X)
        hints = torch.tensor([1.0, 0.5]).expand_as(X)
        was_there = network.discriminator(completed[None], hints)[0, :, 1] > 0
    assert float((was_there == (missing[:, 1] == 0)).float().mean()) > 0.9


# VAEAC


def test_draws_of_vaeac_differ_and_their_mean_is_better_than_one_of_them() -> None:
    X = gaussian()
    X_incomplete, missing = punch(X)
    drawing = make(VAEACImputer, target="distribution")
    first = drawing.fit_transform(X_incomplete)
    second = drawing.transform(X_incomplete)  # noise that belongs to a row's content, not to its place
    mean = make(VAEACImputer).fit_transform(X_incomplete)
    assert np.abs(first - second)[missing].mean() > 1e-3
    errors = [float(np.square(each - X)[missing].mean()) for each in (first, second, mean)]
    assert errors[2] < min(errors[:2])


def test_vaeac_learns_from_hidden_values_that_are_known_only() -> None:
    torch.manual_seed(0)
    network = Vaeac(3, 4, 8, 2, 0.5, 5)
    values, missing = torch.randn(20, 3), torch.zeros(20, 3)
    missing[:, 2] = 1
    values[:, 2] = 0
    torch.manual_seed(1)
    loss = network.loss(values, missing)
    loss.backward()
    # Nothing is known of the third column: its output is free, and gets no gradient.
    assert torch.all(network.generator_last.weight.grad[2] == 0)
    assert torch.any(network.generator_last.weight.grad[0] != 0)


# All of them


@pytest.mark.parametrize("kind", [MIWAEImputer, VAEACImputer])
def test_draws_belong_to_rows_and_seeds(kind: type[Any]) -> None:
    X_incomplete, missing = punch(gaussian(80))
    few = {"max_steps": 10, "validation_fraction": 0, "target": "distribution"}
    imputer = make(kind, **few)
    X_imputed = imputer.fit_transform(X_incomplete)
    np.testing.assert_array_equal(X_imputed[~missing], X_incomplete[~missing])
    np.testing.assert_array_equal(X_imputed, make(kind, **few).fit_transform(X_incomplete))
    assert (X_imputed != make(kind, **few, random_state=1).fit_transform(X_incomplete))[missing].all()
    backwards = imputer.transform(X_incomplete[::-1])[::-1]
    np.testing.assert_allclose(backwards, imputer.transform(X_incomplete), rtol=0, atol=1e-9)


@EVERY
def test_a_table_of_noise_is_told_apart_from_one_that_can_be_learned(kind: type[Any]) -> None:
    noise = np.random.default_rng(0).normal(size=(200, 8))
    with pytest.warns(OtimputeWarning, match="hardly better than column means on values hidden from it"):
        make(kind, max_steps=10).fit(punch(noise)[0])


@EVERY
def test_training_that_diverges_is_an_error_with_advice(kind: type[Any]) -> None:
    with pytest.raises(DivergedError, match="lower learning_rate"):
        make(kind, learning_rate=1e30, max_steps=50).fit(punch(gaussian(60))[0])


@EVERY
def test_validation_stops_a_fit_and_keeps_its_best_parameters(kind: type[Any]) -> None:
    X_incomplete, _ = punch(gaussian(80))
    imputer = make(kind, max_steps=4000, patience=2, learning_rate=1e-2).fit(X_incomplete)
    assert imputer.stop_reason_ == "validation" and imputer.converged_
    history = imputer.history_
    assert imputer.best_step_ == history["step"][int(np.argmin(history["validation_rmse"]))] < imputer.n_steps_


@EVERY
def test_time_limits_and_callbacks(kind: type[Any]) -> None:
    X_incomplete, _ = punch(gaussian(80))
    with pytest.warns(FitStoppedWarning, match="stopped by max_seconds"):
        imputer = make(kind, max_steps=10**6, max_seconds=0.2, validation_fraction=0).fit(X_incomplete)
    assert imputer.stop_reason_ == "max_seconds" and not imputer.converged_
    stopped = make(kind, callbacks=lambda progress: progress.step == 7, validation_fraction=0).fit(X_incomplete)
    assert (stopped.n_steps_, stopped.stop_reason_) == (7, "callback")


@EVERY
def test_the_global_random_state_is_left_alone(kind: type[Any]) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    make(kind, max_steps=5, validation_fraction=0).fit(punch(gaussian(60))[0])
    assert torch.equal(torch.get_rng_state(), before)


@EVERY
def test_a_saved_network_fills_as_before(kind: type[Any], tmp_path: Path) -> None:
    X_incomplete, _ = punch(gaussian(80))
    imputer = make(kind, max_steps=20, validation_fraction=0).fit(X_incomplete)
    imputer.save(tmp_path / "model.otimpute")
    np.testing.assert_array_equal(
        otimpute.load(tmp_path / "model.otimpute").transform(X_incomplete), imputer.transform(X_incomplete)
    )


@pytest.mark.parametrize(
    ("imputer", "message"),
    [
        (MIWAEImputer(likelihood="cauchy"), "likelihood must be one of"),
        (MIWAEImputer(n_latent=0), "n_latent must be a whole number >= 1"),
        (GAINImputer(alpha=-1), 'alpha must be a finite number >= 0, got -1; pass "cv"'),
        (GAINImputer(alphas=()), "alphas must be numbers"),
        (VAEACImputer(hidden_rate=0), "hidden_rate"),
        (VAEACImputer(target="mean"), "target must be one of"),
        (VAEACImputer(device="tpu"), "device must be one of"),
        (VAEACImputer(validation_fraction=1), "validation_fraction"),
    ],
)
def test_wrong_parameters_are_named(imputer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        imputer.fit(punch(gaussian(60))[0])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match='pass "cpu", or "auto"'):
        MIWAEImputer(device="cuda").fit(gaussian(60))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@EVERY
def test_a_gpu_gives_what_the_cpu_gives(kind: type[Any]) -> None:
    X_incomplete, missing = punch(gaussian(200))
    few = {"max_steps": 20, "validation_fraction": 0.0}
    tables = [make(kind, **few, device=device).fit_transform(X_incomplete)[missing] for device in ("cpu", "cuda")]
    np.testing.assert_allclose(*tables, atol=1e-3)


def test_long_tables_are_passed_over_a_hundred_times():
    assert [VAEACImputer()._n_steps(n_rows) for n_rows in (100, 1280, 6401)] == [2000, 2000, 10_100]
    assert VAEACImputer(max_steps=7)._n_steps(10**6) == 7
    with pytest.raises(TypeError, match="max_steps must"):
        make(VAEACImputer, max_steps="long").fit(punch(gaussian(60))[0])
