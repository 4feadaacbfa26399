"""Columns as coordinates and back: which code a column gets, what it becomes, what is refused."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otimpute.baselines import GaussianEMImputer, MeanImputer
from otimpute.exceptions import EmptyColumnWarning, OtimputeWarning
from otimpute.table import Encoding, describe_columns
from otimpute.table.categories import DISAGREEMENT, CategoryCode, nearest_rows, simplex
from otimpute.table.codes import fit_into

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
    constraints = {"size": {"categories": ["S", "M", "L"], "ordered": True}}
    assert MeanImputer(constraints=constraints).fit_transform(frame)["size"].to_list() == ["S", "M", "L"]


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
    assert kind([f"city {k % 60}" for k in range(600)]) == "category"
    assert kind([f"customer {k % 600}" for k in range(6000)]) == "text"
    assert kind([f"customer {k % 600}" for k in range(6000)], max_categories=None) == "category"
    declared = pl.DataFrame({"x": pl.Series([f"p{k}" for k in range(30)], dtype=pl.Enum([f"p{k}" for k in range(30)]))})
    assert describe_columns(declared)[0].kind == "category"


def test_values_of_other_types_are_left_alone() -> None:
    frame = pl.DataFrame({"x": [1.0, None, 3.0], "list": [[1], None, [2, 3]]})
    with pytest.warns(OtimputeWarning, match="columns list are not imputed"):
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
@example([0.0], -16.76171875, 0.0078125, np.float16)  # no half-precision number lies between
def test_bounds_hold_in_any_precision(values: list[float], low: float, width: float, kind: type) -> None:
    high = low + width
    neighbours = [kind(low), np.nextafter(kind(low), kind(np.inf))]
    constraint = {0: {"bounds": (low, high)}}
    if not any(low <= float(number) <= high for number in neighbours):
        with pytest.raises(ValueError, match="no possible value"):
            Encoding.of_array(np.ones((1, 1), kind), constraint)
        return
    code = Encoding.of_array(np.ones((1, 1), kind), constraint).codes[0]
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
        ({"x": {"categories": [1, 2], "bounds": (0, 1)}}, ValueError, "do not apply"),
        ({"x": {"ordered": True, "bounds": (0, 1)}}, ValueError, "do not apply"),
        ({"x": {"bounds": (10**400, None)}}, TypeError, "must be numbers"),
        ({"whole": {"bounds": (200, 300)}}, ValueError, "no possible value"),
        ({"text": {"ordered": True}}, ValueError, "has no order of its own"),
        ({"day": {"categories": ["2024-01-01"]}}, ValueError, "takes no categories"),
        ({"day": {"bounds": (2000, 2024)}}, TypeError, "must be dates or times"),
        ({"long": {"bounds": ("1 day", None)}}, TypeError, "must be durations"),
        ({"text": {"bounds": (0, 1)}}, ValueError, "holds text or categories: bounds, integer and non_negative"),
        ({"flag": {"non_negative": True}}, ValueError, "holds booleans"),
        ({"day": {"integer": True}}, ValueError, "holds dates or times"),
        ({"day": {"bounds": ("yesterday", None)}}, TypeError, "must be dates or times"),
        ({"day": {"bounds": ("2024-02-01", "2024-01-01")}}, ValueError, "no possible value"),
        ({"list": {"categories": [1]}}, ValueError, "takes no categories"),
    ],
)
def test_constraints_that_make_no_sense_are_refused(constraints: Any, error: type[Exception], message: str) -> None:
    frame = pl.DataFrame(
        {"x": [1.0, 2.0], "text": ["a", "b"], "flag": [True, False], "day": [DAY, DAY], "list": [[1], [2]]}
    ).with_columns(whole=pl.Series([1, 2], dtype=pl.Int8), long=pl.Series([dt.timedelta(1)] * 2))
    with pytest.raises(error, match=message):
        MeanImputer(constraints=constraints).fit(frame)


def test_observed_values_outside_the_constraints_stay_and_are_pointed_out() -> None:
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


@pytest.mark.parametrize(
    ("frame", "constraint"),
    [
        (pl.DataFrame({"x": [0, 1, 1, -9]}), {"x": {"categories": [0, 1]}}),
        (pd.DataFrame({"x": pd.Categorical([0, 1, 1, -9])}), None),
    ],
    ids=["numbers as categories", "pandas categories"],
)
def test_the_marker_of_missing_values_marks_categories_too(frame: Any, constraint: Any) -> None:
    assert list(MeanImputer(missing_values=-9, constraints=constraint).fit_transform(frame)["x"]) == [0, 1, 1, 1]


def test_categories_of_nothing_but_marks_stay_as_they_are() -> None:
    frame = pd.DataFrame({"x": pd.Categorical([-9, -9]), "y": [1.0, 2.0]})
    with pytest.warns(EmptyColumnWarning, match="columns x: they stay empty"):
        assert MeanImputer(missing_values=-9).fit_transform(frame).equals(frame)


def test_nan_is_missing_in_a_category_of_numbers() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 2.0, float("nan")]})
    assert MeanImputer(constraints={"x": {"categories": [1, 2]}}).fit_transform(frame)["x"].to_list() == [1.0, 2.0, 2.0, 2.0]


def test_a_marker_does_not_make_holes_of_false() -> None:
    frame = pl.DataFrame({"x": [True, False, True]})
    assert MeanImputer(missing_values=0).fit_transform(frame).equals(frame)


def test_large_whole_numbers_stay_exact_as_categories() -> None:
    large = 2**53 + 1
    frame = pl.DataFrame({"x": [large, None, large, 5]})
    assert MeanImputer(constraints={"x": {"categories": [large, 5]}}).fit_transform(frame)["x"][1] == large


FIRST_AND_LATER = {
    "dates, then moments of pandas": (
        pa.table({"d": [DAY, DAY + dt.timedelta(2)]}),
        pd.DataFrame({"d": pd.to_datetime(["2024-01-01", None])}),
        dt.datetime(2024, 1, 2),
    ),
    "moments, then Python's dates": (
        pl.DataFrame({"d": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3)]}),
        pd.DataFrame({"d": pd.Series([DAY, None], dtype=object)}),
        dt.date(2024, 1, 2),
    ),
    "another unit and zone": (
        pl.DataFrame({"d": pl.Series([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3)], dtype=pl.Datetime("ns", "UTC"))}),
        pa.table({"d": pa.array([dt.datetime(2024, 1, 1), None], pa.timestamp("s", "Europe/Berlin"))}),
        dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
    ),
    "text, then a column of NaN": (
        pd.DataFrame({"d": ["u", "v", "u"]}),
        pd.DataFrame({"d": [np.nan, np.nan]}),
        "u",
    ),
    "text, then categories without any": (
        pd.DataFrame({"d": ["u", "v", "u"]}),
        pd.DataFrame({"d": pd.Categorical([None, None])}),
        "u",
    ),
    "dates, then empty text": (
        pl.DataFrame({"d": [DAY, DAY + dt.timedelta(2)]}),
        pl.DataFrame({"d": pl.Series([None, None], dtype=pl.String)}),
        dt.date(2024, 1, 2),
    ),
}


@pytest.mark.parametrize("name", FIRST_AND_LATER)
def test_new_rows_may_have_another_type_that_means_the_same(name: str) -> None:
    training, rows, expected = FIRST_AND_LATER[name]
    imputed = nw.from_native(MeanImputer().fit(training).transform(rows), eager_only=True)["d"]
    assert imputed.to_list()[1] == expected


@pytest.mark.parametrize(
    ("training", "rows"),
    [
        (DAY, dt.timedelta(3)),
        (dt.timedelta(1), dt.datetime(2024, 1, 1)),
        (dt.time(1), dt.datetime(2024, 1, 1)),
        (DAY, dt.time(1)),
    ],
)
def test_moments_of_another_kind_are_refused(training: Any, rows: Any) -> None:
    imputer = MeanImputer().fit(pl.DataFrame({"x": [training, training]}))
    with pytest.raises(ValueError, match="held dates or times in training, now it holds dates or times"):
        imputer.transform(pl.DataFrame({"x": [rows, None]}))


def test_names_that_are_no_text_keep_their_order_too() -> None:
    imputer = MeanImputer().fit(pd.DataFrame({0: [1.0, 2.0], 1: [100.0, 200.0]}))
    with pytest.raises(ValueError, match=r"columns must be \['0', '1'\], in this order, got \['1', '0'\]"):
        imputer.transform(pd.DataFrame({1: [np.nan], 0: [np.nan]}))
    with pytest.raises(ValueError, match="whose name is None or NaN"):
        MeanImputer().fit(pd.DataFrame([[1.0, None]], columns=[None, 1]))


@pytest.mark.parametrize(
    ("cells", "bounds", "low", "high"),
    [
        ([DAY, None, DAY + dt.timedelta(2)], (dt.datetime(2024, 1, 2, 12), None), DAY + dt.timedelta(2), dt.date.max),
        ([DAY, None, DAY + dt.timedelta(2)], ("2030-01-01", None), dt.date(2030, 1, 1), dt.date.max),
        ([DAY, None, DAY + dt.timedelta(2)], (None, "2000-01-01"), dt.date.min, dt.date(2000, 1, 1)),
        ([dt.time(1), None, dt.time(3)], ("04:30", "05:00"), dt.time(4, 30), dt.time(5)),
        ([dt.timedelta(1), None, dt.timedelta(3)], (dt.timedelta(5), None), dt.timedelta(5), dt.timedelta.max),
        ([Decimal("1.5"), None, Decimal("2.5")], (1.61, 1.78), Decimal("1.61"), Decimal("1.78")),
    ],
    ids=str,
)
def test_bounds_hold_for_moments_and_decimals(cells: list[Any], bounds: Any, low: Any, high: Any) -> None:
    for frame in frames_of(cells).values():
        with pytest.warns(OtimputeWarning, match="observed values outside its bounds"):
            imputed = MeanImputer(constraints={"x": {"bounds": bounds}}).fit_transform(frame)
        assert low <= nw.from_native(imputed, eager_only=True)["x"].to_list()[1] <= high


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_bounds_without_a_zone_are_meant_in_the_column_s(zone: str) -> None:
    moments = pl.Series("x", [dt.datetime(2024, 1, 1), None, dt.datetime(2024, 1, 2, 1)]).dt.replace_time_zone(zone)
    for frame in (moments.to_frame(), moments.to_frame().to_pandas(), moments.to_frame().to_arrow()):
        with pytest.warns(OtimputeWarning, match="outside its bounds"):
            imputed = MeanImputer(constraints={"x": {"bounds": ("2024-01-05", "2024-01-06")}}).fit_transform(frame)
        found = nw.from_native(imputed, eager_only=True)["x"].to_list()[1]
        assert found.replace(tzinfo=None) == dt.datetime(2024, 1, 5)


def test_moments_far_from_now_are_no_trouble() -> None:
    far = pl.DataFrame({"x": [dt.datetime(2199, 12, 31), None]}, schema={"x": pl.Datetime("ns")})
    assert MeanImputer().fit_transform(far)["x"][1] == dt.datetime(2199, 12, 31)
    widest = pl.DataFrame({"x": pl.Series([-9 * 10**18, 9 * 10**18, None]).cast(pl.Datetime("ns"))})
    assert abs(MeanImputer().fit_transform(widest)["x"].to_physical()[2]) < 10**9
    last = pd.DataFrame({"x": pd.Series([dt.date(9999, 12, 31), DAY, None], dtype=object), "y": [9e9, 1.0, 9e9]})
    assert GaussianEMImputer().fit_transform(last)["x"][2] <= dt.date.max


def test_decimals_keep_their_digits() -> None:
    wide = pa.table({"x": pa.array([Decimal("12345678901.5"), None], pa.decimal128(38, 18))})
    assert MeanImputer().fit_transform(wide)["x"][1].as_py() == Decimal("12345678901.5")
    imputer = MeanImputer().fit(pl.DataFrame({"p": [Decimal("1.25"), Decimal("2.50")]}))
    assert imputer.transform(pl.DataFrame({"p": [None]}, schema={"p": pl.Decimal(10, 2)}))["p"].to_list() == [Decimal("1.88")]
    narrow = pl.Series([Decimal(1), Decimal(5), Decimal(9), None], dtype=pl.Decimal(3, 2))
    frame = pl.DataFrame({"x": narrow, "y": [1.0, 5.0, 9.0, 30.0]})
    assert GaussianEMImputer().fit_transform(frame)["x"][3] == Decimal("9.99")


def test_dictionaries_of_arrow_in_any_shape_are_imputed() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), ["a", "b"]),
        pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), ["c", "b"]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), ["b", "b"]),
    ]
    imputed = MeanImputer().fit_transform(pa.table({"x": pa.chunked_array(chunks)}))["x"]
    assert imputed.to_pylist() == ["a", "b", "b", "b", "b", "b", "b"]
    in_pandas = pd.Series(["a", None, "a", "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
    frame = pd.DataFrame({"x": in_pandas})
    imputed = MeanImputer().fit_transform(frame)
    assert imputed["x"].tolist() == ["a", "a", "a", "b"]
    assert imputed.dtypes.equals(frame.dtypes)


def test_fields_of_arrow_keep_their_metadata() -> None:
    schema = pa.schema([pa.field("x", pa.float64(), metadata={"unit": "m"}), pa.field("c", pa.string())], metadata={"by": "us"})
    table = pa.table({"x": [1.0, None], "c": ["a", None]}, schema=schema)
    assert MeanImputer().fit_transform(table).schema.equals(schema, check_metadata=True)
    with_index = pa.Table.from_pandas(pd.DataFrame({"x": [1.0, None]}, index=["r", "s"]))
    assert MeanImputer().set_output(transform="pandas").fit_transform(with_index).columns.tolist() == with_index.column_names


def test_batches_of_arrow_come_back_as_batches() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1.0, None]})
    imputer = MeanImputer()
    for completed in (imputer.fit_transform(batch), imputer.transform(batch)):
        assert isinstance(completed, pa.RecordBatch)
        assert completed.to_pydict() == {"x": [1.0, 1.0]}
    assert imputer.feature_names_in_.tolist() == ["x"]


def test_texts_with_new_holes_are_pointed_out() -> None:
    frame = pl.DataFrame({"x": [1.0, None] * 15, "note": [f"row {k}" for k in range(30)]})
    imputer = MeanImputer().fit(frame)
    with pytest.warns(OtimputeWarning, match="columns note are not imputed"):
        imputer.transform(frame.with_columns(note=pl.lit(None, dtype=pl.String)))


@pytest.mark.parametrize(
    ("cells", "settings", "expected"),
    [
        (np.array([1.0, np.nan, 3.0, 2.0]), {}, 2.0),
        (np.array([1.5, np.nan, 0.0, 0.0]), {"fill_value": 0.0}, 0.5),
        (np.array([1.5, np.nan, 0.0, 0.0], dtype=np.float32), {"fill_value": 0.0}, 0.5),
        (np.array([4, -1, 0, 0]), {"fill_value": 0}, 1),
        (np.array(["a", None, "a", "b"], dtype=object), {}, "a"),
        (np.full(4, np.nan), {}, None),
    ],
)
def test_sparse_columns_of_pandas_are_filled(cells: Any, settings: Any, expected: Any) -> None:
    frame = pd.DataFrame({"x": pd.arrays.SparseArray(cells, **settings), "y": [1.0, 2.0, 3.0, 4.0]}, index=list("dcba"))
    imputer = MeanImputer(missing_values=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyColumnWarning)
        imputer.fit(frame)
    imputed = imputer.transform(frame)
    assert imputed.dtypes.equals(frame.dtypes)
    assert imputed.index.equals(frame.index)
    if expected is None:
        assert imputed.equals(frame)
    else:
        assert imputed["x"].tolist() == [cells[0], pytest.approx(expected), *cells[2:]]


def test_sparse_whole_numbers_become_sparse_floats_if_asked_for() -> None:
    frame = pd.DataFrame({"x": pd.arrays.SparseArray(np.array([1, -1, 0, 0]), fill_value=0)})
    imputed = MeanImputer(missing_values=-1, integers="float").fit_transform(frame)["x"]
    assert imputed.dtype == pd.SparseDtype(float, 0)
    assert imputed.tolist() == pytest.approx([1, 1 / 3, 0, 0])
