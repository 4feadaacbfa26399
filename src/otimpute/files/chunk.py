"""Consecutive rows of a file, before and after their holes were filled."""

from __future__ import annotations

from dataclasses import dataclass

from .arrow import ArrowTable, arrow
from .csv_text import RawRows


@dataclass(frozen=True)
class Chunk:
    """Rows as a typed table with nulls for holes and, from a text file, as they stand there."""

    frame: ArrowTable
    raw: RawRows | None = None

    def accept(self, completed: ArrowTable) -> ArrowTable:
        """The completed rows, after a check that they have the columns, types and number of rows of this chunk.

        >>> pa = arrow()
        >>> Chunk(pa.table({"x": [1, None]})).accept(pa.table({"x": [1.0, 2.5]}))
        Traceback (most recent call last):
        ValueError: completed column 'x' must hold int64, got double: Float value 2.5...
        """
        pa = arrow()
        if not isinstance(completed, pa.Table):
            raise TypeError(f"completed must be a pyarrow Table, got {type(completed).__name__}")
        if completed.column_names != self.frame.column_names:
            raise ValueError(f"completed must have the columns {self.frame.column_names}, got {completed.column_names}")
        if completed.num_rows != self.frame.num_rows:
            raise ValueError(f"completed must have {self.frame.num_rows} rows, got {completed.num_rows}")
        arrays, fields = [], []
        for field, column in zip(self.frame.schema, completed.columns, strict=True):
            if pa.types.is_null(field.type):  # had no value, so no type to keep either
                field = field.with_type(column.type)
            try:
                arrays.append(column.cast(field.type))
            except (ValueError, NotImplementedError) as error:
                said = str(error).partition("\n")[0]
                raise ValueError(f"completed column {field.name!r} must hold {field.type}, got {column.type}: {said}") from None
            fields.append(field)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields, self.frame.schema.metadata))
