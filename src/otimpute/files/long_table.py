"""Several completed tables in one file, below each other, as mice's long format."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import BinaryIO

from .arrow import ArrowSchema, ArrowTable, arrow
from .arrow_file import IpcWriter, ParquetWriter
from .chunk import Chunk
from .columns import Column, kind_of
from .csv_file import CsvSource, CsvWriter
from .csv_text import RawRows
from .excel_file import ExcelWriter
from .formats import STANDARD, TEXT, check_output, format_of, open_output
from .table_file import TableFile, Writer

LONG_COLUMNS = (".imp", ".id")  # number of the table, number of the row


def check_long(table: TableFile) -> None:
    """Raise if a column is already called as one that the long format adds."""
    for name in LONG_COLUMNS:
        if name in table.frame.column_names:
            raise ValueError(f"the table has a column {name!r}, which the long format adds; rename it")


def write_long(
    table: TableFile,
    path: str | os.PathLike[str],
    completed: Iterable[ArrowTable],
    *,
    force: bool = False,
    format: str | None = None,  # noqa: A002 (the name that people pass)
) -> None:
    r"""Write a table as ``.imp`` 0 and completed ones as 1, 2, ...; in text, all fields with a value stay as they were.

    Parameters
    ----------
    table
        A file that was read.
    path
        The file appears when it is complete, or not at all.
    completed
        Like ``table.frame``, with values where it has nulls.
    force, format
        As in `TableFile.write`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from otimpute.files import read_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("id,size\n007,1.50\n008,NA\n")
    >>> table = read_file(path)
    >>> sizes = [[1.5, 2.25], [1.5, 3]]
    >>> write_long(table, path.with_name("long.csv"), [table.frame.set_column(1, "size", [each]) for each in sizes])
    >>> print(path.with_name("long.csv").read_text())
    .imp,.id,id,size
    0,1,007,1.50
    0,2,008,NA
    1,1,007,1.50
    1,2,008,2.25
    2,1,007,1.50
    2,2,008,3.00
    <BLANKLINE>
    """
    path = os.fspath(path)
    check_long(table)
    follow = path == STANDARD and format is None and table.format in TEXT
    form = table.format if follow else format_of(path, format)
    check_output(path, table.path, force=force)
    with open_output(path) as sink, closing(_writer(sink, form, table)) as writer:
        _write_one(writer, table, table.frame, 0)
        for k, one in enumerate(completed, start=1):
            _write_one(writer, table, one, k)


def _write_one(writer: Writer, table: TableFile, completed: ArrowTable, k: int) -> None:
    first = 0
    for chunk in table.reader.chunks_of(table.frame):
        n = chunk.frame.num_rows
        raw = None if chunk.raw is None else _long_rows(chunk.raw, k, first, _line_end(table))
        before = Chunk(_long_frame(chunk.frame, k, first), raw)
        writer.write(before, _long_frame(completed.slice(first, n), k, first))
        first += n


def _long_frame(frame: ArrowTable, k: int, first: int) -> ArrowTable:
    pa = arrow()
    numbers = pa.array([k] * frame.num_rows, pa.int64()), pa.array(range(first + 1, first + frame.num_rows + 1), pa.int64())
    return pa.Table.from_arrays([*numbers, *frame.columns], schema=_long_schema(frame.schema))


def _long_schema(schema: ArrowSchema) -> ArrowSchema:
    pa = arrow()
    fields = [pa.field(name, pa.int64()) for name in LONG_COLUMNS]
    metadata = {name: said for name, said in (schema.metadata or {}).items() if name != b"pandas"}  # says which columns exist
    return pa.schema([*fields, *schema], metadata or None)


def _long_rows(raw: RawRows, k: int, first: int, line_end: str) -> RawRows:
    """The rows with two fields in front; what ended the last one in the file may be nothing or several lines."""
    width = raw.n_columns
    rows = (raw.fields[row * width : (row + 1) * width] for row in range(len(raw)))
    fields = [field for row, own in enumerate(rows, first + 1) for field in (str(k), str(row), *own)]
    return RawRows(fields, [*raw.ends[:-1], line_end], width + len(LONG_COLUMNS), raw.first_line)


def _line_end(table: TableFile) -> str:
    return table.reader.dialect.line_end if isinstance(table.reader, CsvSource) else "\n"


def _writer(sink: BinaryIO, form: str, table: TableFile) -> Writer:
    reader = table.reader
    if form == "parquet":
        return ParquetWriter(sink)
    if form == "arrow":
        return IpcWriter(sink)
    if form == "excel":
        return ExcelWriter(sink, None)
    usual = "\t" if form == "tsv" else ","
    if not isinstance(reader, CsvSource):
        return CsvWriter.plain(sink, _long_schema(reader.schema), usual)
    int64 = arrow().int64()
    columns = [*(Column(name, kind_of(int64), int64) for name in LONG_COLUMNS), *reader.columns]
    header = reader.header
    if header is not None:
        header = replace(header, fields=[*LONG_COLUMNS, *header.fields], n_columns=len(columns))
    return CsvWriter(sink, reader.dialect, columns, header, reader.dialect.delimiter if form == table.format else usual)
