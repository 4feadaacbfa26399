"""The columns of a text file: what they hold, how they write it, and their fields as typed arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from .._text import Keyword
from ..exceptions import Message, Term
from .arrow import ArrowArray, ArrowType, arrow, compute
from .csv_text import RawRows
from .dialect import Dialect
from .numbers import equal_to_any
from .spellings import numbers_among
from .tokens import unquoted


class FieldKind(Keyword):
    """What the fields of a column are; as text it is what people and JSON see."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TIMESTAMP = "timestamp"
    STRING = "string"
    EMPTY = "empty"  # no value at all
    OTHER = "other"  # not from text


class Format(Protocol):
    """One way to write values of one kind."""

    def parse(self, values: ArrowArray) -> ArrowArray:
        """Text to values; ValueError when one does not fit."""

    def format(self, value: Any) -> str:
        """One value to text."""

    @property
    def expected(self) -> str:
        """What a field must be, in words."""


@dataclass(frozen=True)
class Column:
    """One column of a file: its kind, its type as an array, and how it writes its values."""

    name: str
    kind: FieldKind
    type: ArrowType
    n_missing: int = 0
    na_values: frozenset[str] = frozenset()  # what means a missing value in this column; numbers however they are written
    format: Format | None = None  # None: as plain text
    quoted: bool = False  # every value is
    missing_as: Mapping[str, int] = field(default_factory=dict)  # how often it is written how, in text; the most frequent first

    def describe(self) -> dict[str, Any]:
        """Plain values, for people and JSON."""
        return {
            "name": self.name, "kind": self.kind, "type": str(self.type), "n_missing": self.n_missing,
            "missing_as": dict(self.missing_as),
        }  # fmt: skip

    def texts(self, values: ArrowArray) -> list[str | None]:
        """Values in the style of the column; None for those that are missing."""
        if self.kind == FieldKind.NUMBER:
            cells = values.to_numpy(zero_copy_only=False)  # single precision keeps its few digits
        elif self.kind == FieldKind.TIMESTAMP:
            cells = values.cast(arrow().timestamp("us", values.type.tz), safe=False).to_pylist()
        else:
            cells = values.to_pylist()
        return [None if value is None or value != value else self._text(value) for value in cells]

    def _text(self, value: Any) -> str:
        if self.format is not None:
            return self.format.format(value)
        return str(value).lower() if self.kind == FieldKind.BOOLEAN else str(value)


def kind_of(data_type: ArrowType) -> FieldKind:
    """The kind of column that an array of this type makes.

    >>> kind_of(arrow().int8()), kind_of(arrow().dictionary(arrow().int8(), arrow().string()))
    ('integer', 'string')
    """
    types = arrow().types
    if types.is_dictionary(data_type):
        return FieldKind.STRING if kind_of(data_type.value_type) == FieldKind.STRING else FieldKind.OTHER
    tests: dict[FieldKind, Callable[[ArrowType], bool]] = {
        FieldKind.BOOLEAN: types.is_boolean,
        FieldKind.INTEGER: types.is_integer,
        FieldKind.NUMBER: types.is_floating,
        FieldKind.DATE: types.is_date,
        FieldKind.TIMESTAMP: types.is_timestamp,
        FieldKind.STRING: lambda kind: types.is_string(kind) or types.is_large_string(kind),
        FieldKind.EMPTY: types.is_null,
    }
    return next((kind for kind, test in tests.items() if test(data_type)), FieldKind.OTHER)


class CellTexts:
    """The fields of one column in some rows, and what they say."""

    def __init__(self, fields: list[str], dialect: Dialect) -> None:
        pa, pc, quote = arrow(), compute(), dialect.quote
        raw = pa.array(fields, pa.string())
        self.quoted = pc.starts_with(pc.utf8_ltrim(raw, " "), quote) if quote else pc.is_null(raw)
        self.contents = raw
        if pc.any(self.quoted).as_py():
            self.contents = pa.array([unquoted(field, quote) if quote in field else field for field in fields], pa.string())
        self.trimmed = pc.utf8_trim_whitespace(self.contents)
        if dialect.delimiter == " ":  # the others are part of the delimiter
            self.contents = pc.if_else(self.quoted, self.contents, self.trimmed)

    def are_in(self, spellings: frozenset[str], *, numbers: bool) -> ArrowArray:
        """Whether each is one of some spellings; with ``numbers``, also those that are equal as numbers."""
        pc = compute()
        found = pc.is_in(self.trimmed, arrow().array(sorted(spellings), arrow().string()))
        as_numbers = numbers_among(spellings) if numbers else []
        return pc.or_(found, equal_to_any(self.trimmed, as_numbers)) if as_numbers else found


def read_column(rows: RawRows, k: int, column: Column, dialect: Dialect) -> ArrowArray:
    """One column of some rows as a typed array, null where fields are missing."""
    pa, pc = arrow(), compute()
    cells = CellTexts(rows.column(k), dialect)
    missing = cells.are_in(column.na_values, numbers=column.kind != FieldKind.STRING)
    if column.kind == FieldKind.STRING:
        return pc.if_else(missing, pa.scalar(None, pa.string()), cells.contents).cast(column.type)
    present = pc.indices_nonzero(pc.invert(missing))
    values = cells.trimmed.take(present)
    parse = partial(_parse, column)
    try:
        parsed = parse(values)
    except ValueError:
        row = present[_first_unparsable(parse, values)].as_py()
        found, line = cells.contents[row].as_py(), rows.line_of(row, dialect.newline)
        expected = "empty, as the column is known to be" if column.format is None else column.format.expected
        raise ValueError(
            Message(
                f"line {line}, column {column.name!r}: {found!r} is not {expected}; correct it, or add it to ",
                Term("na_values"),
                " if it means that the value is missing",
            )
        ) from None
    places = pc.subtract(pc.cumulative_sum(pc.invert(missing).cast(pa.int64())), 1)
    return parsed.take(pc.if_else(missing, None, places))


def _parse(column: Column, values: ArrowArray) -> ArrowArray:
    if column.format is not None:
        return column.format.parse(values).cast(column.type)
    if len(values):
        raise ValueError("a column without values has one")
    return arrow().nulls(0, column.type)


def _first_unparsable(parse: Callable[[ArrowArray], ArrowArray], values: ArrowArray) -> int:
    """The place of the first value that cannot be parsed, by halving."""
    fine, bad = 0, len(values)
    while bad - fine > 1:
        middle = (fine + bad) // 2
        try:
            parse(values[:middle])
            fine = middle
        except ValueError:
            bad = middle
    return fine
