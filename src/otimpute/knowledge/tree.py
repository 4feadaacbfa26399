"""Expressions over columns as trees: what they say, which columns they name, and their values in a table. Arithmetic first."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar, NoReturn

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .values import ExpressionError, ValueKind, Values, read_columns

Array = NDArray[Any]
Columns = Mapping[str, Values]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "round": np.rint, "floor": np.floor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
TRUTHS = {"true": True, "True": True, "false": False, "False": False}
RESERVED = ("and", "or", "not", "in", "is", *TRUTHS)
EXTREMES = ("min", "max")  # of two or more; the others take one
ALWAYS = np.array(True)


@dataclass(frozen=True)
class Expression(ABC):
    """An expression over columns; ``str`` gives it in words that `parse_expression` reads as the same tree."""

    binding: ClassVar[int]  # how tightly it holds together: parts that do so less need parentheses

    @cached_property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions it is made of."""
        own = (value for name, value in vars(self).items() if name in self.__dataclass_fields__)
        nested = (value if isinstance(value, tuple) else (value,) for value in own)
        return tuple(each for values in nested for each in values if isinstance(each, Expression))

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns it needs."""
        return frozenset().union(*(part.columns for part in self.parts))

    def evaluate(self, table: nw.DataFrame[Any] | Columns) -> Values:
        """Its value in every row of a table, a frame or the columns already read.

        It is unknown where a value it depends on is missing and where it is not defined, as after a division by zero. A
        condition may be known nevertheless: "a and b" is false where a is, whatever b may be.
        """
        if isinstance(table, nw.DataFrame):
            n, table = len(table), read_columns(table, self.columns, text=str(self))
        else:
            n = max((len(column.known) for column in table.values()), default=1)
        with np.errstate(all="ignore"):
            kind, values, known = self._values(table)
        return Values(kind, np.broadcast_to(values, n).copy(), np.broadcast_to(known, n).copy())

    def __str__(self) -> str:
        return self._text()

    @abstractmethod
    def _text(self) -> str: ...

    @abstractmethod
    def _values(self, table: Columns) -> Values: ...

    def _inside(self, part: Expression, *, tighter: bool = True) -> str:
        fits = part.binding > self.binding or (part.binding == self.binding and not tighter)
        return str(part) if fits else f"({part})"

    def _fail(self, problem: str) -> NoReturn:
        raise ExpressionError(str(self), problem)

    def _numbers_of(self, part: Expression, table: Columns, deed: str) -> Values:
        return self._as_numbers(part, part._values(table), deed)

    def _as_numbers(self, part: Expression, read: Values, deed: str) -> Values:
        """What was read of a part as numbers; conditions are 0 or 1."""
        kind, values, known = read
        if kind in (ValueKind.CONDITION, ValueKind.NOTHING):
            return Values(ValueKind.NUMBER, values.astype(np.float64), known)
        if kind != ValueKind.NUMBER:
            self._fail(f"{described(part)} {kind} and cannot be {deed}")
        return read

    def _condition_of(self, part: Expression, table: Columns) -> Values:
        kind, values, known = part._values(table)
        if kind == ValueKind.NOTHING:
            return Values(ValueKind.CONDITION, np.zeros(values.shape, bool), known)
        if kind != ValueKind.CONDITION:
            advice = f"compare it with something, as in {part} == {'1' if kind == ValueKind.NUMBER else repr('...')}"
            self._fail(f"{described(part)} {kind}, which is no condition; {advice}")
        return Values(kind, values, known)


def described(part: Expression) -> str:
    """How an error speaks of a part; what it holds follows."""
    return f"{part.name!r} holds" if isinstance(part, Column) else f"{str(part)!r} gives"


def _number(values: Array, *parts: Values) -> Values:
    known = reduce(operator.and_, (part.known for part in parts))
    return Values(ValueKind.NUMBER, values, known & np.isfinite(values))


@dataclass(frozen=True)
class Number(Expression):
    """A number as written."""

    value: float
    binding: ClassVar[int] = 9

    def _text(self) -> str:
        return str(int(self.value)) if self.value.is_integer() and self.value < 1e15 else repr(self.value)

    def _values(self, table: Columns) -> Values:  # noqa: ARG002
        return Values(ValueKind.NUMBER, np.array(self.value), ALWAYS)


@dataclass(frozen=True)
class Text(Expression):
    """Text in quotes."""

    value: str
    binding: ClassVar[int] = 9

    def _text(self) -> str:
        quote = '"' if "'" in self.value else "'"
        return f"{quote}{self.value}{quote}"

    def _values(self, table: Columns) -> Values:  # noqa: ARG002
        return Values(ValueKind.TEXT, np.array(self.value, dtype=object), ALWAYS)


@dataclass(frozen=True)
class Column(Expression):
    """The values of a column."""

    name: str
    binding: ClassVar[int] = 9

    @cached_property
    def columns(self) -> frozenset[str]:  # noqa: D102
        return frozenset([self.name])

    def _text(self) -> str:
        bare = self.name.isidentifier() and self.name not in RESERVED and self.name not in FUNCTIONS
        return self.name if bare else f"`{self.name}`"

    def _values(self, table: Columns) -> Values:
        kind, values, known = table[self.name]
        if kind == ValueKind.OTHER:
            self._fail(f"{self.name!r} holds {kind}")
        return Values(kind, values, known)


@dataclass(frozen=True)
class Negative(Expression):
    """Minus something."""

    operand: Expression
    binding: ClassVar[int] = 7

    def _text(self) -> str:
        return f"-{self._inside(self.operand, tighter=False)}"

    def _values(self, table: Columns) -> Values:
        part = self._numbers_of(self.operand, table, "negated")
        return _number(-part.values, part)


@dataclass(frozen=True)
class Sum(Expression):
    """Terms added to and subtracted from the first one."""

    terms: tuple[Expression, ...]
    signs: tuple[int, ...]  # 1 or -1; the first is 1
    binding: ClassVar[int] = 5

    def _text(self) -> str:
        first, *others = map(self._inside, self.terms)
        return first + "".join(f" {'+' if sign > 0 else '-'} {each}" for sign, each in zip(self.signs[1:], others, strict=True))

    def _values(self, table: Columns) -> Values:
        terms, n_dates = [], 0
        for sign, term in zip(self.signs, self.terms, strict=True):
            read = term._values(table)
            if read.kind == ValueKind.DATE:
                n_dates += sign
            else:
                read = self._as_numbers(term, read, "added" if sign > 0 else "subtracted")
            terms.append(read)
        if n_dates not in (0, 1):
            self._fail("dates can be subtracted from each other, which gives days, and days added to a date; not this")
        total = terms[0].values
        for sign, read in zip(self.signs[1:], terms[1:], strict=True):
            total = total + read.values if sign > 0 else total - read.values
        return _number(total, *terms)._replace(kind=ValueKind.DATE if n_dates else ValueKind.NUMBER)


@dataclass(frozen=True)
class Product(Expression):
    """Factors by which the first one is multiplied and divided."""

    factors: tuple[Expression, ...]
    powers: tuple[int, ...]  # 1 or -1; the first is 1
    binding: ClassVar[int] = 6

    def _text(self) -> str:
        first, *others = map(self._inside, self.factors)
        signs = ("*" if power > 0 else "/" for power in self.powers[1:])
        return first + "".join(f" {sign} {each}" for sign, each in zip(signs, others, strict=True))

    def _values(self, table: Columns) -> Values:
        deeds = ["multiplied" if power > 0 else "divided" for power in (self.powers[1], *self.powers[1:])]
        factors = [self._numbers_of(factor, table, deed) for factor, deed in zip(self.factors, deeds, strict=True)]
        total = factors[0].values
        for power, read in zip(self.powers[1:], factors[1:], strict=True):
            total = total * read.values if power > 0 else total / read.values
        return _number(np.asarray(total), *factors)


@dataclass(frozen=True)
class Power(Expression):
    """One raised to the power of another."""

    base: Expression
    exponent: Expression
    binding: ClassVar[int] = 8

    def _text(self) -> str:
        exponent = str(self.exponent) if self.exponent.binding >= Negative.binding else f"({self.exponent})"
        return f"{self._inside(self.base)} ** {exponent}"

    def _values(self, table: Columns) -> Values:
        base, exponent = (self._numbers_of(part, table, "raised to a power") for part in (self.base, self.exponent))
        return _number(np.asarray(base.values**exponent.values), base, exponent)


@dataclass(frozen=True)
class Call(Expression):
    """A function of one part; the least and the greatest of several."""

    function: str
    arguments: tuple[Expression, ...]
    binding: ClassVar[int] = 9

    def _text(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    def _values(self, table: Columns) -> Values:
        read = [argument._values(table) for argument in self.arguments]
        are_dates = self.function in EXTREMES and all(each.kind == ValueKind.DATE for each in read)
        if not are_dates:
            pairs = zip(self.arguments, read, strict=True)
            read = [self._as_numbers(argument, each, f"passed to {self.function}") for argument, each in pairs]
        function = FUNCTIONS[self.function]
        values = reduce(function, (each.values for each in read)) if len(read) > 1 else function(read[0].values)
        return _number(np.asarray(values), *read)._replace(kind=ValueKind.DATE if are_dates else ValueKind.NUMBER)
