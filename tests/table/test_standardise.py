"""Columns of any magnitude become comparable, and come back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from otimpute.table import FARTHEST, Standardiser

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=finite))
def test_any_finite_table_becomes_small_finite_numbers_and_back(X: np.ndarray) -> None:
    missing = np.zeros(X.shape, dtype=bool)
    scaler = Standardiser.fit(X, missing)
    z = scaler.apply(X)
    assert np.isfinite(z).all()
    assert np.abs(z).max() <= FARTHEST
    rows, columns = np.nonzero(np.abs(z) < FARTHEST)
    back = scaler.restore(z[rows, columns], columns)
    assert np.isfinite(back).all()
    size = np.abs(X).max(axis=0)[columns]
    np.testing.assert_array_less(np.abs(back / 2 - X[rows, columns] / 2), 1e-12 * size + 1e-300)


def test_ordinary_columns_get_mean_zero_and_variance_one() -> None:
    X = np.random.default_rng(0).normal(5, 3, size=(500, 2))
    z = Standardiser.fit(X, np.zeros(X.shape, dtype=bool)).apply(X)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=1e-12)


def test_missing_entries_do_not_count() -> None:
    X = np.array([[1.0], [3.0], [1e9]])
    scaler = Standardiser.fit(X, np.array([[False], [False], [True]]))
    np.testing.assert_allclose(scaler.apply(X[:2]), [[-1.0], [1.0]])


def test_a_constant_column_has_no_spread_and_its_value_exactly() -> None:
    X = np.full((7, 1), 0.1)
    scaler = Standardiser.fit(X, np.zeros(X.shape, dtype=bool))
    assert scaler.spread[0] == 0
    assert scaler.restore(np.zeros(1), np.zeros(1, dtype=int))[0] == 0.1


def test_a_few_outliers_do_not_set_the_scale() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    X[3] = 1e6
    scaler = Standardiser.fit(X, np.zeros(X.shape, dtype=bool))
    assert np.ldexp(scaler.spread[0], scaler.exponent[0]) < 2
    assert scaler.apply(X)[3, 0] == FARTHEST


def test_without_rescaling_columns_are_only_centred() -> None:
    X = np.array([[1.0, 10.0], [3.0, 30.0]])
    z = Standardiser.fit(X, np.zeros(X.shape, dtype=bool), rescale=False).apply(X)
    np.testing.assert_array_equal(z, [[-1.0, -10.0], [1.0, 10.0]])


def test_of_a_handful_of_values_none_is_an_outlier() -> None:
    X = np.array([[0.0], [10.0], [10.001], [20.0]])
    scaler = Standardiser.fit(X, np.zeros(X.shape, dtype=bool))
    assert np.ldexp(scaler.spread[0], scaler.exponent[0]) == np.std(X)
