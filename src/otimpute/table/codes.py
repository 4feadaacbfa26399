"""How one column becomes coordinates that distances make sense of, and coordinates become its values again.

Numbers and moments are one coordinate, standardised later; categories have a file of their own.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import Real, stored
from .categories import CategoryCode, Read, Values, label_holes, nearest_rows
from .kinds import ColumnKind, Family, MomentKind
from .moments import NANOSECONDS, moment_kind, python_moments, read_moments, write_moments
from .native import (
    arrow_floats,
    declared_labels,
    family_of,
    has_no_value,
    is_number,
    nulls_of,
    numpy_type,
    series_like,
    write_arrow_floats,
    write_booleans,
    write_objects,
)

_TICKS = [  # what imputed moments may be rounded to, in nanoseconds: the coarsest that suits all observed ones
    86_400 * 10**9, 3600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1,
]  # fmt: skip
# The first and last day Python knows, in days since 1970.
_DAYS = dt.date.min.toordinal() - dt.date(1970, 1, 1).toordinal(), dt.date.max.toordinal() - dt.date(1970, 1, 1).toordinal()
_LARGEST = 2**63 - 1
_NUMBERS = ColumnKind.NUMBER, ColumnKind.INTEGER, ColumnKind.BOOLEAN


@stored(low=Real(finite=False), high=Real(finite=False))
@dataclass(frozen=True)
class NumberCode:
    """Numbers, whole numbers, booleans; imputed ones obey bounds.

    All codes have a ``kind`` (for people), a ``width`` (how many coordinates), ``is_scaled`` (whether these come in units of
    their own and must not be standardised), a ``family`` (of columns they can read) and ``has_labels`` (whether a guess is
    right or wrong, rather than near or far).
    """

    kind: ColumnKind
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    width: ClassVar[int] = 1
    is_scaled: ClassVar[bool] = False
    family: ClassVar[Family] = Family.NUMBER

    def __post_init__(self) -> None:
        if self.kind not in _NUMBERS or not self.low <= self.high:
            raise ValueError(f"{self.kind!r} from {self.low} to {self.high} are no numbers")

    @property
    def has_labels(self) -> bool:  # noqa: D102
        return self.kind == ColumnKind.BOOLEAN

    @property
    def range(self) -> str:
        """The bounds in words that follow a noun: " ≥ 0", " from 0 to 1", or nothing."""
        if self.low == -math.inf:
            return "" if self.high == math.inf else f" ≤ {self.high:g}"
        return f" ≥ {self.low:g}" if self.high == math.inf else f" from {self.low:g} to {self.high:g}"

    def read(self, column: nw.Series[Any], marker: Any) -> Read:
        """Coordinates ``[n, width]`` of a column, where they are unknown ``[n]``, and where its value is missing."""
        floats = arrow_floats(column)
        if floats is not None:
            holes = np.isnan(floats) | equal_to(floats, marker)
            return floats[:, None], holes, holes
        absent = column.is_null().to_numpy()
        if column.dtype.is_integer():
            # 2⁵³ + 1 and 2⁵³ are different integers but the same float: compared first, rounded (Arrow refuses to) then.
            own = column.fill_null(0).to_numpy()
            values = np.where(absent, np.nan, own)
        elif is_number(column.dtype):
            values = column.cast(nw.Float64).to_numpy()
            own = column.to_numpy()
        else:
            pairs = zip(column.to_list(), absent, strict=True)
            own = values = np.array([math.nan if null else float(value) for value, null in pairs])
        marked = equal_to(own, marker) if column.dtype != nw.Boolean else False
        holes = absent | np.isnan(values) | marked
        return values[:, None], holes, holes

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:
        """The column with the values of ``points [len(rows), width]`` in place of missing ones."""
        if not is_number(column.dtype):
            return write_objects(column, rows, self.obey(points[:, 0]), self.low, self.high)
        if integers == "float" and not column.dtype.is_float():
            column = column.cast(nw.Float64)
        fitting = fit_into(self.obey(points[:, 0]), numpy_type(column), self.low, self.high)
        if column.implementation.is_pyarrow() and column.dtype in (nw.Float64, nw.Float32):
            return write_arrow_floats(column, rows, fitting)
        if column.dtype == nw.Boolean and column.implementation.is_pyarrow():
            return write_booleans(column, rows, fitting)
        return column.scatter(rows, series_like(column, column.name, fitting, column.dtype))

    def python_values(self, points: Values) -> list[Any]:
        """The values of ``points``, for a column that has no type."""
        return list(self.obey(points[:, 0]).astype(np.float64).tolist())

    def obey(self, values: Values) -> Values:
        """Values that keep to the bounds, and whole ones where asked for."""
        return clip_and_round(values, self.low, self.high, self.whole)


@stored()
@dataclass(frozen=True)
class MomentCode:
    """Dates, times, durations: how long after the first observed one, rounded as coarsely as all observed ones are."""

    moment: MomentKind
    unit: str
    origin: int  # in units, as all that follow
    tick: int
    low: int
    high: int
    kind: ClassVar[ColumnKind] = ColumnKind.MOMENT
    width: ClassVar[int] = 1
    is_scaled: ClassVar[bool] = False
    has_labels: ClassVar[bool] = False
    family: ClassVar[Family] = Family.MOMENT

    def __post_init__(self) -> None:
        if self.unit not in NANOSECONDS or self.tick < 1 or self.low > self.high:
            raise ValueError(f"{self.moment!r} in {self.unit!r}, a tick of {self.tick}, {self.low} to {self.high}")

    @classmethod
    def fit(cls, column: nw.Series[Any], low: int | None, high: int | None) -> MomentCode:
        """From the observed moments; imputed ones reach at most as far beyond them as they are apart."""
        moment, unit = moment_kind(column)
        numbers = read_moments(column, unit)[~column.is_null().to_numpy()]
        first, last = int(numbers.min()), int(numbers.max())
        lowest, highest = _representable(moment, unit)
        lowest, highest = min(first, max(2 * first - last, lowest)), max(last, min(2 * last - first, highest))
        lowest = low if low is not None else lowest if high is None else min(lowest, high)
        highest = high if high is not None else max(highest, lowest)
        ticks = [max(1, tick // NANOSECONDS[unit]) for tick in _TICKS]
        suits_all = (tick for tick in ticks if not (_after(numbers, first) % tick).any())
        tick = next((tick for tick in suits_all if -((first - lowest) // tick) <= (highest - first) // tick), 1)
        return cls(moment, unit, first, tick, lowest, highest)

    def read(self, column: nw.Series[Any], marker: Any) -> Read:  # noqa: ARG002, D102
        holes = column.is_null().to_numpy()
        return _after(read_moments(column, self.unit), self.origin)[:, None], holes, holes

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:  # noqa: ARG002, D102
        return write_moments(column, rows, self._numbers(points), self.unit)

    def python_values(self, points: Values) -> list[Any]:  # noqa: D102
        return python_moments(self.moment, self._numbers(points), self.unit)

    def _numbers(self, points: Values) -> NDArray[np.int64]:
        """Whole ticks after the first moment, inside the bounds; in Python's integers, for these cannot overflow."""
        fewest, most = -((self.origin - self.low) // self.tick), (self.high - self.origin) // self.tick
        ticks = (min(max(round(point / self.tick), fewest), most) for point in points[:, 0].tolist())
        return np.array([min(max(self.origin + tick * self.tick, self.low), self.high) for tick in ticks], dtype=np.int64)


def _after(numbers: NDArray[np.int64], origin: int) -> NDArray[np.float64]:
    """How long after ``origin``, exactly where integers can say it."""
    difference = numbers - np.int64(origin)
    overflows = ((numbers ^ np.int64(origin)) & (numbers ^ difference)) < 0
    return np.where(overflows, numbers.astype(np.float64) - float(origin), difference.astype(np.float64))


def _representable(moment: MomentKind, unit: str) -> tuple[int, int]:
    """The first and last moment of a kind that a column, and Python, can hold."""
    if moment == MomentKind.TIME:
        return 0, 86_400 * 10**9 // NANOSECONDS[unit] - 1
    if moment == MomentKind.DURATION:
        return -_LARGEST, _LARGEST
    first, last = (day * NANOSECONDS["D"] // NANOSECONDS[unit] for day in _DAYS)
    return max(first, -_LARGEST), min(last, _LARGEST)


@stored()
@dataclass(frozen=True)
class IdleCode:
    """A column that is neither used nor filled."""

    kind: ColumnKind  # one that is idle
    is_scaled: ClassVar[bool] = False
    has_labels: ClassVar[bool] = False
    family: ClassVar[Family] = Family.ANY

    def __post_init__(self) -> None:
        if not self.kind.is_idle:
            raise ValueError(f"a column of kind {self.kind!r} is not idle")

    @property
    def width(self) -> int:
        """One for a column that arrays may have too: every column of an array is one coordinate, known or not."""
        return int(self.kind == ColumnKind.EMPTY or self.kind.passes_unseen)

    def read(self, column: nw.Series[Any], marker: Any) -> Read:  # noqa: D102
        if self.kind.passes_unseen:
            holes = np.zeros(len(column), dtype=bool)
        else:
            holes = label_holes(column, marker) if family_of(column) in (Family.NUMBER, Family.LABEL) else nulls_of(column)
        return np.full((len(column), self.width), np.nan), np.ones(len(column), dtype=bool), holes


ColumnCode = NumberCode | CategoryCode | MomentCode | IdleCode


def write_column(
    code: ColumnCode, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str
) -> nw.Series[Any]:
    """The column with the values of ``points [len(rows), width]`` in place of missing ones."""
    if isinstance(code, IdleCode):
        return column
    if is_of_another_type(code, column):
        return without_type(column, rows, code.python_values(points))
    return code.write(column, rows, points, integers)


def is_of_another_type(code: ColumnCode, column: nw.Series[Any]) -> bool:
    """Whether a column that has no value in new rows has a type that cannot hold what its code makes of points."""
    unfit = family_of(column) != code.family or declared_labels(column) == []
    return unfit and has_no_value(column)


def category_of(code: ColumnCode, points: Values) -> NDArray[np.int64]:
    """Which category would be imputed for each of some points, by place."""
    return nearest_rows(points, code.corners()) if isinstance(code, CategoryCode) else np.zeros(len(points), np.int64)


def observed_category_of(code: ColumnCode, points: Values) -> NDArray[np.int64]:
    """Which of a code's ``labels`` observed points are, by place; other than imputed ones they may be rare."""
    return nearest_rows(points, code.all_corners()) if isinstance(code, CategoryCode) else np.zeros(len(points), np.int64)


def seconds_of(code: ColumnCode) -> float:
    """What one unit of a column's coordinate is: a number's own unit, or the seconds that moments are counted in."""
    return NANOSECONDS[code.unit] / 1e9 if isinstance(code, MomentCode) else 1.0


def equal_to(values: NDArray[Any], marker: Any) -> NDArray[np.bool_]:
    """Where ``values`` equal the number that marks missing ones, compared in their own type."""
    if marker != marker:  # NaN marks nothing that is not found anyway
        return np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(values == values.dtype.type(marker))
    whole = np.isfinite(marker) and marker == int(marker)
    return np.asarray(values == int(marker)) if whole else np.zeros(values.shape, dtype=bool)


def clip_and_round(values: Values, low: Any, high: Any, whole: Any) -> Values:
    """Values inside bounds, and whole ones where asked for; for all alike or value by value."""
    return np.clip(np.where(whole, np.rint(values), values) if np.any(whole) else values, low, high)


def fit_into(values: Values, kind: np.dtype[Any], low: Any = -math.inf, high: Any = math.inf) -> NDArray[Any]:
    """Round for whole-number kinds, stay inside what the kind can hold, and inside the bounds even where the kind is coarse."""
    if kind.kind == "b":
        return values >= 0.5
    if kind.kind == "f":
        largest = np.finfo(kind).max
        cells = np.clip(values, -largest, largest).astype(kind, copy=False)
        with np.errstate(over="ignore"):  # the neighbour of the largest number, which is computed and not taken
            for outside, inwards in ((np.greater, -math.inf), (np.less, math.inf)):
                is_outside = outside(cells.astype(np.float64, copy=False), high if outside is np.greater else low)
                if is_outside.any():
                    cells = np.where(is_outside, np.nextafter(cells, kind.type(inwards)), cells)
        return cells
    bounds = np.iinfo(kind)
    rounded = np.clip(np.rint(values), np.ceil(low), np.floor(high))
    cells = np.empty(len(values), dtype=kind)
    # float(2⁶³ − 1) rounds up to 2⁶³, which no longer fits: compare first, convert what is inside.
    too_large, too_small = rounded >= float(bounds.max), rounded <= float(bounds.min)
    inside = ~(too_large | too_small)
    cells[too_large], cells[too_small] = bounds.max, bounds.min
    cells[inside] = rounded[inside].astype(kind)
    return cells


def without_type(column: nw.Series[Any], rows: NDArray[np.int64], values: Sequence[Any]) -> nw.Series[Any]:
    """A column of Python values in place of one that has no value, and so no type to keep."""
    cells: list[Any] = [None] * len(column)
    for row, value in zip(rows, values, strict=True):
        cells[row] = value
    return series_like(column, column.name, cells, None)
