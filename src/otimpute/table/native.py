"""What frames do not do alike: which kind of values a column holds, and how moments and labels are read and written.

Narwhals covers the rest. Moments travel as whole numbers of a unit, labels as Python values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

# In which unit the moments of a kind are counted where the column itself has none.
_OWN_UNIT = {"Date": "D", "Time": "ns"}
_PYTHON_MOMENTS = {dt.date: "Date", dt.time: "Time"}


def family_of(column: nw.Series[Any]) -> str:
    """How the values of a column can be treated: ``"number"``, ``"label"``, ``"moment"``, ``"nothing"`` or ``"other"``."""
    dtype = column.dtype
    if is_number(dtype) or dtype == nw.Decimal:
        return "number"
    of_objects = column.implementation.is_pandas_like() and str(column.to_native().dtype) == "object"
    if (of_objects or dtype in (nw.Object, nw.Unknown)) and bool(column.is_null().all()):
        return "nothing"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "label"
    if dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time) or _is_local(column):
        return "moment"
    if dtype != nw.Object or not column.implementation.is_pandas_like():
        return "other"
    kinds = python_types(column)
    if kinds <= {bool} or kinds <= {int, float} or kinds <= {Decimal}:
        return "number"
    if kinds <= {str}:
        return "label"
    return "moment" if len(kinds) == 1 and kinds <= set(_PYTHON_MOMENTS) else "other"


def is_number(dtype: Any) -> bool:
    """Floats, integers that NumPy has too, and booleans."""
    return bool(dtype.is_float() or dtype == nw.Boolean or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)))


def python_types(column: nw.Series[Any]) -> set[type]:
    """The types of the values of a column of Python objects."""
    return {type(value.item() if isinstance(value, np.generic) else value) for value in column.drop_nulls().to_list()}


def moment_kind(column: nw.Series[Any]) -> tuple[str, str]:
    """Which moments a column holds, and the unit it counts them in: ``("Datetime", "us")``."""
    dtype: Any = column.dtype
    if _is_local(column):
        return "Datetime", column.to_native().dtype.unit
    kind = _PYTHON_MOMENTS[next(iter(python_types(column)))] if dtype == nw.Object else type(dtype).__name__
    return kind, _OWN_UNIT.get(kind) or dtype.time_unit


def _is_local(column: nw.Series[Any]) -> bool:
    """Whether pandas holds moments of a time zone here; narwhals does not recognise every zone (America/New_York)."""
    return column.implementation.is_pandas_like() and hasattr(column.to_native().dtype, "tz")


def read_moments(column: nw.Series[Any], kind: str, unit: str) -> NDArray[np.int64]:
    """Moments as whole numbers of ``unit`` since 1970 (or midnight, or 0); 0 where null."""
    absent = column.is_null().to_numpy()
    if kind == "Time" or (kind == "Date" and column.implementation.is_pandas_like()):
        to_number = _nanoseconds if kind == "Time" else dt.date.toordinal
        epoch = 0 if kind == "Time" else dt.date(1970, 1, 1).toordinal()
        pairs = zip(column.to_list(), absent, strict=True)
        return np.array([0 if null else to_number(value) - epoch for value, null in pairs], dtype=np.int64)
    moments = column.to_native().dt.tz_convert(None).to_numpy() if _is_local(column) else column.to_numpy()
    numbers = moments.astype(f"{'m8' if kind == 'Duration' else 'M8'}[{unit}]").view(np.int64)
    return np.where(absent, 0, numbers)


def write_moments(
    column: nw.Series[Any], rows: NDArray[np.int64], kind: str, numbers: NDArray[np.int64], unit: str
) -> nw.Series[Any]:
    """The column with moments, as whole numbers of ``unit``, in some rows."""
    native = column.to_native()
    own_unit = moment_kind(column)[1]
    if column.implementation.is_pyarrow():
        own_unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(native.type)) or native.type.unit
    numbers = numbers.view(f"m8[{unit}]").astype(f"m8[{own_unit}]").view(np.int64)
    if column.implementation.is_polars():
        return nw.from_native(native.to_physical().scatter(rows, numbers).cast(native.dtype), series_only=True)
    if column.implementation.is_pyarrow():
        pa = column.__native_namespace__()
        whole = pa.int32() if native.type.bit_width == 32 else pa.int64()
        return _replace(column, native.cast(whole), rows, pa.array(numbers).cast(whole), native.type)
    if kind == "Time":
        return _assign(column, rows, [time_of_day(number) for number in numbers.tolist()])
    if kind == "Date":
        days = numbers + dt.date(1970, 1, 1).toordinal()
        return _assign(column, rows, [dt.date.fromordinal(day) for day in days.tolist()])
    values = numbers.view(f"{'m8' if kind == 'Duration' else 'M8'}[{own_unit}]")
    moments = nw.new_series(column.name, values, backend=column.implementation).to_native()
    if _is_local(column):
        moments = moments.dt.tz_localize("UTC").dt.tz_convert(native.dtype.tz)
    return _assign(column, rows, moments.array)


def is_ordered(column: nw.Series[Any]) -> bool:
    """Whether a column's categories were declared to have an order."""
    native = column.to_native()
    if column.dtype not in (nw.Categorical, nw.Enum):
        return False
    if column.implementation.is_pyarrow():
        return bool(native.type.ordered)
    return bool(getattr(native.dtype, "ordered", False)) if column.implementation.is_pandas_like() else False


def declared_labels(column: nw.Series[Any]) -> list[Any] | None:
    """The categories a column was declared to have, in their order; None where it may hold any."""
    if column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if column.implementation.is_polars() and column.dtype == nw.Categorical:
        return None  # takes any string
    native = column.to_native()
    if column.implementation.is_pyarrow():
        return list(native.unify_dictionaries().combine_chunks().dictionary.to_pylist())
    if column.implementation.is_pandas_like():
        return list(native.cat.categories.tolist())
    return list(native.dtype.categories.to_list())


def write_labels(column: nw.Series[Any], rows: NDArray[np.int64], labels: Sequence[Any]) -> nw.Series[Any]:
    """The column with labels in some rows."""
    native = column.to_native()
    if column.implementation.is_polars():
        strings = native.cast(column.__native_namespace__().String)
        return nw.from_native(strings.scatter(rows, list(labels)).cast(native.dtype), series_only=True)
    if not column.implementation.is_pyarrow():
        return _assign(column, rows, list(labels))
    pa = column.__native_namespace__()
    if column.dtype == nw.String:
        return _replace(column, native, rows, pa.array(labels, native.type), native.type)
    whole = native.unify_dictionaries().combine_chunks()
    places = {label: place for place, label in enumerate(whole.dictionary.to_pylist())}
    chosen = pa.array([places[label] for label in labels]).cast(whole.indices.type)
    indices = _replace(column, whole.indices, rows, chosen, whole.indices.type).to_native().combine_chunks()
    written = pa.DictionaryArray.from_arrays(indices, whole.dictionary, ordered=native.type.ordered)
    return nw.from_native(pa.chunked_array([written]), series_only=True)


def write_objects(column: nw.Series[Any], rows: NDArray[np.int64], numbers: NDArray[np.floating]) -> nw.Series[Any]:
    """A column of decimals, or of Python's own numbers, with such numbers in some rows."""
    native = column.to_native()
    values: list[Any]
    if column.dtype == nw.Decimal or python_types(column) == {Decimal}:
        observed = column.drop_nulls().to_list()
        places = max((-int(value.as_tuple().exponent) for value in observed), default=0)
        values = [round(Decimal(number), max(places, 0)) for number in numbers.tolist()]
    else:
        kinds = python_types(column)
        make: Any = bool if kinds == {bool} else int if kinds == {int} else float
        cells = numbers >= 0.5 if make is bool else np.rint(numbers) if make is int else numbers
        values = [make(cell) for cell in cells.tolist()]
    if column.implementation.is_polars():
        written = column.__native_namespace__().Series(values, dtype=native.dtype)
        return nw.from_native(native.scatter(rows, written), series_only=True)
    if column.implementation.is_pyarrow():
        return _replace(column, native, rows, column.__native_namespace__().array(values, native.type), native.type)
    return _assign(column, rows, values)


def _assign(column: nw.Series[Any], rows: NDArray[np.int64], values: Any) -> nw.Series[Any]:
    native = column.to_native().copy()
    native.iloc[rows] = values
    return nw.from_native(native, series_only=True)


def _replace(column: nw.Series[Any], native: Any, rows: NDArray[np.int64], values: Any, kind: Any) -> nw.Series[Any]:
    pa = column.__native_namespace__()
    chosen = np.zeros(len(native), dtype=bool)
    chosen[rows] = True
    replaced = pa.compute.replace_with_mask(native, pa.array(chosen), values).cast(kind)
    return nw.from_native(replaced if isinstance(replaced, pa.ChunkedArray) else pa.chunked_array([replaced]), series_only=True)


def _nanoseconds(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 10**9 + time.microsecond * 1000


def time_of_day(nanoseconds: int) -> dt.time:
    """The time so many nanoseconds after midnight."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest // 1000)
