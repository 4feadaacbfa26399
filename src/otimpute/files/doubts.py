"""Columns of text that were almost columns of numbers or dates, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arrow import ArrowArray, arrow, compute
from .csv_file import CsvSource
from .dates import DateFormat, date_clues
from .dialect import Dialect
from .numbers import NumberClues, NumberFormat

if TYPE_CHECKING:
    from .table_file import TableFile

_MOST = 0.9  # so many values make a column suspicious
_SAMPLE = 1000  # most columns of text show by so many values that they are none of numbers
_MISFITS = 4


@dataclass(frozen=True)
class Doubt:
    """A column that is text because of a few of its values."""

    name: str
    holds: str  # numbers or dates
    n_fitting: int
    n_values: int
    misfits: tuple[str, ...] = ()  # the first ones that differ; none: dates that do not show what comes first
    line: int = 0  # of the first misfit
    na_values: tuple[str, ...] = ()  # what means a missing value in the file, besides nothing


def find_doubts(table: TableFile) -> list[Doubt]:
    r"""The columns of a text or Excel file that would be numbers or dates but for a few values.

    >>> import tempfile, pathlib
    >>> from otimpute.files import read_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("x,y\n" + "1.5,2\n" * 20 + "1O.5,3\n")
    >>> find_doubts(read_file(path))
    [Doubt(name='x', holds='numbers', n_fitting=20, n_values=21, misfits=('1O.5',), line=22, na_values=())]
    """
    if table.format in ("parquet", "arrow"):
        return []
    dialect = table.reader.dialect if isinstance(table.reader, CsvSource) else Dialect(decimal=".")
    columns = [column for column in table.columns if column.kind == "string"]
    found = (_doubt(table, column.name, dialect) for column in columns)
    return [doubt for doubt in found if doubt is not None]


def _doubt(table: TableFile, name: str, dialect: Dialect) -> Doubt | None:
    pa, pc = arrow(), compute()
    cells = pc.utf8_trim_whitespace(table.frame.column(name).combine_chunks().cast(pa.string()))
    clear = pc.and_not(pc.is_valid(cells), pc.is_in(cells, pa.array(sorted(dialect.na_in_numbers), pa.string())))
    rows = pc.indices_nonzero(clear)
    values = cells.take(rows)
    n_values = len(values)
    if not any(_fitting(values[:_SAMPLE], dialect, 0.5)):
        return None
    fits = list(_fitting(values, dialect, _MOST))
    complete = [holds for holds, fitting in fits if pc.all(fitting).as_py()]
    if complete:
        return Doubt(name, "dates", n_values, n_values) if len(complete) > 1 else None
    if not fits:
        return None
    holds, fitting = fits[0]
    misfits = pc.indices_nonzero(pc.invert(fitting))
    line, na_values = _place(table, rows[misfits[0].as_py()].as_py())
    different = values.take(misfits).unique()[:_MISFITS].to_pylist()
    return Doubt(name, holds, n_values - len(misfits), n_values, tuple(different), line, na_values)


def _fitting(values: ArrowArray, dialect: Dialect, share: float) -> Iterator[tuple[str, ArrowArray]]:
    """Kinds that at least a share of the values have, and which of them do."""
    pc, mark = compute(), dialect.decimal or "."
    numbers = NumberFormat(mark).fit(values)
    if _n_true(numbers) >= max(1, share * len(values)):
        clues = NumberClues(mark)
        clues.observe(values.filter(numbers))
        if clues.fit and (not clues.whole or clues.small):  # 007 and 008 are names
            yield "numbers", numbers
    for order in date_clues(dialect.day_first):
        dates = pc.match_substring_regex(values, DateFormat(order.order, order.between).pattern)
        if _n_true(dates) >= max(1, share * len(values)):
            order.observe(values.filter(dates))
            if order.fit:
                yield "dates", dates


def _n_true(flags: ArrowArray) -> int:
    return compute().sum(flags).as_py() or 0


def _place(table: TableFile, row: int) -> tuple[int, tuple[str, ...]]:
    """The line of a row, and the spellings of missing values that are in use."""
    if not isinstance(table.reader, CsvSource):
        return row + 2, ()
    dialect, line, first, said = table.reader.dialect, 0, 0, set()
    for raw in table.reader.raw_rows():
        said |= set(raw.fields) & (dialect.na_values | dialect.na_in_numbers)
        if first <= row < first + len(raw):
            line = raw.line_of(row - first, dialect.newline)
        first += len(raw)
    return line, tuple(sorted(said - {""}))
