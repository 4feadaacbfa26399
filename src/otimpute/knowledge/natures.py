"""What a column was like where it was observed: how it was rounded, which values it can take, how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import Real, stored
from ..table import ColumnCode, MomentCode, NumberCode
from ..table.extent import extent_of
from ..table.kinds import Family, MomentKind
from ..table.moments import NANOSECONDS, moment_kind
from ..table.native import columns_of, family_of, python_types
from .values import MICROSECONDS_PER_DAY, ValueKind, Values

Numbers = NDArray[np.float64]

_TICKS_PER_DAY = (1, 24, 1440, 86_400, 86_400_000, MICROSECONDS_PER_DAY)  # what imputed moments are rounded to
_MOST_DECIMALS = 9
_ALMOST = 1e-9
_DOUBLE = 2.0**-52
_MOMENT_STEP = 1 / MICROSECONDS_PER_DAY


@stored(low=Real(finite=False), high=Real(finite=False), spread=Real(above=0), precision=Real(above=0))
@dataclass(frozen=True)
class Nature:
    """What a column was like where it was observed.

    Dates are days since 1970, as in `Values`.
    """

    kind: ValueKind
    low: float = -math.inf  # imputed values that are moved stay inside
    high: float = math.inf
    per_unit: float = 0.0  # how many values it can take from one whole number to the next; 0 if any
    decimals_kept: float = 0.0  # observed numbers are rounded to one part in so many of a unit; 0 if not
    spread: float = 1.0  # standard deviation
    precision: float = _DOUBLE  # of its type

    def __post_init__(self) -> None:
        if self.per_unit < 0 or self.decimals_kept < 0 or not self.low <= self.high:
            raise ValueError(f"from {self.low} to {self.high} with {self.per_unit} values per unit")

    @property
    def is_one_signed(self) -> bool:
        """Whether its numbers are sizes, of which a share can be taken."""
        return self.kind == ValueKind.NUMBER and (self.low >= 0 or self.high <= 0)

    @property
    def step(self) -> float:
        """How far apart neighbouring values are."""
        return 1 / self.per_unit if self.per_unit else 0.0

    @property
    def half_unit(self) -> float:
        """By how much an observed number can differ from what it was before it was rounded."""
        return max(0.5 / self.decimals_kept if self.decimals_kept else 0.0, 0.5 * self.step)

    @property
    def is_discrete(self) -> bool:
        """Whether what is computed must be rounded to what the column can hold."""
        return self.per_unit > 0 or self.precision > _DOUBLE

    def nearest(self, values: Numbers) -> Numbers:
        """The nearest values that the column can hold."""
        if self.precision > _DOUBLE:
            kind = np.float32 if self.precision < 1e-4 else np.float16
            values = np.asarray(values).astype(kind).astype(np.float64)
        return np.rint(values * self.per_unit) / self.per_unit if self.per_unit else values

    def as_written(self, values: Numbers) -> Numbers:
        """The nearest values with as many decimals as observed ones have."""
        return self.nearest(np.rint(values * self.decimals_kept) / self.decimals_kept if self.decimals_kept else values)

    def beside(self, values: Numbers, side: int) -> Numbers:
        """The nearest values that it can hold on one side, below (-1) or above (1)."""
        near = self.nearest(values)
        wrong = (near - values) * side < 0
        if self.per_unit:
            return np.where(wrong, np.rint(near * self.per_unit + side) / self.per_unit, near)
        if self.precision > _DOUBLE:
            kind = np.float32 if self.precision < 1e-4 else np.float16
            return np.where(wrong, np.nextafter(near.astype(kind), kind(side * np.inf)).astype(np.float64), near)
        return near


def nature_of(column: nw.Series[Any], read: Values) -> Nature:
    """The nature of a column, from its observed values."""
    observed = np.asarray(read.values[read.known], dtype=np.float64) if read.kind != ValueKind.TEXT else np.empty(0)
    observed = observed[np.isfinite(observed)]
    spread = float(observed.std()) if len(observed) > 1 else 0.0
    common = Nature(read.kind, spread=spread if 0 < spread < math.inf else 1.0)
    if read.kind == ValueKind.CONDITION:
        return replace(common, low=0.0, high=1.0, per_unit=1.0, decimals_kept=1.0)
    if family_of(column) == Family.MOMENT:
        per_unit = _ticks_of(column, observed)
        is_time = moment_kind(column)[0] == MomentKind.TIME
        low, high = (0.0, 1 - _MOMENT_STEP) if is_time else (-math.inf, math.inf)
        return replace(common, low=low, high=high, per_unit=per_unit, decimals_kept=per_unit)
    if read.kind != ValueKind.NUMBER:
        return common
    low, high = extent_of(observed).natural_range() if len(observed) else (-math.inf, math.inf)
    return replace(
        common,
        low=low,
        high=high,
        per_unit=_per_unit(column),
        decimals_kept=_decimals(observed),
        precision=_precision(column),
    )


def natures_of(frame: nw.DataFrame[Any], table: Mapping[str, Values]) -> dict[str, Nature]:
    """The natures of the columns that were read of a frame."""
    return {column.name: nature_of(column, table[column.name]) for column in columns_of(frame.select(list(table)))}


def limited(nature: Nature, code: ColumnCode, column: nw.Series[Any]) -> Nature:
    """The nature with the bounds of an imputer's code for the column, and its rounding to whole numbers."""
    if isinstance(code, NumberCode):
        is_whole = code.whole or column.dtype.is_integer() or column.dtype == nw.Boolean
        return replace(nature, low=code.low, high=code.high, per_unit=1.0 if is_whole else nature.per_unit)
    if isinstance(code, MomentCode):
        per_day = NANOSECONDS["D"] // NANOSECONDS[code.unit]
        return replace(nature, low=code.low / per_day, high=code.high / per_day)
    return nature


def _per_unit(column: nw.Series[Any]) -> float:
    """Of a column of numbers, by its type."""
    if column.dtype.is_integer() or (column.dtype == nw.Object and python_types(column) == {int}):
        return 1.0
    return 10.0 ** _scale(column) if column.dtype == nw.Decimal else 0.0


def _scale(column: nw.Series[Any]) -> int:
    native = column.to_native()
    declared: Any = getattr(native, "type", None) or native.dtype
    declared = getattr(declared, "pyarrow_dtype", declared)
    return int(declared.scale)


def _precision(column: nw.Series[Any]) -> float:
    return {"Float32": 2.0**-23, "Float16": 2.0**-10}.get(str(column.dtype), _DOUBLE)


def _decimals(observed: Numbers) -> float:
    """The power of ten of which all observed numbers are whole parts; 0 if there is none to speak of."""
    if not len(observed):
        return 0.0
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = observed * 10.0**decimals
        if np.all(np.abs(scaled - np.rint(scaled)) <= _ALMOST * np.abs(scaled)):
            return 10.0**decimals
    return 0.0


def _ticks_of(column: nw.Series[Any], observed: Numbers) -> float:
    """The coarsest ticks per day that suit all observed moments; a date is a day."""
    if moment_kind(column)[0] == MomentKind.DATE:
        return 1.0
    moments = np.rint(observed * MICROSECONDS_PER_DAY).astype(np.int64)
    for ticks in _TICKS_PER_DAY if len(moments) else ():
        if not (moments % (MICROSECONDS_PER_DAY // ticks)).any():
            return float(ticks)
    return float(MICROSECONDS_PER_DAY)
