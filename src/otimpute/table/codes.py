"""How one column becomes coordinates that distances make sense of, and coordinates become its values again.

Numbers and moments are one coordinate, standardised later; ordered categories their position. Other categories are the
corners of a regular simplex: k of them in k − 1 coordinates, all equally far apart. An imputed point becomes the category of
the nearest corner, which for a mean of corners is the most frequent one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import Real, stored
from .native import (
    declared_labels,
    family_of,
    is_number,
    read_moments,
    time_of_day,
    write_labels,
    write_moments,
    write_objects,
)

Values = NDArray[np.floating]
Missing = NDArray[np.bool_]

# How far apart two categories are, in standard deviations of a number. Measured: docs/studies/mixed.md.
DISAGREEMENT = 2.0

_TICKS = [  # what imputed moments may be rounded to, in nanoseconds: the coarsest that suits all observed ones
    86_400 * 10**9, 3600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1,
]  # fmt: skip
_NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@stored(low=Real(finite=False), high=Real(finite=False))
@dataclass(frozen=True)
class NumberCode:
    """Numbers, whole numbers, booleans; imputed ones obey bounds.

    All codes have a ``kind`` (for people), a ``width`` (how many coordinates), ``is_scaled`` (whether these come in units of
    their own and must not be standardised) and a ``family`` (of columns they can read).
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
    def is_free(self) -> bool:
        """Whether any value will do."""
        return not self.whole and self.low == -math.inf and self.high == math.inf

    def read(self, column: nw.Series[Any], marker: Any) -> tuple[Values, Missing]:
        """Coordinates ``[n, width]`` of a column, and where they are unknown ``[n]``."""
        absent = column.is_null().to_numpy()
        if family_of(column) == "nothing":
            return np.full((len(column), 1), np.nan), absent
        if column.dtype.is_integer():
            # 2⁵³ + 1 and 2⁵³ are different integers but the same float: compared first, rounded (Arrow refuses to) then.
            own = column.fill_null(0).to_numpy()
            values = np.where(absent, np.nan, own)
        elif is_number(column.dtype):
            values = column.cast(nw.Float64).to_numpy()
            own = values if column.dtype == nw.Boolean else column.to_numpy()
        else:
            pairs = zip(column.to_list(), absent, strict=True)
            own = values = np.array([math.nan if null else float(value) for value, null in pairs])
        return values[:, None], absent | np.isnan(values) | equal_to(own, marker)

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:
        """The column with the values of ``points [len(rows), width]`` in its holes."""
        if not is_number(column.dtype) and family_of(column) == "number":
            return write_objects(column, rows, self.obey(points[:, 0]))
        if not is_number(column.dtype):  # no value at all, so no type to keep either
            column = series_like(column, column.name, np.full(len(column), np.nan), nw.Float64())
        elif integers == "float" and not column.dtype.is_float():
            column = column.cast(nw.Float64)
        kind = np.dtype("bool" if column.dtype == nw.Boolean else str(column.dtype).lower())
        fitting = fit_into(self.obey(points[:, 0]), kind, self.low, self.high)
        return column.scatter(rows, series_like(column, column.name, fitting, column.dtype))

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

    def corners(self) -> NDArray[np.float64]:
        """The coordinates of each category ``[k, width]``."""
        if self.ordered:
            return np.arange(len(self.categories), dtype=np.float64)[:, None][:, : self.width]
        return simplex(len(self.categories))

    def read(self, column: nw.Series[Any], marker: Any) -> tuple[Values, Missing]:  # noqa: ARG002, D102
        places = {label: place for place, label in enumerate(self.categories)}
        absent = column.is_null().to_list()
        # A category never seen in training says nothing: it is imputed like a hole, and then left as it is.
        found = [
            -1 if null else places.get(plain_label(label), -1) for label, null in zip(column.to_list(), absent, strict=True)
        ]
        codes = np.array(found, dtype=np.int64)
        return self.corners()[codes], codes < 0

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:  # noqa: ARG002, D102
        declared = declared_labels(column)
        own = dict(zip(self.categories, self.categories, strict=True))
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
        if family_of(column) == "nothing":
            return without_type(column, rows, labels)
        if family_of(column) == "number":
            numbers = NumberCode("number")
            return numbers.write(column, rows, np.array(labels, dtype=np.float64)[:, None], "round")
        return write_labels(column, rows, labels)


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
    family: ClassVar[str] = "moment"

    def __post_init__(self) -> None:
        known = self.moment in ("Date", "Datetime", "Duration", "Time") and self.unit in _NANOSECONDS
        if not known or self.tick < 1 or self.low > self.high:
            raise ValueError(f"{self.moment!r} in {self.unit!r}, a tick of {self.tick}, {self.low} to {self.high}")

    @classmethod
    def fit(cls, column: nw.Series[Any], moment: str, unit: str, low: int | None, high: int | None) -> MomentCode:
        """From the observed moments; imputed ones reach at most as far beyond them as they are apart."""
        numbers = read_moments(column, moment, unit)[~column.is_null().to_numpy()]
        first, last = int(numbers.min()), int(numbers.max())
        ticks = [max(1, tick // _NANOSECONDS[unit]) for tick in _TICKS]
        tick = next(tick for tick in ticks if not ((numbers - first) % tick).any())
        farthest = 2**62
        lowest, highest = max(2 * first - last, -farthest), min(2 * last - first, farthest)
        if moment == "Time":
            day = 86_400 * 10**9 // _NANOSECONDS[unit]
            lowest, highest = max(lowest, 0), min(highest, day - 1)
        lowest = lowest if low is None else low
        highest = highest if high is None else high
        return cls(moment, unit, first, tick, lowest, highest)

    def read(self, column: nw.Series[Any], marker: Any) -> tuple[Values, Missing]:  # noqa: ARG002, D102
        if family_of(column) == "nothing":
            return np.full((len(column), 1), np.nan), np.ones(len(column), dtype=bool)
        numbers = read_moments(column, self.moment, self.unit) - self.origin
        return numbers.astype(np.float64)[:, None], column.is_null().to_numpy()

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:  # noqa: ARG002, D102
        # Ticks are counted from the first moment, so that bounds must be met by whole ticks too.
        fewest = -((self.origin - self.low) // self.tick)
        most = (self.high - self.origin) // self.tick
        ticks = np.clip(np.rint(points[:, 0] / self.tick), fewest, max(most, fewest)).astype(np.int64)
        numbers = np.clip(self.origin + ticks * self.tick, self.low, self.high)
        if family_of(column) == "nothing":
            return without_type(column, rows, self._python_values(numbers))
        return write_moments(column, rows, self.moment, numbers, self.unit)

    def _python_values(self, numbers: NDArray[np.int64]) -> list[Any]:
        if self.moment == "Time":
            return [time_of_day(number * _NANOSECONDS[self.unit]) for number in numbers.tolist()]
        kind = f"m8[{self.unit}]" if self.moment == "Duration" else f"M8[{self.unit}]"
        coarse = "D" if self.moment == "Date" else "us"
        return list(numbers.view(kind).astype(f"{kind[:2]}[{coarse}]").tolist())


@stored()
@dataclass(frozen=True)
class IdleCode:
    """A column that is neither used nor filled."""

    kind: str  # "text", "empty" or "other"
    width: ClassVar[int] = 0
    is_scaled: ClassVar[bool] = False
    family: ClassVar[str] = "any"

    def read(self, column: nw.Series[Any], marker: Any) -> tuple[Values, Missing]:  # noqa: ARG002, D102
        return np.empty((len(column), 0)), column.is_null().to_numpy()

    def write(self, column: nw.Series[Any], rows: NDArray[np.int64], points: Values, integers: str) -> nw.Series[Any]:  # noqa: ARG002, D102
        return column


ColumnCode = NumberCode | CategoryCode | MomentCode | IdleCode


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
        cells = np.clip(values, -largest, largest).astype(kind)
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


def series_like(source: Any, name: str, values: NDArray[Any], dtype: Any) -> nw.Series[Any]:
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
    series = nw.new_series(column.name, cells, backend=column.implementation)
    if column.implementation.is_pandas_like():
        series = nw.maybe_set_index(series, index=nw.to_native(column).index)
    return series
