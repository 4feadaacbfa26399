"""How one column becomes coordinates that distances make sense of, and coordinates become its values again.

Numbers and moments are one coordinate, standardised later; ordered categories their position. Other categories are the
corners of a regular simplex: k of them in k − 1 coordinates, all equally far apart. An imputed point becomes the category of
the nearest corner, which for a mean of corners is the most frequent one.
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
from .moments import NANOSECONDS, moment_kind, python_moments, read_moments, write_moments
from .native import (
    assign,
    declared_labels,
    family_of,
    has_no_value,
    is_number,
    nulls_of,
    write_booleans,
    write_labels,
    write_objects,
)

Values = NDArray[np.floating]
Missing = NDArray[np.bool_]
Read = tuple[Values, Missing, Missing]

# How far apart two categories are, in standard deviations of a number. Measured: docs/studies/mixed.md.
DISAGREEMENT = 2.0

_TICKS = [  # what imputed moments may be rounded to, in nanoseconds: the coarsest that suits all observed ones
    86_400 * 10**9, 3600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1,
]  # fmt: skip
# The first and last day Python knows, in days since 1970.
_DAYS = dt.date.min.toordinal() - dt.date(1970, 1, 1).toordinal(), dt.date.max.toordinal() - dt.date(1970, 1, 1).toordinal()
_LARGEST = 2**63 - 1


@stored(low=Real(finite=False), high=Real(finite=False))
@dataclass(frozen=True)
class NumberCode:
    """Numbers, whole numbers, booleans; imputed ones obey bounds.

    All codes have a ``kind`` (for people), a ``width`` (how many coordinates), ``is_scaled`` (whether these come in units of
    their own and must not be standardised), a ``family`` (of columns they can read) and ``has_labels`` (whether a guess is
    right or wrong, rather than near or far).
    """

    kind: str  # "number", "integer", "boolean" or "empty"
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    width: ClassVar[int] = 1
    is_scaled: ClassVar[bool] = False
    family: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        if self.kind not in ("number", "integer", "boolean", "empty") or not self.low <= self.high:
            raise ValueError(f"{self.kind!r} from {self.low} to {self.high} are no numbers")

    @property
    def has_labels(self) -> bool:  # noqa: D102
        return self.kind == "boolean"

    @property
    def is_free(self) -> bool:
        """Whether any value will do."""
        return not self.whole and self.low == -math.inf and self.high == math.inf

    def read(self, column: nw.Series[Any], marker: Any) -> Read:
        """Coordinates ``[n, width]`` of a column, where they are unknown ``[n]``, and where there is a hole."""
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
        """The column with the values of ``points [len(rows), width]`` in its holes."""
        if not is_number(column.dtype):
            return write_objects(column, rows, self.obey(points[:, 0]), self.low, self.high)
        if integers == "float" and not column.dtype.is_float():
            column = column.cast(nw.Float64)
        fitting = fit_into(self.obey(points[:, 0]), numpy_type(column), self.low, self.high)
        if column.dtype == nw.Boolean and column.implementation.is_pyarrow():
            return write_booleans(column, rows, fitting)
        return column.scatter(rows, series_like(column, column.name, fitting, column.dtype))

    def python_values(self, points: Values) -> list[Any]:
        """The values of ``points``, for a column that has no type."""
        return list(self.obey(points[:, 0]).astype(np.float64).tolist())

    def obey(self, values: Values) -> Values:
        """Values that keep to the bounds, and whole ones where asked for."""
        if self.is_free:
            return values
        return np.clip(np.rint(values) if self.whole else values, self.low, self.high)


@stored()
@dataclass(frozen=True)
class CategoryCode:
    """One of some categories, without order (corners of a simplex) or with it (positions in a row)."""

    categories: tuple[Any, ...]  # what JSON can hold; the text of anything else
    ordered: bool
    family: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        plain = all(isinstance(label, (str, bool, int, float)) for label in self.categories)
        if not plain or not 0 < len(set(self.categories)) == len(self.categories):
            raise ValueError("categories must be texts, numbers or truth values, at least one, and each once")

    @property
    def kind(self) -> str:  # noqa: D102
        return "ordered" if self.ordered else "category"

    @property
    def width(self) -> int:  # noqa: D102
        return min(len(self.categories) - 1, 1) if self.ordered else len(self.categories) - 1

    @property
    def is_scaled(self) -> bool:  # noqa: D102
        return not self.ordered

    @property
    def has_labels(self) -> bool:  # noqa: D102
        return not self.ordered

    def corners(self) -> NDArray[np.float64]:
        """The coordinates of each category ``[k, width]``."""
        if self.ordered:
            return np.arange(len(self.categories), dtype=np.float64)[:, None][:, : self.width]
        return simplex(len(self.categories))

    def read(self, column: nw.Series[Any], marker: Any) -> Read:  # noqa: D102
        places = {label: place for place, label in enumerate(self.categories)}
        holes = label_holes(column, marker)
        # A category never seen in training says nothing: it is imputed like a hole, and then left as it is.
        found = [
            -1 if hole else places.get(plain_label(label), -1) for label, hole in zip(column.to_list(), holes, strict=True)
        ]
        codes = np.array(found, dtype=np.int64)
        return self.corners()[codes], codes < 0, holes

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:  # noqa: ARG002, D102
        declared = declared_labels(column)
        own = {label: label for label in self.categories}
        if declared is not None:
            own = {plain_label(label): label for label in declared}
        possible = [place for place, label in enumerate(self.categories) if label in own]
        if not possible:
            raise ValueError(
                f"column {column.name!r} is declared to hold {list(own)[:10]}, none of the categories seen in training, "
                f"{list(self.categories[:10])}; convert it to those"
            )
        nearest = np.array(possible)[nearest_rows(points, self.corners()[possible])]
        labels = [own[self.categories[place]] for place in nearest]
        if is_number(column.dtype):
            return column.scatter(rows, series_like(column, column.name, np.array(labels, numpy_type(column)), column.dtype))
        return assign(column, rows, labels) if column.dtype == nw.Object else write_labels(column, rows, labels)

    def python_values(self, points: Values) -> list[Any]:  # noqa: D102
        return [self.categories[place] for place in nearest_rows(points, self.corners())]


@stored()
@dataclass(frozen=True)
class MomentCode:
    """Dates, times, durations: how long after the first observed one, rounded as coarsely as all observed ones are."""

    moment: str  # "Date", "Datetime", "Duration" or "Time"
    unit: str
    origin: int  # in units, as all that follow
    tick: int
    low: int
    high: int
    kind: ClassVar[str] = "date/time"
    width: ClassVar[int] = 1
    is_scaled: ClassVar[bool] = False
    has_labels: ClassVar[bool] = False
    family: ClassVar[str] = "moment"

    def __post_init__(self) -> None:
        known = self.moment in ("Date", "Datetime", "Duration", "Time") and self.unit in NANOSECONDS
        if not known or self.tick < 1 or self.low > self.high:
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


def _representable(moment: str, unit: str) -> tuple[int, int]:
    """The first and last moment of a kind that a column, and Python, can hold."""
    if moment == "Time":
        return 0, 86_400 * 10**9 // NANOSECONDS[unit] - 1
    if moment == "Duration":
        return -_LARGEST, _LARGEST
    first, last = (day * NANOSECONDS["D"] // NANOSECONDS[unit] for day in _DAYS)
    return max(first, -_LARGEST), min(last, _LARGEST)


@stored()
@dataclass(frozen=True)
class IdleCode:
    """A column that is neither used nor filled."""

    kind: str  # "text", "empty" or "other"
    width: ClassVar[int] = 0
    is_scaled: ClassVar[bool] = False
    has_labels: ClassVar[bool] = False
    family: ClassVar[str] = "any"

    def read(self, column: nw.Series[Any], marker: Any) -> Read:  # noqa: ARG002, D102
        holes = column.is_null().to_numpy()
        return np.empty((len(column), 0)), holes, holes


ColumnCode = NumberCode | CategoryCode | MomentCode | IdleCode


def write_column(
    code: ColumnCode, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str
) -> nw.Series[Any]:
    """The column with the values of ``points [len(rows), width]`` in its holes."""
    if isinstance(code, IdleCode):
        return column
    if is_of_another_type(code, column):
        return without_type(column, rows, code.python_values(points))
    return code.write(column, rows, points, integers)


def is_of_another_type(code: ColumnCode, column: nw.Series[Any]) -> bool:
    """Whether a column without any value has a type that cannot hold what its code makes of points."""
    unfit = family_of(column) != code.family or declared_labels(column) == []
    return unfit and has_no_value(column)


def label_holes(column: nw.Series[Any], marker: Any) -> Missing:
    """Where a column of labels is null, NaN, or the number that marks missing ones."""
    holes = nulls_of(column)
    if marker != marker or column.dtype in (nw.String, nw.Boolean):
        return holes
    marked = [not isinstance(one, (str, bool)) and bool(one == marker) for one in column.to_list()]
    return np.asarray(holes | np.array(marked, dtype=bool))


def observed_labels(column: nw.Series[Any], marker: Any) -> set[Any]:
    """The labels of a column, as JSON can hold them."""
    pairs = zip(column.to_list(), label_holes(column, marker), strict=True)
    return {plain_label(label) for label, hole in pairs if not hole}


def simplex(n_corners: int) -> NDArray[np.float64]:
    """Points ``[k, k − 1]`` around 0, each as far from each other as two categories are.

    >>> corners = simplex(3)
    >>> [round(float(np.linalg.norm(corners[a] - corners[b])) / DISAGREEMENT, 6) for a, b in ((0, 1), (0, 2), (1, 2))]
    [1.0, 1.0, 1.0]
    """
    corners = np.zeros((n_corners, n_corners - 1))
    for k in range(1, n_corners):
        # Helmert's contrasts: the k-th sets corner k against those before it.
        corners[:k, k - 1] = 1.0
        corners[k, k - 1] = -float(k)
        corners[:, k - 1] /= math.sqrt(k * (k + 1))
    return corners * (DISAGREEMENT / math.sqrt(2))


def nearest_rows(points: Values, corners: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which corner each point is nearest to; the first of equally near ones."""
    distance = (corners**2).sum(axis=1) - 2 * points @ corners.T
    return np.asarray(np.argmin(distance, axis=1))


def category_of(code: ColumnCode, points: Values) -> NDArray[np.int64]:
    """Which category each of some points stands for, by place."""
    return nearest_rows(points, code.corners()) if isinstance(code, CategoryCode) else np.zeros(len(points), np.int64)


def seconds_of(code: ColumnCode) -> float:
    """What one unit of a column's coordinate is: a number's own unit, or the seconds that moments are counted in."""
    return NANOSECONDS[code.unit] / 1e9 if isinstance(code, MomentCode) else 1.0


def plain_label(label: Any) -> Any:
    """A label as JSON can hold it: the text of anything that is no string, number or boolean."""
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, (str, bool, int, float)) else str(label)


def equal_to(values: NDArray[Any], marker: Any) -> NDArray[np.bool_]:
    """Where ``values`` equal the number that marks missing ones, compared in their own type."""
    if marker != marker:  # NaN marks nothing that is not found anyway
        return np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(values == values.dtype.type(marker))
    whole = np.isfinite(marker) and marker == int(marker)
    return np.asarray(values == int(marker)) if whole else np.zeros(values.shape, dtype=bool)


def fit_into(values: Values, kind: np.dtype[Any], low: Any = -math.inf, high: Any = math.inf) -> NDArray[Any]:
    """Round for whole-number kinds, stay inside what the kind can hold, and inside the bounds even where the kind is coarse."""
    if kind.kind == "b":
        return values >= 0.5
    if kind.kind == "f":
        largest = np.finfo(kind).max
        cells = np.clip(values, -largest, largest).astype(kind, copy=False)
        if low == -math.inf and high == math.inf:
            return cells
        with np.errstate(over="ignore"):  # the neighbour of the largest number, which is computed and not taken
            cells = np.where(cells.astype(np.float64) > high, np.nextafter(cells, kind.type(-math.inf)), cells)
            return np.where(cells.astype(np.float64) < low, np.nextafter(cells, kind.type(math.inf)), cells)
    bounds = np.iinfo(kind)
    rounded = np.clip(np.rint(values), np.ceil(low), np.floor(high))
    cells = np.empty(len(values), dtype=kind)
    # float(2⁶³ − 1) rounds up to 2⁶³, which no longer fits: compare first, convert what is inside.
    too_large, too_small = rounded >= float(bounds.max), rounded <= float(bounds.min)
    inside = ~(too_large | too_small)
    cells[too_large], cells[too_small] = bounds.max, bounds.min
    cells[inside] = rounded[inside].astype(kind)
    return cells


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


def without_type(column: nw.Series[Any], rows: NDArray[np.int64], values: Sequence[Any]) -> nw.Series[Any]:
    """A column of Python values in place of one that has no value, and so no type to keep."""
    cells: list[Any] = [None] * len(column)
    for row, value in zip(rows, values, strict=True):
        cells[row] = value
    return series_like(column, column.name, cells, None)
