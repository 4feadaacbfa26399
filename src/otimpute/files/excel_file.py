"""Excel workbooks: one sheet is a table, and only its holes change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from functools import cached_property
from typing import Any, BinaryIO
from zipfile import BadZipFile

from .._optional import require
from .arrow import ArrowArray, ArrowSchema, ArrowTable, arrow, compute
from .chunk import Chunk
from .columns import Column, kind_of
from .dialect import na_spellings


class ExcelSource:
    """One sheet of a workbook: names in the first row, then values."""

    def __init__(self, stream: BinaryIO, *, sheet: str | None = None, na_values: Iterable[str] | None = None) -> None:
        self.stream = stream
        try:
            book = _openpyxl().load_workbook(stream, read_only=True, data_only=True)
        except (KeyError, OSError, ValueError, BadZipFile) as error:
            raise ValueError(f"the file cannot be read as an Excel workbook (.xlsx): {error}") from None
        if sheet is not None and sheet not in book.sheetnames:
            raise ValueError(f"sheet must be one of {', '.join(map(repr, book.sheetnames))}, got {sheet!r}")
        self.sheet: str = book.sheetnames[0] if sheet is None else sheet
        rows = _without_empty_margins(list(book[self.sheet].iter_rows(values_only=True)))
        book.close()
        if len(rows) < 2:
            raise ValueError(f"sheet {self.sheet!r} has " + ("column names but no rows" if rows else "no values"))
        names = ["" if name is None else str(name) for name in rows[0]]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"column names must differ, got {', '.join(map(repr, repeated))} more than once in row 1; rename one of them"
            )
        missing = na_spellings(na_values)
        arrays = [_typed(list(cells), *missing) for cells in zip(*rows[1:], strict=True)]
        self._frame = arrow().Table.from_arrays(arrays, names)

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of the columns."""
        return self._frame.schema

    @cached_property
    def columns(self) -> list[Column]:
        """Kinds of the columns, and how many values are missing."""
        return [
            Column(field.name, kind_of(field.type), field.type, cells.null_count)
            for field, cells in zip(self.schema, self._frame.columns, strict=True)
        ]

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """The rows, some at a time."""
        most = rows or self._frame.num_rows
        return (Chunk(self._frame.slice(first, most)) for first in range(0, self._frame.num_rows, most))

    def chunks_of(self, frame: ArrowTable) -> Iterator[Chunk]:
        """All of them at once."""
        yield Chunk(frame)

    def describe(self) -> dict[str, Any]:
        """The sheet."""
        return {"sheet": self.sheet}


class ExcelWriter:
    """Writes chunks: into the holes of the workbook they came from, or into a new one."""

    def __init__(self, sink: BinaryIO, source: ExcelSource | None) -> None:
        self._sink = sink
        self._filling = source is not None
        if source is None:
            self._book = _openpyxl().Workbook(write_only=True)
            self._sheet = self._book.create_sheet("Sheet1")
        else:
            source.stream.seek(0)
            self._book = _openpyxl().load_workbook(source.stream)
            self._sheet = self._book[source.sheet]
        self._cell = require("openpyxl.cell", "writing Excel files", "excel").WriteOnlyCell
        self._n_rows = 0

    def write(self, chunk: Chunk, completed: ArrowTable) -> None:
        """Write ``completed``, or only what is new in it."""
        completed = chunk.accept(completed)
        if self._n_rows == 0:
            self._n_rows = 1
            if not self._filling:
                self._append(completed.column_names)
        columns = [[_cell(value) for value in column.to_pylist()] for column in completed.columns]
        if self._filling:
            for k, cells in enumerate(columns):
                for row in compute().indices_nonzero(compute().is_null(chunk.frame.column(k))).to_pylist():
                    cell = self._sheet.cell(self._n_rows + row + 1, k + 1)
                    if chunk.erased is not None and chunk.erased[row, k]:
                        cell.value = None
                    else:
                        self._fill(cell, cells[row])
        else:
            for row in zip(*columns, strict=True):
                self._append(row)
        self._n_rows += completed.num_rows

    def close(self) -> None:
        """Write the file."""
        self._book.save(self._sink)

    def _append(self, values: Iterable[Any]) -> None:
        self._sheet.append([_as_text(self._cell(self._sheet, value)) if _is_misread(value) else value for value in values])

    @staticmethod
    def _fill(cell: Any, value: Any) -> None:
        if value is not None and cell.data_type != "f":  # a formula that was never computed is no hole
            cell.value = value
            if _is_misread(value):
                _as_text(cell)


def _is_misread(value: Any) -> bool:
    """Whether openpyxl would take a text for a formula or an error."""
    return isinstance(value, str) and value.startswith(("=", "#"))


def _as_text(cell: Any) -> Any:
    cell.data_type = "s"
    return cell


def _typed(cells: list[Any], na_values: frozenset[str], na_in_numbers: frozenset[str]) -> ArrowArray:
    """The cells of a column as an array of the type they have in common."""
    pa = arrow()
    cells = [None if isinstance(cell, str) and cell.strip() in na_values else cell for cell in cells]
    kinds = {type(cell) for cell in cells if cell is not None and not (isinstance(cell, str) and cell.strip() in na_in_numbers)}
    types: list[tuple[set[type], Callable[[], Any]]] = [
        ({bool}, pa.bool_),
        ({int}, pa.int64),
        ({int, float}, pa.float64),
        ({date, datetime}, lambda: pa.timestamp("us")),
    ]
    if not kinds and all(cell is None for cell in cells):
        return pa.nulls(len(cells))
    for accepted, data_type in types:
        if kinds and kinds <= accepted:
            numbers = [None if isinstance(cell, str) else cell for cell in cells]
            return pa.array(numbers, data_type())
    return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return None
    return value if isinstance(value, (bool, int, float, str, date)) and getattr(value, "tzinfo", None) is None else str(value)


def _openpyxl() -> Any:
    return require("openpyxl", "reading and writing Excel files", "excel")


def _without_empty_margins(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows and columns that were only formatted are no part of the table."""
    n_rows = max((place + 1 for place, row in enumerate(rows) if any(cell is not None for cell in row)), default=0)
    width = max((place + 1 for row in rows[:n_rows] for place, cell in enumerate(row) if cell is not None), default=0)
    return [row[:width] + (None,) * (width - len(row)) for row in rows[:n_rows]]
