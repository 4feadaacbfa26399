"""Missing completely at random."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.missingness import MCAR


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.95])
def test_the_share_of_holes_in_every_column_is_the_rate(rate: float) -> None:
    n = 40_000
    shares = MCAR(rate).sample(np.zeros((n, 5)), 0).mean(axis=0)
    np.testing.assert_allclose(shares, rate, atol=4 * (rate * (1 - rate) / n) ** 0.5)


def test_holes_do_not_depend_on_the_values() -> None:
    one, other = np.random.default_rng(0).normal(size=(2, 100, 3))
    np.testing.assert_array_equal(MCAR(0.3).sample(one, 5), MCAR(0.3).sample(1e9 * other, 5))


def test_holes_of_neighbouring_rows_and_columns_are_unrelated() -> None:
    missing = MCAR(0.5).sample(np.zeros((20_000, 3)), 0) - 0.5
    pairs = [(missing[:, 0], missing[:, 1]), (missing[:, 1], missing[:, 2]), (missing[1:, 0], missing[:-1, 0])]
    for first, second in pairs:
        assert abs(np.mean(first * second)) < 4 * 0.25 / 20_000**0.5


def test_data_drawn_from_the_same_seed_do_not_decide_where_the_holes_are() -> None:
    X = np.random.default_rng(0).random((5000, 2))
    missing = MCAR(0.3).sample(X, 0)
    assert abs(X[missing].mean() - X[~missing].mean()) < 0.03
