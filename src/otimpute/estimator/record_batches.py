"""Tables as a stream of Arrow record batches: each is imputed as it comes, and leaves with the schema it came with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import narwhals as nw
from sklearn import config_context

from .._optional import require
from .._text import listed

if TYPE_CHECKING:
    from .base import BaseImputer


def is_batch(X: Any) -> bool:
    """Whether ``X`` is a pyarrow RecordBatch, without importing pyarrow."""
    return type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow")


def table_of_batch(batch: Any) -> Any:
    """The rows of a batch as a pyarrow Table."""
    return require("pyarrow", "Arrow tables", "cli").Table.from_batches([batch])


def batch_of_table(table: Any) -> Any:
    """All rows of a pyarrow Table as one batch."""
    pa = require("pyarrow", "Arrow tables", "cli")
    columns = [column.combine_chunks() for column in table.columns]
    arrays = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def impute_batches(imputer: BaseImputer, batches: Iterable[Any]) -> Iterator[Any]:
    """Complete one batch after the other; see `BaseImputer.transform_batches`."""
    return _impute_each(_plain(imputer), batches)


def _impute_each(imputer: BaseImputer, batches: Iterable[Any]) -> Iterator[Any]:
    first = None
    for k, batch in enumerate(batches):
        if not is_batch(batch):
            raise TypeError(f"batches must be pyarrow RecordBatches, got {type(batch).__name__}; pass table.to_batches()")
        if first is None:
            first = batch.schema
            check_schema(imputer, first)
        elif not batch.schema.equals(first):
            raise ValueError(f"batch {k} has another schema than those before it: {_difference(first, batch.schema)}")
        yield _impute(imputer, batch)


def check_schema(imputer: BaseImputer, schema: Any) -> None:
    """Refuse a schema that has not got the columns of the model, or holds something else in them."""
    pa = require("pyarrow", "Arrow tables", "cli")
    names, encoding = schema.names, imputer.training_table_.encoding
    if not encoding.names:
        raise ValueError("the imputer was fitted on columns without names; fit it on a frame, whose columns batches can match")
    twice = sorted({name for name in names if names.count(name) > 1} & set(encoding.names))
    if twice:
        raise ValueError(f"columns {listed(twice)} occur more than once; rename them")
    # Rules may need any column, even one that is not imputed.
    has_rules = imputer.derive is not None or imputer.applicable is not None
    used = [name for name, kind in encoding.kinds.items() if has_rules or not kind.is_idle]
    absent = [name for name in used if name not in names]
    if absent:
        raise ValueError(f"no column {listed(absent)}, which the model needs; there are {listed(names, 20)}")
    fields = {name: schema.field(name) for name in encoding.names if name in names}
    for name in used:
        if pa.types.is_null(fields[name].type):
            raise ValueError(f"column {name!r} has the type null, which holds no value; cast it to the type it had in training")
    encoding.check_types(nw.from_native(pa.schema(fields.values()).empty_table(), eager_only=True))


def _plain(imputer: BaseImputer) -> BaseImputer:
    """The imputer, with Arrow tables as its output; refused if these have other columns or types than those that come in."""
    imputer._refuse_rows_together("a stream of batches")
    if imputer.add_indicator:
        raise ValueError("add_indicator=True adds columns, and batches keep their schema; fit with add_indicator=False")
    if imputer.integers != "round":
        raise ValueError(
            f"integers={imputer.integers!r} changes the types of columns, and batches keep their schema; "
            'pass integers="round" to the imputer'
        )
    plain = copy(imputer)
    plain.__dict__.pop("_sklearn_output_config", None)
    return plain


def _impute(imputer: BaseImputer, batch: Any) -> Any:
    if not batch.num_rows:
        return batch
    pa = require("pyarrow", "Arrow tables", "cli")
    table, names = table_of_batch(batch), batch.schema.names
    nothing = pa.repeat(False, batch.num_rows)  # in place of absent columns, none of which the model uses
    model_names = imputer.training_table_.encoding.names
    columns = [table.column(name) if name in names else nothing for name in model_names]
    with config_context(transform_output="default"):
        filled = imputer.transform(pa.table(dict(zip(model_names, columns, strict=True))))
    for name in filled.column_names:
        if name in names and filled.column(name) is not table.column(name):
            place = names.index(name)
            table = table.set_column(place, batch.schema.field(place), filled.column(name))
    return batch_of_table(table)


def _difference(before: Any, after: Any) -> str:
    """The first column in which two schemas differ, in words."""
    for name in before.names:
        if name not in after.names:
            return f"it has no column {name!r}"
        if before.field(name).type != after.field(name).type:
            return f"column {name!r} is {after.field(name).type} there, and {before.field(name).type} before"
    more = [name for name in after.names if name not in before.names]
    return f"it has the columns {listed(more)} too" if more else "its columns come in another order"
