"""Parquet and Arrow (Feather) files: types, categories and metadata stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO

from ..exceptions import InPython, Message, Term
from .arrow import ArrowSchema, ArrowTable, arrow
from .chunk import Chunk
from .columns import Column, kind_of
from .csv_text import ROWS_PER_CHUNK
from .spellings import AmbiguousSpelling


class ArrowSource:
    """A Parquet or Arrow file that can be read again and again."""

    hints: Sequence[AmbiguousSpelling] = ()  # missing values are nulls here

    def __init__(self, stream: BinaryIO, format: str) -> None:  # noqa: A002 (the name that people pass)
        try:
            if format == "parquet":
                self._file = arrow("pyarrow.parquet").ParquetFile(stream)
                self.schema: ArrowSchema = self._file.schema_arrow
            else:
                self._file = _open_ipc(stream)
                self.schema = self._file.schema
        except ValueError as error:  # of pyarrow, on several lines
            said = str(error).partition("\n")[0]
            raise ValueError(
                Message(f"the file cannot be read as {format}: {said}; check its name, or pass ", Term("format"), InPython("="))
            ) from None
        if not any(batch.num_rows for batch in self._batches(ROWS_PER_CHUNK)):
            raise ValueError("the file has columns but no rows")

    @cached_property
    def columns(self) -> list[Column]:
        """Kinds of the columns, and how many values are missing."""
        n_missing = [0] * len(self.schema)
        for chunk in self.chunks():
            n_missing = [n + column.null_count for n, column in zip(n_missing, chunk.frame.columns, strict=True)]
        return [Column(field.name, kind_of(field.type), field.type, n) for field, n in zip(self.schema, n_missing, strict=True)]

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """The rows, some at a time."""
        pa, most = arrow(), ROWS_PER_CHUNK if rows is None else rows
        for batch in self._batches(most):
            for first in range(0, batch.num_rows, most):
                yield Chunk(pa.Table.from_batches([batch.slice(first, most)], self.schema))

    def chunks_of(self, frame: ArrowTable) -> Iterator[Chunk]:
        """All of them at once."""
        yield Chunk(frame)

    def describe(self) -> dict[str, Any]:
        """Nothing but the columns."""
        return {}

    def _batches(self, rows: int) -> Iterator[Any]:
        if hasattr(self._file, "iter_batches"):
            return iter(self._file.iter_batches(batch_size=rows))
        return (self._file.get_batch(place) for place in range(self._file.num_record_batches))


class ParquetWriter:
    """Writes chunks to a Parquet file."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._writer: Any = None

    def write(self, chunk: Chunk, completed: ArrowTable) -> None:
        """Write ``completed``, with the schema of ``chunk``."""
        completed = chunk.accept(completed)
        if self._writer is None:
            self._writer = arrow("pyarrow.parquet").ParquetWriter(self._sink, completed.schema)
        self._writer.write_table(completed)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()


class IpcWriter:
    """Writes chunks to an Arrow file."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._writer: Any = None
        self._waiting: list[ArrowTable] = []

    def write(self, chunk: Chunk, completed: ArrowTable) -> None:
        """Write ``completed``, with the schema of ``chunk``."""
        pa, completed = arrow(), chunk.accept(completed)
        if any(pa.types.is_dictionary(kind) for kind in completed.schema.types):
            self._waiting.append(completed)  # these files have one set of categories, known at the end
        else:
            self._write(completed)

    def close(self) -> None:
        """Write what is left and the end of the file."""
        if self._waiting:
            self._write(arrow().concat_tables(self._waiting).unify_dictionaries())
        if self._writer is not None:
            self._writer.close()

    def _write(self, table: ArrowTable) -> None:
        if self._writer is None:
            self._writer = arrow("pyarrow.ipc").new_file(self._sink, table.schema)
        self._writer.write_table(table)


def _open_ipc(stream: BinaryIO) -> Any:
    """A reader of batches by number; the streaming format, which has none, is read as a whole."""
    ipc = arrow("pyarrow.ipc")
    try:
        return ipc.open_file(stream)
    except ValueError:
        stream.seek(0)
        table = ipc.open_stream(stream).read_all()
    buffer = arrow().BufferOutputStream()
    with ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    return ipc.open_file(buffer.getvalue())
