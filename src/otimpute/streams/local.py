"""Sources that this process reads itself, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._optional import require

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
    for fragment in dataset.get_fragments():
        groups = _row_groups(fragment)
        for k, rows in enumerate(groups):
            name = f"{getattr(fragment, 'path', '')} {_written(fragment)} {k} of {len(groups)}"
            parts.append(LocalPart(name, lambda rows=rows: rows.to_batches(schema=dataset.schema, batch_size=_ROWS_PER_BATCH)))
    return LocalParts(dataset.schema, parts)


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
        return relation.to_arrow_reader(_ROWS_PER_BATCH) if hasattr(relation, "to_arrow_reader") else relation.record_batch()

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
