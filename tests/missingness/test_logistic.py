"""Logistic models of the values decide on the holes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from otimpute.missingness import LogisticMAR, LogisticMNAR, LogisticSelfMNAR, Mechanism

LOGISTIC = {
    "mar": LogisticMAR,
    "mnar": LogisticMNAR,
    "mnar-all": lambda rate: LogisticMNAR(rate, all_inputs=True),
    "self": LogisticSelfMNAR,
}


@pytest.fixture
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    heavy = rng.standard_t(2, size=(2000, 3))
    return np.hstack([heavy, rng.integers(0, 3, (2000, 2)), np.exp(rng.normal(size=(2000, 5)))])


def probabilities(mechanism: Mechanism, X: np.ndarray, seed: int = 0) -> np.ndarray:
    return mechanism.probabilities(X, np.random.default_rng(seed))


def logits(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("name", LOGISTIC)
def test_probabilities_of_every_column_with_holes_average_to_the_rate(name: str, rate: float, X: np.ndarray) -> None:
    means = probabilities(LOGISTIC[name](rate), X).mean(axis=0)
    hidden = means > 0
    assert hidden.sum() == (7 if name == "mar" else 10)
    np.testing.assert_allclose(means[hidden], rate, rtol=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.integers(2, 5)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    rate=st.floats(1e-6, 1 - 1e-6),
)
def test_the_rate_is_met_on_any_finite_table(X: np.ndarray, rate: float) -> None:
    for make in LOGISTIC.values():
        means = probabilities(make(rate), X).mean(axis=0)
        np.testing.assert_allclose(means[means > 0], rate, rtol=1e-9)


@pytest.mark.parametrize("name", LOGISTIC)
def test_the_share_of_holes_in_every_column_is_the_rate(name: str) -> None:
    n, rate = 20_000, 0.3
    shares = LOGISTIC[name](rate).sample(np.random.default_rng(1).normal(size=(n, 5)), 0).mean(axis=0)
    # Given the rows, a sum of independent indicators varies less than the binomial of their mean.
    np.testing.assert_allclose(shares[shares > 0], rate, atol=4 * (rate * (1 - rate) / n) ** 0.5)


@pytest.mark.parametrize("name", LOGISTIC)
def test_linear_predictors_have_unit_variance(name: str) -> None:
    p = probabilities(LOGISTIC[name](0.3), np.random.default_rng(0).exponential(size=(500, 10)))
    logistic = np.ptp(p, axis=0) > 0
    assert logistic.sum() >= 7
    np.testing.assert_allclose(logits(p[:, logistic]).std(axis=0), 1, rtol=1e-9)


@pytest.mark.parametrize(("fraction", "d", "count"), [(0.3, 10, 3), (0.3, 4, 1), (0.05, 6, 1), (0.29, 100, 29), (0.999, 3, 2)])
def test_the_columns_that_stay_observed_are_a_share_rounded_down_and_at_least_one(fraction: float, d: int, count: int) -> None:
    X = np.random.default_rng(0).normal(size=(60, d))
    p = probabilities(LogisticMAR(0.5, fraction), X)
    assert (p == 0).all(axis=0).sum() == count
    assert (p > 0).all(axis=0).sum() == d - count


def test_columns_that_must_stay_observed_do_and_differ_between_draws(X: np.ndarray) -> None:
    kept = set()
    for seed in range(20):
        whole = ~LogisticMAR(0.5).sample(X, seed).any(axis=0)
        assert whole.sum() == 3
        kept |= set(np.flatnonzero(whole))
    assert kept == set(range(10))


def test_mar_holes_depend_on_observed_columns_only(X: np.ndarray) -> None:
    missing = LogisticMAR(0.3).sample(X, 0)
    observed = ~missing.any(axis=0)
    other_values = X.copy()
    other_values[:, ~observed] = np.random.default_rng(9).normal(size=(len(X), 7)) * 1e6
    np.testing.assert_array_equal(LogisticMAR(0.3).sample(other_values, 0), missing)
    other_inputs = X.copy()
    other_inputs[:, observed] = np.random.default_rng(9).permutation(X[:, observed])
    assert (LogisticMAR(0.3).sample(other_inputs, 0) != missing).any()


def test_mar_predictors_are_linear_in_the_observed_columns() -> None:
    X = np.random.default_rng(0).normal(size=(400, 6))
    p = probabilities(LogisticMAR(0.3, 0.5), X)
    observed = (p == 0).all(axis=0)
    design = np.column_stack([np.ones(len(X)), X[:, observed]])
    linear = logits(p[:, ~observed])
    coefficients, residuals, *_ = np.linalg.lstsq(design, linear, rcond=None)
    np.testing.assert_allclose(residuals, 0, atol=1e-12)
    assert (np.abs(coefficients[1:]) > 1e-3).all()
    assert len(np.unique(coefficients.round(6), axis=1).T) == 3  # each column has a model of its own


def test_mnar_is_mar_whose_inputs_are_hidden_completely_at_random(X: np.ndarray) -> None:
    mar, mnar = (mechanism.sample(X, 0) for mechanism in (LogisticMAR(0.3), LogisticMNAR(0.3)))
    inputs = ~mar.any(axis=0)
    np.testing.assert_array_equal(mnar[:, ~inputs], mar[:, ~inputs])
    np.testing.assert_allclose(mnar[:, inputs].mean(axis=0), 0.3, atol=4 * (0.21 / len(X)) ** 0.5)
    p_mar, p_mnar = (probabilities(mechanism, X) for mechanism in (LogisticMAR(0.3), LogisticMNAR(0.3)))
    np.testing.assert_array_equal(p_mnar, np.where(p_mar == 0, 0.3, p_mar))


def test_mnar_holes_depend_on_input_values_that_are_hidden(X: np.ndarray) -> None:
    mechanism = LogisticMNAR(0.3)
    missing = mechanism.sample(X, 0)
    inputs = ~LogisticMAR(0.3).sample(X, 0).any(axis=0)
    changed = np.where(missing & inputs, -X, X)
    after = mechanism.sample(changed, 0)
    np.testing.assert_array_equal(after[:, inputs], missing[:, inputs])
    assert (after[:, ~inputs] != missing[:, ~inputs]).any(axis=0).all()


def test_with_all_inputs_every_column_decides_on_the_holes_of_every_column() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    mechanism = LogisticMNAR(0.3, all_inputs=True)
    before = probabilities(mechanism, X)
    for k in range(3):
        changed = X.copy()
        changed[:, k] = np.random.default_rng(1).normal(size=300)
        assert (np.abs(probabilities(mechanism, changed) - before).max(axis=0) > 1e-3).all()
    assert LogisticMNAR(0.3, input_fraction=0.9, all_inputs=True).sample(X, 0).tolist() == mechanism.sample(X, 0).tolist()


def test_self_masking_is_the_logistic_function_of_the_standardised_value() -> None:
    X = np.random.default_rng(0).normal(3, 5, size=(500, 6))
    X[7, 2] = 300.0  # an outlier counts like any other value
    p = probabilities(LogisticSelfMNAR(0.3), X)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    for k in range(6):
        sign = 1 if p[X[:, k].argmax(), k] > 0.3 else -1
        intercept = logits(p[0, k]) - sign * z[0, k]
        np.testing.assert_allclose(p[:, k], expit(sign * z[:, k] + intercept), rtol=1e-9)


def test_self_masking_looks_at_no_other_column() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    changed = X.copy()
    changed[:, [0, 1, 3]] = np.random.default_rng(1).exponential(size=(300, 3))
    before, after = (LogisticSelfMNAR(0.3).sample(table, 0) for table in (X, changed))
    np.testing.assert_array_equal(before[:, 2], after[:, 2])
    assert (before != after).any(axis=0).tolist() == [True, True, False, True]


def test_self_masking_hides_large_values_of_some_columns_and_small_ones_of_others() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 12))
    missing = LogisticSelfMNAR(0.3).sample(X, 0)
    correlations = np.array([np.corrcoef(X[:, k], missing[:, k])[0, 1] for k in range(12)])
    assert (np.abs(correlations) > 0.3).all()
    assert 0 < (correlations > 0).sum() < 12


@pytest.mark.parametrize("fraction", [0, 1, -0.5, np.nan, "0.3", None])
def test_shares_of_columns_outside_zero_to_one_are_refused(fraction: object) -> None:
    with pytest.raises((ValueError, TypeError), match="observed_fraction must be a finite number > 0 and < 1, got"):
        LogisticMAR(0.3, fraction)  # type: ignore[arg-type]
    with pytest.raises((ValueError, TypeError), match="input_fraction must be a finite number > 0 and < 1, got"):
        LogisticMNAR(0.3, fraction)  # type: ignore[arg-type]


def test_all_inputs_must_be_a_flag() -> None:
    with pytest.raises(TypeError, match="all_inputs must be True or False, got 'yes'"):
        LogisticMNAR(0.3, all_inputs="yes")  # type: ignore[arg-type]
