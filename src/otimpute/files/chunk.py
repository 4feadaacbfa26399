"""Consecutive rows of a file, before and after imputation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .arrow import ArrowTable, arrow, compute
from .csv_text import RawRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Chunk:
    """Rows as a typed table with nulls for missing values and, from a text file, as they stand there."""

    frame: ArrowTable
    raw: RawRows | None = None
    erased: NDArray[np.bool_] | None = None  # [n, d]: cells that had a value, which writers leave out

    def without(self, missing: NDArray[np.bool_], empty: str = "") -> Chunk:
        """These rows with more missing values: ``missing [n, d]`` cells lose their values, in text they become ``empty``.

        >>> import numpy as np
        >>> Chunk(arrow().table({"x": [1, 2]})).without(np.array([[True], [False]])).frame.to_pydict()
        {'x': [None, 2]}
        """
        pa, pc = arrow(), compute()
        columns: list[Any] = []
        raw = None if self.raw is None else replace(self.raw, fields=self.raw.fields.copy())
        for k, column in enumerate(self.frame.columns):
            holes = missing[:, k]
            columns.append(pc.if_else(pa.array(holes), pa.scalar(None, column.type), column) if holes.any() else column)
            if raw is not None:
                raw.replace_column(k, [empty if gone else field for field, gone in zip(raw.column(k), holes, strict=True)])
        return Chunk(pa.Table.from_arrays(columns, schema=self.frame.schema), raw, missing)

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
