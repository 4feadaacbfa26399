"""Expressions: read as written, evaluated as Python would row by row, refused with the place marked."""

from __future__ import annotations

import datetime as dt
import math

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otimpute.knowledge.conditions import AllOf, Among, AnyOf, Comparison, Missing, Not, Truth
from otimpute.knowledge.expressions import ExpressionError, ValueKind, parse_expression
from otimpute.knowledge.tree import Call, Column, Negative, Number, Power, Product, Sum, Text

FRAMES = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.table}


def table(**columns):
    return nw.from_native(pl.DataFrame(columns), eager_only=True)


def value_of(text, **columns):
    """Known values, None elsewhere."""
    _, values, known = parse_expression(text).evaluate(table(**columns))
    return [value.item() if hasattr(value, "item") else value for value in np.where(known, values.astype(object), None)]


# Trees as the parser makes them: no sum of one term, no number below 0.
def chains(node, part):
    parts = st.lists(st.tuples(part, st.sampled_from([1, -1])), min_size=2, max_size=3)
    return parts.map(lambda some: node(tuple(each for each, _ in some), (1, *(sign for _, sign in some[1:]))))


def arithmetic_over(names, numbers):
    leaves = st.sampled_from(names).map(Column) | numbers.map(Number)
    functions = st.sampled_from(["log", "exp", "sqrt", "abs", "round", "floor"])

    def larger(part):
        some = st.lists(part, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            chains(Sum, part),
            chains(Product, part),
            part.map(Negative),
            st.builds(Power, part, part),
            st.builds(Call, functions, st.tuples(part)),
            st.builds(Call, st.sampled_from(["min", "max"]), some),
        )

    return st.recursive(leaves, larger, max_leaves=6)


arithmetic = arithmetic_over(["a", "net income", "not", "über", "log"], st.floats(0, 1e300))
choices = st.lists(st.sampled_from([Number(1.5), Negative(Number(2.0)), Text("it's"), Text('"')]), min_size=1).map(tuple)
simple_conditions = st.one_of(
    st.builds(Comparison, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), arithmetic, arithmetic),
    st.builds(Among, arithmetic, choices), arithmetic.map(Missing), st.booleans().map(Truth),
)  # fmt: skip


def larger_conditions(part):
    some = st.lists(part, min_size=2, max_size=3).map(tuple)
    return st.one_of(part.map(Not), some.map(AllOf), some.map(AnyOf))


conditions = st.recursive(simple_conditions, larger_conditions, max_leaves=5)


@given(arithmetic | conditions)
@settings(max_examples=300, deadline=None)
def test_what_an_expression_says_reads_as_the_same_expression(tree):
    assert parse_expression(str(tree)) == tree


IN_PYTHON = {
    "log": math.log, "exp": math.exp, "sqrt": math.sqrt, "floor": lambda x: float(math.floor(x)), "abs": abs,
    "round": lambda x: float(round(x)), "min": min, "max": max, "__builtins__": {},
}  # fmt: skip
in_ab = arithmetic_over(["a", "b"], st.floats(0, 10).filter(lambda x: not x.is_integer()))


@given(in_ab, st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_numbers_are_those_of_python(tree, rows):
    _, values, known = parse_expression(str(tree)).evaluate(table(a=[a for a, _ in rows], b=[b for _, b in rows]))
    for (a, b), value, is_known in zip(rows, values, known, strict=True):
        try:
            expected = eval(str(tree), {**IN_PYTHON, "a": a, "b": b})
        except (ZeroDivisionError, ValueError, OverflowError, TypeError):  # TypeError: of complex numbers
            expected = math.nan
        if isinstance(expected, complex) or not math.isfinite(expected):
            assert not is_known
        elif is_known:  # an intermediate infinity is unknown here, and 1 / infinity 0 in Python
            assert value == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4 ** 2 / 8 - 1", 7),
        ("-2 ** 2", -4),
        ("2 ** -1", 0.5),
        ("2 ** 3 ** 2", 512),
        ("(2 ** 3) ** 2", 64),
        ("10 - 4 - 3", 3),
        ("100 / 10 / 5", 2),
        ("1e3 + .5", 1000.5),
        ("round(2.5) + round(3.5)", 6),
        ("min(3, 1, 2) + max(3, 1, 2)", 4),
        ("abs(-3) + floor(-0.5) + sqrt(16) + log(exp(2))", 8),
        ("1 < 2 <= 2", True),
        ("1 < 2 < 2", False),
        ("not 1 > 2 and 3 in (1, 2, 3,)", True),
        ("1 == 1 or 1 / 0 > 2", True),
        ("2 not in (1, 2)", False),
        ("True and not false", True),
    ],
)
def test_precedence_is_that_of_python(text, expected):
    assert value_of(text, x=[0]) == [expected]


def test_where_a_value_is_missing_or_undefined_nothing_is_known():
    assert value_of("a / b", a=[1.0, None, 2.0, float("nan")], b=[2, 1, 0, 1]) == [0.5, None, None, None]
    assert value_of("log(a)", a=[-1.0, 0.0, 1.0]) == [None, None, 0.0]
    assert value_of("a ** 0.5", a=[-4.0, 4.0]) == [None, 2.0]


def test_a_condition_is_known_where_what_is_missing_does_not_matter():
    columns = {"a": [1, 1, None, None], "b": [None, 0, 1, 0]}
    assert value_of("a == 1 or b == 1", **columns) == [True, True, True, None]
    assert value_of("a == 1 and b == 1", **columns) == [None, False, None, False]
    assert value_of("not a == 1", **columns) == [False, False, None, None]
    assert value_of("a is missing and b is not missing", **columns) == [False, False, True, True]


def test_conditions_that_hold_are_those_known_to_be_true():
    answer = parse_expression("sex == 'f'").evaluate(table(sex=["f", "m", None]))
    assert answer.kind == ValueKind.CONDITION
    assert answer.holds.tolist() == [True, False, False]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_of_all_kinds_are_read_alike(make):
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 31), None]
    moments = [dt.datetime(2024, 1, 2, 12), None, dt.datetime(2024, 1, 2, 12)]
    frame = nw.from_native(make({"day": days, "moment": moments, "sex": ["f", None, "m"], "ill": [True, False, None]}))

    def known(text):
        _, values, known = parse_expression(text).evaluate(frame)
        return [value if seen else None for value, seen in zip(values.tolist(), known, strict=True)]

    assert known("moment - day") == [1.5, None, None]
    assert known("moment - 1.5 == day") == [True, None, None]
    assert known("day < '2024-01-15'") == [True, False, None]
    assert known("sex in ('f', 'x')") == [True, None, False]
    assert known("ill and sex == 'f'") == [True, False, False]
    assert known("ill * 2 + 1") == [3, 1, None]


def test_dates_hold_to_the_microsecond():
    first = dt.datetime(2024, 5, 17, 12, 31, 7, 123456)
    frame = {"a": [first] * 2, "b": [first, first + dt.timedelta(microseconds=1)]}
    assert value_of("a < b", **frame) == [False, True]
    assert value_of("a == b", **frame) == [True, False]


def test_categories_of_numbers_are_text():
    frame = nw.from_native(pd.DataFrame({"group": pd.Categorical([1, 2, None])}))
    assert parse_expression("group == '1'").evaluate(frame).holds.tolist() == [True, False, False]


def test_a_number_that_means_missing_is_unknown_where_columns_are_read_so():
    from otimpute.knowledge.values import read_columns

    read = read_columns(table(a=[1, -999]), ["a"], -999)
    assert parse_expression("a + 1").evaluate(read).known.tolist() == [True, False]


def test_columns_are_those_named():
    assert parse_expression("a + log(`net income`) > b or c is missing").columns == {"a", "net income", "b", "c"}
    assert parse_expression("1 + 1").columns == frozenset()


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("weight / (height", 16, "expected ')', found the end"),
        ("a +", 3, "expected a number, a column or '(', found the end"),
        ("a + * b", 4, "found '*'"),
        ("", 0, "found the end"),
        ("   ", 3, "found the end"),
        ("2x", 1, "found 'x'"),
        ("a b", 2, "expected an operator or the end, found 'b'"),
        ("a = b", 2, "use == to compare"),
        ("a.b", 1, "stand in backticks"),
        ("a == 'f", 5, "never closed"),
        ("`a + b", 0, "never closed"),
        ("system('x')", 0, "there is no function 'system'"),
        ("__import__('os')", 0, "there is no function '__import__'"),
        ("log(a, b)", 8, "log takes one value, got 2"),
        ("min(a)", 5, "min takes two or more values, got 1"),
        ("a in ()", 6, "expected a number or text in quotes"),
        ("a in (b)", 6, "expected a number or text in quotes"),
        ("a is b", 5, "expected 'missing', found 'b'"),
        ("1e999", 0, "too large"),
        ("a[0]", 1, "unexpected '['"),
        ("lambda: 1", 6, "unexpected ':'"),
        ("and b", 0, "found 'and'"),
    ],
)
def test_errors_mark_the_place(text, position, words):
    with pytest.raises(ExpressionError) as error:
        parse_expression(text)
    assert error.value.position == position
    assert words in error.value.problem
    assert str(error.value).endswith("\n    " + " " * position + "^")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("income / job", "'job' holds text and cannot be divided"),
        ("log(job)", "'job' holds text and cannot be passed to log"),
        ("income - day", "dates can be subtracted"),
        ("day + day", "dates can be subtracted"),
        ("day * 2", "'day' holds dates and cannot be multiplied"),
        ("job == 3", "'job' holds text and '3' gives numbers: these cannot be compared"),
        ("income == 'a'", "'income' holds numbers and"),
        ("job < 'x'", "text has no order"),
        ("day > 'soon'", "'soon' is no date; write it as '2024-01-31'"),
        ("day > 3", "'day' holds dates and '3' gives numbers"),
        (
            "income and job == 'x'",
            "'income' holds numbers, which is no condition; compare it with something, as in income == 1",
        ),
        ("not job", "'job' holds text, which is no condition"),
        ("heigth > 3", "there is no column 'heigth'; did you mean 'height'?"),
    ],
)
def test_what_makes_no_sense_for_the_columns_is_refused_by_name(text, words):
    frame = table(income=[1.0], job=["cook"], day=[dt.date(2024, 1, 1)], height=[1])
    with pytest.raises(ExpressionError) as error:
        parse_expression(text).evaluate(frame)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "text", ["(" * 40 + "a" + ")" * 40, "-" * 100 + "a", "not " * 100 + "a", "a" + "**a" * 100, "abs(" * 50]
)
def test_expressions_inside_one_another_have_an_end(text):
    with pytest.raises(ExpressionError, match="more than 32"):
        parse_expression(text)


def test_long_sums_are_read_and_endless_texts_are_not():
    names = [f"x{k}" for k in range(2000)]
    total = parse_expression(" + ".join(names))
    assert total.evaluate(table(**{name: [1] for name in names})).values.tolist() == [2000]
    with pytest.raises(ExpressionError, match="at most 20,000"):
        parse_expression("a + " * 10_000 + "a")


def test_other_things_than_text_are_refused():
    with pytest.raises(TypeError, match="an expression must be text"):
        parse_expression(3)


def test_deep_expressions_are_evaluated_once():
    inside = "a"
    for _ in range(30):
        inside = f"(1 + {inside})"
    assert value_of(inside, a=[1]) == [31]
