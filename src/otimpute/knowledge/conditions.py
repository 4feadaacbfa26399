"""Conditions: whether something holds in a row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from .tree import ALWAYS, Column, Columns, Expression, Text, described
from .values import ExpressionError, ValueKind, Values, days_of

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True)
class Truth(Expression):
    """The words true and false."""

    value: bool
    binding: ClassVar[int] = 9

    def _text(self) -> str:
        return "true" if self.value else "false"

    def _values(self, table: Columns) -> Values:  # noqa: ARG002
        return Values(ValueKind.CONDITION, np.array(self.value), ALWAYS)


@dataclass(frozen=True)
class Comparison(Expression):
    """Whether two parts are equal, or in which order."""

    sign: str
    left: Expression
    right: Expression
    binding: ClassVar[int] = 4

    def _text(self) -> str:
        return f"{self._inside(self.left)} {self.sign} {self._inside(self.right)}"

    def _values(self, table: Columns) -> Values:
        left, right = self._alike(self.left, self.right, table)
        values = COMPARISONS[self.sign](left.values, right.values)
        return Values(ValueKind.CONDITION, np.asarray(values, dtype=bool), left.known & right.known)

    def _alike(self, one: Expression, other: Expression, table: Columns) -> tuple[Values, Values]:
        """Both sides as values that can be compared."""
        left, right = one._values(table), other._values(table)
        if left.kind == ValueKind.DATE:
            right = as_dates(self, other, right)
        elif right.kind == ValueKind.DATE:
            left = as_dates(self, one, left)
        kinds = {left.kind, right.kind} - {ValueKind.NOTHING}
        if ValueKind.TEXT not in kinds and ValueKind.DATE not in kinds:
            return self._as_numbers(one, left, "compared"), self._as_numbers(other, right, "compared")
        if len(kinds) > 1:
            says = " and ".join(f"{described(part)} {read.kind}" for part, read in ((one, left), (other, right)))
            self._fail(f"{says}: these cannot be compared; text stands in quotes, numbers do not")
        if ValueKind.TEXT in kinds and self.sign not in ("==", "!="):
            self._fail(f"text has no order, so {self.sign} cannot compare it; == and != can")
        return left, right


def as_dates(whole: Expression, part: Expression, read: Values) -> Values:
    """What is compared with dates; text in quotes is read as one."""
    if not isinstance(part, Text):
        return read
    try:
        return Values(ValueKind.DATE, np.array(days_of(part.value)), ALWAYS)
    except ValueError:
        raise ExpressionError(str(whole), f"{part} is no date; write it as '2024-01-31' or '2024-01-31 12:30'") from None


@dataclass(frozen=True)
class Among(Expression):
    """Whether something is one of several values."""

    operand: Expression
    choices: tuple[Expression, ...]
    binding: ClassVar[int] = 4

    def _text(self) -> str:
        return f"{self._inside(self.operand)} in ({', '.join(map(str, self.choices))})"

    def _values(self, table: Columns) -> Values:
        each = [Comparison("==", self.operand, choice)._values(table) for choice in self.choices]
        return Values(ValueKind.CONDITION, reduce(operator.or_, (one.values for one in each)), each[0].known)


@dataclass(frozen=True)
class Missing(Expression):
    """Whether something is not known; this itself always is."""

    operand: Expression
    binding: ClassVar[int] = 4

    def _text(self) -> str:
        return f"{self._inside(self.operand)} is missing"

    def _values(self, table: Columns) -> Values:
        read = table[self.operand.name] if isinstance(self.operand, Column) else self.operand._values(table)
        known = read.known
        return Values(ValueKind.CONDITION, ~known, np.ones(known.shape, dtype=bool))


@dataclass(frozen=True)
class Not(Expression):
    """Whether a condition is false."""

    operand: Expression
    binding: ClassVar[int] = 3

    def _text(self) -> str:
        return f"not {self._inside(self.operand, tighter=False)}"

    def _values(self, table: Columns) -> Values:
        kind, values, known = self._condition_of(self.operand, table)
        return Values(kind, ~values, known)


@dataclass(frozen=True)
class AllOf(Expression):
    """Whether all of some conditions are true."""

    conditions: tuple[Expression, ...]
    binding: ClassVar[int] = 2

    def _text(self) -> str:
        return " and ".join(map(self._inside, self.conditions))

    def _values(self, table: Columns) -> Values:
        return _settled([self._condition_of(each, table) for each in self.conditions], by=False)


@dataclass(frozen=True)
class AnyOf(Expression):
    """Whether one or more of some conditions are true."""

    conditions: tuple[Expression, ...]
    binding: ClassVar[int] = 1

    def _text(self) -> str:
        return " or ".join(map(self._inside, self.conditions))

    def _values(self, table: Columns) -> Values:
        return _settled([self._condition_of(each, table) for each in self.conditions], by=True)


def _settled(conditions: list[Values], *, by: bool) -> Values:
    """Conditions of which one that is ``by`` settles the matter, whatever is unknown."""
    settled = reduce(operator.or_, (each.known & (each.values == by) for each in conditions))
    known = settled | reduce(operator.and_, (each.known for each in conditions))
    return Values(ValueKind.CONDITION, settled if by else ~settled, known)
