"""What a plan may say: shapes of values, which check them and say what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from difflib import get_close_matches
from typing import Any, Protocol

from ..._text import listed
from .document import Document, Keys, PlanError
from .toml_text import toml_value


class Shape(Protocol):
    """Checks a value."""

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise an error that names file, line and key if the value is something else."""


def _refuse(shape: Shape, value: Any, keys: Keys, document: Document) -> None:
    raise document.error(keys, f"must be {shape.accepted}, got {toml_value(value)}")


def _fits(shape: Shape, value: Any, keys: Keys, document: Document) -> bool:
    try:
        shape.check(value, keys, document)
    except PlanError:
        return False
    return True


@dataclass(frozen=True)
class Is:
    """A value of some types; true and false are no numbers, and an empty text is nothing."""

    types: tuple[type, ...]
    accepted: str

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        if not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types) or value == "":
            _refuse(self, value, keys, document)


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        return " or ".join(map(toml_value, self.words))

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        if value not in self.words:
            _refuse(self, value, keys, document)


@dataclass(frozen=True)
class Count:
    """A whole number of at least one."""

    accepted: str = "a whole number >= 1"

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        Is((int,), self.accepted).check(value, keys, document)
        if value < 1:
            _refuse(self, value, keys, document)


@dataclass(frozen=True)
class ListOf:
    """A list that is not empty."""

    each: Is
    accepted: str

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        if not isinstance(value, list) or not value:
            _refuse(self, value, keys, document)
        for one in value:
            self.each.check(one, keys, document)


@dataclass(frozen=True)
class Pair:
    """A range of numbers or dates: two values in a list, or a text as for ``--bounds``."""

    accepted: str = 'a pair such as [0, 120], or a text that may leave one out, such as "0:" or "2020-01-01:2024-12-31"'

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        if isinstance(value, list) and len(value) == 2:
            for one in value:
                Is((int, float, date, type(None)), self.accepted).check(one, keys, document)
        elif not isinstance(value, str):
            _refuse(self, value, keys, document)


@dataclass(frozen=True)
class ByName:
    """A table with a line for each column or parameter."""

    each: Shape
    example: str
    of: str = "column"

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        return f"a table with a line for each {self.of}, such as {self.example}"

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        if not isinstance(value, Mapping):
            _refuse(self, value, keys, document)
        for name, one in value.items():
            self.each.check(one, (*keys, name), document)


@dataclass(frozen=True)
class Record:
    """A table of known keys."""

    shapes: Mapping[str, Shape]
    example: str

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        return f"a table such as {self.example}"

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        if not isinstance(value, Mapping):
            _refuse(self, value, keys, document)
        for key, one in value.items():
            if key not in self.shapes:
                raise document.error((*keys, key), f"is not known; {self._instead_of(key)}")
            self.shapes[key].check(one, (*keys, key), document)

    def _instead_of(self, key: str) -> str:
        near = get_close_matches(key.lower(), list(self.shapes), 1)
        if near:
            return f"did you mean {near[0]!r}?"
        if key in PLAN.shapes:
            return f"{key!r} is said of the whole table: move it above the first line with a [name]"
        return f"there are {listed(list(self.shapes), 30)}"


@dataclass(frozen=True)
class Either:
    """A table, a list or something else, each with a shape of its own."""

    table: Shape | None = None
    list_: Shape | None = None
    other: Shape | None = None

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        return ", or ".join(shape.accepted for shape in (self.other, self.list_, self.table) if shape is not None)

    def check(self, value: Any, keys: Keys, document: Document) -> None:
        """Raise if the value is something else."""
        shape = self.table if isinstance(value, Mapping) else self.list_ if isinstance(value, list) else self.other
        if shape is None or (shape is self.other and not _fits(shape, value, keys, document)):
            _refuse(self, value, keys, document)
        else:
            shape.check(value, keys, document)


_NAME = Is((str,), "the name of a column")
_NAMES = ListOf(_NAME, 'a list of columns, such as ["age", "job"]')
_SPELLINGS = ListOf(Is((str, int, float), "a text or a number"), 'a list of texts, such as ["NA", "-999"]')
_FLAG = Is((bool,), "true or false")
_VALUE = Is((str, int, float, bool, date, time), "a text, a number, true or false, or a date")
_VALUES = ListOf(_VALUE, 'a list of values, such as ["low", "high"]')
_CONSTRAINT: Mapping[str, Shape] = {
    "bounds": Pair(),
    "integer": _FLAG,
    "non_negative": _FLAG,
    "categories": _VALUES,
    "ordered": _FLAG,
}
_FORMULA = Is((str,), "a formula in quotes")
_METHOD = Is((str,), 'the name of a method, such as "extra_trees"')

# In the order in which plans are drafted: TOML wants what has no table of its own first.
_KEYS: Mapping[str, Shape] = {
    "na": Either(ByName(_SPELLINGS, '{age = ["-9"]}'), _SPELLINGS),
    "keep": Either(ByName(_SPELLINGS, '{answer = ["None"]}'), _SPELLINGS),
    "columns": _NAMES,
    "exclude": _NAMES,
    "only": _NAMES,
    "identifiers": OneOf(("set aside", "use")),
    "weights": _NAME,
    "groups": Either(None, _NAMES, _NAME),
    "time": _NAME,
    "method": _METHOD,
    "max_categories": Count(),
    "settings": ByName(Is((str, int, float, bool, list), "a value"), "{max_steps = 500}", of="parameter of the method"),
    "constraints": ByName(Record(_CONSTRAINT, "{bounds = [0, 120], integer = true}"), "age = {bounds = [0, 120]}"),
    "predictors": Either(
        ByName(Either(Record({"not": _NAMES}, '{not = ["tax_code"]}'), _NAMES), '{income = ["age", "job"]}'),
        None,
        OneOf(("auto",)),
    ),
    "derive": Either(
        ByName(_FORMULA, 'bmi = "weight / (height / 100) ** 2"'),
        ListOf(_FORMULA, 'a list of rules, such as ["total = a + b", "start <= end"]'),
    ),
    "applicable": ByName(_FORMULA, 'pregnancies = "age > 12"'),
    "methods": ByName(Either(None, ListOf(_METHOD, "a list of methods"), _METHOD), 'job = "extra_trees"'),
}
PLAN = Record(_KEYS, "")
