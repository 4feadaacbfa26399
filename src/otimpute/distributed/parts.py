"""Parts of frames as record batches: of a good size, and of one schema where parts do not all know it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._optional import require

COMBINED = 16  # results of a fold that become one
_ROWS, _BYTES = 1 << 15, 1 << 24  # more rows at a time are no faster; a batch is copied a few times


def batches_of(table: Any) -> Iterator[Any]:
    """The rows of a pyarrow Table."""
    rows = _rows_per_batch(table)
    yield from (table.slice(begin, rows).combine_chunks().to_batches()[0] for begin in range(0, table.num_rows, rows))


def regrouped(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in batches that are not small."""
    pa = require("pyarrow", "Arrow tables", "cli")
    waiting: list[Any] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        if n_rows >= _rows_per_batch(batch):
            yield from batches_of(pa.Table.from_batches(waiting))
            waiting, n_rows = [], 0
    if n_rows:
        yield from batches_of(pa.Table.from_batches(waiting))


def batch_of_states(states: list[bytes]) -> Any:
    """Results of a fold as a record batch, for engines whose workers return rows."""
    pa = require("pyarrow", "Arrow tables", "cli")
    return pa.record_batch({"state": pa.array(states, pa.binary())})


def schema_state(part: Any) -> bytes:
    """The schema of one part, a pyarrow Table, as bytes."""
    state: bytes = part.schema.remove_metadata().serialize().to_pybytes()
    return state


def merged_schema(states: Iterable[bytes]) -> Any:
    """The schema that all parts can be cast to: a part without values cannot say what a column of objects holds."""
    pa = require("pyarrow", "Arrow tables", "cli")
    schemas = [pa.ipc.read_schema(pa.BufferReader(state)) for state in set(states)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowTypeError as error:
        raise ValueError(
            f"a column holds values of several types in different partitions ({error}); convert it to one"
        ) from error


def _rows_per_batch(rows: Any) -> int:
    return max(min(_ROWS, _BYTES * int(rows.num_rows) // max(int(rows.nbytes), 1)), 1)
