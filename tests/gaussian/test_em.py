"""The Gaussian model of an incomplete table against textbook formulas in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from otimpute._threads import Workers
from otimpute.gaussian import GaussianModel, fit_gaussian

VARIANCE_FLOOR = 1e-6  # added to every variance by the fit


def _correlated(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a Gaussian with variances near one, its mean and its covariance."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(d, d)) + 2 * np.eye(d)
    covariance = mixing @ mixing.T
    scale = np.sqrt(np.diag(covariance))
    covariance /= np.outer(scale, scale)
    mean = rng.normal(size=d)
    return rng.multivariate_normal(mean, covariance, size=n), mean, covariance


def _holes(values: np.ndarray, share: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A copy of the table with holes at random, and where they are."""
    missing = np.random.default_rng(seed).uniform(size=values.shape) < share
    return np.where(missing, np.nan, values), missing


def _conditional_means(values, missing, mean, covariance) -> np.ndarray:
    """μ_M + Σ_MO Σ_OO⁻¹ (x_O − μ_O), row by row."""
    filled = values.copy()
    for row, hole in zip(filled, missing, strict=True):
        seen = ~hole
        slope = covariance[np.ix_(hole, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
        row[hole] = mean[hole] + slope @ (row[seen] - mean[seen])
    return filled


def _observed_log_likelihood(values, missing, model: GaussianModel) -> float:
    return sum(
        multivariate_normal.logpdf(row[~hole], model.mean[~hole], model.covariance[np.ix_(~hole, ~hole)])
        for row, hole in zip(values, missing, strict=True)
        if not hole.all()
    )


# --- Fitting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior_rows", [0.0, 1.0, 40.0])
def test_fit_to_a_complete_table_is_its_mean_and_covariance_with_correlations_shrunk(prior_rows):
    values, _, _ = _correlated(50, 4)
    model = fit_gaussian(values, np.zeros_like(values, dtype=bool), prior_rows=prior_rows)
    expected = np.cov(values, rowvar=False, bias=True)
    # Imaginary rows with independent columns leave the variances and dilute the covariances.
    expected[~np.eye(4, dtype=bool)] *= 50 / (50 + prior_rows)
    np.testing.assert_allclose(model.mean, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.covariance, expected + VARIANCE_FLOOR * np.eye(4), rtol=0, atol=1e-12)
    assert model.converged
    assert model.n_iterations == 1


@pytest.mark.parametrize("d", [3, 10])
def test_fit_recovers_mean_and_covariance_from_a_table_with_holes(d):
    values, mean, covariance = _correlated(4000, d)
    holed, missing = _holes(values, 0.3)
    model = fit_gaussian(holed, missing, tolerance=1e-5, max_iterations=200)
    assert model.converged
    # Standard errors at 2800 observed rows are below 0.02 for means and 0.03 for covariances; four of them.
    np.testing.assert_allclose(model.mean, mean, rtol=0, atol=0.08)
    np.testing.assert_allclose(model.covariance, covariance, rtol=0, atol=0.11)
    # What holes cost is less than what sampling costs: the fit is close to the one that saw everything.
    complete = fit_gaussian(values, np.zeros_like(missing))
    np.testing.assert_allclose(model.covariance, complete.covariance, rtol=0, atol=0.06)


def test_holes_that_depend_on_another_column_do_not_bias_the_mean():
    values, mean, _ = _correlated(4000, 2, seed=3)
    missing = np.zeros_like(values, dtype=bool)
    missing[:, 1] = values[:, 0] > mean[0]  # missing at random: seen from the first column alone
    model = fit_gaussian(np.where(missing, np.nan, values), missing, tolerance=1e-6, max_iterations=500)
    naive = values[~missing[:, 1], 1].mean()
    assert abs(naive - mean[1]) > 0.2
    assert abs(model.mean[1] - mean[1]) < 0.1


def test_one_iteration_more_never_lowers_the_observed_likelihood():
    values, _, _ = _correlated(80, 5, seed=4)
    holed, missing = _holes(values, 0.35)
    models = [fit_gaussian(holed, missing, prior_rows=1e-9, tolerance=0.0, max_iterations=k) for k in range(1, 7)]
    assert [model.n_iterations for model in models] == [1, 2, 3, 4, 5, 6]
    gains = np.diff([_observed_log_likelihood(holed, missing, model) for model in models])
    assert gains[0] > 0.1
    assert (gains > -1e-6).all()


def test_one_iteration_is_the_textbook_step():
    values, _, _ = _correlated(60, 10, seed=5)  # ten columns: the pattern of holes takes two bytes
    holed, missing = _holes(values, 0.4)
    before = fit_gaussian(holed, missing, prior_rows=0.0, tolerance=0.0, max_iterations=3)
    after = fit_gaussian(holed, missing, prior_rows=0.0, tolerance=0.0, max_iterations=4)
    filled = _conditional_means(holed, missing, before.mean, before.covariance)
    uncertain = np.zeros_like(before.covariance)
    for hole in missing:
        inside, seen = np.ix_(hole, hole), ~hole
        slope = before.covariance[np.ix_(hole, seen)] @ np.linalg.inv(before.covariance[np.ix_(seen, seen)])
        uncertain[inside] += before.covariance[inside] - slope @ before.covariance[np.ix_(seen, hole)]
    covariance = np.cov(filled, rowvar=False, bias=True) + uncertain / len(filled) + VARIANCE_FLOOR * np.eye(10)
    np.testing.assert_allclose(after.mean, filled.mean(axis=0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.covariance, covariance, rtol=0, atol=1e-9)


def test_a_fit_that_ran_out_of_iterations_says_so():
    holed, missing = _holes(_correlated(80, 5, seed=4)[0], 0.35)
    short, enough = (fit_gaussian(holed, missing, tolerance=1e-4, max_iterations=k) for k in (2, 500))
    assert (short.converged, short.n_iterations) == (False, 2)
    assert enough.converged
    assert 2 < enough.n_iterations < 500


def test_what_stands_under_the_holes_does_not_matter():
    values, _, _ = _correlated(50, 4)
    holed, missing = _holes(values, 0.3)
    models = [fit_gaussian(table, missing) for table in (holed, values, np.where(missing, 1e9, values))]
    for model in models[1:]:
        np.testing.assert_array_equal(model.mean, models[0].mean)
        np.testing.assert_array_equal(model.covariance, models[0].covariance)


# --- Filling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.6])
@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_fill_is_the_conditional_mean(d, share):
    values, mean, covariance = _correlated(60, d)
    holed, missing = _holes(values, share)
    model = GaussianModel(mean, covariance, 0, True)
    expected = _conditional_means(holed, missing, mean, covariance)
    np.testing.assert_allclose(model.fill(holed, missing), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("d", [1, 5, 12, 40, 260])  # of 260 columns some rows have more than 200 holes, some fewer
def test_standard_deviations_and_means_are_those_of_the_conditional_gaussian(d):
    values, mean, covariance = _correlated(40, d)
    covariance += 0.1 * np.eye(d)
    missing = _holes(values, 0.5)[1]
    missing[:20] = np.random.default_rng(2).uniform(size=(20, d)) < 0.9
    missing[:3] = missing[0]  # rows that share a pattern
    expected = np.zeros(missing.shape)
    for row, hole in zip(expected, missing, strict=True):
        seen = ~hole
        slope = covariance[np.ix_(hole, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
        row[hole] = np.sqrt(np.diag(covariance[np.ix_(hole, hole)] - slope @ covariance[np.ix_(seen, hole)]))
    model = GaussianModel(mean, covariance, 0, True)
    np.testing.assert_allclose(model.conditional_std(missing), expected, rtol=1e-8, atol=1e-12)
    means = _conditional_means(np.where(missing, np.nan, values), missing, mean, covariance)
    np.testing.assert_allclose(model.fill(np.where(missing, np.nan, values), missing), means, rtol=0, atol=1e-8)


def test_the_number_of_workers_changes_no_bit():
    holed, missing = _holes(_correlated(900, 7)[0], 0.3)
    found = []
    for n_threads in (1, 2, 5):
        with Workers(n_threads) as workers:
            model = fit_gaussian(holed, missing, workers=workers)
            found.append((model.covariance, model.fill(holed, missing, workers), model.conditional_std(missing, workers)))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [[7], [3, 41, 3], list(range(59, -1, -1))], ids=["one", "some", "reversed"])
def test_fill_treats_every_row_alone(rows):
    holed, missing = _holes(_correlated(60, 5)[0], 0.4)
    model = fit_gaussian(holed, missing)
    np.testing.assert_array_equal(model.conditional_std(missing[rows]), model.conditional_std(missing)[rows])
    np.testing.assert_array_equal(model.fill(holed[rows], missing[rows]), model.fill(holed, missing)[rows])


def test_fill_leaves_observed_entries_and_its_inputs_alone():
    holed, missing = _holes(_correlated(60, 5)[0], 0.4)
    table, mask = holed.copy(), missing.copy()
    filled = fit_gaussian(table, mask).fill(table, mask)
    np.testing.assert_array_equal(filled[~missing], holed[~missing])
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(table, holed)
    np.testing.assert_array_equal(mask, missing)


def test_layout_of_the_table_does_not_matter():
    holed, missing = _holes(_correlated(60, 5)[0], 0.4)
    expected, model = fit_gaussian(holed, missing), fit_gaussian(np.asfortranarray(holed), np.asfortranarray(missing))
    np.testing.assert_allclose(model.covariance, expected.covariance, rtol=1e-12, atol=1e-15)
    filled = model.fill(np.asfortranarray(holed), np.asfortranarray(missing))
    np.testing.assert_allclose(filled, expected.fill(holed, missing), rtol=1e-12, atol=1e-15)


def test_a_row_without_any_observed_value_gets_the_mean():
    holed, missing = _holes(_correlated(60, 4)[0], 0.2)
    holed[[0, 30]], missing[[0, 30]] = np.nan, True
    model = fit_gaussian(holed, missing)
    np.testing.assert_allclose(model.fill(holed, missing)[[0, 30]], [model.mean, model.mean], rtol=1e-12)


# --- Tables that break careless code ----------------------------------------------------------------------------------


def _constant_column(values):
    values[:, 1] = 3.0


def _collinear_columns(values):
    values[:, 2] = -2.0 * values[:, 0]
    values[:, 3] = values[:, 0] + values[:, 1]


def _copied_columns(values):
    values[:] = values[:, :1]


def _nothing(values):
    pass


@pytest.mark.parametrize("prior_rows", [0.0, 1.0])
@pytest.mark.parametrize(
    ("spoil", "shape"),
    [
        (_constant_column, (40, 5)),
        (_collinear_columns, (40, 5)),
        (_copied_columns, (40, 5)),
        (_nothing, (8, 30)),
        (_nothing, (1, 4)),
        (_nothing, (2, 2)),
    ],
    ids=["constant", "collinear", "copies", "more columns than rows", "one row", "two rows"],
)
def test_degenerate_tables_give_finite_models_and_fills(spoil, shape, prior_rows):
    values = np.random.default_rng(6).normal(size=shape)
    spoil(values)
    holed, missing = _holes(values, 0.25)
    holed[-1], missing[-1] = np.nan, True  # and a row that nothing is known of
    model = fit_gaussian(holed, missing, prior_rows=prior_rows)
    filled = model.fill(holed, missing)
    assert np.isfinite(model.mean).all()
    assert np.linalg.eigvalsh(model.covariance).min() > 0
    assert np.isfinite(filled).all()
    assert np.abs(filled).max() < 100 * np.abs(values).max()


def test_a_constant_column_is_filled_with_its_constant():
    values = np.random.default_rng(7).normal(size=(40, 3))
    _constant_column(values)
    holed, missing = _holes(values, 0.3)
    filled = fit_gaussian(holed, missing).fill(holed, missing)
    np.testing.assert_allclose(filled[:, 1], 3.0, rtol=0, atol=1e-9)


def test_a_copied_column_is_filled_with_the_original():
    values = np.random.default_rng(8).normal(size=(200, 3))
    values[:, 2] = values[:, 0]
    holed, missing = values.copy(), np.zeros_like(values, dtype=bool)
    holed[:60, 2], missing[:60, 2] = np.nan, True
    model = fit_gaussian(holed, missing, prior_rows=1e-3, tolerance=1e-6, max_iterations=500)
    np.testing.assert_allclose(model.fill(holed, missing)[:60, 2], values[:60, 0], rtol=0, atol=1e-2)


def test_a_column_without_any_observed_value_is_finite():
    holed, missing = _holes(_correlated(30, 3)[0], 0.2)
    holed[:, 1], missing[:, 1] = np.nan, True
    model = fit_gaussian(holed, missing)
    assert np.isfinite(model.covariance).all()
    assert np.isfinite(model.fill(holed, missing)).all()
