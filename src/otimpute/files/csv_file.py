"""Text files with a table: read into typed tables, written with only missing values changed."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

from ..exceptions import Message, Term
from .arrow import ArrowSchema, ArrowTable, arrow, compute
from .chunk import Chunk
from .column_detector import ColumnDetector, decide_columns
from .columns import CellTexts, Column, FieldKind, kind_of, read_column
from .csv_text import RawRows, read_rows
from .dialect import Dialect, detect_dialect
from .tokens import unquoted


class CsvSource:
    r"""A text file that can be read again and again; its columns were decided in a first pass over all rows.

    >>> import io
    >>> source = CsvSource(io.BytesIO(b"id,when,ok\n007,2020-01-02,yes\n008,,no\n"))
    >>> [column.kind for column in source.columns]
    ['string', 'date', 'boolean']
    """

    def __init__(self, stream: BinaryIO, *, schema: ArrowSchema | None = None, **overrides: Any) -> None:
        self._stream = stream
        dialect = detect_dialect(stream, **overrides)
        chunks = read_rows(stream, dialect)
        first = next(chunks, None)
        if first is None:
            raise ValueError("the file is empty")
        self.header = first if dialect.header else None
        names = self._names(first, dialect)
        dialect.declared.check(names)
        detectors = [ColumnDetector(name, dialect) for name in names]
        self.n_rows = 0
        for chunk in chunks if dialect.header else chain([first], chunks):
            self.n_rows += len(chunk)
            for k, detector in enumerate(detectors):
                detector.observe(CellTexts(chunk.column(k), dialect))
        if not self.n_rows:
            raise ValueError(
                Message("the file has column names but no rows; pass ", Term("header", False), " if its only line is a row")
            )
        self.dialect, self.columns, self.hints = decide_columns(detectors, dialect, schema)

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of the columns."""
        return arrow().schema([(column.name, column.type) for column in self.columns])

    @property
    def empty(self) -> str:
        """A field without a value.

        Where there is one column, it would be an empty line, which means nothing at the end of a file; between spaces there is
        no empty field.
        """
        seen = len(self.columns) == 1 or self.dialect.delimiter == " "
        return (2 * self.dialect.quote or "NA") if seen else ""

    def raw_rows(self, rows: int | None = None) -> Iterator[RawRows]:
        """The rows as they stand in the file, without the header."""
        chunks = read_rows(self._stream, self.dialect, rows)
        if self.dialect.header:
            next(chunks)
        return chunks

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """The rows as typed tables, some at a time."""
        for raw in self.raw_rows(rows):
            arrays = [read_column(raw, k, column, self.dialect) for k, column in enumerate(self.columns)]
            yield Chunk(arrow().Table.from_arrays(arrays, schema=self.schema), raw)

    def chunks_of(self, frame: ArrowTable) -> Iterator[Chunk]:
        """The same without reading values again: ``frame`` holds all of them."""
        first = 0
        for raw in self.raw_rows():
            yield Chunk(frame.slice(first, len(raw)), raw)
            first += len(raw)

    def describe(self) -> dict[str, Any]:
        """Plain values, for people and JSON."""
        return {"dialect": self.dialect.describe()}

    @staticmethod
    def _names(first: RawRows, dialect: Dialect) -> list[str]:
        if not dialect.header:
            return [f"column_{k + 1}" for k in range(first.n_columns)]
        names = [unquoted(field, dialect.quote).strip() for field in first.fields]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            listed = ", ".join(map(repr, repeated))
            raise ValueError(
                Message(
                    f"column names must differ, got {listed} more than once in line 1; rename one of them, or pass ",
                    Term("header", False),
                    " if it is a row",
                )
            )
        return names


class CsvWriter:
    """Writes chunks: rows that were text as they were, with missing values filled in; other rows in a plain style."""

    def __init__(
        self, sink: BinaryIO, dialect: Dialect, columns: Sequence[Column], header: RawRows | None, delimiter: str
    ) -> None:
        self._sink = sink
        self._columns = columns
        self._dialect = dialect
        self._delimiter = delimiter
        self._encoder = codecs.getincrementalencoder(dialect.encoding)()
        sink.write(dialect.mark)
        if header is not None:
            self._write(header)

    @classmethod
    def plain(cls, sink: BinaryIO, schema: ArrowSchema, delimiter: str) -> CsvWriter:
        """For tables that were never text."""
        columns = [Column(field.name, kind_of(field.type), field.type) for field in schema]
        names = [_written(name, False, '"', delimiter) for name in schema.names]
        return cls(sink, Dialect(delimiter=delimiter), columns, RawRows(names, ["\n"], len(names), 1), delimiter)

    def write(self, chunk: Chunk, completed: ArrowTable) -> None:
        """Write ``completed`` where values of ``chunk`` are missing."""
        pc = compute()
        completed = chunk.accept(completed)
        n_rows, n_columns = completed.num_rows, completed.num_columns
        if chunk.raw is None:
            raw = RawRows([""] * (n_rows * n_columns), [self._dialect.line_end] * n_rows, n_columns, 1)
        else:
            raw = replace(chunk.raw, fields=chunk.raw.fields.copy())
        for k, column in enumerate(self._columns):
            values = completed.column(k)
            fields = raw.column(k)
            if chunk.raw is None:
                holes = range(n_rows)
            else:
                holes = pc.indices_nonzero(pc.is_null(chunk.frame.column(k)))
                values, holes = values.take(holes), holes.to_pylist()
            for hole, text in zip(holes, column.texts(values), strict=True):
                if text is not None:
                    fields[hole] = self._fill(fields[hole], text, column)
            raw.replace_column(k, fields)
        self._write(raw)

    def close(self) -> None:
        """Nothing is left to write."""

    def _fill(self, hole: str, text: str, column: Column) -> str:
        written = _written(text, column.quoted, self._dialect.quote, self._delimiter)
        if column.kind == FieldKind.STRING and not column.quoted and self._dialect.delimiter != " ":
            return written  # spaces around it are part of the value
        said = hole.strip(" ")
        before, _, after = hole.partition(said) if said else (hole, "", "")
        return before + written + after

    def _write(self, rows: RawRows) -> None:
        if self._delimiter != self._dialect.delimiter:
            fields = [field.strip(" ") for field in rows.fields] if self._dialect.delimiter == " " else rows.fields
            rows = replace(rows, fields=[_written_anew(field, self._dialect.quote, self._delimiter) for field in fields])
        try:
            self._sink.write(self._encoder.encode(rows.text(self._delimiter)))
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise ValueError(
                f"the character {character!r} does not exist in the file's encoding, {self._dialect.encoding}; "
                "convert the file to utf-8 first"
            ) from None


def _written(text: str, always: bool, quote: str, delimiter: str) -> str:
    """Text as a field, in quotes where it needs them."""
    if not always and not any(character in text for character in (delimiter, quote or "\n", "\n", "\r")):
        return text
    if not quote:
        raise ValueError(Message(f"{text!r} cannot be written without quotes, and ", Term("quote", ""), " says there are none"))
    return quote + text.replace(quote, quote * 2) + quote


def _written_anew(field: str, quote: str, delimiter: str) -> str:
    """A field of a file with another delimiter."""
    return field if unquoted(field, quote) != field else _written(field, False, quote, delimiter)
