"""Scores against naive formulas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from otimpute._random import generator, seed_from
from otimpute.catalogue import METRICS
from otimpute.metrics import (
    distributional,
    energy_distance,
    mae,
    marginal_wasserstein1,
    rmse,
    sliced_wasserstein2,
    wasserstein2,
)

SCORES = [metric.load() for metric in METRICS.values() if not metric.of_draws]


@pytest.fixture
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3))
    missing = rng.random(X.shape) < 0.3
    missing[:2] = False
    return X, np.where(missing, X + rng.normal(size=X.shape), X), missing


@pytest.mark.parametrize(
    "score", [mae, rmse, wasserstein2, energy_distance, sliced_wasserstein2, marginal_wasserstein1], ids=lambda s: s.__name__
)
def test_a_failed_imputation_has_no_score(tables, score) -> None:
    X, imputed, missing = tables
    for bad in (np.nan, np.inf):
        broken = imputed.copy()
        broken[tuple(np.argwhere(missing)[0])] = bad
        with pytest.raises(ValueError, match="X_imputed must be finite where it is scored, got 1 NaN or infinite values"):
            score(X, broken, missing)
    far = imputed.copy()
    far[tuple(np.argwhere(missing)[0])] = 1e200
    with np.errstate(over="ignore"):
        assert np.nanmax(score(X, far, missing)) > 1e100  # never 0, never NaN


def test_pointwise_scores_average_over_missing_entries(tables) -> None:
    X, imputed, missing = tables
    errors = [imputed[i, j] - X[i, j] for i, j in zip(*np.nonzero(missing), strict=True)]
    assert mae(*tables) == pytest.approx(sum(abs(e) for e in errors) / len(errors))
    assert rmse(*tables) == pytest.approx((sum(e * e for e in errors) / len(errors)) ** 0.5)


def test_wasserstein_is_the_best_matching_of_incomplete_rows(tables) -> None:
    X, imputed, missing = tables
    rows = np.flatnonzero(missing.any(axis=1))
    cost = ((X[rows][:, None] - imputed[rows][None]) ** 2).sum(axis=2)
    best = min(sum(cost[i, p] for i, p in enumerate(order)) for order in itertools.permutations(range(len(rows))))
    assert wasserstein2(*tables) == pytest.approx(best / len(rows))


def test_energy_distance_is_the_v_statistic_over_incomplete_rows(tables) -> None:
    X, imputed, missing = tables
    rows = missing.any(axis=1)
    mean = lambda a, b: np.mean([np.linalg.norm(p - q) for p in a for q in b])  # noqa: E731
    x, y = X[rows], imputed[rows]
    assert energy_distance(*tables) == pytest.approx(2 * mean(x, y) - mean(x, x) - mean(y, y))


def test_perfect_imputations_score_zero(tables) -> None:
    X, _, missing = tables
    for score in SCORES:
        assert score(X, X, missing) == pytest.approx(0, abs=1e-12)


def test_too_many_rows_for_exact_transport_are_refused(tables) -> None:
    with pytest.raises(ValueError, match="more than max_rows=2"):
        wasserstein2(*tables, max_rows=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.zeros((2, 2)), np.zeros((2, 2)), np.ones((2, 2))), TypeError, "boolean"),
        ((np.zeros((2, 2)), np.zeros((2, 3)), np.ones((2, 2), dtype=bool)), ValueError, "the same shape"),
        ((np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool)), ValueError, "nothing to score"),
    ],
)
def test_bad_tables_are_refused(arguments, error, message) -> None:
    for score in SCORES:
        with pytest.raises(error, match=message):
            score(*arguments)


def translated(shift: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(200, len(shift)))
    return X, X + shift, np.ones(X.shape, dtype=bool)


def test_sliced_wasserstein_on_a_line_is_the_exact_distance() -> None:
    rng = np.random.default_rng(0)
    X, imputed = rng.normal(size=(80, 1)), rng.exponential(size=(80, 1))
    missing = rng.random(X.shape) < 0.5
    assert sliced_wasserstein2(X, imputed, missing, n_projections=3) == pytest.approx(wasserstein2(X, imputed, missing))


def test_sliced_wasserstein_is_the_mean_of_exact_distances_on_lines(tables) -> None:
    ot = pytest.importorskip("ot")
    X, imputed, missing = tables
    rows = missing.any(axis=1)
    directions = generator(seed_from(5), "directions").normal(size=(7, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    score = sliced_wasserstein2(*tables, n_projections=7, random_state=5)
    exact = [ot.emd2_1d(X[rows] @ u, imputed[rows] @ u) for u in directions]
    assert score == pytest.approx(np.mean(exact))
    theirs = ot.sliced_wasserstein_distance(X[rows], imputed[rows], projections=directions.T)
    assert score == pytest.approx(theirs**2)


def test_sliced_wasserstein_of_a_translation_is_its_squared_length_shared_among_the_dimensions() -> None:
    # The mean of (u·t)² over unit vectors u is ‖t‖² / d.
    score = sliced_wasserstein2(*translated([3.0, -4.0, 0.0, 0.0]), n_projections=40_000)
    assert score == pytest.approx(25 / 4, rel=0.02)


def test_sliced_wasserstein_never_exceeds_the_exact_distance(tables) -> None:
    assert 0 < sliced_wasserstein2(*tables) < wasserstein2(*tables)


def test_sliced_wasserstein_does_not_change_with_the_size_of_its_blocks(tables, monkeypatch) -> None:
    whole = sliced_wasserstein2(*tables, n_projections=50)
    for most in (1, 40):
        monkeypatch.setattr(distributional, "_MOST_PROJECTED", most)
        assert sliced_wasserstein2(*tables, n_projections=50) == pytest.approx(whole, rel=1e-12)


def test_sliced_wasserstein_is_the_same_each_time_unless_the_random_state_differs(tables) -> None:
    assert sliced_wasserstein2(*tables) == sliced_wasserstein2(*tables, random_state=0)
    assert sliced_wasserstein2(*tables) != sliced_wasserstein2(*tables, random_state=1)
    assert sliced_wasserstein2(*tables, random_state=None) != sliced_wasserstein2(*tables, random_state=None)


@pytest.mark.parametrize(("n_projections", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_a_number_of_projections_below_one_is_refused(tables, n_projections, error) -> None:
    with pytest.raises(error, match="n_projections must be a whole number >= 1, got"):
        sliced_wasserstein2(*tables, n_projections=n_projections)


def test_marginal_distances_compare_missing_entries_column_by_column(tables) -> None:
    X, imputed, missing = tables
    expected = [wasserstein_distance(X[missing[:, k], k], imputed[missing[:, k], k]) for k in range(3)]
    assert min(expected) > 0
    np.testing.assert_allclose(marginal_wasserstein1(*tables), expected)


def test_marginal_distances_of_a_translation_are_its_absolute_coordinates() -> None:
    np.testing.assert_allclose(marginal_wasserstein1(*translated([3.0, -4.0, 0.0])), [3, 4, 0], atol=1e-12)


def test_columns_without_a_missing_entry_have_no_marginal_distance(tables) -> None:
    X, imputed, missing = tables
    missing[:, 1] = False
    assert np.isnan(marginal_wasserstein1(X, imputed, missing)).tolist() == [False, True, False]


@pytest.mark.parametrize("score", [wasserstein2, energy_distance, sliced_wasserstein2, marginal_wasserstein1])
def test_which_row_got_which_values_does_not_change_scores_of_clouds(score) -> None:
    rng = np.random.default_rng(0)
    X, imputed = rng.normal(size=(2, 30, 3))
    missing = np.ones(X.shape, dtype=bool)
    np.testing.assert_allclose(score(X, rng.permutation(imputed), missing), score(X, imputed, missing))


@pytest.mark.parametrize("score", [wasserstein2, energy_distance, sliced_wasserstein2])
def test_rows_without_a_missing_value_do_not_count(score, tables) -> None:
    X, imputed, missing = tables
    rows = missing.any(axis=1)
    assert not rows.all()
    assert score(*tables) == pytest.approx(score(X[rows], imputed[rows], missing[rows]))


@pytest.mark.parametrize("metric", [mae, rmse, energy_distance, wasserstein2])
def test_whole_weights_are_repeated_rows(metric: Any) -> None:
    rng = np.random.default_rng(0)
    true, imputed, missing = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), rng.random((30, 3)) < 0.4
    weight = rng.integers(0, 4, 30)
    repeated = metric(*(each.repeat(weight, axis=0) for each in (true, imputed, missing)))
    assert metric(true, imputed, missing, sample_weight=weight) == pytest.approx(repeated, rel=1e-9)
    assert metric(true, imputed, missing, sample_weight=np.full(30, 2.5)) == pytest.approx(metric(true, imputed, missing))
    assert metric(true, imputed, missing) != pytest.approx(repeated, rel=1e-3)


@pytest.mark.parametrize("metric", [mae, rmse, energy_distance])
def test_weights_that_leave_nothing_to_score_are_refused(metric: Any) -> None:
    tables = [[0.0], [1.0]], [[0.0], [2.0]], [[False], [True]]
    with pytest.raises(ValueError, match="0 in every row with a missing value"):
        metric(*tables, sample_weight=[1, 0])
    with pytest.raises(ValueError, match="for 2 rows"):
        metric(*tables, sample_weight=[1])
