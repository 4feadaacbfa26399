"""The schema of a table whose parts do not all know it: a part without values cannot say what kind a column of objects is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._optional import require


def schema_state(part: Any) -> bytes:
    """The schema of one part, a pyarrow Table, as bytes."""
    state: bytes = part.schema.remove_metadata().serialize().to_pybytes()
    return state


def merged_schema(states: Iterable[bytes]) -> Any:
    """The schema that all parts can be cast to."""
    pa = require("pyarrow", "Arrow tables", "cli")
    schemas = [pa.ipc.read_schema(pa.BufferReader(state)) for state in set(states)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowTypeError as error:
        raise ValueError(
            f"a column holds values of several types in different partitions ({error}); convert it to one"
        ) from error
