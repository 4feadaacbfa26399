"""Columns as coordinates and back: which code a column gets, what it becomes, what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otimpute.baselines import MeanImputer
from otimpute.exceptions import OtimputeWarning
from otimpute.table import Encoding, describe_columns
from otimpute.table.codes import DISAGREEMENT, CategoryCode, NumberCode, fit_into, nearest_rows, simplex

DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12)


@given(st.integers(1, 40))
def test_all_categories_are_equally_far_apart_and_around_zero(k: int) -> None:
    corners = simplex(k)
    assert corners.shape == (k, k - 1)
    np.testing.assert_allclose(corners.sum(axis=0), 0, atol=1e-9)
    distance = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    np.testing.assert_allclose(distance[~np.eye(k, dtype=bool)], DISAGREEMENT)
    np.testing.assert_array_equal(nearest_rows(corners, corners), np.arange(k))


def test_the_mean_of_corners_is_nearest_to_the_most_frequent_one() -> None:
    column = ["a"] * 4 + ["b"] * 3 + ["c"] * 3 + [None]
    assert MeanImputer().fit_transform(pl.DataFrame({"x": column}))["x"].to_list() == [*column[:-1], "a"]


CELLS: dict[str, tuple[list[Any], str]] = {
    "number": ([1.5, None, 2.5], "number"),
    "integer": ([1, None, 2], "integer"),
    "boolean": ([True, None, False], "boolean"),
    "text": (["a", None, "b"], "category"),
    "date": ([DAY, None, DAY + dt.timedelta(2)], "date/time"),
    "moment": ([NOON, None, NOON + dt.timedelta(2)], "date/time"),
    "duration": ([dt.timedelta(1), None, dt.timedelta(3)], "date/time"),
    "time": ([dt.time(3), None, dt.time(5)], "date/time"),
    "decimal": ([Decimal("1.50"), None, Decimal("2.50")], "number"),
}
EXPECTED = {  # what the mean imputer puts into the hole
    "number": 2.0, "integer": 2, "boolean": True, "text": "a", "date": DAY + dt.timedelta(1), "moment": NOON + dt.timedelta(1),
    "duration": dt.timedelta(2), "time": dt.time(4), "decimal": Decimal("2.00"),
}  # fmt: skip


def frames_of(cells: list[Any]) -> dict[str, Any]:
    table = pa.table({"x": cells})
    return {
        "pandas": pd.DataFrame({"x": pd.Series(cells, dtype=object)}).infer_objects(),
        "pandas on arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.DataFrame({"x": cells}),
        "pyarrow": table,
    }


@pytest.mark.parametrize("backend", ["pandas", "pandas on arrow", "polars", "pyarrow"])
@pytest.mark.parametrize("name", CELLS)
def test_values_of_any_type_are_imputed_in_their_type(name: str, backend: str) -> None:
    cells, kind = CELLS[name]
    frame = frames_of(cells)[backend]
    summary = describe_columns(frame)[0]
    assert (summary.kind, summary.n_missing, summary.n_rows) == (
        kind if backend != "pandas" or name != "integer" else "number",
        1,
        3,
    )
    imputed = nw.from_native(MeanImputer().fit_transform(frame), eager_only=True)["x"]
    before = nw.from_native(frame, eager_only=True)["x"]
    assert imputed.dtype == before.dtype
    assert imputed.to_list() == [cells[0], EXPECTED[name] if name != "integer" else pytest.approx(2, abs=0.5), cells[2]]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "America/New_York"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_local_moments_keep_their_zone_and_unit(zone: str, unit: str) -> None:
    column = pl.Series("x", [NOON, None, NOON + dt.timedelta(2)], dtype=pl.Datetime(unit)).dt.replace_time_zone(zone)
    frame = column.to_frame()
    for native in (frame, frame.to_pandas(), frame.to_arrow()):
        imputed = nw.from_native(MeanImputer().fit_transform(native), eager_only=True)["x"]
        assert imputed.dtype == nw.from_native(native, eager_only=True)["x"].dtype
        assert imputed.to_list()[1] == frame["x"][0] + dt.timedelta(1)


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], dt.datetime(2024, 1, 1)),
        ([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, 1)], dt.datetime(2024, 1, 1, 12)),
        ([dt.datetime(2024, 1, 1, 0, 0, 1), dt.datetime(2024, 1, 1, 0, 0, 4)], dt.datetime(2024, 1, 1, 0, 0, 3)),
        ([dt.datetime(2024, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 4)], dt.datetime(2024, 1, 1, 0, 0, 0, 3)),
    ],
    ids=["days", "hours", "seconds", "microseconds"],
)
def test_imputed_moments_are_as_coarse_as_the_observed_ones(moments: list[dt.datetime], expected: dt.datetime) -> None:
    assert MeanImputer().fit_transform(pl.DataFrame({"x": [*moments, None]}))["x"][2] == expected


def test_categories_keep_their_declaration() -> None:
    frame = pd.DataFrame(
        {
            "plain": pd.Categorical(["x", None, "x", "y"], categories=["z", "y", "x"]),
            "ordered": pd.Categorical(["low", None, "high", "high"], categories=["low", "middle", "high"], ordered=True),
            "numbers": pd.Categorical([3, None, 3, 5]),
            "bins": pd.cut([0.5, np.nan, 1.5, 0.6], [0, 1, 2, 3]),
        },
        index=[4, 3, 2, 1],
    )
    imputed = MeanImputer().fit_transform(frame)
    assert (imputed.dtypes == frame.dtypes).all()
    assert imputed.index.equals(frame.index)
    assert imputed.iloc[1].tolist() == ["x", "middle", 3, frame["bins"].cat.categories[0]]
    assert MeanImputer().fit(frame).column_kinds_ == {
        "plain": "category", "ordered": "ordered", "numbers": "category", "bins": "ordered",
    }  # fmt: skip


def test_dictionaries_and_enums_keep_their_order() -> None:
    dictionary = pa.DictionaryArray.from_arrays(pa.array([2, None, 2, 0], pa.int8()), ["a", "b", "c"], ordered=True)
    table = pa.table({"x": pa.chunked_array([dictionary.slice(0, 2), dictionary.slice(2)])})
    imputed = MeanImputer().fit_transform(table)
    assert imputed.schema == table.schema
    assert imputed["x"].to_pylist() == ["c", "b", "c", "a"]
    frame = pl.DataFrame({"x": pl.Series(["c", None, "c", "a"], dtype=pl.Enum(["c", "b", "a"]))})
    assert MeanImputer().fit_transform(frame).schema == frame.schema


def test_an_order_can_be_given() -> None:
    frame = pl.DataFrame({"size": ["S", None, "L"]})
    wishes = {"size": {"categories": ["S", "M", "L"], "ordered": True}}
    assert MeanImputer(constraints=wishes).fit_transform(frame)["size"].to_list() == ["S", "M", "L"]


def test_new_rows_only_get_categories_their_type_allows() -> None:
    imputer = MeanImputer().fit(pd.DataFrame({"x": pd.Categorical(["a", "b", "a", None])}))
    row = pd.DataFrame({"x": pd.Categorical([None, "b"], categories=["c", "b"])})
    assert imputer.transform(row)["x"].tolist() == ["b", "b"]
    with pytest.raises(ValueError, match="declared to hold \\['c'\\], none of the categories seen in training"):
        imputer.transform(pd.DataFrame({"x": pd.Categorical([None], categories=["c"])}))


def test_whole_numbers_can_be_categories() -> None:
    frame = pl.DataFrame({"rooms": [1, 1, 1, 4, None]})
    assert MeanImputer().fit_transform(frame)["rooms"][4] == 2
    imputed = MeanImputer(constraints={"rooms": {"categories": [1, 4]}}).fit_transform(frame)
    assert imputed["rooms"].to_list() == [1, 1, 1, 4, 1]
    assert imputed.schema == frame.schema


def test_texts_are_categories_while_they_repeat() -> None:
    def kind(texts: list[str], **options: Any) -> str:
        return describe_columns(pl.DataFrame({"x": texts}), **options)[0].kind

    assert kind(["a", "b", "c"]) == "category"
    assert kind([f"person {k}" for k in range(30)]) == "text"
    assert kind([f"person {k}" for k in range(30)], max_categories=None) == "category"
    assert kind([f"city {k % 60}" for k in range(600)]) == "text"
    assert kind([f"city {k % 60}" for k in range(600)], max_categories=60) == "category"
    declared = pl.DataFrame({"x": pl.Series([f"p{k}" for k in range(30)], dtype=pl.Enum([f"p{k}" for k in range(30)]))})
    assert describe_columns(declared)[0].kind == "category"


def test_values_of_other_types_are_left_alone() -> None:
    frame = pl.DataFrame({"x": [1.0, None, 3.0], "list": [[1], None, [2, 3]]})
    with pytest.warns(OtimputeWarning, match="columns list are left alone"):
        imputed = MeanImputer().fit_transform(frame)
    assert imputed["list"].equals(frame["list"])
    mixed = pd.DataFrame({"x": [1.0, None], "odd": pd.Series(["a", 1], dtype=object)})
    assert MeanImputer().fit_transform(mixed)["odd"].tolist() == ["a", 1]


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20),
    st.floats(-100, 100),
    st.floats(0, 10),
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_bounds_hold_in_any_precision(values: list[float], low: float, width: float, kind: type) -> None:
    inside = np.float64(kind(low)), np.float64(kind(low + width))
    high = low + width
    if not inside[0] <= high or not low <= inside[1]:
        return  # no number of this precision lies between
    code = NumberCode("number", low, high)
    cells = fit_into(code.obey(np.array(values)), np.dtype(kind), low, high).astype(np.float64)
    assert ((cells >= low) & (cells <= high)).all()


@pytest.mark.parametrize(
    ("constraints", "error", "message"),
    [
        ([("x", 1)], TypeError, "constraints must be a dictionary"),
        ({"y": {}}, ValueError, "a column in constraints must be one of .*'x'"),
        ({"x": 3}, TypeError, "constraints of column 'x' must be a dictionary"),
        ({"x": {"bonds": (0, 1)}}, ValueError, "did you mean 'bounds'"),
        ({"x": {"bounds": 3}}, TypeError, "must be a pair"),
        ({"x": {"bounds": ("a", None)}}, TypeError, "must be numbers"),
        ({"x": {"bounds": (3, 1)}}, ValueError, "no possible value"),
        ({"x": {"bounds": (0.2, 0.8), "integer": True}}, ValueError, "no possible value"),
        ({"x": {"integer": "yes"}}, TypeError, "True or False"),
        ({"x": {"categories": "abc"}}, TypeError, "list of values"),
        ({"x": {"categories": []}}, ValueError, "at least one value"),
        ({"x": {"categories": [7, 8]}}, ValueError, "must occur in it"),
        ({"x": {"categories": [1, 2], "bounds": (0, 1)}}, ValueError, "are for numbers"),
        ({"text": {"bounds": (0, 1)}}, ValueError, "holds text or categories: bounds, integer and non_negative"),
        ({"flag": {"non_negative": True}}, ValueError, "holds booleans"),
        ({"day": {"integer": True}}, ValueError, "holds dates or times"),
        ({"day": {"bounds": ("yesterday", None)}}, TypeError, "must be dates or times"),
        ({"day": {"bounds": ("2024-02-01", "2024-01-01")}}, ValueError, "no possible value"),
        ({"list": {"categories": [1]}}, ValueError, "takes no constraints"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(constraints: Any, error: type[Exception], message: str) -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0], "text": ["a", "b"], "flag": [True, False], "day": [DAY, DAY], "list": [[1], [2]]})
    with pytest.raises(error, match=message):
        MeanImputer(constraints=constraints).fit(frame)


def test_observed_values_outside_the_wishes_stay_and_are_pointed_out() -> None:
    frame = pl.DataFrame({"x": [-5.0, 1.0, None], "c": ["a", "q", None]})
    with pytest.warns(OtimputeWarning) as caught:
        imputed = MeanImputer(constraints={"x": {"non_negative": True}, "c": {"categories": ["a", "b"]}}).fit_transform(frame)
    assert [str(one.message)[:44] for one in caught] == [
        "column 'x' has 1 observed values outside its",
        "column 'c' has observed values that are not ",
    ]
    assert imputed.rows() == [(-5.0, "a"), (1.0, "q"), (0.0, "a")]


def test_columns_must_hold_what_they_held_in_training() -> None:
    imputer = MeanImputer().fit(pl.DataFrame({"x": [1.0, 2.0], "c": ["a", "b"]}))
    with pytest.raises(ValueError, match="column 'c' held text or categories in training, now it holds numbers"):
        imputer.transform(pl.DataFrame({"x": [1.0], "c": [3.0]}))
    with pytest.raises(ValueError, match="column 'x' held numbers in training, now it holds text"):
        imputer.transform(pl.DataFrame({"x": ["1"], "c": ["a"]}))
    with pytest.raises(ValueError, match="'c' held no numbers in training, so an array will not do"):
        imputer.transform(np.array([[1.0, 2.0]]))
    nothing = imputer.transform(pl.DataFrame({"x": [None], "c": [None]}))
    assert nothing.rows() == [(1.5, "a")]


def test_arrays_take_no_categories() -> None:
    with pytest.raises(ValueError, match="column 0 of an array holds numbers, not categories"):
        MeanImputer(constraints={0: {"categories": [1, 2]}}).fit([[1.0], [2.0]])


def test_hiding_works_on_any_frame() -> None:
    from otimpute.missingness import MCAR, LogisticMAR, hide

    frame = pl.DataFrame({"x": np.arange(50.0), "c": ["a", "b"] * 25, "day": [DAY] * 25 + [DAY + dt.timedelta(1)] * 25})
    for mechanism in (MCAR(0.3), LogisticMAR(0.3)):
        incomplete, missing = hide(frame, mechanism, 0)
        assert incomplete.schema == frame.schema
        np.testing.assert_array_equal(np.column_stack([incomplete[name].is_null() for name in frame.columns]), missing)


def test_a_table_of_one_category_column_works() -> None:
    encoding = Encoding.of_frame(nw.from_native(pl.DataFrame({"x": ["only", None]})))
    assert encoding.codes == (CategoryCode(("only",), False),)
    assert encoding.widths == [0]
    assert MeanImputer().fit_transform(pl.DataFrame({"x": ["only", None]}))["x"].to_list() == ["only", "only"]
