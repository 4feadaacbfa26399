"""What frames do not do alike: which family of values a column belongs to, and how labels and objects are written.

Narwhals covers the rest; moments have a file of their own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .kinds import Family, MomentKind

PYTHON_MOMENTS = {dt.date: MomentKind.DATE, dt.time: MomentKind.TIME}
_EXACTLY = Context(prec=100)


def family_of(column: nw.Series[Any]) -> Family:
    """How the values of a column can be treated."""
    dtype, native = column.dtype, column.to_native()
    if is_number(dtype) or dtype == nw.Decimal:
        return Family.NUMBER
    own = str(getattr(native, "dtype", None) or getattr(native, "type", "")).lower()
    if own == "null" or (own == "object" and has_no_value(column)):
        return Family.NOTHING
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return Family.LABEL
    if dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time) or is_local(column):
        return Family.MOMENT
    if dtype != nw.Object or not column.implementation.is_pandas_like():
        return Family.OTHER
    kinds = python_types(column)
    if kinds <= {bool} or kinds <= {int, float} or kinds <= {Decimal}:
        return Family.NUMBER
    if kinds <= {str}:
        return Family.LABEL
    return Family.MOMENT if len(kinds) == 1 and kinds <= set(PYTHON_MOMENTS) else Family.OTHER


def columns_of(frame: nw.DataFrame[Any]) -> Iterator[nw.Series[Any]]:
    """The columns of a frame, those that pandas holds sparsely as ordinary ones."""
    for column in frame.iter_columns():
        yield nw.from_native(column.to_native().sparse.to_dense(), series_only=True) if _is_sparse(column) else column


def as_sparse_as(source: nw.Series[Any], column: nw.Series[Any]) -> nw.Series[Any]:
    """The ``column`` held sparsely if the one it was made of is; its values may have become floats."""
    if not _is_sparse(source):
        return column
    sparse, native = source.to_native().dtype, column.to_native()
    return nw.from_native(native.astype(type(sparse)(native.dtype, sparse.fill_value)), series_only=True)


def _is_sparse(column: nw.Series[Any]) -> bool:
    return column.implementation.is_pandas() and type(column.to_native().dtype).__name__ == "SparseDtype"


def has_no_value(column: nw.Series[Any]) -> bool:
    """Whether everything in a column is null or NaN."""
    return bool(nulls_of(column).all())


def nulls_of(column: nw.Series[Any]) -> NDArray[np.bool_]:
    """Where a column is null or NaN."""
    absent = column.is_null().to_numpy()
    return absent | column.is_nan().fill_null(True).to_numpy() if column.dtype.is_float() else absent


def observed_of(column: nw.Series[Any]) -> list[Any]:
    """The values of a column that are neither null nor NaN."""
    return [value for value, null in zip(column.to_list(), nulls_of(column), strict=True) if not null]


def is_number(dtype: Any) -> bool:
    """Floats, integers that NumPy has too, and booleans."""
    return bool(dtype.is_float() or dtype == nw.Boolean or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)))


def is_local(column: nw.Series[Any]) -> bool:
    """Whether pandas holds moments of a time zone here; narwhals does not recognise every zone (America/New_York)."""
    return column.implementation.is_pandas_like() and hasattr(column.to_native().dtype, "tz")


def python_types(column: nw.Series[Any]) -> set[type]:
    """The types of the values of a column of Python objects."""
    return {type(value.item() if isinstance(value, np.generic) else value) for value in observed_of(column)}


def is_ordered(column: nw.Series[Any]) -> bool:
    """Whether a column's categories were declared to have an order."""
    native = column.to_native()
    if column.dtype not in (nw.Categorical, nw.Enum):
        return False
    if column.implementation.is_pyarrow():
        return bool(native.type.ordered)
    return column.implementation.is_pandas_like() and bool(getattr(native.dtype, "ordered", False))


def declared_labels(column: nw.Series[Any]) -> list[Any] | None:
    """The categories a column was declared to have, in their order; None where it may hold any."""
    if column.dtype not in (nw.Categorical, nw.Enum):
        return None
    native = column.to_native()
    if column.implementation.is_pyarrow():
        return list(dict.fromkeys(label for chunk in native.chunks for label in chunk.dictionary.to_pylist()))
    if column.implementation.is_pandas_like():
        # A dictionary of Arrow inside pandas takes any label.
        return list(native.dtype.categories.tolist()) if hasattr(native.dtype, "categories") else None
    # So does a Categorical of polars.
    return list(native.dtype.categories.to_list()) if column.dtype == nw.Enum else None


def write_labels(column: nw.Series[Any], rows: NDArray[np.int64], labels: Sequence[Any]) -> nw.Series[Any]:
    """The column with labels in some rows."""
    native = column.to_native()
    if column.implementation.is_polars():
        strings = native.cast(column.__native_namespace__().String)
        return nw.from_native(strings.scatter(rows, list(labels)).cast(native.dtype), series_only=True)
    if not column.implementation.is_pyarrow():
        return assign(column, rows, list(labels))
    pa = column.__native_namespace__()
    if column.dtype == nw.Categorical:
        return nw.from_native(_write_dictionary(pa, native, rows, labels), series_only=True)
    return replace(column, native, rows, pa.array(labels, native.type), native.type)


def _write_dictionary(pa: Any, native: Any, rows: NDArray[np.int64], labels: Sequence[Any]) -> Any:
    """Chunk by chunk, for each has a dictionary of its own; what one lacks is added to it."""
    chunks, begin = [], 0
    for chunk in native.chunks:
        here = (rows >= begin) & (rows < begin + len(chunk))
        entries = chunk.dictionary.to_pylist()
        places: dict[Any, int] = {}
        for place, label in enumerate(entries):
            places.setdefault(label, place)
        chosen = [labels[k] for k in np.flatnonzero(here).tolist()]
        for label in chosen:
            if label not in places:
                places[label] = len(entries)
                entries.append(label)
        indices = np.asarray(chunk.indices.fill_null(0)).astype(np.int64)
        null = np.asarray(chunk.indices.is_null().to_numpy(zero_copy_only=False)).copy()
        indices[rows[here] - begin] = [places[label] for label in chosen]
        null[rows[here] - begin] = False
        written = pa.array(indices, mask=null).cast(chunk.indices.type)
        dictionary = pa.array(entries, chunk.dictionary.type)
        chunks.append(pa.DictionaryArray.from_arrays(written, dictionary, ordered=native.type.ordered))
        begin += len(chunk)
    return pa.chunked_array(chunks, native.type)


def write_booleans(column: nw.Series[Any], rows: NDArray[np.int64], values: NDArray[np.bool_]) -> nw.Series[Any]:
    """An Arrow column of booleans with some in some rows: by way of integers, for Arrow 16 cannot replace booleans."""
    pa, native = column.__native_namespace__(), column.to_native()
    return replace(column, native.cast(pa.int8()), rows, pa.array(values).cast(pa.int8()), native.type)


def write_objects(
    column: nw.Series[Any], rows: NDArray[np.int64], numbers: NDArray[np.floating], low: float, high: float
) -> nw.Series[Any]:
    """A column of decimals, or of Python's own numbers, with such numbers, inside the bounds, in some rows."""
    native = column.to_native()
    values: list[Any]
    if column.dtype == nw.Decimal or python_types(column) == {Decimal}:
        scale, digits = _decimal_format(column)
        values = [_decimal(number, scale, digits, low, high) for number in numbers.tolist()]
    else:
        kinds = python_types(column)
        make: Any = bool if kinds == {bool} else int if kinds == {int} else float
        rounded = numbers >= 0.5 if make is bool else np.rint(numbers) if make is int else numbers
        values = [make(number) for number in rounded.tolist()]
    if column.implementation.is_polars():
        cells = native.to_list()  # older ones cannot scatter decimals
        for row, value in zip(rows.tolist(), values, strict=True):
            cells[row] = value
        return nw.from_native(type(native)(column.name, cells, dtype=native.dtype), series_only=True)
    if column.implementation.is_pyarrow():
        return replace(column, native, rows, column.__native_namespace__().array(values, native.type), native.type)
    return assign(column, rows, values)


def _decimal_format(column: nw.Series[Any]) -> tuple[int, int | None]:
    """Digits after the point and in all, as declared, or the most that any observed value has."""
    native = column.to_native()
    declared: Any = native.type if column.implementation.is_pyarrow() else native.dtype
    declared = getattr(declared, "pyarrow_dtype", declared)
    if hasattr(declared, "scale"):
        return int(declared.scale), declared.precision
    return max((-int(value.as_tuple().exponent) for value in observed_of(column)), default=0), None


def _decimal(number: float, scale: int, digits: int | None, low: float, high: float) -> Decimal:
    """The nearest decimal of so many digits that lies inside the bounds."""
    step = Decimal(1).scaleb(-scale)
    value = Decimal(number).quantize(step, ROUND_HALF_EVEN, _EXACTLY)
    if value < low:
        value = Decimal(low).quantize(step, ROUND_CEILING, _EXACTLY)
    if value > high:
        value = Decimal(high).quantize(step, ROUND_FLOOR, _EXACTLY)
    if digits is not None:
        largest = (Decimal(10) ** digits - 1).scaleb(-scale, _EXACTLY)
        value = max(-largest, min(largest, value))
    return value


def assign(column: nw.Series[Any], rows: NDArray[np.int64], values: Any) -> nw.Series[Any]:
    """A copy of a pandas column with values in some rows."""
    native = column.to_native().copy()
    native.iloc[rows] = values
    return nw.from_native(native, series_only=True)


def replace(column: nw.Series[Any], native: Any, rows: NDArray[np.int64], values: Any, kind: Any) -> nw.Series[Any]:
    """An Arrow column with values in some rows, as type ``kind``."""
    pa = column.__native_namespace__()
    chosen = np.zeros(len(native), dtype=bool)
    chosen[rows] = True
    replaced = pa.compute.replace_with_mask(native, pa.array(chosen), values).cast(kind)
    return nw.from_native(replaced if isinstance(replaced, pa.ChunkedArray) else pa.chunked_array([replaced]), series_only=True)


def arrow_floats(column: nw.Series[Any]) -> NDArray[np.floating] | None:
    """The numbers of an Arrow column of floats, NaN where there is none, on the shortest way; None of any other column.

    Such columns are what long tables are made of, most of all those that come in batches.
    """
    if not (column.implementation.is_pyarrow() and column.dtype in (nw.Float64, nw.Float32)):
        return None
    return np.asarray(column.to_native().to_numpy())


def write_arrow_floats(column: nw.Series[Any], rows: NDArray[np.int64], numbers: NDArray[np.floating]) -> nw.Series[Any]:
    """An Arrow column of floats with numbers in some rows; nulls elsewhere stay null."""
    native, pa = column.to_native(), column.__native_namespace__()
    written = native.to_numpy()
    written = written if written.flags.writeable else written.copy()
    written[rows] = numbers
    null = native.is_null().to_numpy() if native.null_count else np.zeros(len(written), bool)
    null[rows] = False
    array = pa.array(written, native.type, mask=null if null.any() else None)
    return nw.from_native(pa.chunked_array([array]), series_only=True)


def numpy_type(column: nw.Series[Any]) -> np.dtype[Any]:
    """NumPy's name for the type of a column of numbers."""
    return np.dtype("bool" if column.dtype == nw.Boolean else str(column.dtype).lower())


def series_like(source: Any, name: str, values: Any, dtype: Any) -> nw.Series[Any]:
    """A new column for the frame that ``source``, a frame or a column of it, belongs to."""
    series = nw.new_series(name, values, dtype=dtype, backend=source.implementation)
    native = nw.to_native(source)
    if source.implementation.is_pandas_like() and hasattr(native, "index") and len(series) == len(source):
        series = nw.maybe_set_index(series, index=native.index)  # keep the rows aligned, whatever the index
    return series
