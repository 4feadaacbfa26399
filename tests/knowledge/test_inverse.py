"""Expressions backwards, against their own values: what goes in comes out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otimpute.knowledge.expressions import ValueKind, Values, parse_expression
from otimpute.knowledge.inverse import gradient_of, numbers_of, solve_for

INVERTIBLE = [
    "x + a - b", "a - x", "a - (b - x)", "-x", "x * a / b", "a / x", "a / (b * x)", "(x + a) * b", "2 * (a - x) / 3 + b",
    "x ** 3", "(x / 100) ** 3 + a", "log(abs(a) + 1) + exp(x / 10)", "a * sqrt(x)", "log(x) * b", "x ** 0.5", "a / x ** 3",
    "1.5 ** x", "x + max(a, b)", "round(a) * x",
]  # fmt: skip
UNDETERMINED = [
    "x * x",
    "x + x",
    "x ** 2",
    "abs(x)",
    "round(x)",
    "floor(x)",
    "min(x, a)",
    "x ** 0",
    "0 * x",
    "(x > 1) * 3",
    "x / x",
]
positive = st.floats(0.1, 50)


def columns(**values):
    return {name: Values(ValueKind.NUMBER, np.array([float(value)]), np.ones(1, bool)) for name, value in values.items()}


@pytest.mark.parametrize("text", INVERTIBLE)
@given(positive, positive, positive)
@settings(max_examples=20, deadline=None)
def test_the_value_that_went_in_is_found(text, x, a, b):
    expression = parse_expression(text)
    goal = numbers_of(expression, columns(x=x, a=a, b=b))
    if not np.isfinite(goal).all() or abs(numbers_of(parse_expression("round(a)"), columns(a=a))[0]) < 0.5:
        return
    found = solve_for(expression, "x", goal, columns(x=7, a=a, b=b))
    assert found.known.all()
    assert found.values[0] == pytest.approx(x, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("text", UNDETERMINED)
def test_what_several_values_or_none_would_do_is_not_determined(text):
    expression = parse_expression(text)
    table = columns(x=4.0, a=2.0)
    assert not solve_for(expression, "x", numbers_of(expression, table), table).known.any()


def test_a_range_settles_which_root_is_meant():
    square = parse_expression("70 / (x / 100) ** 2")
    goal = np.array([70 / 1.75**2])
    assert not solve_for(square, "x", goal, columns(x=1)).known.any()
    assert solve_for(square, "x", goal, columns(x=1), low=0).values == pytest.approx(175)
    assert solve_for(square, "x", goal, columns(x=1), high=0).values == pytest.approx(-175)
    assert not solve_for(square, "x", goal, columns(x=1), low=0, high=100).known.any()


@pytest.mark.parametrize(
    ("text", "goal"), [("sqrt(x)", -1), ("exp(x)", -1), ("exp(x)", 0), ("1 / x", 0), ("x * a", 1), ("x ** 2", -1)]
)
def test_goals_that_nothing_reaches_are_not_determined(text, goal):
    assert not solve_for(parse_expression(text), "x", np.array([float(goal)]), columns(x=1, a=0)).known.any()


@pytest.mark.parametrize("text", [*INVERTIBLE, "x * x * a", "x ** a", "max(x, a) * min(x, b)", "abs(x - a) ** 2"])
@given(positive, positive, positive)
@settings(max_examples=10, deadline=None)
def test_gradients_are_differences_of_values(text, x, a, b):
    if abs(x - a) < 0.01 or abs(x - b) < 0.01 or abs(a - b) < 0.01 or abs(a % 1 - 0.5) < 0.01:
        return  # next to a kink
    expression, step = parse_expression(text), 1e-6
    slope = gradient_of(expression, columns(x=x, a=a, b=b))["x"]
    above, below = (numbers_of(expression, columns(x=x + side * step, a=a, b=b)) for side in (1, -1))
    size = abs(numbers_of(expression, columns(x=x, a=a, b=b)))
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-3, abs=1e-5 * (1 + size[0]))
