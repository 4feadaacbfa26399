"""Promises every mechanism keeps, each stated once and tested on all of them."""

from __future__ import annotations

import itertools
import pickle
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from otimpute import catalogue
from otimpute.missingness import MCAR, LogisticMAR, LogisticMNAR, LogisticSelfMNAR, Mechanism, QuantileMNAR, hide

Make = Callable[[float], Mechanism]
MECHANISMS: dict[str, Make] = {
    "mcar": MCAR,
    "mar": LogisticMAR,
    "mar-wide": lambda rate: LogisticMAR(rate, observed_fraction=0.7),
    "mnar": LogisticMNAR,
    "mnar-all": lambda rate: LogisticMNAR(rate, all_inputs=True),
    "self": LogisticSelfMNAR,
    "quantile": QuantileMNAR,
    "quantile-upper": lambda rate: QuantileMNAR(rate, quantile=0.6, column_fraction=1, tails="upper"),
}
MECHANISMS |= {name: each.load() for name, each in catalogue.MECHANISMS.items() if each.load() not in MECHANISMS.values()}
ONE_COLUMN_REFUSED = {"mar", "mar-wide", "mnar"}


@pytest.fixture(params=MECHANISMS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(name: str) -> Make:
    return MECHANISMS[name]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_a_sample_is_boolean_of_the_shape_of_the_table_and_hides_some(make: Make) -> None:
    missing = make(0.3).sample(normal(200, 7), 0)
    assert missing.dtype == np.bool_
    assert missing.shape == (200, 7)
    assert 0 < missing.sum() < missing.size


def test_the_same_generator_state_or_seed_gives_the_same_holes_and_another_gives_others(make: Make) -> None:
    X, mechanism = normal(100, 5), make(0.3)
    seeded = [mechanism.sample(X, seed) for seed in (3, np.int64(3), 4)]
    np.testing.assert_array_equal(seeded[0], seeded[1])
    assert (seeded[0] != seeded[2]).any()
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    drawn = mechanism.sample(X, first)
    np.testing.assert_array_equal(drawn, mechanism.sample(X, second))
    assert (drawn != mechanism.sample(X, first)).any()  # the generator went on


def test_the_values_of_the_table_do_not_change_how_much_is_drawn(make: Make) -> None:
    states = []
    for X in (normal(50, 5), np.zeros((50, 5)), 1e300 * normal(50, 5, seed=1)):
        rng = np.random.default_rng(0)
        make(0.3).sample(X, rng)
        states.append(rng.bit_generator.state)
    assert states[0] == states[1] == states[2]


def test_the_global_random_state_is_neither_read_nor_changed(make: Make) -> None:
    X = normal(50, 5)
    np.random.seed(0)  # noqa: NPY002
    first = make(0.3).sample(X, 0)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(make(0.3).sample(X, 0), first)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2] == after[2]
    np.testing.assert_array_equal(before[1], after[1])


def test_the_table_is_not_changed(make: Make) -> None:
    X = normal(50, 5)
    before = X.copy()
    X.flags.writeable = False
    make(0.3).sample(X, 0)
    X_incomplete, _ = hide(X, make(0.3), 0)
    np.testing.assert_array_equal(X, before)
    assert not np.shares_memory(X_incomplete, X)


def test_rate_zero_hides_nothing(make: Make) -> None:
    assert not make(0).sample(normal(100, 5), 0).any()


def test_a_higher_rate_hides_what_a_lower_one_hid_and_more(make: Make) -> None:
    X = normal(300, 5)
    holes = [make(rate).sample(X, 0) for rate in (0.1, 0.4, 0.9)]
    for fewer, more in itertools.pairwise(holes):
        assert more[fewer].all()
        assert more.sum() > fewer.sum()


def test_scales_of_columns_do_not_matter(make: Make) -> None:
    X = normal(200, 4)
    scaled = X * [2.0**990, 2.0**-1000, 1.0, 2.0**500]  # powers of two, so that ranks and ties stay exactly
    np.testing.assert_array_equal(make(0.3).sample(scaled, 0), make(0.3).sample(X, 0))


@settings(max_examples=25, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(2, 5)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    rate=st.just(0.0) | st.floats(1e-300, 1, exclude_max=True),
)
def test_any_finite_table_and_rate_give_probabilities_without_a_warning(X: np.ndarray, rate: float) -> None:
    for make in MECHANISMS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            probabilities = make(rate).probabilities(X, np.random.default_rng(0))
        assert probabilities.shape == X.shape
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_constant_columns_are_hidden_at_the_rate_or_not_at_all(make: Make) -> None:
    constant = np.full((400, 5), 0.1)
    probabilities = make(0.3).probabilities(constant, np.random.default_rng(0))
    assert set(np.unique(probabilities.round(9))) <= {0.0, 0.3}
    mixed = normal(400, 5)
    mixed[:, :3] = [1e300, 0.0, -7.25]
    assert any(make(0.3).sample(mixed, seed).any() for seed in range(20))


def test_a_table_of_one_row_gets_holes_unless_only_extremes_do(name: str, make: Make) -> None:
    rows = [make(0.5).sample([[1.0, 2.0, 3.0]], seed) for seed in range(40)]
    assert 0 < np.sum(rows) < 120 if name != "quantile" else not np.any(rows)


def test_a_table_of_one_column_gets_holes_or_the_reason_why_not(name: str, make: Make) -> None:
    if name in ONE_COLUMN_REFUSED:
        with pytest.raises(ValueError, match="needs a column besides its inputs, got 1 columns of which 1 are inputs"):
            make(0.3).sample(normal(50, 1), 0)
    else:
        assert make(0.3).sample(normal(50, 1), 0).any()


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([1.0, 2.0], ValueError, r"two dimensions, got shape \(2,\)"),
        (np.zeros((2, 2, 2)), ValueError, "two dimensions"),
        (np.empty((0, 3)), ValueError, r"at least one row and one column, got shape \(0, 3\)"),
        (np.empty((3, 0)), ValueError, "at least one row and one column"),
        (pd.DataFrame({"a": []}, dtype=float), ValueError, "at least one row and one column"),
        (pl.DataFrame(), ValueError, "at least one row and one column"),
        ([[1.0, np.nan], [2.0, 3.0]], ValueError, "must be complete, .* got 1 missing values"),
        (np.ma.masked_less([[1.0, 2.0], [3.0, 4.0]], 2.5), ValueError, "got 2 missing values"),
        (pd.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}), ValueError, "got 1 missing values"),
        (pl.DataFrame({"a": [1, None], "b": [1, 2]}), ValueError, "got 1 missing values"),
        ([[1.0, np.inf], [2.0, 3.0]], ValueError, "infinity in columns 1"),
        (pl.DataFrame({"a": [1.0, 2.0], "b": [np.inf, 2.0]}), ValueError, "infinity in columns 'b'"),
        (np.array([["a", "b"]]), TypeError, "numbers or booleans, got dtype <U1"),
        (pl.LazyFrame({"a": [1.0]}), TypeError, "collect"),
    ],
)
def test_tables_that_are_not_complete_are_refused(make: Make, X: Any, error: type, message: str) -> None:
    for attempt in (lambda: make(0.3).sample(X, 0), lambda: hide(X, make(0.3), 0)):
        with pytest.raises(error, match=message):
            attempt()


@pytest.mark.parametrize("random_state", [True, 1.5, "0", -1])
def test_what_is_no_random_state_is_refused(make: Make, random_state: Any) -> None:
    with pytest.raises(ValueError, match=r"random_state must be None, a whole number >= 0, .* got"):
        make(0.3).sample(normal(5, 5), random_state)


def test_without_a_seed_other_values_are_hidden_each_time(make: Make) -> None:
    X = normal(200, 5)
    assert (make(0.3).sample(X) != make(0.3).sample(X)).any()
    again = [make(0.3).sample(X, np.random.RandomState(0)) for _ in range(2)]
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, np.nan, np.inf, "0.3", None, True])
def test_rates_outside_zero_to_one_are_refused(make: Make, rate: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="rate must be a finite number >= 0 and < 1, got"):
        make(rate)


def test_mechanisms_are_values(make: Make) -> None:
    mechanism = make(0.3)
    assert mechanism == make(0.3) != make(0.4)
    assert {mechanism: "found"}[make(0.3)] == "found"
    assert eval(repr(mechanism)) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    with pytest.raises(FrozenInstanceError):
        mechanism.rate = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("kind", [list, pd.DataFrame, lambda rows: pl.DataFrame(rows, orient="row")])
def test_lists_and_frames_get_the_holes_of_arrays(make: Make, kind: Callable[[Any], Any]) -> None:
    X = normal(60, 5)
    np.testing.assert_array_equal(make(0.3).sample(kind(X.tolist()), 0), make(0.3).sample(X, 0))
