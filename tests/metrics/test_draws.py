"""Scores of draws against naive formulas and the closed forms of Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from otimpute.metrics import crps, energy_score, mae


@pytest.fixture
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3))
    missing = rng.random(X.shape) < 0.4
    missing[:2] = False
    return X, np.where(missing, rng.normal(size=(5, *X.shape)), X), missing


def naive(truth: np.ndarray, draws: np.ndarray, fair: bool) -> float:
    """The score of one point [h] and its draws [m, h], pair by pair."""
    m = len(draws)
    far = sum(np.linalg.norm(x - truth) for x in draws) / m
    between = sum(np.linalg.norm(x - other) for x in draws for other in draws)
    return far - between / 2 / (m * (m - 1) if fair else m * m)


@pytest.mark.parametrize("fair", [True, False])
def test_crps_is_the_mean_over_missing_entries_of_the_sums_over_pairs(tables, fair) -> None:
    X, draws, missing = tables
    expected = [naive(X[i, j, None], draws[:, i, j, None], fair) for i, j in np.argwhere(missing)]
    assert crps(*tables, fair=fair) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("fair", [True, False])
def test_the_energy_score_is_the_mean_over_incomplete_rows_of_the_sums_over_pairs(tables, fair) -> None:
    X, draws, missing = tables
    rows = np.flatnonzero(missing.any(axis=1))
    assert missing[rows].sum(axis=1).max() > 1
    expected = [naive(X[i, missing[i]], draws[:, i, missing[i]], fair) for i in rows]
    assert energy_score(*tables, fair=fair) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("fair", [True, False])
def test_the_energy_score_of_single_values_is_their_crps(tables, fair) -> None:
    X, draws, _ = tables
    missing = np.eye(9, 3, dtype=bool)
    assert energy_score(X, draws, missing, fair=fair) == pytest.approx(crps(X, draws, missing, fair=fair))


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.7, 0.3), (-2.0, 2.5)])
def test_many_draws_from_a_gaussian_have_its_crps(mean: float, sd: float) -> None:
    truth = np.array([[-1.0], [0.2], [3.0]])
    draws = np.random.default_rng(0).normal(mean, sd, size=(200_000, 3, 1))
    z = (truth - mean) / sd
    expected = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert crps(truth, draws, np.ones((3, 1), dtype=bool)) == pytest.approx(expected.mean(), abs=0.01)


def test_few_draws_have_the_expected_score_of_many_only_if_it_is_fair() -> None:
    # E|x − y| = 2/√π and E|x − x'| = 2/√π for standard Gaussians, so the score of infinitely many draws is 1/√π.
    rng = np.random.default_rng(0)
    X, draws = rng.normal(size=(200_000, 1)), rng.normal(size=(2, 200_000, 1))
    missing = np.ones(X.shape, dtype=bool)
    assert crps(X, draws, missing) == pytest.approx(1 / np.sqrt(np.pi), abs=0.01)
    assert crps(X, draws, missing, fair=False) == pytest.approx(1.5 / np.sqrt(np.pi), abs=0.01)


def test_draws_that_vary_as_the_truth_does_score_best() -> None:
    rng = np.random.default_rng(0)
    X, draws = rng.normal(size=(20_000, 1)), rng.normal(size=(10, 20_000, 1))
    missing = np.ones(X.shape, dtype=bool)
    for score in (crps, energy_score):
        by_spread = {spread: score(X, spread * draws, missing) for spread in (0.0, 0.7, 1.0, 1.4)}
        assert min(by_spread, key=by_spread.__getitem__) == 1.0


def test_only_the_energy_score_notices_whether_values_of_a_row_go_together() -> None:
    rng = np.random.default_rng(0)
    X, draws = (np.repeat(rng.normal(size=(*shape, 1)), 2, axis=-1) for shape in ((20_000,), (10, 20_000)))
    apart = np.stack([draws[..., 0], draws[::-1, :, 1]], axis=-1)  # the same values, in other pairs
    missing = np.ones(X.shape, dtype=bool)
    assert crps(X, apart, missing) == pytest.approx(crps(X, draws, missing))
    assert energy_score(X, apart, missing) > 1.05 * energy_score(X, draws, missing)


def test_a_table_without_spread_is_scored_by_its_distance_from_the_truth(tables) -> None:
    X, (imputed, *_), missing = tables
    assert crps(X, [imputed], missing, fair=False) == pytest.approx(mae(X, imputed, missing))
    assert crps(X, [imputed, imputed], missing) == pytest.approx(mae(X, imputed, missing))
    expected = np.linalg.norm((imputed - X)[missing.any(axis=1)], axis=1).mean()
    assert energy_score(X, [imputed], missing, fair=False) == pytest.approx(expected)
    assert crps(X, [X, X], missing) == energy_score(X, [X, X], missing) == 0


def test_the_order_of_draws_and_entries_that_were_not_missing_do_not_count(tables) -> None:
    X, draws, missing = tables
    unknown = np.where(missing, X, np.nan)
    for score in (crps, energy_score):
        assert score(unknown, np.where(missing, draws, np.inf)[::-1], missing) == pytest.approx(score(*tables))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("score", [crps, energy_score])
def test_failed_draws_have_no_score(tables, score) -> None:
    X, draws, missing = tables
    i, j = np.argwhere(missing)[0]
    for bad in (np.nan, np.inf):
        broken = draws.copy()
        broken[2, i, j] = bad
        with pytest.raises(ValueError, match="draws must be finite where it is scored, got 1 NaN or infinite values"):
            score(X, broken, missing)
    far = draws.copy()
    far[:, i, j] = 1e200
    assert score(X, far, missing) > 1e100  # never 0, never NaN


@pytest.mark.parametrize("score", [crps, energy_score])
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 2), (2, 2), (2, 2)), r"draws must be tables \[m, n, d\], got shape \(2, 2\); pass \[X_imputed\]"),
        (((2, 2), (0, 2, 2), (2, 2)), r"draws must be tables \[m, n, d\]"),
        (((2, 2), (1, 2, 2), (2, 2)), "at least 2 draws, got 1; pass fair=False"),
        (((2, 2), (3, 2, 4), (2, 2)), "the same shape"),
        (((2, 2), (3, 2, 2), (2, 3)), "the same shape"),
    ],
)
def test_arrays_that_do_not_match_are_refused(score, shapes, message) -> None:
    X, draws, missing = (np.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match=message):
        score(X, draws, missing.astype(bool))


@pytest.mark.parametrize("score", [crps, energy_score])
def test_there_must_be_something_to_score(score) -> None:
    with pytest.raises(ValueError, match="nothing to score"):
        score(np.zeros((2, 2)), np.zeros((3, 2, 2)), np.zeros((2, 2), dtype=bool))
    with pytest.raises(TypeError, match="missing must be boolean"):
        score(np.zeros((2, 2)), np.zeros((3, 2, 2)), np.ones((2, 2)))


@pytest.mark.parametrize("metric", [crps, energy_score])
def test_whole_weights_are_repeated_rows(metric: Any) -> None:
    rng = np.random.default_rng(0)
    true, draws, missing = rng.normal(size=(30, 3)), rng.normal(size=(4, 30, 3)), rng.random((30, 3)) < 0.4
    weight = rng.integers(0, 4, 30)
    repeated = metric(true.repeat(weight, axis=0), draws.repeat(weight, axis=1), missing.repeat(weight, axis=0))
    assert metric(true, draws, missing, sample_weight=weight) == pytest.approx(repeated, rel=1e-9)
    assert metric(true, draws, missing) != pytest.approx(repeated, rel=1e-3)
