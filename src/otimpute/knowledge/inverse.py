"""Expressions backwards: with which value of a column they equal something, and how they change with every column."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from .tree import Call, Column, Columns, Expression, Negative, Power, Product, Sum
from .values import ValueKind, Values

Numbers = NDArray[np.float64]
_MOST_ROOTS = 4  # of squares inside one another
_NEAR = 1e-9  # so near, relative to its size, a solution is at a bound, and two are one


def solve_for(
    expression: Expression, name: str, goal: Numbers, table: Columns, low: float = -math.inf, high: float = math.inf
) -> Values:
    """The value of a column with which an expression equals ``goal [n]``, known where one value, and only one, does that.

    The column must be named once, in sums, products, powers, log, exp, sqrt or abs. A square has two roots: the one inside of
    ``low`` and ``high`` is taken if the other one is not.

    >>> from .expressions import parse_expression
    >>> one = np.ones(2, dtype=bool)
    >>> table = {"a": Values(ValueKind.NUMBER, np.array([1.0, 2.0]), one), "b": Values(ValueKind.NUMBER, np.zeros(2), ~one)}
    >>> solve_for(parse_expression("(a + b) * 2"), "b", np.array([8.0, 10.0]), table).values
    array([3., 3.])
    >>> square = parse_expression("b ** 2")
    >>> solve_for(square, "b", np.array([4.0, 9.0]), table).known
    array([False, False])
    >>> solve_for(square, "b", np.array([4.0, 9.0]), table, low=0.0).values
    array([2., 3.])
    """
    with np.errstate(all="ignore"):
        found = _inverses(expression, name, [goal], table)
        if not found:
            return Values(ValueKind.NUMBER, np.full(len(goal), np.nan), np.zeros(len(goal), dtype=bool))
        roots = np.array([np.broadcast_to(root, len(goal)) for root in found], dtype=np.float64)
        reach = _NEAR * np.abs(roots)
        inside = np.isfinite(roots) & (roots >= low - reach) & (roots <= high + reach)
        chosen = roots[inside.argmax(axis=0), np.arange(len(goal))]
        others_differ = inside & (np.abs(roots - chosen) > _NEAR * np.abs(chosen))
    return Values(ValueKind.NUMBER, np.clip(chosen, low, high), inside.any(axis=0) & ~others_differ.any(axis=0))


def _inverses(node: Expression, name: str, goals: list[Numbers], table: Columns) -> list[Numbers]:
    """The values that the column may have where the node equals one of the goals; NaN where none does."""
    if isinstance(node, Column):
        return goals
    places = [k for k, part in enumerate(node.parts) if name in part.columns]
    if len(places) != 1 or len(goals) > _MOST_ROOTS:
        return []
    place = places[0]
    part = node.parts[place]
    step = _step_back(node, place, table)
    roots = [] if step is None else [root for goal in goals for root in step(goal)]
    return _inverses(part, name, roots, table) if roots else []


def _step_back(node: Expression, place: int, table: Columns) -> Callable[[Numbers], list[Numbers]] | None:
    """From the value of a node to those of its part in one place."""
    match node:
        case Negative():
            return lambda goal: [-goal]
        case Sum(terms, signs):
            rest = reduce(
                np.add, (s * numbers_of(t, table) for k, (t, s) in enumerate(zip(terms, signs, strict=True)) if k != place)
            )
            return lambda goal: [signs[place] * (goal - rest)]
        case Product(factors, powers):
            rest = _product(factors, powers, place, table)
            if powers[place] > 0:
                return lambda goal: [goal / np.where(rest == 0, np.nan, rest)]
            return lambda goal: [np.where(goal == 0, np.nan, rest / goal)]
        case Power(_, exponent) if place == 0:
            return lambda goal: _roots(goal, numbers_of(exponent, table))
        case Power(base, _):
            return lambda goal: [np.log(goal) / np.log(numbers_of(base, table))]
        case Call("log"):
            return lambda goal: [np.exp(goal)]
        case Call("exp"):
            return lambda goal: [np.log(goal)]
        case Call("sqrt"):
            return lambda goal: [np.where(goal >= 0, goal**2, np.nan)]
        case Call("abs"):
            return lambda goal: [np.where(goal >= 0, goal, np.nan), np.where(goal >= 0, -goal, np.nan)]
    return None


def _roots(goal: Numbers, exponent: Numbers) -> list[Numbers]:
    """What has this power."""
    exponent = np.broadcast_to(exponent, goal.shape)
    root = np.where(exponent == 0, np.nan, np.abs(goal) ** (1 / exponent))
    is_odd, is_even = exponent % 2 == 1, exponent % 2 == 0
    first = np.where(goal >= 0, root, np.where(is_odd, -root, np.nan))
    return [first, np.where(is_even, -first, np.nan)] if is_even.any() else [first]


def gradient_of(expression: Expression, table: Columns) -> dict[str, Numbers]:
    """How fast an expression changes with every column it names; round and floor as if they were not there."""
    gradient: dict[str, Numbers] = {}
    with np.errstate(all="ignore"):
        _push_back(expression, np.ones(1), table, gradient)
    return gradient


def _push_back(node: Expression, slope: Numbers, table: Columns, into: dict[str, Numbers]) -> None:
    if isinstance(node, Column):
        into[node.name] = into.get(node.name, 0.0) + slope
    elif node.columns:
        for part, own in zip(node.parts, _slopes(node, table), strict=False):
            _push_back(part, slope * own, table, into)


def _slopes(node: Expression, table: Columns) -> list[Numbers]:
    """How fast a node changes with each of its parts."""
    match node:
        case Negative():
            return [-np.ones(1)]
        case Sum(_, signs):
            return [np.array(float(sign)) for sign in signs]
        case Product(factors, powers):
            rests = [_product(factors, powers, k, table) for k in range(len(factors))]
            both = zip(factors, powers, rests, strict=True)
            return [rest if power > 0 else -rest / numbers_of(factor, table) ** 2 for factor, power, rest in both]
        case Power(base, exponent):
            b, e = numbers_of(base, table), numbers_of(exponent, table)
            return [e * b ** (e - 1), b**e * np.log(b) if exponent.columns else np.zeros(1)]
        case Call(("min" | "max"), arguments):
            values = [numbers_of(each, table) for each in arguments]
            best = numbers_of(node, table)
            return [(value == best).astype(np.float64) for value in values]
        case Call(function, (argument,)):
            x = numbers_of(argument, table)
            slope: dict[str, Callable[[], Numbers]] = {
                "log": lambda: 1 / x,
                "exp": lambda: np.exp(x),
                "sqrt": lambda: 0.5 / np.sqrt(x),
                "abs": lambda: np.sign(x),
            }
            return [slope.get(function, lambda: np.ones(1))()]
    return [np.zeros(1) for _ in node.parts]  # a condition jumps, or stays


def numbers_of(expression: Expression, table: Columns) -> Numbers:
    """The values of an expression as floats, NaN where unknown."""
    read = expression.evaluate(table)
    return np.where(read.known, read.values, np.nan).astype(np.float64)


def _product(factors: tuple[Expression, ...], powers: tuple[int, ...], left_out: int, table: Columns) -> Numbers:
    """The factors but one; with their powers."""
    rest = np.ones(1)
    for k, (factor, power) in enumerate(zip(factors, powers, strict=True)):
        if k != left_out:
            value = numbers_of(factor, table)
            rest = rest * value if power > 0 else rest / value
    return rest
