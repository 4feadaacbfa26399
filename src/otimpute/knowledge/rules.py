"""Rules between columns, ``"bmi = weight / (height / 100) ** 2"`` or ``"start <= end"``: read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from ..exceptions import ParameterTypeError
from .conditions import AllOf, Comparison, Missing
from .expressions import parse_expression, tokens_of
from .frame_expressions import FrameExpression
from .inverse import numbers_of
from .tree import Call, Column, Columns, Expression, Negative, Number, Product, Sum, Text
from .values import ExpressionError, ValueKind, days_of, no_such_column

Numbers = NDArray[np.float64]
_ACCEPTED = (
    'equations and relations between columns, such as {"bmi": "weight / (height / 100) ** 2"} or '
    '["bmi = weight / (height / 100) ** 2", "start <= end"]'
)
_TURNED = {">=": "<=", ">": "<"}


@stored()
@dataclass(frozen=True)
class Rule:
    """An equation or inequality; ``target`` is the column that an equation computes, empty if it computes none.

    The sides are kept as text, which is what files hold, and read when they are used.
    """

    target: str
    sign: str  # "==", "<=" or "<"
    left_text: str
    right_text: str
    native: Any = None  # a FrameExpression in place of the right side; files cannot hold it

    def __post_init__(self) -> None:
        if self.sign not in ("==", "<=", "<"):
            raise ValueError(f"a rule with the sign {self.sign!r}")
        if self.native is not None and not isinstance(self.native, FrameExpression):
            raise ValueError(f"a rule by {self.native!r}")

    @cached_property
    def left(self) -> Expression:
        """What comes before the sign."""
        return parse_expression(self.left_text)

    @cached_property
    def right(self) -> Expression:
        """What comes after it."""
        return parse_expression(self.right_text) if self.native is None else self.native

    @cached_property
    def columns(self) -> frozenset[str]:
        """All columns that it names."""
        return self.left.columns | self.right.columns

    def __str__(self) -> str:
        return f"{self.left} {'=' if self.target else self.sign} {self.right}"

    def excess(self, table: Columns) -> Numbers:
        """By how much the left side is larger than the right side, NaN where that is unknown."""
        return numbers_of(self.left, table) - numbers_of(self.right, table)

    def size(self, table: Columns) -> Numbers:
        """How large the numbers are whose rounding may be seen in the excess; 0 if nothing is computed."""
        if _is_plain(self.left) and _is_plain(self.right):
            return np.zeros(1)
        with np.errstate(all="ignore"):
            return np.maximum(size_of(self.left, table), size_of(self.right, table))


def _is_plain(side: Expression) -> bool:
    """Whether nothing is computed."""
    return isinstance(side.operand if isinstance(side, Negative) else side, Column | Number)


def size_of(expression: Expression, table: Columns) -> Numbers:
    """The largest number that occurs in computing an expression, in its own units."""
    match expression:
        case Sum(terms):
            return np.asarray(np.max(np.broadcast_arrays(*(size_of(term, table) for term in terms)), axis=0))
        case Product(factors, powers):
            size = np.ones(1)
            for factor, power in zip(factors, powers, strict=True):
                size = size * size_of(factor, table) if power > 0 else size / np.abs(numbers_of(factor, table))
            return size
        case Negative(operand) | Call("abs" | "round" | "floor", (operand,)):
            return size_of(operand, table)
    return np.abs(numbers_of(expression, table))


def read_rules(derive: Any, frame: nw.DataFrame[Any]) -> tuple[Rule, ...]:
    """Rules as people write them: a mapping from columns to expressions, a text, or a list of both.

    >>> import polars as pl
    >>> frame = nw.from_native(pl.DataFrame({"a": [1]}))
    >>> [str(rule) for rule in read_rules([{"total": "a + b"}, "start <= end", "c > 0"], frame)]
    ['total = a + b', 'start <= end', '0 < c']
    """
    if isinstance(derive, str):
        return _rules_in(derive)
    if isinstance(derive, Mapping):
        return tuple(_equation(target, value, frame) for target, value in derive.items())
    if not isinstance(derive, Iterable) or hasattr(derive, "__array__"):
        raise ParameterTypeError("derive", derive, _ACCEPTED)
    parts = list(derive)
    for part in parts:
        if not isinstance(part, str | Mapping):
            raise ParameterTypeError("derive", part, _ACCEPTED)
    return tuple(rule for part in parts for rule in read_rules(part, frame))


def _equation(target: Any, value: Any, frame: nw.DataFrame[Any]) -> Rule:
    if not isinstance(target, str):
        raise ParameterTypeError("a key of derive", target, "the name of a column")
    left = str(Column(target))
    if isinstance(value, nw.Expr):
        return Rule(target, "==", left, "", FrameExpression.of(value, frame, target))
    if not isinstance(value, str):
        raise ParameterTypeError(f"derive[{target!r}]", value, 'an expression such as "weight / (height / 100) ** 2"')
    return Rule(target, "==", left, str(parse_expression(value)))


def _rules_in(text: str) -> tuple[Rule, ...]:
    tokens = tokens_of(text)
    if len(tokens) > 1 and tokens[1].text == "=" and tokens[0].kind in ("name", "quoted"):
        target, begin = parse_expression(tokens[0].text), tokens[2].position
        if isinstance(target, Column):
            try:
                return (Rule(target.name, "==", str(target), str(parse_expression(text[begin:]))),)
            except ExpressionError as error:  # show all of the text
                raise ExpressionError(text, error.problem, (error.position or 0) + begin) from None
    expression = parse_expression(text)
    each = expression.conditions if isinstance(expression, AllOf) else (expression,)
    return tuple(_relation(one, text) for one in each)


def _relation(expression: Expression, text: str) -> Rule:
    if not isinstance(expression, Comparison) or expression.sign == "!=":
        problem = "a rule is an equation, as in total = a + b, or a comparison by ==, <=, <, >= or >, as in start <= end"
        raise ExpressionError(text, problem)
    left, sign, right = expression.left, expression.sign, expression.right
    if sign in _TURNED:
        left, sign, right = right, _TURNED[sign], left
    return Rule("", sign, str(left), str(right))


def check_names(rules: Iterable[Rule], names: Iterable[Any]) -> None:
    """Raise an error if a rule names a column that is not there, or a column is computed twice."""
    names, seen = list(names), dict[str, Rule]()
    for rule in rules:
        for name in sorted(rule.columns - set(names)):
            raise ExpressionError(str(rule), no_such_column(name, names))
        if not rule.columns:
            raise ExpressionError(str(rule), "no column is named here, so there is nothing to keep")
        if rule.target in seen:
            both = f"{str(seen[rule.target])!r} and {str(rule)!r}"
            raise ValueError(f"derive computes {rule.target!r} more than once: {both}; write all but one with ==")
        if rule.target:
            seen[rule.target] = rule


def check_kinds(rule: Rule, table: Columns) -> Rule:
    """The rule, if its sides can be compared; a date in quotes as the number that dates are."""
    if any(isinstance(each, Missing) for side in (rule.left, rule.right) for each in parts_of(side)):
        raise ExpressionError(str(rule), "rules are kept between values, and 'is missing' asks for none")
    Comparison(rule.sign, rule.left, rule.right).evaluate(table)
    kinds = {each.evaluate(table).kind for each in (rule.left, rule.right) if not isinstance(each, Text)}
    if ValueKind.TEXT in kinds:
        name = next((name for name in sorted(rule.columns) if table[name].kind == ValueKind.TEXT), "")
        raise ExpressionError(str(rule), f"{name!r} holds text; rules are kept between numbers, dates and conditions")
    left, right = (repr(days_of(each.value)) if isinstance(each, Text) else None for each in (rule.left, rule.right))
    return Rule(rule.target, rule.sign, left or rule.left_text, right or rule.right_text, rule.native)


def parts_of(expression: Expression) -> Iterator[Expression]:
    """An expression and all that it is made of."""
    yield expression
    for part in expression.parts:
        yield from parts_of(part)


def in_order(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Equations of targets behind those of the targets they need, then the others; an error if targets need each other."""
    by_target = {rule.target: rule for rule in rules if rule.target}
    done: dict[str, Rule] = {}

    def visit(target: str, path: tuple[str, ...]) -> None:
        if target in path:
            if path[-1] == target:
                raise ExpressionError(str(by_target[target]), f"{target!r} is computed from itself")
            circle = " from ".join(map(repr, (*path[path.index(target) :], target)))
            raise ValueError(f"derive goes in a circle: {circle}; one of these must be given, or its equation written with ==")
        if target not in done:
            for name in sorted(by_target[target].right.columns & by_target.keys()):
                visit(name, (*path, target))
            done[target] = by_target[target]

    for target in by_target:
        visit(target, ())
    return (*done.values(), *(rule for rule in rules if not rule.target))
