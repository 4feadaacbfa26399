"""The energy-I-score against closed forms of Gaussians, and step by step."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

from otimpute.baselines import KNNImputer, MissForestImputer
from otimpute.metrics import energy_i_score

R = 0.8  # correlation of the two columns
NOISE = np.sqrt(1 - R**2)


def gaussian(n: int = 4000, *, both: bool = False) -> np.ndarray:
    """Two columns, with values of the first (or of both) missing."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0], [[1, R], [R, 1]], size=n)
    X[rng.random(n) < 0.3, 0] = np.nan
    if both:
        X[rng.random(n) < 0.2, 1] = np.nan
    return X


def from_gaussian(slope: float, sd: float):
    """A method that imputes either column of `gaussian` by ``slope`` × the other + noise."""

    def impute(X: np.ndarray, seed: int) -> np.ndarray:
        other = np.nan_to_num(X[:, ::-1])
        return np.where(np.isnan(X), slope * other + sd * np.random.default_rng(seed).normal(size=X.shape), X)

    return impute


METHODS = {  # with the expected score: CRPS of N(μ, σ²) draws, averaged over the truth
    "conditional": (from_gaussian(R, NOISE), NOISE / np.sqrt(np.pi)),
    "regression": (from_gaussian(R, 0), NOISE * np.sqrt(2 / np.pi)),
    "marginal": (from_gaussian(0, 1), 1 / np.sqrt(np.pi)),
    "mean": (from_gaussian(0, 0), np.sqrt(2 / np.pi)),
}


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_scores_on_a_gaussian_are_their_closed_forms(method: str, both: bool) -> None:
    impute, expected = METHODS[method]
    score = energy_i_score(gaussian(both=both), impute, n_draws=5, random_state=0)
    assert score == pytest.approx(expected, abs=0.02)  # standard error below 0.007
    scores = [expected for _, expected in METHODS.values()]
    assert min(np.diff(np.sort(scores))) > 0.05  # so the closed forms, hence the scores, are in this order


def test_few_draws_cost_what_the_published_estimate_adds_for_them() -> None:
    # E|x − x'| / (2 N) for N draws, and E|x − x'| = 2 σ / √π.
    impute, expected = METHODS["conditional"]
    score = energy_i_score(gaussian(), impute, n_draws=2, fair=False, random_state=0)
    assert score == pytest.approx(1.5 * expected, abs=0.02)


def test_the_method_sees_the_completed_table_without_the_column_in_the_test_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[:20, 0] = np.nan  # column 2 is missing only where this one is: it is complete in the test rows
    X[5:20, 2] = np.nan
    X[50:, 3] = np.nan  # missing where column 0 is observed: not a predictor
    seen = []

    def impute(X: np.ndarray, seed: int) -> np.ndarray:
        seen.append((X.copy(), seed))
        return np.where(np.isnan(X), 100.0, X)

    score = energy_i_score(X, impute, n_draws=2, random_state=0)
    (whole, _), *others = seen
    np.testing.assert_array_equal(whole, X)
    complete = np.where(np.isnan(X), 100.0, X)
    missing = np.isnan(X)
    expected = []
    for j, columns in ((0, [0, 1, 2]), (2, [2, 1]), (3, [3, 1])):  # those with the most missing values first
        table = complete[:, columns]
        table[~missing[:, j], 0] = np.nan
        for masked, _ in (others.pop(0) for _ in range(2)):
            np.testing.assert_array_equal(masked, table)
        share = missing[:, j].mean()
        expected.append((share * (1 - share), np.abs(100 - X[~missing[:, j], j]).mean()))
    assert not others
    assert len({seed for _, seed in seen}) == len(seen)
    weights, scores = zip(*expected, strict=True)
    assert score == pytest.approx(np.dot(weights, scores) / sum(weights))


def test_without_a_complete_predictor_the_most_observed_one_decides_on_the_rows() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:15, 0] = np.nan
    X[20:30, 1] = np.nan
    X[28:40, 2] = np.nan
    seen = []

    def impute(X: np.ndarray, seed: int) -> np.ndarray:
        seen.append(X.copy())
        return np.nan_to_num(X)

    energy_i_score(X, impute, n_draws=1, fair=False, max_columns=1, random_state=0)
    table = np.nan_to_num(X)[:, [0, 1]]
    test = ~np.isnan(X[:, :2]).any(axis=1)  # rows where 0 is observed and 1 is not are learned from
    table[test, 0] = np.nan
    np.testing.assert_array_equal(seen[1], table)


def test_scaled_scores_do_not_depend_on_units() -> None:
    X = gaussian(500, both=True)
    larger = X * [1000, 1]
    mean = SimpleImputer()
    kwargs = {"n_draws": 1, "fair": False, "scale": True}
    assert energy_i_score(larger, mean, **kwargs) == pytest.approx(energy_i_score(X, mean, **kwargs))
    kwargs["scale"] = False
    assert energy_i_score(larger, mean, **kwargs) > 100 * energy_i_score(X, mean, **kwargs)


def test_the_random_state_decides_and_reaches_imputers() -> None:
    X = gaussian(200)
    imputer = MissForestImputer(n_estimators=2, max_iter=1, random_state=7)
    scores = [energy_i_score(X, imputer, n_draws=2, random_state=seed) for seed in (0, 0, 1)]
    assert scores[0] == scores[1] != scores[2]
    assert imputer.random_state == 7
    assert not hasattr(imputer, "n_features_in_")  # a copy was fitted
    assert energy_i_score(X, KNNImputer(), n_draws=2) == pytest.approx(energy_i_score(X, KNNImputer(), n_draws=1, fair=False))


def test_the_table_is_not_changed() -> None:
    X = gaussian(100)
    before = X.copy()

    def careless(X: np.ndarray, seed: int) -> np.ndarray:
        X[np.isnan(X)] = 0
        return X

    energy_i_score(X, careless, n_draws=2)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("X", "kwargs", "error", "message"),
    [
        (gaussian(50)[:, 0], {}, ValueError, r"a table \[n, d\] of at least two columns, got shape \(50,\)"),
        (gaussian(50)[:, :1], {}, ValueError, "at least two columns"),
        ([["a", 1.0]], {}, TypeError, "X must be an array of numbers"),
        ([[np.inf, 1.0]], {}, ValueError, "infinite"),
        (np.zeros((20, 2)), {}, ValueError, r"at least 10 missing values .* got missing values by column \[0, 0\] in 20 rows"),
        (np.where(np.eye(2), 1.0, np.nan).repeat(20, axis=0), {}, ValueError, "rows where another column is observed too"),
        (gaussian(50), {"n_draws": 1}, ValueError, "n_draws must be a whole number >= 2, got 1; pass fair=False"),
        (gaussian(50), {"n_draws": 0, "fair": False}, ValueError, "n_draws must be a whole number >= 1"),
        (gaussian(50), {"max_columns": 0}, ValueError, "max_columns must be"),
        (gaussian(50), {"fair": "yes"}, TypeError, "fair must be True or False"),
        (gaussian(50), {"impute": 3}, TypeError, r"impute must be an imputer with fit_transform or a function .*, got 3"),
        (gaussian(50), {"impute": lambda X, seed: X}, ValueError, "impute must return finite numbers, got .* NaN"),
        (gaussian(50), {"impute": lambda X, seed: X[:3]}, ValueError, r"the shape that it gets, \(50, 2\), got \(3, 2\)"),
    ],
)
def test_what_cannot_be_scored_is_refused(X, kwargs, error, message) -> None:
    with pytest.raises(error, match=message):
        energy_i_score(X, **{"impute": SimpleImputer(), **kwargs})
