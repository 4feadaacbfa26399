"""Write tables that never were in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import BinaryIO

from .arrow import ArrowSchema, ArrowTable
from .arrow_file import IpcWriter, ParquetWriter
from .chunk import Chunk
from .csv_file import CsvWriter
from .excel_file import ExcelWriter
from .formats import check_output, format_of, open_output


@contextmanager
def open_new_table(
    path: str | os.PathLike[str], schema: ArrowSchema, *, force: bool = False
) -> Iterator[Callable[[ArrowTable], None]]:
    r"""A function that takes rows of ``schema``; the file appears when all are written, or not at all.

    >>> import tempfile, pathlib, pyarrow
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> rows = pyarrow.table({"x": [True, False], "y": [1.5, None]})
    >>> with open_new_table(path, rows.schema) as write:
    ...     write(rows)
    >>> path.read_text()
    'x,y\ntrue,1.5\nfalse,\n'
    """
    path = os.fspath(path)
    form = format_of(path)
    check_output(path, force=force)
    with open_output(path) as sink, closing(_writer(sink, form, schema)) as writer:
        yield lambda rows: writer.write(Chunk(rows), rows)


def _writer(sink: BinaryIO, form: str, schema: ArrowSchema) -> CsvWriter | ParquetWriter | IpcWriter | ExcelWriter:
    if form == "parquet":
        return ParquetWriter(sink)
    if form == "arrow":
        return IpcWriter(sink)
    if form == "excel":
        return ExcelWriter(sink, None)
    return CsvWriter.plain(sink, schema, "\t" if form == "tsv" else ",")
