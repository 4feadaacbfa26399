"""Decide from all fields of a text file what its columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from .arrow import ArrowArray, ArrowSchema, ArrowType, arrow, compute
from .booleans import BooleanClues, BooleanFormat
from .columns import Cells, Column, Format, kind_of
from .dates import DateFormat, date_clues
from .dialect import Dialect
from .numbers import NumberClues

_FEW = 64  # most columns show by so many values what they are not


class Clues(Protocol):
    """What is known about a column, as far as it was looked at."""

    def observe(self, values: ArrowArray) -> None:
        """Look at more values (none missing)."""


class Evidence:
    """What the fields of one column show, chunk by chunk."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        marks = (".", ",") if dialect.decimal is None else (dialect.decimal,)
        self.numbers = {mark: NumberClues(mark) for mark in marks}
        self.booleans = BooleanClues()
        self.dates = date_clues(dialect.day_first)
        self.n_seen = self.n_missing = self.n_doubtful = self.n_quoted = 0

    def observe(self, cells: Cells) -> None:
        """Look at more fields."""
        pc = compute()
        missing = cells.are_in(self.dialect.na_values)
        doubtful = pc.and_not(cells.are_in(self.dialect.na_in_numbers), missing)
        clear = pc.invert(pc.or_(missing, doubtful))
        values = cells.trimmed.filter(clear)
        self.n_seen += len(values)
        self.n_quoted += pc.sum(cells.quoted.filter(clear)).as_py() or 0
        self.n_missing += pc.sum(missing).as_py() or 0
        self.n_doubtful += pc.sum(doubtful).as_py() or 0
        all_clues: list[Clues] = [self.booleans, *self.numbers.values(), *self.dates]
        for part in (values[:_FEW], values[_FEW:]):
            if len(part):
                for clues in all_clues:
                    clues.observe(part)

    def decide(self, name: str, decimal: str) -> Column:
        """The most special kind that all fields fit."""
        pa, numbers = arrow(), self.numbers[decimal]
        pair = self.booleans.format(told=False)
        if not self.n_seen:
            # A column of nothing but question marks has no numbers that would make them holes.
            return self._text(name, "string", pa.string()) if self.n_doubtful else self._text(name, "empty", pa.null())
        if pair is not None and (pair.true.isdigit() or not self.n_doubtful):
            return self._typed(name, "boolean", pa.bool_(), pair)
        if numbers.fit and numbers.whole and numbers.small:
            return self._typed(name, "integer", pa.int64(), numbers.integer())
        if numbers.fit and not numbers.whole:
            return self._typed(name, "number", pa.float64(), numbers.number())
        dates = [clues.format() for clues in self.dates if clues.fit]
        if len(dates) != 1:
            return self._text(name, "string", pa.string())
        if dates[0].gap:
            return self._typed(name, "timestamp", pa.timestamp("us"), dates[0])
        return self._typed(name, "date", pa.date32(), dates[0])

    def fit_to(self, name: str, data_type: ArrowType, decimal: str) -> Column:
        """The column if its type is known already; whether the fields fit shows when they are read."""
        kind = kind_of(data_type)
        if kind == "other" or (kind == "timestamp" and data_type.tz is not None):
            raise ValueError(
                f"column {name!r} has the type {data_type}, which text files cannot hold; use Parquet or Arrow files"
            )
        if kind in ("string", "empty"):
            return self._text(name, kind, data_type)
        if kind == "boolean":
            return self._typed(name, kind, data_type, self.booleans.format(told=True) or BooleanFormat())
        if kind in ("date", "timestamp"):
            return self._typed(name, kind, data_type, self._date_format(name, kind == "timestamp"))
        numbers = self.numbers[decimal]
        return self._typed(name, kind, data_type, numbers.integer() if kind == "integer" else numbers.number())

    def _date_format(self, name: str, timed: bool) -> DateFormat:
        formats = [clues.format() for clues in self.dates if clues.fit and self.n_seen]
        formats = [form for form in formats if timed or not form.gap]
        if len(formats) > 1:
            raise ValueError(f"column {name!r} does not show whether days or months come first; pass day_first=True or False")
        return formats[0] if formats else DateFormat(gap=" " if timed else "")

    def _text(self, name: str, kind: str, data_type: ArrowType) -> Column:
        return Column(name, kind, data_type, self.n_missing, self.dialect.na_values, None, self._all_quoted)

    def _typed(self, name: str, kind: str, data_type: ArrowType, form: Format) -> Column:
        na_values = self.dialect.na_values | self.dialect.na_in_numbers
        return Column(name, kind, data_type, self.n_missing + self.n_doubtful, na_values, form, self._all_quoted)

    @property
    def _all_quoted(self) -> bool:
        return 0 < self.n_quoted == self.n_seen


def decide_columns(
    evidence: Sequence[Evidence], names: Sequence[str], dialect: Dialect, schema: ArrowSchema | None
) -> tuple[Dialect, list[Column]]:
    """The dialect with its decimal mark, and all columns; those that ``schema`` has too are of its types."""
    decimal = dialect.decimal
    if decimal is None:
        votes = {mark: sum(seen.numbers[mark].fit and seen.numbers[mark].certain for seen in evidence) for mark in ".,"}
        decimal = "," if votes[","] > votes["."] else "."
    known = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
    columns = [
        seen.fit_to(name, known[name], decimal) if name in known else seen.decide(name, decimal)
        for name, seen in zip(names, evidence, strict=True)
    ]
    return replace(dialect, decimal=decimal), columns
