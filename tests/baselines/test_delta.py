"""Draws that differ from what observed values suggest, by ``delta``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from otimpute import MultipleImputer, pool
from otimpute.baselines import ChainedImputer


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """y and z depend on x in turn, both miss values; so does a positive, a bounded and a yes-or-no column."""
    rng = np.random.default_rng(0)
    n = 2000
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    rating = np.clip(np.rint(3 + x + rng.normal(size=n)), 1, 5)
    frame = pd.DataFrame({
        "x": x, "y": y, "z": y + rng.normal(size=n), "income": np.exp(0.3 * x + 0.3 * rng.normal(size=n)), "rating": rating,
        "smoker": np.where(x + rng.logistic(size=n) > 0.5, "yes", "no"), "member": x + rng.logistic(size=n) > 1,
    }).astype({"smoker": object, "member": "boolean"})  # fmt: skip
    for name in frame.columns[1:]:
        frame.loc[rng.random(n) < 0.4, name] = None
    return frame


def drawn(table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    return ChainedImputer(random_state=0, **options).fit_transform(table)  # type: ignore[no-any-return]


@pytest.mark.parametrize("nothing", [{"y": 0}, {"y": "0 sd", "income": "1 x"}, {"smoker": {"yes": 1}, "member": {True: 1.0}}])
def test_a_delta_that_changes_nothing_gives_the_same_bits(table: pd.DataFrame, nothing: dict[str, Any]) -> None:
    pd.testing.assert_frame_equal(drawn(table), drawn(table, delta=nothing), check_exact=True)


def test_a_shift_moves_every_draw_by_as_much(table: pd.DataFrame) -> None:
    before, after, missing = drawn(table), drawn(table, delta={"y": 0.7}), table["y"].isna()
    np.testing.assert_allclose((after["y"] - before["y"])[missing], 0.7)  # also where z is missing, which follows y
    assert (after["y"] == table["y"])[~missing].all()
    follows = missing & table["z"].isna()
    assert (after["z"] - before["z"])[follows].mean() == pytest.approx(0.7, abs=0.1)
    alone = ~missing & table["z"].isna()
    pd.testing.assert_series_equal(before["z"][alone], after["z"][alone])


def test_a_shift_in_standard_deviations_of_the_observed_values(table: pd.DataFrame) -> None:
    difference = (drawn(table, delta={"y": "-0.5 sd"})["y"] - drawn(table)["y"])[table["y"].isna()]
    np.testing.assert_allclose(difference, -0.5 * table["y"].std(ddof=0), rtol=1e-6)


def test_a_factor_multiplies_every_draw(table: pd.DataFrame) -> None:
    missing = table["income"].isna()
    before, after = drawn(table)["income"][missing], drawn(table, delta={"income": "1.1 x"})["income"][missing]
    np.testing.assert_allclose(after / before, 1.1)


def test_bounds_win_over_a_shift(table: pd.DataFrame) -> None:
    missing = table["rating"].isna()
    bounds = {"rating": {"bounds": (1, 5)}}
    before = drawn(table, constraints=bounds)["rating"][missing]
    after = drawn(table, constraints=bounds, delta={"rating": 1})["rating"][missing]
    assert set(after) == {2, 3, 4, 5}
    pd.testing.assert_series_equal(after, (before + 1).clip(upper=5))  # nothing else ends at the bound
    assert (drawn(table, delta={"income": -1})["income"] >= 0).all()  # as all observed values are


@pytest.mark.parametrize(("column", "label"), [("smoker", "yes"), ("member", True)])
def test_odds_of_two_double_those_of_the_imputed_class(table: pd.DataFrame, column: str, label: Any) -> None:
    """Averaged over rows the odds double if all rows have the same; x tells them apart, so the shares are compared by x."""
    missing = table[column].isna()
    doubled = [drawn(table, delta={column: odds})[column][missing] == label for odds in ({label: 1}, {label: 2})]
    third = pd.qcut(table["x"][missing], 6, labels=False)
    shares = [each.astype(float).groupby(third).mean() for each in doubled]
    log_odds = [np.log(share / (1 - share)) for share in shares]
    assert np.exp((log_odds[1] - log_odds[0]).mean()) == pytest.approx(2, rel=0.15)


def test_odds_can_be_given_for_the_other_class_as_well(table: pd.DataFrame) -> None:
    one, other = (drawn(table, delta={"smoker": odds}) for odds in ({"yes": 2}, {"no": 0.5}))
    pd.testing.assert_frame_equal(one, other)


def test_new_rows_are_shifted_too(table: pd.DataFrame) -> None:
    fitted = [ChainedImputer(random_state=0, delta=delta).fit(table[:1500]) for delta in (None, {"y": 2.0})]
    new = table[1500:].reset_index(drop=True)
    before, after = (imputer.transform(new) for imputer in fitted)
    np.testing.assert_allclose((after["y"] - before["y"])[new["y"].isna()], 2)
    follows = new["y"].isna() & new["z"].isna()
    assert (after["z"] - before["z"])[follows].mean() == pytest.approx(2, abs=0.4)


def mean_of(name: str) -> Any:
    return lambda table: ({name: table[name].mean()}, table[name].var() / len(table))


def test_values_that_are_missing_because_they_are_larger_are_recovered() -> None:
    """Missing y are half a standard deviation larger than observed values say, and z follows it where it is missing too."""
    rng = np.random.default_rng(1)
    n = 3000
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    z = y + rng.normal(size=n)
    no_y, no_z = rng.random(n) < 1 / (1 + np.exp(-x)), rng.random(n) < 0.6
    shift = 0.5 * y[~no_y].std()
    frame = pd.DataFrame({"x": x, "y": np.where(no_y, np.nan, y), "z": np.where(no_z, np.nan, z)})
    truth = {"y": shift * no_y.mean(), "z": shift * (no_y & no_z).mean()}
    for delta, is_recovered in (({"y": "0.5 sd"}, True), (None, False)):
        tables = list(MultipleImputer(m=10, delta=delta, random_state=0).fit(frame).tables_)
        for name, mean in truth.items():
            pooled = pool(tables, mean_of(name))
            assert (abs(pooled.estimate[0] - mean) < 2 * pooled.std_error[0]) == is_recovered, (name, delta)


@pytest.mark.parametrize(
    ("delta", "problem"),
    [
        ({"incme": 1}, "a column in delta must be one of .* got 'incme'; did you mean 'income'"),
        ({"x": 1}, "column 'x', which has no missing values, so nothing would be shifted"),
        ({"y": {"yes": 2}}, "column 'y' holds numbers"),
        ({"smoker": 2}, "column 'smoker' holds labels"),
        ({"smoker": {"maybe": 2}}, "are for 'maybe'; its categories are \\['no', 'yes'\\]"),
        ({"smoker": {"yes": 0}}, "must be finite numbers > 0"),
        ({"smoker": {"yes": float("nan")}}, "must be finite numbers > 0"),
        ({"smoker": {}}, "must be finite numbers > 0"),
        ({"y": float("inf")}, "delta of column 'y' must be a number"),
        ({"y": "1e999 sd"}, "delta of column 'y' must be a number"),
        ({"y": "-2 x"}, "delta of column 'y' must be a number"),
        ({"y": "half a sd"}, "delta of column 'y' must be a number"),
        ([1], "delta must be a dictionary"),
    ],
)
def test_what_no_delta_can_be_is_refused(table: pd.DataFrame, delta: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        MultipleImputer(m=2, delta=delta).fit(table)


def test_a_factor_of_dates_is_refused() -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "day": pd.date_range("2024-01-01", periods=30)})
    frame.loc[:5, "day"] = None
    for factor in ("1 x", "1.1 x"):
        with pytest.raises(ValueError, match="dates or times, which have no factor"):
            ChainedImputer(delta={"day": factor}).fit(frame)


def test_delta_is_given_once() -> None:
    with pytest.raises(ValueError, match="given twice"):
        MultipleImputer(ChainedImputer(delta={0: 1}), delta={0: 1}).fit([[1.0], [np.nan]])
