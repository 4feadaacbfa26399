"""Dates, times and durations as whole numbers of a unit, and back; bounds that people write for them."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .kinds import MomentKind
from .native import PYTHON_MOMENTS, assign, is_local, python_types, replace

NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# In which unit the moments of a kind are counted where the column itself has none.
_OWN_UNIT = {MomentKind.DATE: "D", MomentKind.TIME: "ns"}
_EPOCH = dt.datetime(1970, 1, 1)


def moment_kind(column: nw.Series[Any]) -> tuple[MomentKind, str]:
    """Which moments a column holds, and the unit it counts them in: ``("Datetime", "us")``."""
    dtype: Any = column.dtype
    if is_local(column):
        return MomentKind.DATETIME, column.to_native().dtype.unit
    kind = PYTHON_MOMENTS[next(iter(python_types(column)))] if dtype == nw.Object else MomentKind(type(dtype).__name__)
    return kind, _OWN_UNIT.get(kind) or dtype.time_unit


def read_moments(column: nw.Series[Any], unit: str) -> NDArray[np.int64]:
    """Moments as whole numbers of ``unit`` since 1970 (or midnight, or 0); 0 where null."""
    kind, own_unit = moment_kind(column)
    absent = column.is_null().to_numpy()
    if kind == MomentKind.TIME or (kind == MomentKind.DATE and column.implementation.is_pandas_like()):
        to_number = _nanoseconds if kind == MomentKind.TIME else lambda day: day.toordinal() - _EPOCH.toordinal()
        pairs = zip(column.to_list(), absent, strict=True)
        numbers = np.array([0 if null else to_number(value) for value, null in pairs], dtype=np.int64)
    else:
        moments = column.to_native().dt.tz_convert(None).to_numpy() if is_local(column) else column.to_numpy()
        numbers = moments.astype(_numpy_type(kind, own_unit)).view(np.int64)
    return _in_unit(np.where(absent, 0, numbers), own_unit, unit)


def write_moments(column: nw.Series[Any], rows: NDArray[np.int64], numbers: NDArray[np.int64], unit: str) -> nw.Series[Any]:
    """The column with moments, as whole numbers of ``unit``, in some rows."""
    native = column.to_native()
    kind, own_unit = moment_kind(column)
    if column.implementation.is_pyarrow() and kind == MomentKind.TIME:
        own_unit = native.type.unit
    numbers = _in_unit(numbers, unit, own_unit)
    if column.implementation.is_polars():
        return nw.from_native(native.to_physical().scatter(rows, numbers).cast(native.dtype), series_only=True)
    if column.implementation.is_pyarrow():
        pa = column.__native_namespace__()
        whole = pa.int32() if native.type.bit_width == 32 else pa.int64()
        return replace(column, native.cast(whole), rows, pa.array(numbers).cast(whole), native.type)
    if kind in (MomentKind.DATE, MomentKind.TIME):
        return assign(column, rows, python_moments(kind, numbers, own_unit))
    values = numbers.view(_numpy_type(kind, own_unit))
    moments = nw.new_series(column.name, values, backend=column.implementation).to_native()
    if is_local(column):
        moments = moments.dt.tz_localize("UTC").dt.tz_convert(native.dtype.tz)
    return assign(column, rows, moments.array)


def python_moments(kind: MomentKind, numbers: NDArray[np.int64], unit: str) -> list[Any]:
    """Moments as Python has them.

    >>> python_moments(MomentKind.DATE, np.array([0, 31]), "D")
    [datetime.date(1970, 1, 1), datetime.date(1970, 2, 1)]
    """
    if kind == MomentKind.TIME:
        return [_time_of_day(number * NANOSECONDS[unit]) for number in numbers.tolist()]
    coarse = "D" if kind == MomentKind.DATE else "us"
    return list(_in_unit(numbers, unit, coarse).view(_numpy_type(kind, coarse)).tolist())


def _numpy_type(kind: MomentKind, unit: str) -> str:
    return f"{'m8' if kind == MomentKind.DURATION else 'M8'}[{unit}]"


def read_bound(bound: Any, column: nw.Series[Any], *, is_lower: bool) -> int | None:
    """A bound as a whole number of the column's unit that no moment inside the bound lies beyond; ValueError if it is none."""
    if bound is None:
        return None
    kind, unit = moment_kind(column)
    if kind == MomentKind.DURATION:
        microseconds = _duration(bound)
    else:
        microseconds = _time(bound) if kind == MomentKind.TIME else _moment(bound, column)
    nanoseconds, size = microseconds * 1000, NANOSECONDS[unit]
    return -(-nanoseconds // size) if is_lower else nanoseconds // size


def _duration(bound: Any) -> int:
    if isinstance(bound, np.timedelta64):
        bound = bound.astype("m8[us]").item()
    if not isinstance(bound, dt.timedelta):
        raise ValueError("durations such as datetime.timedelta(days=1)")
    return bound // dt.timedelta(microseconds=1)


def _time(bound: Any) -> int:
    try:
        time = dt.time.fromisoformat(bound) if isinstance(bound, str) else bound
    except ValueError:
        time = None
    if not isinstance(time, dt.time):
        raise ValueError('times such as "08:30"')
    return _nanoseconds(time) // 1000


def _moment(bound: Any, column: nw.Series[Any]) -> int:
    """Microseconds since 1970 in UTC; a bound without a zone is meant in the column's."""
    if isinstance(bound, np.datetime64):
        bound = bound.astype("M8[us]").item()
    try:
        moment = dt.datetime.fromisoformat(bound) if isinstance(bound, str) else bound
    except ValueError:
        moment = None
    if isinstance(moment, dt.date) and not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    if not isinstance(moment, dt.datetime):
        raise ValueError('dates or times such as "2024-01-31"')
    zone = _zone_of(column)
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


def has_zone(column: nw.Series[Any]) -> bool:
    """Whether a column holds moments of a time zone."""
    return is_local(column) or getattr(column.dtype, "time_zone", None) is not None


def _zone_of(column: nw.Series[Any]) -> dt.tzinfo | None:
    if is_local(column):
        zone: dt.tzinfo = column.to_native().dtype.tz
        return zone
    name = getattr(column.dtype, "time_zone", None)
    if name is None:
        return None
    return dt.datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo if name[0] in "+-" else ZoneInfo(name)


def _in_unit(numbers: NDArray[np.int64], unit: str, wanted: str) -> NDArray[np.int64]:
    return numbers if unit == wanted else numbers.view(f"m8[{unit}]").astype(f"m8[{wanted}]").view(np.int64)


def _nanoseconds(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 10**9 + time.microsecond * 1000


def _time_of_day(nanoseconds: int) -> dt.time:
    seconds, rest = divmod(nanoseconds, 10**9)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest // 1000)
