"""Sources that this process reads itself, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._optional import require
from .._text import listed

_ROWS_PER_BATCH = 1 << 17
_ROWS_PER_PART = 1 << 20


@dataclass(frozen=True)
class LocalPart:
    """Some rows that can be read on their own; the name tells whether a part is the one that was read before."""

    name: str
    batches: Callable[[], Iterator[Any]]


@dataclass(frozen=True)
class LocalParts:
    """Rows in parts."""

    schema: Any
    parts: list[LocalPart]


def dataset_source(dataset: Any) -> LocalParts:
    """A pyarrow Dataset: a part is some row groups of a Parquet file, or another file as a whole."""
    parts = []
    schema = dataset.schema
    given = getattr(getattr(dataset, "partitioning", None), "schema", None)  # columns that the names of folders tell
    for fragment in dataset.get_fragments():
        path = getattr(fragment, "path", "")
        with _about(path):
            groups = _row_groups(fragment)
            _check_schema(fragment.physical_schema, schema, [] if given is None else given.names)
        for k, rows in enumerate(groups):
            name = f"{path} {_written(fragment)} {k} of {len(groups)}"
            parts.append(LocalPart(name, partial(_batches_of, rows, schema, path)))
    return LocalParts(schema, parts)


def _batches_of(rows: Any, schema: Any, path: str) -> Iterator[Any]:
    with _about(path):
        yield from rows.to_batches(schema=schema, batch_size=_ROWS_PER_BATCH)


def _check_schema(found: Any, wanted: Any, given: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the others: missing ones would be read as missing values."""
    for field in wanted:
        if field.name not in found.names and field.name not in given:
            raise ValueError(f"no column {field.name!r}, which other files have; there are {listed(found.names, 20)}")
        if field.name in found.names and found.field(field.name).type != field.type:
            raise ValueError(f"column {field.name!r} is {found.field(field.name).type}, in other files it is {field.type}")


@contextmanager
def _about(path: str) -> Iterator[None]:
    """Begin errors of a file with its name."""
    try:
        yield
    except (ValueError, OSError) as error:
        said = str(error).partition("\n")[0]
        if not path or path in said:
            raise
        raise ValueError(f"{path}: {said}") from error


def polars_source(frame: Any) -> LocalParts:
    """A polars LazyFrame, which is computed again in each pass."""
    pl = require("polars", "lazy frames")
    empty = pl.DataFrame(schema=frame.collect_schema()).to_arrow()

    def batches() -> Iterator[Any]:
        for rows in frame.collect_batches(chunk_size=_ROWS_PER_BATCH):
            yield from rows.to_arrow().cast(empty.schema).to_batches()

    return LocalParts(empty.schema, [LocalPart("all rows", batches)])


def duckdb_source(relation: Any) -> LocalParts:
    """A DuckDB relation, which is computed again in each pass."""

    def reader() -> Any:
        anew = relation.select("*")  # a result that was fetched in part would go on from there
        read = anew.to_arrow_reader if hasattr(anew, "to_arrow_reader") else anew.fetch_arrow_reader  # of DuckDB 1
        return read(_ROWS_PER_BATCH)

    return LocalParts(reader().schema, [LocalPart("all rows", lambda: iter(reader()))])


def _row_groups(fragment: Any) -> list[Any]:
    """A fragment in pieces of about as many rows each."""
    if not hasattr(fragment, "row_groups") or fragment.num_row_groups < 2:
        return [fragment]
    pieces: list[list[int]] = [[]]
    n_rows = 0
    for group in fragment.row_groups:
        if n_rows >= _ROWS_PER_PART:
            pieces.append([])
            n_rows = 0
        pieces[-1].append(group.id)
        n_rows += group.num_rows
    return [fragment.subset(row_group_ids=ids) for ids in pieces]


def _written(fragment: Any) -> str:
    """When a file was written and how long it is."""
    try:
        info = fragment.filesystem.get_file_info(fragment.path)
    except (AttributeError, OSError):
        return ""
    return f"{info.mtime_ns} {info.size}"
