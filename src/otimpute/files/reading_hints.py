"""Columns of a table that may have been read wrongly: hints for people, nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .arrow import ArrowArray, arrow, compute
from .columns import Column, FieldKind
from .csv_file import CsvSource
from .dates import DateFormat, date_detectors
from .dialect import Dialect
from .numbers import GROUP, NumberDetector, NumberFormat
from .spellings import AmbiguousSpelling

if TYPE_CHECKING:
    from .table_file import TableFile

_TYPED = ("parquet", "arrow")
_SAMPLE = 1000  # most columns of text show by so many values that they are none of numbers
_MOST = 0.9  # so many numbers make any column of text suspicious,
_SOME = 0.2  # and so many one that has few texts beside many numbers
_FEW_TEXTS, _MANY_NUMBERS = 3, 10
_MOST_EXAMPLES = 4
_FEW_CELLS, _MANY_CELLS = 5, 100  # of one value that may stand for none
_ROWS = 20  # fewer are easily numbered by accident
_ID = re.compile(r"(?:^|[^A-Za-z])(?:id|ID|Id|key|idx|index|nr|no|row)$|[a-z](?:Id|ID)$|^Unnamed: 0$")


@dataclass(frozen=True)
class UnparsedValues:
    """A column that was read as text because some of its values are not numbers or dates."""

    name: str
    holds: str  # numbers or dates
    n_fitting: int
    n_values: int
    examples: tuple[str, ...] = ()  # the first different ones; none: dates that do not show whether day or month comes first
    line: int = 0  # of the first example
    na_values: tuple[str, ...] = ()  # what may mean a missing value in the column, besides nothing


@dataclass(frozen=True)
class AmbiguousSeparator:
    """A text column whose separator may be a decimal mark or stand between thousands."""

    name: str
    example: str


@dataclass(frozen=True)
class Sentinel:
    """A number that many cells have, far from all others."""

    name: str
    spelling: str
    n_cells: int
    low: float  # of the others
    high: float
    na_values: tuple[str, ...] = ()
    is_text: bool = True  # or Excel: missing values can be declared


@dataclass(frozen=True)
class RowNumbers:
    """A column that has every number once, and probably only numbers the rows."""

    name: str
    first: int
    last: int


ReadingHint: TypeAlias = AmbiguousSpelling | UnparsedValues | AmbiguousSeparator | Sentinel | RowNumbers


def find_reading_hints(table: TableFile) -> list[ReadingHint]:
    r"""Columns that may have been read wrongly, to be checked before the table is used.

    Spellings that may mean missing values or not; columns of a text or Excel file that would be numbers or dates but for some
    values; numbers that may stand for missing values; row numbers.

    >>> import tempfile, pathlib
    >>> from otimpute.files import read_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("x,y\n" + "1.5,2\n" * 20 + "1O.5,3\n")
    >>> find_reading_hints(read_file(path))
    [UnparsedValues(name='x', holds='numbers', n_fitting=20, n_values=21, examples=('1O.5',), line=22, na_values=())]
    """
    return [*table.reader.hints, *(hint for column in table.columns for hint in _of_column(table, column))]


def _of_column(table: TableFile, column: Column) -> Iterator[ReadingHint]:
    if column.kind == FieldKind.STRING and table.format not in _TYPED:
        dialect = table.reader.dialect if isinstance(table.reader, CsvSource) else Dialect(decimal=".")
        yield from _in_text(table, column, dialect)
    elif column.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
        numbers = table.frame.column(column.name).drop_null().to_numpy()
        numbers = numbers[np.isfinite(numbers)] if column.kind == FieldKind.NUMBER else numbers
        yield from _sentinels(column, numbers, table.format not in _TYPED)
        if column.kind == FieldKind.INTEGER and not column.n_missing and _are_row_numbers(column.name, numbers):
            yield RowNumbers(column.name, int(numbers.min()), int(numbers.max()))


def _sentinels(column: Column, numbers: NDArray[Any], is_text: bool) -> Iterator[Sentinel]:
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < 3:
        return
    has_few = len(values) <= _MANY_NUMBERS  # of these, all but the usual codes may be answers
    enough = max(_FEW_CELLS, min(_MANY_CELLS, len(numbers) / 100))
    for place, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
        value, n_cells, low, high = values[place], counts[place], float(values[rest][0]), float(values[rest][-1])
        is_code = re.fullmatch(r"-9|-?99+", f"{value:g}") is not None
        is_usual = is_code and not has_few and n_cells > 3 * np.median(counts[rest])
        far = (high - low) * (0.1 if is_usual else 2)
        if n_cells >= enough and (is_code or not has_few) and min(abs(float(value) - low), abs(float(value) - high)) > far:
            others = tuple(spelling for spelling in column.missing_as if spelling)
            spelling = str(int(value)) if value == int(value) else str(value)
            yield Sentinel(column.name, spelling, int(n_cells), low, high, others, is_text)


def _are_row_numbers(name: str, numbers: NDArray[Any]) -> bool:
    if len(numbers) < _ROWS:
        return False
    steps = np.diff(numbers)
    if numbers[0] in (0, 1) and (steps == 1).all():
        return True
    return bool(_ID.search(name)) and len(np.unique(numbers)) == len(numbers)


def _in_text(table: TableFile, column: Column, dialect: Dialect) -> Iterator[UnparsedValues | AmbiguousSeparator]:
    pa, pc, name = arrow(), compute(), column.name
    cells = pc.utf8_trim_whitespace(table.frame.column(name).combine_chunks().cast(pa.string()))
    candidates = pc.is_in(cells, pa.array(sorted(dialect.declared.candidates(name)), pa.string()))
    rows = pc.indices_nonzero(pc.and_not(pc.is_valid(cells), candidates))
    values = cells.take(rows)
    n_values = len(values)
    if not any(_fitting(values[:_SAMPLE], dialect, _SOME)):
        return
    fits = list(_fitting(values, dialect, _SOME))
    complete = [holds for holds, fitting in fits if pc.all(fitting).as_py()]
    if complete == ["numbers"]:
        yield AmbiguousSeparator(name, values.filter(pc.match_substring_regex(values, "[.,]"))[0].as_py())
    elif complete:
        yield UnparsedValues(name, "dates", n_values, n_values)
    elif fits:
        holds, fitting = fits[0]
        unparsed = pc.indices_nonzero(pc.invert(fitting))
        different = values.take(unparsed).unique()
        few = len(different) <= _FEW_TEXTS and len(values.filter(fitting).unique()) >= _MANY_NUMBERS
        if few or n_values - len(unparsed) >= _MOST * n_values:
            line = _line(table, rows[unparsed[0].as_py()].as_py())
            marks = dict.fromkeys([*column.missing_as, *cells.filter(candidates).unique().to_pylist()])
            others = tuple(mark for mark in marks if mark)
            yield UnparsedValues(
                name, holds, n_values - len(unparsed), n_values, tuple(different[:_MOST_EXAMPLES].to_pylist()), line, others
            )


def _fitting(values: ArrowArray, dialect: Dialect, share: float) -> Iterator[tuple[str, ArrowArray]]:
    """Kinds that at least a share of the values have, and which of them do."""
    pc, mark = compute(), dialect.decimal or "."
    numbers = pc.or_(NumberFormat(mark).fit(values), NumberFormat(mark, group=GROUP[mark]).fit(values))
    if _n_true(numbers) >= max(1, share * len(values)):
        detector = NumberDetector(mark)
        detector.observe(values.filter(numbers))
        if detector.fit and (not detector.whole or detector.small):  # 007 and 008 are names
            yield "numbers", numbers
    for order in date_detectors(dialect.day_first):
        dates = pc.match_substring_regex(values, DateFormat(order.order, order.between).pattern)
        if _n_true(dates) >= max(1, share * len(values)):
            order.observe(values.filter(dates))
            if order.fit:
                yield "dates", dates


def _n_true(flags: ArrowArray) -> int:
    return compute().sum(flags).as_py() or 0


def _line(table: TableFile, row: int) -> int:
    """The line of a row."""
    if not isinstance(table.reader, CsvSource):
        return row + 2
    first = 0
    for raw in table.reader.raw_rows():
        if row < first + len(raw):
            return raw.line_of(row - first, table.reader.dialect.newline)
        first += len(raw)
    raise AssertionError("a row that was read is in the file")
