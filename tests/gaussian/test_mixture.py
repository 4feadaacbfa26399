"""Mixtures of Gaussians of an incomplete table against textbook formulas in plain NumPy and SciPy."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from otimpute._deadline import OutOfTime
from otimpute.gaussian import GaussianModel, MixtureModel, fit_gaussian, fit_mixture, mixture

Rows = np.ndarray


def hand_made(n_components: int, d: int, seed: int = 0) -> MixtureModel:
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_components, d, d)) + 1.5 * np.eye(d)
    share = rng.uniform(0.2, 1, size=n_components)
    return MixtureModel(
        share / share.sum(), rng.normal(size=(n_components, d)) * 1.5, mixing @ mixing.transpose(0, 2, 1) / (d + 2)
    )


def rows_with_holes(n: int, d: int, seed: int = 1) -> tuple[Rows, Rows]:
    """Rows of all kinds, the first without an observed value, the second without a hole."""
    rng = np.random.default_rng(seed)
    missing = rng.random((n, d)) < rng.choice([0.2, 0.5, 0.8], size=(n, 1))
    missing[0], missing[1] = True, False
    return np.where(missing, np.nan, rng.normal(size=(n, d)) * 2), missing


def condition(model: MixtureModel, row: Rows, hole: Rows) -> tuple[Rows, Rows, Rows, float]:
    """Posterior weights [K], conditional means [K, q] and covariances [K, q, q], and the log density of what is observed."""
    seen, log_parts, means, covariances = ~hole, [], [], []
    for share, mean, covariance in zip(model.share, model.mean, model.covariance, strict=True):
        density = multivariate_normal.logpdf(row[seen], mean[seen], covariance[np.ix_(seen, seen)]) if seen.any() else 0.0
        slope = covariance[np.ix_(hole, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
        log_parts.append(np.log(share) + density)
        means.append(mean[hole] + slope @ (row[seen] - mean[seen]))
        covariances.append(covariance[np.ix_(hole, hole)] - slope @ covariance[np.ix_(seen, hole)])
    total = float(logsumexp(log_parts))
    return np.exp(np.array(log_parts) - total), np.array(means), np.array(covariances), total


def log_likelihood(model: MixtureModel, values: Rows, missing: Rows) -> float:
    return sum(condition(model, row, hole)[3] for row, hole in zip(values, missing, strict=True)) / len(values)


def curved(n: int = 300, seed: int = 3) -> tuple[Rows, Rows, Rows]:
    """A parabola and a noisy copy of its argument: complete, with holes as zeros, and where they are."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.7, 1.7, size=n)
    complete = np.column_stack([x, x**2 - 1, x + 0.3 * rng.normal(size=n)])
    missing = rng.random(complete.shape) < 0.25
    return complete, np.where(missing, 0.0, complete), missing


def fit(values: Rows, missing: Rows, n_components: int, **options) -> MixtureModel:
    start = fit_gaussian(values, missing).fill(values, missing)
    return fit_mixture(values, missing, n_components, start=start, rng=np.random.default_rng(0), **options)


# --- Filling and drawing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_components", "d"), [(1, 3), (2, 1), (2, 4), (3, 5), (3, 10)])
def test_holes_get_their_conditional_mean(n_components, d):
    model = hand_made(n_components, d)
    values, missing = rows_with_holes(60, d)
    filled = model.fill(values, missing)
    for row, hole, after in zip(values, missing, filled, strict=True):
        weights, means, _, _ = condition(model, row, hole)
        np.testing.assert_allclose(after[hole], weights @ means, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(after[~hole], row[~hole])


def test_a_row_far_from_every_component_is_filled_by_the_one_that_explains_it_least_badly():
    model = hand_made(3, 4)
    row, hole = np.array([[1e8, -1e8, 3e7, 0.0]]), np.array([[False, False, False, True]])
    weights, means, _, _ = condition(model, row[0], hole[0])
    assert weights.max() == 1  # the oracle agrees that one of them explains it all
    np.testing.assert_allclose(model.fill(row, hole)[0, 3], means[weights.argmax(), 0], rtol=1e-6)


def test_what_stands_under_the_holes_does_not_matter():
    model = hand_made(3, 4)
    values, missing = rows_with_holes(30, 4)
    np.testing.assert_array_equal(model.fill(values, missing), model.fill(np.where(missing, 1e6, values), missing))


@pytest.mark.parametrize("hole", [[True, False, True, True], [True] * 4, [False, True, False, False]])
def test_residuals_of_many_draws_have_mean_zero_and_the_covariance_of_the_conditional_mixture(hole):
    model, hole, n = hand_made(3, 4, seed=2), np.array(hole), 200_000
    row = np.array([0.4, -0.3, 0.8, 0.1])
    rng = np.random.default_rng(5)
    drawn = model.draw_residuals(np.tile(row, (n, 1)), np.tile(hole, (n, 1)), rng.random(n), rng.normal(size=(n, 4)))
    weights, means, covariances, _ = condition(model, row, hole)
    away = means - weights @ means
    expected = np.einsum("k,kij->ij", weights, covariances) + np.einsum("k,ki,kj->ij", weights, away, away)
    assert weights.max() < 0.95  # more than one component has a say
    spread = np.sqrt(np.diag(expected))
    assert (np.abs(drawn[:, hole].mean(axis=0)) < 5 * spread / np.sqrt(n)).all()
    np.testing.assert_allclose(np.atleast_2d(np.cov(drawn[:, hole].T)), expected, rtol=0, atol=0.02 * spread.max() ** 2)
    assert (drawn[:, ~hole] == 0).all()


def test_the_component_is_drawn_by_chance_and_its_noise_is_what_was_given():
    """In one dimension, without an observed value: the draw is the mean of the component plus noise times its spread."""
    model = MixtureModel(np.array([0.3, 0.7]), np.array([[-5.0], [5.0]]), np.array([[[4.0]], [[1.0]]]))
    holes, chance, noise = np.ones((3, 1), dtype=bool), np.array([0.29, 0.31, 1.0]), np.full((3, 1), 0.5)
    drawn = model.draw_residuals(np.zeros((3, 1)), holes, chance, noise)
    np.testing.assert_allclose(drawn[:, 0] + 2.0, [-5 + 0.5 * 2, 5 + 0.5, 5 + 0.5], rtol=1e-12)


@pytest.mark.parametrize("rows", [[7], [3, 41, 3], list(range(59, -1, -1))], ids=["one", "some", "reversed"])
def test_every_row_is_treated_alone(rows):
    model = hand_made(3, 5)
    values, missing = rows_with_holes(60, 5)
    rng = np.random.default_rng(0)
    chance, noise = rng.random(60), rng.normal(size=(60, 5))
    np.testing.assert_array_equal(model.fill(values[rows], missing[rows]), model.fill(values, missing)[rows])
    alone = model.draw_residuals(values[rows], missing[rows], chance[rows], noise[rows])
    np.testing.assert_array_equal(alone, model.draw_residuals(values, missing, chance, noise)[rows])


# --- Fitting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior_rows", [1e9, None])
def test_one_component_is_nearly_the_one_gaussian(prior_rows):
    _, values, missing = curved(n=1000)
    model = fit(values, missing, 1, prior_rows=prior_rows, tolerance=1e-6, max_iterations=300)
    # Both shrink correlations and lift variances, by different small amounts: 30 rows of 1000 are 3 %.
    plain = fit_gaussian(values, missing, prior_rows=30.0 if prior_rows else 0.0, tolerance=1e-6, max_iterations=500)
    np.testing.assert_allclose(model.mean[0], plain.mean, rtol=0, atol=0.01)
    np.testing.assert_allclose(model.covariance[0], plain.covariance, rtol=0, atol=0.01)
    np.testing.assert_allclose(model.fill(values, missing), plain.fill(values, missing), rtol=0, atol=0.02)


def test_a_huge_prior_gives_all_components_the_pooled_covariance():
    _, values, missing = curved()
    model = fit(values, missing, 4, prior_rows=1e9)
    np.testing.assert_allclose(model.covariance, np.tile(model.covariance[0], (4, 1, 1)), rtol=0, atol=1e-5)


def test_one_component_fills_as_the_gaussian_of_its_parameters():
    model = hand_made(1, 4)
    values, missing = rows_with_holes(40, 4)
    gaussian = GaussianModel(model.mean[0], model.covariance[0], 0, True)
    np.testing.assert_allclose(model.fill(values, missing), gaussian.fill(values, missing), rtol=0, atol=1e-10)


def test_shares_sum_to_one_and_covariances_are_symmetric():
    _, values, missing = curved()
    model = fit(values, missing, 6)
    assert model.share.sum() == pytest.approx(1)
    np.testing.assert_array_equal(model.covariance, model.covariance.transpose(0, 2, 1))


def test_more_iterations_raise_the_observed_likelihood_and_never_lower_it_much():
    _, values, missing = curved()
    # Little is borrowed from a prior, whose density the likelihood does not know of.
    likelihoods = [
        log_likelihood(fit(values, missing, 4, prior_rows=0.5, tolerance=0.0, max_iterations=k), values, missing)
        for k in (1, 2, 4, 8, 16)
    ]
    assert likelihoods[-1] > likelihoods[0] + 0.02
    assert (np.diff(likelihoods) > -0.01).all()


def test_two_clusters_are_found():
    rng = np.random.default_rng(6)
    side = rng.random(400) < 0.3
    complete = np.where(side[:, None], [-1.5, 1.5, 0.0], [1.0, -1.0, 0.0]) + 0.2 * rng.normal(size=(400, 3))
    missing = np.zeros(complete.shape, dtype=bool)
    missing[:100, 1] = True
    model = fit(np.where(missing, 0.0, complete), missing, 2)
    order = np.argsort(model.mean[:, 0])
    np.testing.assert_allclose(model.mean[order], [[-1.5, 1.5, 0], [1.0, -1.0, 0]], rtol=0, atol=0.1)
    np.testing.assert_allclose(model.share[order], [side.mean(), 1 - side.mean()], rtol=0, atol=0.02)


def test_a_curve_is_followed_better_by_a_mixture_than_by_one_gaussian():
    complete, values, missing = curved()

    def off(filled):
        return np.sqrt(((filled - complete)[missing[:, 1], 1] ** 2).mean())

    plain = off(fit_gaussian(values, missing).fill(values, missing))
    assert off(fit(values, missing, 6).fill(values, missing)) < 0.7 * plain


def test_same_seed_same_mixture_whatever_stands_in_the_holes():
    _, values, missing = curved()
    start = fit_gaussian(values, missing).fill(values, missing)
    tables = [values, values, np.where(missing, np.nan, values), np.where(missing, 1e9, values)]
    first, *others = [fit_mixture(each, missing, 3, start=start, rng=np.random.default_rng(1)) for each in tables]
    for other in others:
        np.testing.assert_array_equal(other.mean, first.mean)
        np.testing.assert_array_equal(other.covariance, first.covariance)


def test_a_fit_whose_time_is_over_is_given_up():
    _, values, missing = curved()
    with pytest.raises(OutOfTime):
        fit(values, missing, 3, deadline=time.perf_counter() - 1)


def test_looking_at_the_clock_does_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(mixture, "_LANES_AT_ONCE", 100)
    _, values, missing = curved()
    watched, free = fit(values, missing, 3, deadline=time.perf_counter() + 1000), fit(values, missing, 3)
    np.testing.assert_allclose(watched.covariance, free.covariance, rtol=1e-12, atol=1e-15)


# --- Tables that break careless code ----------------------------------------------------------------------------------


def _collinear(values):
    values[:, 2] = values[:, 0] - values[:, 1]


def _nearly_constant(values):
    values[:, 1] *= 1e-9


def _duplicates(values):
    values[:] = values[:1]


def _two_distinct_rows(values):
    values[::2], values[1::2] = values[:1].copy(), values[1:2].copy()


def _nothing(values):
    pass


@pytest.mark.parametrize(
    ("spoil", "shape", "n_components"),
    [
        (_collinear, (60, 4), 5),
        (_nearly_constant, (60, 4), 5),
        (_duplicates, (30, 3), 4),
        (_two_distinct_rows, (30, 3), 4),
        (_nothing, (3, 4), 8),
        (_nothing, (1, 3), 2),
        (_nothing, (10, 40), 3),
        (_nothing, (20, 1), 3),
    ],
    ids=["collinear", "constant", "duplicates", "two kinds", "few rows", "one row", "many columns", "one column"],
)
def test_degenerate_tables_give_positive_definite_models_and_bounded_fills(spoil, shape, n_components):
    values = np.random.default_rng(6).normal(size=shape)
    spoil(values)
    missing = np.random.default_rng(7).random(shape) < 0.3
    missing[-1] = True
    model = fit(np.where(missing, 0.0, values), missing, n_components)
    assert np.linalg.eigvalsh(model.covariance).min() > 0
    filled = model.fill(np.where(missing, np.nan, values), missing)
    assert np.isfinite(filled).all()
    assert np.abs(filled).max() < 10 * np.abs(values).max()
    drawn = model.draw_residuals(values, missing, np.full(len(values), 0.5), np.ones(shape))
    assert np.isfinite(drawn).all()


@pytest.mark.parametrize(
    ("share", "covariance", "message"),
    [
        ([0.5, 0.0], np.tile(np.eye(2), (2, 1, 1)), "needs a share"),
        ([0.5, np.nan], np.tile(np.eye(2), (2, 1, 1)), "needs a share"),
        ([], np.empty((0, 2, 2)), "needs a share"),
        ([0.5, 0.5], np.stack([np.eye(2), [[1.0, 2.0], [2.0, 1.0]]]), "positive definite"),
        ([0.5, 0.5], np.stack([np.eye(2), -np.eye(2)]), "positive definite"),
    ],
)
def test_what_is_no_mixture_is_refused(share, covariance, message):
    with pytest.raises(ValueError, match=message):
        MixtureModel(np.array(share), np.zeros((len(share), 2)), covariance)
