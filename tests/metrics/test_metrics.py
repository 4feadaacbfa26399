"""Scores against naive formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from otimpute.metrics import energy_distance, mae, rmse, wasserstein2


@pytest.fixture
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3))
    missing = rng.random(X.shape) < 0.3
    missing[:2] = False
    return X, np.where(missing, X + rng.normal(size=X.shape), X), missing


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
    for score in (mae, rmse, wasserstein2, energy_distance):
        assert score(X, X, missing) == pytest.approx(0, abs=1e-12)


def test_too_many_rows_for_exact_transport_are_refused(tables) -> None:
    with pytest.raises(ValueError, match="more than max_rows=2"):
        wasserstein2(*tables, max_rows=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.zeros((2, 2)), np.zeros((2, 2)), np.ones((2, 2))), TypeError, "boolean"),
        ((np.zeros((2, 2)), np.zeros((2, 3)), np.ones((2, 2), dtype=bool)), ValueError, "one shape"),
        ((np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool)), ValueError, "nothing to score"),
    ],
)
def test_bad_tables_are_refused(arguments, error, message) -> None:
    for score in (mae, rmse, wasserstein2, energy_distance):
        with pytest.raises(error, match=message):
            score(*arguments)
