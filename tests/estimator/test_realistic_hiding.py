"""Hidden values are like missing ones: in like rows, together with the same others, and never too many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from otimpute.estimator import Missingness, hide_like_missing


def hide(values: np.ndarray, missing: np.ndarray, share: float = 0.15, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    how = Missingness.of(values, missing, np.arange(values.shape[1]), rng)
    return hide_like_missing(how, np.where(missing.any(axis=0), share, 0.0), rng)


def by_another_column(n: int = 4000, slope: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(n, 3))
    missing = np.zeros(values.shape, dtype=bool)
    missing[:, 1] = rng.random(n) < expit(slope * values[:, 0] - 1)
    return values, missing


def test_rows_with_hidden_values_are_like_rows_with_missing_ones():
    values, missing = by_another_column()
    hidden, stands_for = hide(values, missing)
    of_missing, of_observed = values[missing[:, 1], 0].mean(), values[~missing[:, 1], 0].mean()
    of_hidden = np.average(values[hidden[:, 1], 0], weights=stands_for[hidden[:, 1], 1])
    assert abs(of_hidden - of_missing) < 0.3 * (of_missing - of_observed)


def test_without_a_reason_values_are_hidden_evenly():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4000, 4))
    missing = rng.random(values.shape) < 0.3
    hidden, stands_for = hide(values, missing)
    np.testing.assert_allclose(hidden.sum(axis=0) / (~missing).sum(axis=0), 0.15, atol=0.01)
    assert stands_for[hidden].max() < 2
    for k in range(4):  # nothing else is hidden more often beside a hidden value
        others = np.delete(np.arange(4), k)
        assert hidden[np.ix_(hidden[:, k], others)].mean() < hidden[np.ix_(~hidden[:, k], others)].mean() + 0.02


def test_columns_that_are_missing_together_are_hidden_together():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(600, 5))
    missing = np.zeros(values.shape, dtype=bool)
    missing[rng.random(600) < 0.3, :3] = True
    missing[rng.random(600) < 0.2, 3] = True
    hidden, _ = hide(values, missing)
    np.testing.assert_array_equal(hidden[:, 0], hidden[:, 1])
    np.testing.assert_array_equal(hidden[:, 0], hidden[:, 2])
    assert hidden[:, 0].any()
    assert not (hidden[:, 0] & hidden[:, 3]).sum() > 0.5 * hidden[:, 3].sum()


def test_rows_that_lack_half_of_their_columns_are_imitated():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(800, 8))
    missing = np.zeros(values.shape, dtype=bool)
    for row in np.flatnonzero(rng.random(800) < 0.3):
        missing[row, rng.choice(8, 4, replace=False)] = True
    hidden, _ = hide(values, missing)
    beside = [(hidden | missing)[hidden[:, k]].sum(axis=1).mean() for k in range(8)]
    assert np.mean(beside) > 3  # of the four that are missing beside a missing value, itself included


def test_some_values_of_every_kind_of_row_stay_to_learn_from():
    values, missing = by_another_column(slope=6.0)
    hidden, _ = hide(values, missing, share=0.3)
    top = values[:, 0] > np.quantile(values[~missing[:, 1], 0], 0.97)
    observed = top & ~missing[:, 1]
    assert (hidden[observed, 1]).mean() < 0.7


def test_coordinates_of_one_category_do_not_predict_its_own_missingness():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(500, 4))
    values[:, 1] = values[:, 0]
    missing = np.zeros(values.shape, dtype=bool)
    missing[:, :2] = (rng.random(500) < 0.3)[:, None]
    how = Missingness.of(values, missing, np.array([0, 0, 1, 2]), rng)
    assert how.missing.shape == how.odds.shape == (500, 3)
    assert np.log(how.odds[:, 0]).std() < 0.3


@given(
    n=st.integers(2, 40),
    d=st.integers(1, 5),
    rate=st.floats(0, 1),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_whatever_the_table_only_observed_values_are_hidden_and_two_stay(n, d, rate, share, seed):
    rng = np.random.default_rng(seed)
    values, missing = rng.normal(size=(n, d)), rng.random((n, d)) < rate
    how = Missingness.of(values, missing, np.arange(d), rng)
    hidden, stands_for = hide_like_missing(how, np.full(d, share), rng)
    assert not (hidden & missing).any()
    n_observed = (~missing).sum(axis=0)
    assert ((n_observed - hidden.sum(axis=0)) >= np.minimum(n_observed, 2)).all()
    assert np.isfinite(stands_for).all()
    for k in np.flatnonzero(hidden.any(axis=0)):
        assert stands_for[hidden[:, k], k].mean() == pytest.approx(1)
