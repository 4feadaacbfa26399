"""Excel workbooks: one sheet is a table, and only missing values change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, BinaryIO
from zipfile import BadZipFile

from .._optional import require
from ..exceptions import Message, Term
from .arrow import ArrowArray, ArrowSchema, ArrowTable, arrow, compute
from .chunk import Chunk
from .columns import Column, kind_of
from .spellings import NA_VALUES, DeclaredSpellings, SpellingCounts, Spellings, find_answers, numbers_among


class ExcelSource:
    """One sheet of a workbook: names in the first row, then values."""

    def __init__(
        self,
        stream: BinaryIO,
        *,
        sheet: str | None = None,
        na_values: Spellings | None = None,
        keep_values: Spellings | None = None,
        known_gaps: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.stream = stream
        declared = DeclaredSpellings.from_arguments(na_values, keep_values, known_gaps)
        try:
            book = _openpyxl().load_workbook(stream, read_only=True, data_only=True)
        except (KeyError, OSError, ValueError, BadZipFile) as error:
            raise ValueError(f"the file cannot be read as an Excel workbook (.xlsx): {error}") from None
        if sheet is not None and sheet not in book.sheetnames:
            raise ValueError(Message(Term("sheet"), f" must be one of {', '.join(map(repr, book.sheetnames))}, got {sheet!r}"))
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
        declared.check(names)
        read = [_SheetColumn(name, cells, declared) for name, cells in zip(names, zip(*rows[1:], strict=True), strict=True)]
        answers, self.hints = find_answers([column.spelling_counts() for column in read])
        typed = [column.typed(kept) for column, kept in zip(read, answers, strict=True)]
        self.columns = [column for _, column in typed]
        self._frame = arrow().Table.from_arrays([array for array, _ in typed], names)

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of the columns."""
        return self._frame.schema

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
    """Writes chunks: into the empty cells of the workbook they came from, or into a new one."""

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


class _SheetColumn:
    """The cells of a column, and which of them may be missing values."""

    def __init__(self, name: str, cells: Sequence[Any], declared: DeclaredSpellings) -> None:
        self.name, self.cells = name, cells
        self.candidates, self.na_values = declared.candidates(name), declared.missing_in(name)
        numbers = numbers_among(self.candidates)
        self.said = ["" if cell is None else str(cell).strip() for cell in cells]
        self.is_candidate = [
            said in self.candidates or (isinstance(cell, (int, float)) and not isinstance(cell, bool) and cell in numbers)
            for said, cell in zip(self.said, cells, strict=True)
        ]
        kinds = {type(cell) for cell, candidate in zip(cells, self.is_candidate, strict=True) if not candidate}
        self.type = next((make() for accepted, make in _types() if kinds and kinds <= accepted), None)

    def spelling_counts(self) -> SpellingCounts:
        """What distinguishes answers from missing values."""
        values = Counter(said for said, candidate in zip(self.said, self.is_candidate, strict=True) if not candidate)
        return SpellingCounts(self.name, self.type is None, self.na_values is not None, self._n_candidates(), values)

    def typed(self, answers: frozenset[str]) -> tuple[ArrowArray, Column]:
        """An array of the type that the values have in common."""
        pa, data_type = arrow(), self.type
        gaps = self.is_candidate
        if data_type is None:
            gaps = [said in self.candidates - answers for said in self.said]
            data_type = pa.null() if all(gaps) else pa.string()
        cells = [str(cell) for cell in self.cells] if data_type == pa.string() else self.cells
        array = pa.array([None if gap else cell for cell, gap in zip(cells, gaps, strict=True)], data_type)
        usual = NA_VALUES if self.type is None else self.candidates
        na_values = self.candidates & (usual | self._n_candidates().keys()) - answers
        missing_as = dict(Counter(said for said, gap in zip(self.said, gaps, strict=True) if gap).most_common())
        kind = kind_of(data_type)
        return array, Column(self.name, kind, data_type, sum(gaps), na_values, missing_as=missing_as)

    def _n_candidates(self) -> Counter[str]:
        return Counter(said for said, candidate in zip(self.said, self.is_candidate, strict=True) if candidate)


def _types() -> list[tuple[set[type], Callable[[], Any]]]:
    pa = arrow()
    return [
        ({bool}, pa.bool_),
        ({int}, pa.int64),
        ({int, float}, pa.float64),
        ({date, datetime}, lambda: pa.timestamp("us")),
    ]


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
