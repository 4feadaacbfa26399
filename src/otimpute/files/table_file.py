"""Read tables from files of any format and write them again, completed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ..exceptions import Message, Term
from .arrow import ArrowSchema, ArrowTable, arrow
from .arrow_file import ArrowSource, IpcWriter, ParquetWriter
from .chunk import Chunk
from .columns import Column
from .csv_file import CsvSource, CsvWriter
from .excel_file import ExcelSource, ExcelWriter
from .formats import STANDARD, TEXT, check_output, format_of, open_input, open_output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Writer(Protocol):
    """Takes completed chunks in the order in which they were read."""

    def write(self, chunk: Chunk, completed: ArrowTable) -> None:
        """Write ``completed`` where values of ``chunk`` are missing."""

    def close(self) -> None:
        """Write what is left."""


@dataclass(frozen=True)
class TableSource:
    """A file whose columns are known; rows are read on demand."""

    path: str
    format: str
    reader: CsvSource | ArrowSource | ExcelSource

    @property
    def gaps(self) -> dict[str, frozenset[str]]:
        """What means a missing value in each column: ``known_gaps`` of other files with these columns."""
        return {column.name: column.na_values for column in self.columns if column.na_values}

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of the columns."""
        return self.reader.schema

    @property
    def columns(self) -> list[Column]:
        """Kinds of the columns, and how many values are missing."""
        return self.reader.columns

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """Typed tables with nulls for missing values, of ``rows`` rows (fewer at the end; by default about 50 000)."""
        return self.reader.chunks(rows)

    def describe(self) -> dict[str, Any]:
        """Plain values, for people and JSON: format, dialect or sheet, columns with kinds and numbers of missing values."""
        columns = [column.describe() for column in self.columns]
        return {"path": self.path, "format": self.format, **self.reader.describe(), "columns": columns}


@dataclass(frozen=True)
class TableFile(TableSource):
    """A file that was read: ``frame`` is its table, with nulls for missing values."""

    frame: ArrowTable = field(repr=False)

    def describe(self) -> dict[str, Any]:
        """Plain values, for people and JSON: those of `TableSource`, and how many rows there are."""
        return {**super().describe(), "n_rows": self.frame.num_rows}

    def write(
        self,
        path: str | os.PathLike[str],
        completed: ArrowTable,
        *,
        force: bool = False,
        format: str | None = None,  # noqa: A002 (the name that people expect)
    ) -> None:
        """Write the table with ``completed`` in place of missing values.

        A text file is byte for byte the one that was read, except for missing values.

        Parameters
        ----------
        path
            Where to; "-" is standard output.
        completed
            A table with the columns, types and rows of ``frame``; what it says about cells that were not missing is not
            looked at in text files. Nulls leave holes as they were.
        force
            Replace a file that exists.
        format
            Instead of what the end of the name says: csv, tsv, parquet, arrow or excel.
        """
        with open_writer(path, self, force=force, format=format) as writer:
            Chunk(self.frame).accept(completed)
            first = 0
            for chunk in self.reader.chunks_of(self.frame):
                writer.write(chunk, completed.slice(first, chunk.frame.num_rows))
                first += chunk.frame.num_rows

    def write_without(
        self,
        path: str | os.PathLike[str],
        missing: NDArray[np.bool_],
        *,
        force: bool = False,
        format: str | None = None,  # noqa: A002
    ) -> None:
        """Write the table with more missing values: without its ``missing [n, d]`` cells, all others as they were.

        Other parameters are those of `write`.
        """
        empty = self.reader.empty if isinstance(self.reader, CsvSource) else ""
        with open_writer(path, self, force=force, format=format) as writer:
            first = 0
            for chunk in self.reader.chunks_of(self.frame):
                masked = chunk.without(missing[first : first + chunk.frame.num_rows], empty)
                writer.write(masked, masked.frame)
                first += chunk.frame.num_rows


def read_file(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    sheet: str | None = None,
    **dialect: Any,
) -> TableFile:
    r"""Read a table from a file.

    Parameters
    ----------
    path
        Its name ends in .csv, .tsv, .txt (also with .gz), .parquet, .feather, .arrow, .ipc or .xlsx; "-" is standard input.
    format
        Instead of what the end of the name says: csv, tsv, parquet, arrow or excel.
    sheet
        Of an Excel file; the first one by default.
    **dialect
        Of a text file, what shall not be detected: see `detect_dialect`. ``na_values`` and ``keep_values`` are for Excel too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_bytes(b"id;grams;at\r\n007;1,50;1.2.2020\r\n008;;3.12.2020\r\n")
    >>> table = read_file(path)
    >>> table.frame.column("grams").to_pylist()
    [1.5, None]
    >>> completed = table.frame.set_column(1, "grams", [[1.5, 2.25]])
    >>> table.write(path.with_name("completed.csv"), completed)
    >>> path.with_name("completed.csv").read_bytes()
    b'id;grams;at\r\n007;1,50;1.2.2020\r\n008;2,25;3.12.2020\r\n'
    """
    path = os.fspath(path)
    source = _open_source(open_input(path, keep=True), path, format, sheet, None, dialect)
    frame = arrow().concat_tables([chunk.frame for chunk in source.chunks()])
    return TableFile(source.path, source.format, source.reader, frame)


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    *,
    schema: ArrowSchema | None = None,
    format: str | None = None,  # noqa: A002
    sheet: str | None = None,
    **dialect: Any,
) -> Iterator[TableSource]:
    """Open a file to read it in chunks, with bounded memory.

    A text file is read twice: once to see what its columns are, and then for its values (standard input and compressed files
    are copied to a temporary file for that). Columns of ``schema`` must be there; in text files they are read as the types it
    gives, and a field that does not fit is an error. Parquet, Arrow and Excel files have types of their own. Other parameters
    are those of `read_file`.
    """
    path = os.fspath(path)
    with open_input(path, keep=False) as stream:
        yield _open_source(stream, path, format, sheet, schema, dialect)


@contextmanager
def open_writer(
    path: str | os.PathLike[str],
    source: TableSource,
    *,
    force: bool = False,
    format: str | None = None,  # noqa: A002
) -> Iterator[Writer]:
    r"""Open a file for the chunks of ``source``, completed; it appears when all are written, or not at all.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("a,b\n1,\n2,x\n")
    >>> with open_table(path) as source, open_writer(path.with_name("completed.csv"), source) as writer:
    ...     for chunk in source.chunks(rows=1):
    ...         writer.write(chunk, chunk.frame.set_column(1, "b", [["y"]]))
    >>> path.with_name("completed.csv").read_text()
    'a,b\n1,y\n2,x\n'
    """
    path = os.fspath(path)
    follow = path == STANDARD and format is None and source.format in TEXT
    format = source.format if follow else format_of(path, format)  # noqa: A001
    check_output(path, source.path, force=force)
    with open_output(path) as sink, closing(_writer(sink, format, source)) as writer:
        yield writer


def _open_source(
    stream: BinaryIO,
    path: str,
    declared_format: str | None,
    sheet: str | None,
    schema: ArrowSchema | None,
    dialect: dict[str, Any],
) -> TableSource:
    form = format_of(path, declared_format)
    if sheet is not None and form != "excel":
        raise ValueError(Message(Term("sheet"), f" is for Excel files, and {path!r} is read as {form}"))
    spellings = ("na_values", "keep_values", "known_gaps")
    accepted = ("known_gaps",) if form in ("parquet", "arrow") else spellings if form == "excel" else tuple(dialect)
    if unfit := [name for name in dialect if name not in accepted]:
        raise ValueError(
            Message(
                Term(unfit[0]),
                *(part for name in unfit[1:] for part in (", ", Term(name))),
                f" is for text files, and {path!r} is read as {form}",
            )
        )
    reader: CsvSource | ArrowSource | ExcelSource
    if form in TEXT:
        reader = CsvSource(stream, schema=schema, **({"delimiter": "\t"} if form == "tsv" else {}) | dialect)
    elif form == "excel":
        reader = ExcelSource(stream, sheet=sheet, **dialect)
    else:
        reader = ArrowSource(stream, form)
    absent = [] if schema is None else sorted(set(schema.names) - set(reader.schema.names))
    if absent:
        listed = ", ".join(map(repr, absent))
        raise ValueError(f"{path!r} has no column {listed}; it has {', '.join(map(repr, reader.schema.names))}")
    return TableSource(path, form, reader)


def _writer(sink: BinaryIO, form: str, source: TableSource) -> Writer:
    reader = source.reader
    if form == "parquet":
        return ParquetWriter(sink)
    if form == "arrow":
        return IpcWriter(sink)
    if form == "excel":
        return ExcelWriter(sink, reader if isinstance(reader, ExcelSource) else None)
    usual = "\t" if form == "tsv" else ","
    if not isinstance(reader, CsvSource):
        return CsvWriter.plain(sink, reader.schema, usual)
    delimiter = reader.dialect.delimiter if form == source.format else usual
    return CsvWriter(sink, reader.dialect, reader.columns, reader.header, delimiter)
