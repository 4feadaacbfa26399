"""Derived columns: what equations determine is filled in, what was imputed is brought in line, what was observed stays."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from otimpute._stored import Place, RecordOf
from otimpute.exceptions import OtimputeWarning
from otimpute.knowledge.derived import DerivedColumns
from otimpute.knowledge.expressions import ExpressionError
from otimpute.table import Encoding

FRAMES = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.table}
BMI = {"bmi": "weight / (height / 100) ** 2"}


def frame(make=pl.DataFrame, **columns):
    return nw.from_native(make(columns), eager_only=True)


def solved(derive, make=pl.DataFrame, **columns):
    table = frame(make, **columns)
    return DerivedColumns.of(derive, table).solve(table)


def finished(derive, original, completed, training=None, codes=None):
    """The completed columns, by name, as lists."""
    first, second = frame(**original), frame(**{**original, **completed})
    derived = DerivedColumns.of(derive, frame(**training) if training else first)
    done = derived.finish(first, second, codes)
    assert not derived.violations(done)
    return {name: done[name].to_list() for name in completed}


# Solving


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_missing_target_or_part_is_solved_for(make):
    done = solved(
        BMI, make, weight=[50.0, None, 80.0, None], height=[200.0, 100.0, None, 150.0], bmi=[None, 20.0, 20.0, None],
    )  # fmt: skip
    assert done["bmi"].to_list()[:3] == [12.5, 20.0, 20.0]
    assert done["weight"].to_list()[1] == 20.0
    assert done["bmi"].is_null().to_list()[3] or np.isnan(done["bmi"].to_list()[3])  # two unknowns, one equation


def test_a_square_is_solved_where_all_observed_values_are_on_one_side_of_0():
    heights = [150.0 + k for k in range(25)]
    table = {"weight": [70.0] * 26, "height": [*heights, None], "bmi": [None] * 25 + [70 / 1.6**2]}
    assert solved(BMI, **table)["height"][25] == pytest.approx(160)
    few = {name: values[-5:] for name, values in table.items()}
    assert solved(BMI, **few)["height"][4] is None  # -160 would do as well, as far as five values say


def test_equations_are_solved_one_by_way_of_another():
    table = {"a": [None], "b": [2], "c": [3], "d": [10], "sum": [None], "all": [None]}
    done = solved(["sum = a + b", "all = sum + c", "all == d"], **{**table, "a": pl.Series([None], dtype=pl.Int64)})
    assert (done["all"][0], done["sum"][0], done["a"][0]) == (10, 7, 5)
    assert done["a"].dtype == nw.Int64


def test_integers_are_solved_for_only_where_the_solution_is_whole():
    done = solved("total = 2 * a", total=pl.Series([6.0, 7.0, None]), a=pl.Series([None, None, 4], dtype=pl.Int32))
    assert done["a"].to_list() == [3, None, 4]
    assert done["a"].dtype == nw.Int32
    assert done["total"].to_list() == [6.0, 7.0, 8.0]


def test_parts_are_found_behind_rounded_results():
    assert solved(BMI, weight=[None, 81], height=[175, 180], bmi=[22.9, 25.0])["weight"].to_list() == [70, 81]
    assert solved(BMI, weight=[None, 81.5], height=[175, 180], bmi=[22.9, 25.2])["weight"].to_list() == [70.1, 81.5]
    unrounded = solved(BMI, weight=[None, 81.0], height=[175.0, 180.0], bmi=[22.86213, 25.0])["weight"]
    assert unrounded.to_list() == [pytest.approx(22.86213 * 1.75**2), 81.0]


def test_dates_are_solved_for_as_dates():
    day = dt.date(2024, 1, 31)
    done = solved(
        "days = end - start",
        start=[day, None, day], end=[None, day, day + dt.timedelta(2)], days=[10, 10, None],
    )  # fmt: skip
    assert done["end"].to_list() == [dt.date(2024, 2, 10), day, dt.date(2024, 2, 2)]
    assert done["start"].to_list() == [day, dt.date(2024, 1, 21), day]
    assert done["days"].to_list() == [10, 10, 2]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_columns_without_a_value_get_values(make):
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 3)]
    rules = {"total": "a * 2", "late": "day > '2024-01-02'", "next": "day + 0.5"}
    done = solved(rules, make, a=[1, 2], day=days, total=[None, None], late=[None, None], next=[None, None])
    assert done["total"].to_list() == [2, 4]
    assert done["late"].to_list() == [False, True]
    assert [moment.hour for moment in done["next"].to_list()] == [12, 12]


def test_conditions_can_be_derived():
    done = solved({"adult": "age >= 18"}, age=[3, 30, None], adult=pl.Series([None, None, True]))
    assert done["adult"].to_list() == [False, True, True]


def test_what_is_not_defined_is_not_determined():
    assert solved("rate = a / b", a=[1.0, 1.0], b=[0.0, 2.0], rate=[None, None])["rate"].to_list() == [None, 0.5]
    assert solved("rate = a * b", a=[0.0], b=pl.Series([None], dtype=pl.Float64), rate=[0.0])["b"].to_list() == [None]


def test_solving_again_changes_nothing():
    table = frame(weight=[50.0, None, 80.0], height=[200.0, 100.0, 0.1], bmi=[None, 20.0, None])
    derived = DerivedColumns.of(BMI, table)
    once = derived.solve(table)
    assert derived.solve(once).to_native().equals(once.to_native())


def test_a_number_that_means_missing_is_solved_for():
    table = frame(a=[1, 2, -999], b=[1, -999, -999], total=[-999, 5, 7])
    done = DerivedColumns.of("total = a + b", table, missing_values=-999).solve(table)
    assert done["total"].to_list() == [2, 5, 7]
    assert done["b"].to_list() == [1, 3, -999]


def test_contradictions_are_reported_and_left():
    table = frame(a=[1, 2, 3, 4], b=[1, 2, 3, 4], total=[2, 5, 6, None], start=[1, 1, 1, 9], end=[2, 2, 2, 2])
    derived = DerivedColumns.of(["total = a + b", "start <= end"], table)
    with pytest.warns(OtimputeWarning, match=r"'total = a \+ b' in 1 row \(1\); 'start <= end' in 1 row \(3\)"):
        done = derived.solve(table)
    assert done["total"].to_list() == [2, 5, 6, 8]
    assert [(each.rule, each.rows.tolist()) for each in derived.violations(done)] == [
        ("total = a + b", [1]),
        ("start <= end", [3]),
    ]


def test_rounded_results_contradict_nothing():
    table = frame(weight=[70.0, 81.3, 60.1], height=[175.0, 180.0, 161.0], bmi=[22.9, 25.1, 23.2])
    assert not DerivedColumns.of(BMI, table).violations(table)
    assert DerivedColumns.of(BMI, table).violations(table.with_columns(bmi=nw.lit(22.8)))


def test_the_last_digits_of_floats_contradict_nothing():
    table = frame(a=[0.1], b=[0.2], c=[0.3], total=[0.3])
    assert not DerivedColumns.of(["total = a + b", "a + b <= c"], table).violations(table)


# Finishing


def test_missing_targets_are_computed_from_what_was_imputed():
    original = {"a": [1.0, None], "b": [2.0, 3.0], "total": [None, None]}
    assert finished("total = a + b", original, {"a": [1.0, 4.0], "total": [99.0, 99.0]}) == {
        "a": [1.0, 4.0],
        "total": [3.0, 7.0],
    }


def test_observed_sums_are_met_in_proportion():
    original = {"a": [None, 5.0], "b": [None, 5.0], "c": [4.0, 5.0], "total": [10.0, 15.0]}
    many = {name: [2.0] * 30 for name in original} | {"total": [6.0] * 30}
    done = finished("total = a + b + c", original, {"a": [1.0, 5.0], "b": [2.0, 5.0]}, many)
    assert done["a"][0] == pytest.approx(2) and done["b"][0] == pytest.approx(4)


def test_columns_on_both_sides_of_0_share_the_difference_by_their_spread():
    original = {"a": [None, -1.0, 1.0], "b": [None, -3.0, 3.0], "total": [8.0, -4.0, 4.0]}
    done = finished("total = a + b", original, {"a": [0.0, -1.0, 1.0], "b": [0.0, -3.0, 3.0]})
    assert done["a"][0] == pytest.approx(2) and done["b"][0] == pytest.approx(6)


def test_products_are_met_by_the_same_factor():
    many = {"a": [1.5] * 30, "b": [2.5] * 30, "area": [3.75] * 30}
    done = finished("area = a * b", {"a": [None], "b": [None], "area": [300.0]}, {"a": [2.0], "b": [100.0]}, many)
    assert done["a"][0] * done["b"][0] == pytest.approx(300, rel=1e-12)
    assert done["a"][0] / 2 == pytest.approx(done["b"][0] / 100, rel=0.02)


def test_whole_parts_of_a_whole_sum_stay_whole():
    original = {"a": [None, 1], "b": [None, 1], "c": [None, 1], "total": [10, 3]}
    done = finished("total = a + b + c", original, {"a": [4, 1], "b": [4, 1], "c": [4, 1]})
    assert sum(done[name][0] for name in "abc") == 10
    assert sorted(done[name][0] for name in "abc") == [3, 3, 4]


def test_shares_add_up_to_a_constant():
    done = finished(
        "a + b + c == 100", {"a": [None, 20.0], "b": [None, 30.0], "c": [40.0, 50.0]}, {"a": [50.0, 20.0], "b": [30.0, 30.0]}
    )
    assert done["a"][0] + done["b"][0] == pytest.approx(60, rel=1e-12)


@pytest.mark.parametrize("sign", ["<=", "<"])
def test_dates_are_put_in_order(sign):
    day = dt.date(2024, 1, 10)
    original = {"start": [None, day, None, day], "end": [day, None, None, day + dt.timedelta(3)]}
    late, early = day + dt.timedelta(4), day - dt.timedelta(4)
    done = finished(
        f"start {sign} end", original, {"start": [late, day, late, day], "end": [day, early, early, day + dt.timedelta(3)]}
    )
    gap = dt.timedelta(sign == "<")
    assert done["start"][0] == day - gap and done["end"][1] == day + gap
    assert done["end"][2] - done["start"][2] == gap and early < done["start"][2] < late
    assert done["end"][3] == day + dt.timedelta(3)


def test_inequalities_reach_through_targets_that_are_computed():
    original = {"a": [None], "b": [None], "total": [None], "cap": [10.0]}
    many = {name: [2.0] * 30 for name in original} | {"total": [4.0] * 30}
    done = finished(["total = a + b", "total <= cap"], original, {"a": [10.0], "b": [30.0], "total": [40.0]}, many)
    assert done["total"][0] == pytest.approx(10)
    assert done["a"][0] == pytest.approx(2.5)


def test_chains_of_inequalities_are_put_in_order():
    done = finished("0 <= a <= b <= c", {"a": [None], "b": [None], "c": [5.0]}, {"a": [9.0], "b": [-3.0]})
    assert 0 <= done["a"][0] <= done["b"][0] <= 5


def test_cells_that_equations_determined_are_not_moved():
    original = {"a": [None], "b": [2.0], "total": [5.0], "cap": [None]}
    done = finished(["total = a + b", "a <= cap"], original, {"a": [77.0], "cap": [1.0]})
    assert done == {"a": [3.0], "cap": [3.0]}


def test_bounds_of_the_imputer_are_kept():
    training = {"a": [1.0, 9.0, 5.0], "b": [1.0, 2.0, 3.0], "total": [2.0, 11.0, 8.0]}
    codes = Encoding.of_frame(frame(**training), {"a": {"bounds": (0, 9)}, "b": {"bounds": (0, 3)}}, 20, float("nan")).codes
    original = {"a": [None], "b": [None], "total": [11.5]}
    by_name = dict(zip(training, codes, strict=True))
    done = finished("total = a + b", original, {"a": [4.0], "b": [3.0]}, training, by_name)
    assert done["b"][0] <= 3 and done["a"][0] <= 9 and done["a"][0] + done["b"][0] == pytest.approx(11.5)


def test_rows_that_cannot_be_brought_in_line_are_reported():
    table = frame(a=pl.Series([None, None, 1], dtype=pl.Int64), b=pl.Series([None, 1, 1], dtype=pl.Int64), half=[2.3, 2.3, 1.0])
    derived = DerivedColumns.of("half = (a + b) / 2", table)
    with pytest.warns(OtimputeWarning, match=r"cannot be brought in line with derive: 'half = .*' in 2 rows \(0, 1\)"):
        done = derived.finish(table, table.with_columns(a=nw.col("a").fill_null(2), b=nw.col("b").fill_null(1)))
    assert [each.rows.tolist() for each in derived.violations(done)] == [[0, 1]]
    assert done["a"].dtype == nw.Int64


def test_inequalities_without_a_cell_to_move_are_reported_once():
    table = frame(a=[5, 1], b=[3, 2], c=[None, 1])
    derived = DerivedColumns.of(["a <= b", "c >= 0"], table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        derived.finish(table, table.with_columns(c=nw.lit(1)))  # solve has said that a contradicts b


def test_what_stays_missing_stays_so():
    table = frame(a=[1.0, None], b=[None, None], total=[5.0, None], text=["x", None])
    done = DerivedColumns.of("total = a * b", table).finish(table, table)
    assert done["total"].to_list() == [5.0, None] and done["b"].to_list() == [5.0, None]


def test_columns_that_were_dropped_have_no_rules_any_more():
    table = frame(a=[1.0, None], b=[None, None])
    completed = frame(a=[1.0, 2.0])
    assert DerivedColumns.of("b = 2 * a", table).finish(table, completed)["a"].to_list() == [1.0, 2.0]


def test_targets_that_no_model_imputed_are_computed():
    table = frame(a=[1.0, None], b=[2.0, None], total=[None, None])
    completed = frame(a=[1.0, 4.0], b=[2.0, 5.0], total=[None, None])
    assert DerivedColumns.of("total = a + b", table).finish(table, completed)["total"].to_list() == [3.0, 9.0]


def test_times_of_day_and_durations_are_put_in_order():
    hour = lambda h: dt.time(h, 30)  # noqa: E731
    table = frame(opens=[hour(8), None], closes=[hour(9), hour(12)], lasts=[dt.timedelta(hours=1), None])
    derived = DerivedColumns.of(["opens < closes", "lasts = closes - opens"], table)
    completed = frame(opens=[hour(8), hour(14)], closes=table["closes"].to_list(), lasts=table["lasts"].to_list())
    done = derived.finish(table, completed)
    assert done["opens"].to_list()[0] == hour(8) and done["opens"].to_list()[1] < hour(12)
    assert done["lasts"].to_list() == [dt.timedelta(hours=1), dt.timedelta(0)]  # in hours, as the one observed


def test_ranges_of_dates_come_from_the_imputer():
    days = [dt.date(2024, 1, k) for k in range(1, 11)]
    training = {"start": days, "end": days}
    codes = Encoding.of_frame(frame(**training), {"end": {"bounds": ("2024-01-01", "2024-01-20")}}, 20, float("nan")).codes
    original = {"start": [dt.date(2024, 1, 15), dt.date(2024, 2, 15)], "end": [None, None]}
    table, completed = (
        frame(**{**original, "end": pl.Series([None, None], dtype=pl.Date)}),
        frame(**{**original, "end": days[:2]}),
    )
    with pytest.warns(OtimputeWarning, match=r"'start <= end' in 1 row \(1\)"):
        done = DerivedColumns.of("start <= end", frame(**training)).finish(
            table, completed, dict(zip(training, codes, strict=True))
        )
    assert done["end"].to_list() == [dt.date(2024, 1, 15), days[1]]


# All kinds of columns


def native_columns():
    """Columns of types that not all libraries have, with a hole and what is imputed there."""
    return [
        (pl.Series([1, None, 3], dtype=pl.Int8), 100), (pl.Series([1.0, None, 3.0], dtype=pl.Float32), 1.7),
        (pl.Series([Decimal("1.00"), None, Decimal("3.00")]), Decimal("9.75")), (pd.Series([1, None, 3], dtype="Int64"), 100),
        (pd.Series([1, None, 3], dtype="Float32"), 1.7), (pd.Series([1, None, 3], dtype="int64[pyarrow]"), 100),
        (pd.Series([1.0, None, 3.0], dtype=pd.SparseDtype(float)), 1.7), (pd.Series([1.0, None, 3.0], index=[7, 3, 5]), 2.25),
        (pa.chunked_array([[1, None], [3]], pa.uint16()), 100), (pa.chunked_array([[1.0, None], [3.0]], pa.float32()), 1.7),
    ]  # fmt: skip


@pytest.mark.parametrize(("column", "imputed"), native_columns())
def test_types_and_what_was_observed_come_back(column, imputed):
    if isinstance(column, pd.Series):
        make = lambda cells: pd.DataFrame({"a": cells, "b": [2.0, 4.0, 6.0]}, index=column.index)  # noqa: E731
        other = column.copy().astype(object).where(column.notna(), imputed).astype(column.dtype)
    elif isinstance(column, pl.Series):
        make = lambda cells: pl.DataFrame({"a": cells, "b": [2.0, 4.0, 6.0]})  # noqa: E731
        other = column.fill_null(imputed)
    else:
        make = lambda cells: pa.table({"a": cells, "b": [2.0, 4.0, 6.0]})  # noqa: E731
        other = pa.compute.fill_null(column, pa.scalar(imputed, column.type))
    original, completed = nw.from_native(make(column), eager_only=True), nw.from_native(make(other), eager_only=True)
    below = DerivedColumns.of("a <= b", original)
    done = below.finish(original, completed)
    assert str(done.to_native().schema if hasattr(done.to_native(), "schema") else done.to_native().dtypes) == str(
        original.to_native().schema if hasattr(original.to_native(), "schema") else original.to_native().dtypes
    )
    assert [done["a"].to_list()[k] for k in (0, 2)] == [original["a"].to_list()[k] for k in (0, 2)]
    expected = float(imputed) if imputed <= 4 else 4.0
    assert float(done["a"].to_list()[1]) == pytest.approx(expected, rel=1e-6)
    twice = DerivedColumns.of("b = 2 * a", original).solve(original)
    assert float(twice["a"].to_list()[1]) == 2
    if isinstance(column, pd.Series):
        assert list(twice.to_native().index) == list(column.index)


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table])
def test_moments_of_all_libraries_are_put_in_order(make, zone):
    import zoneinfo

    at = lambda hour: dt.datetime(2024, 5, 1, hour, tzinfo=zone and zoneinfo.ZoneInfo(zone))  # noqa: E731
    original = nw.from_native(make({"start": [at(8), None], "end": [at(9), at(12)]}), eager_only=True)
    completed = nw.from_native(make({"start": [at(8), at(15)], "end": [at(9), at(12)]}), eager_only=True)
    done = DerivedColumns.of("start <= end", original).finish(original, completed)
    assert done["start"].to_list() == [at(8), at(12)]


def test_whole_numbers_that_an_imputer_gave_back_as_floats_may_have_fractions():
    original = frame(a=pl.Series([1, None]), b=pl.Series([1, None]), total=[2.0, 2.5])
    completed = frame(a=[1.0, 1.6], b=[1.0, 1.4], total=[2.0, 2.5])
    done = DerivedColumns.of("total = a + b", original).finish(original, completed)
    assert done["a"][1] + done["b"][1] == pytest.approx(2.5)


# Expressions of narwhals


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_expressions_of_narwhals_compute(make):
    table = frame(make, a=[1.0, 2.0, None], b=[3.0, 4.0, 5.0], total=[None, 6.0, None], text=["x", "y", None])
    derived = DerivedColumns.of({"total": nw.col("a") + nw.col("b")}, table)
    assert derived.natures.keys() == {"a", "b", "total"}
    done = derived.solve(table)
    assert done["total"].to_list()[:2] == [4.0, 6.0]
    completed = frame(make, a=[1.0, 2.0, 7.0], b=[3.0, 4.0, 5.0], total=[4.0, 6.0, 0.0], text=["x", "y", None])
    assert derived.finish(table, completed)["total"].to_list() == [4.0, 6.0, 12.0]


def test_an_expression_of_narwhals_on_columns_that_are_not_there_is_refused():
    with pytest.raises(ExpressionError, match="fails for the columns there are"):
        DerivedColumns.of({"total": nw.col("aa") + 1}, frame(a=[1], total=[1]))


# What is refused


@pytest.mark.parametrize(
    ("derive", "error", "words"),
    [
        ({"total": "a + bb"}, ExpressionError, "there is no column 'bb'; did you mean 'b'"),
        ({"sum": "a + b"}, ExpressionError, "there is no column 'sum'"),
        ({"total": "a +"}, ExpressionError, "expected a number"),
        ("total = a + + b", ExpressionError, "    total = a [+] [+] b\n                [\\^]"),
        ({"a": "a + 1"}, ExpressionError, "'a' is computed from itself"),
        ({"a": "b + 1", "b": "total + 1", "total": "a"}, ValueError, "circle: 'a' from 'b' from 'total' from 'a'"),
        (["a = b", "a = total"], ValueError, "computes 'a' more than once"),
        ({"total": "a + job"}, ExpressionError, "'job' holds text and cannot be added"),
        ({"job": "a"}, ExpressionError, "'job' holds text and 'a' holds numbers: these cannot be compared"),
        ("job == job2", ExpressionError, "holds text; rules are kept between numbers"),
        ("day = a", ExpressionError, "'day' holds dates and 'a' holds numbers"),
        ("a != b", ExpressionError, "a rule is an equation"),
        ("a + b", ExpressionError, "a rule is an equation"),
        ("a <= b or b <= a", ExpressionError, "a rule is an equation"),
        ("a + 1 = b", ExpressionError, "use == to compare"),
        ("1 <= 2", ExpressionError, "no column is named"),
        ({"total": "a is missing"}, ExpressionError, "asks for none"),
        ({"total": 3}, TypeError, "derive\\['total'\\] must be an expression"),
        ({3: "a"}, TypeError, "a key of derive must be the name of a column"),
        (3, TypeError, "derive must be equations and relations"),
        ([3], TypeError, "derive must be equations and relations"),
    ],
)
def test_rules_that_make_no_sense_are_refused(derive, error, words):
    table = frame(a=[1], b=[2], total=[3], job=["x"], job2=["x"], day=[dt.date(2024, 1, 1)])
    with pytest.raises(error, match=words):
        DerivedColumns.of(derive, table)


def test_arrays_have_no_names_to_derive_by():
    with pytest.raises(TypeError, match="derive needs column names, which an array has none of; pass a frame"):
        DerivedColumns.of({"a": "b"}, np.ones((3, 2)))


def test_rules_are_written_in_several_ways():
    table = frame(a=[1], b=[2], c=[3])
    expected = DerivedColumns.of([{"c": "a + b"}, "a <= b"], table).rules
    assert DerivedColumns.of(["c = a + b", "b >= a"], table).rules == expected
    assert DerivedColumns.of("c = a + b", table).rules == expected[:1]
    assert DerivedColumns.of(({"c": "a+b"}, "a<=b"), table).rules == expected
    assert [str(rule) for rule in DerivedColumns.of("a <= b < `c`", table).rules] == ["a <= b", "b < c"]
    assert [str(rule) for rule in DerivedColumns.of(["c = b", "b = a"], table).rules] == ["b = a", "c = b"]


def test_model_files_hold_derived_columns():
    table = frame(weight=[70.0, None], height=[175.0, 180.0], bmi=[22.9, 25.0])
    derived = DerivedColumns.of([BMI, "height > 0"], table)
    place = Place.root("derived", {})
    loaded = RecordOf((DerivedColumns,)).unpack(RecordOf((DerivedColumns,)).pack(derived, place), place)
    assert loaded.rules == derived.rules and loaded.natures == derived.natures
    assert loaded.solve(table).to_native().equals(derived.solve(table).to_native())
