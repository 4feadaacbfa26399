"""Extreme values are hidden."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.missingness import QuantileMNAR

ALMOST_ALL = 1 - 1e-12


def tail(column: np.ndarray, quantile: float, tails: str) -> np.ndarray:
    lower, upper = column <= np.quantile(column, quantile), column >= np.quantile(column, 1 - quantile)
    return {"lower": lower, "upper": upper, "both": lower | upper}[tails]


@pytest.mark.parametrize("n", [5, 16, 101])
@pytest.mark.parametrize(("quantile", "tails"), [(0.25, "both"), (0.1, "lower"), (0.75, "upper"), (0.4, "both")])
def test_exactly_the_tails_are_hidden_and_nothing_between(n: int, quantile: float, tails: str) -> None:
    X = np.random.default_rng(0).normal(size=(n, 4))
    missing = QuantileMNAR(ALMOST_ALL, quantile, column_fraction=1, tails=tails).sample(X, 0)
    for k in range(4):
        np.testing.assert_array_equal(missing[:, k], tail(X[:, k], quantile, tails))


def test_values_in_the_tails_are_hidden_at_the_rate() -> None:
    n, rate = 20_000, 0.3
    X = np.random.default_rng(0).normal(size=(n, 3))
    missing = QuantileMNAR(rate, column_fraction=1).sample(X, 0)
    for k in range(3):
        in_tail = tail(X[:, k], 0.25, "both")
        assert not missing[~in_tail, k].any()
        assert missing[in_tail, k].mean() == pytest.approx(rate, abs=4 * (rate * (1 - rate) / in_tail.sum()) ** 0.5)
        assert missing[:, k].mean() == pytest.approx(rate / 2, abs=0.012)


@pytest.mark.parametrize(("fraction", "d", "count"), [(0.3, 10, 3), (0.3, 2, 1), (0.01, 5, 1), (1, 5, 5), (0.57, 100, 57)])
def test_the_columns_with_holes_are_a_share_rounded_down_and_at_least_one(fraction: float, d: int, count: int) -> None:
    X = np.random.default_rng(0).normal(size=(40, d))
    assert QuantileMNAR(0.9, column_fraction=fraction).sample(X, 0).any(axis=0).sum() == count


def test_every_column_may_be_chosen() -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    assert np.any([QuantileMNAR(0.9).sample(X, seed).any(axis=0) for seed in range(30)], axis=0).all()


def test_no_other_column_matters() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    missing = QuantileMNAR(0.5).sample(X, 0)
    [k] = np.flatnonzero(missing.any(axis=0))
    changed = np.random.default_rng(1).normal(size=X.shape)
    changed[:, k] = X[:, k]
    np.testing.assert_array_equal(QuantileMNAR(0.5).sample(changed, 0), missing)
    changed[:, k] = X[::-1, k]
    assert (QuantileMNAR(0.5).sample(changed, 0) != missing).any()


def test_the_upper_tail_mirrors_the_lower() -> None:
    X = np.random.default_rng(0).normal(size=(77, 3))
    lower, upper = (QuantileMNAR(0.6, 0.3, tails=tails) for tails in ("lower", "upper"))
    np.testing.assert_array_equal(lower.sample(X, 0), upper.sample(-X, 0))


def test_a_value_that_ties_with_both_quantiles_is_not_extreme() -> None:
    """Counts that are mostly zero: the zeros are the middle, and hiding them all would be MCAR."""
    X = np.array([[0.0]] * 80 + [[1.0]] * 12 + [[2.0]] * 8)
    missing = QuantileMNAR(ALMOST_ALL, column_fraction=1).sample(X, 0)
    assert not missing[:80].any()
    assert missing[80:].all()
    assert not QuantileMNAR(ALMOST_ALL, column_fraction=1).sample(np.zeros((50, 1)), 0).any()
    assert QuantileMNAR(ALMOST_ALL, column_fraction=1, tails="lower").sample(X, 0)[:80].all()


def test_quantiles_of_the_largest_floats_do_not_overflow() -> None:
    largest = np.finfo(np.float64).max
    X = np.array([-largest] * 3 + [largest] * 3)[:, None]
    missing = QuantileMNAR(ALMOST_ALL, 0.45, tails="lower").sample(X, 0)  # between the two
    np.testing.assert_array_equal(missing, X < 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"quantile": 0.5}, "quantile must be a finite number > 0 and < 0.5, got 0.5; two tails"),
        ({"quantile": 0.75}, "cover every value"),
        ({"quantile": 0}, "quantile must be"),
        ({"quantile": 1, "tails": "lower"}, "quantile must be a finite number > 0 and < 1, got 1$"),
        ({"column_fraction": 0}, "column_fraction must be a finite number > 0 and <= 1, got 0"),
        ({"column_fraction": 1.1}, "column_fraction must be"),
        ({"tails": "all"}, "tails must be one of 'both', 'lower', 'upper', got 'all'"),
        ({"tails": None}, "tails must be one of"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuantileMNAR(0.3, **parameters)
