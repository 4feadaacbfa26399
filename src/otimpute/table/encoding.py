"""All columns of a table as coordinates: which code suits a column, learned once, applied to every table after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from .._warn import warn_user
from ..exceptions import OtimputeWarning
from .codes import CategoryCode, ColumnCode, IdleCode, MomentCode, NumberCode, equal_to, plain_label
from .constraint import NO_CONSTRAINT, Constraint, read_constraints
from .native import declared_labels, family_of, is_ordered, moment_kind, python_types
from .table import Table

# Text of which hardly any value occurs twice names rows (people, comments); fewer values than this may be categories.
_FEW_LABELS = 10
_HOLDS = {
    "number": "numbers",
    "label": "text or categories",
    "moment": "dates or times",
    "nothing": "no value",
    "other": "values of another kind",
}


@dataclass(frozen=True)
class ColumnSummary:
    """What a column holds and what an imputer makes of it."""

    name: str
    dtype: str
    kind: str
    n_rows: int
    n_missing: int
    treatment: str


@stored()
@dataclass(frozen=True)
class Encoding:
    """The code of every column, in order."""

    names: tuple[str, ...]
    codes: tuple[ColumnCode, ...]

    @classmethod
    def of_array(cls, n_columns: int, constraints: Any) -> Encoding:
        """Columns of an array are numbers; constraints go by their position."""
        wishes = read_constraints(constraints, range(n_columns))
        for name, wish in wishes.items():
            if wish.categories is not None or wish.ordered:
                raise ValueError(f"column {name} of an array holds numbers, not categories; pass a data frame instead")
        codes = [_number_code(name, "number", wishes.get(name, NO_CONSTRAINT)) for name in range(n_columns)]
        return cls(tuple(map(str, range(n_columns))), tuple(codes))

    @classmethod
    def of_frame(
        cls, frame: nw.DataFrame[Any], constraints: Any = None, max_categories: int | None = 50, marker: Any = math.nan
    ) -> Encoding:
        """Choose a code per column from what it holds."""
        wishes = read_constraints(constraints, frame.columns)
        codes = [
            _choose_code(column, wishes.get(column.name, NO_CONSTRAINT), max_categories, marker)
            for column in frame.iter_columns()
        ]
        return cls(tuple(map(str, frame.columns)), tuple(codes))

    @property
    def widths(self) -> list[int]:
        """How many coordinates each column has."""
        return [code.width for code in self.codes]

    @property
    def groups(self) -> NDArray[np.int64]:
        """The column that each coordinate belongs to."""
        return np.repeat(np.arange(len(self.codes)), self.widths)

    @property
    def scaled(self) -> NDArray[np.bool_]:
        """Which coordinates come in units of their own and must not be standardised."""
        return np.repeat([code.is_scaled for code in self.codes], self.widths).astype(bool)

    @property
    def is_numeric(self) -> bool:
        """Whether every column is one number."""
        return all(isinstance(code, NumberCode) for code in self.codes)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds, by name."""
        return {name: code.kind for name, code in zip(self.names, self.codes, strict=True)}

    def read_array(self, array: NDArray[Any], marker: Any) -> Table:
        """A table from a two-dimensional numeric array; NaN is always missing."""
        if not self.is_numeric:
            unlike = next(name for name, code in zip(self.names, self.codes, strict=True) if code.family != "number")
            raise ValueError(f"column {unlike!r} held no numbers in training, so an array will not do; pass a data frame")
        values = array if array.dtype.kind == "f" else array.astype(np.float64)
        missing = np.isnan(values)
        missing |= equal_to(array, marker)
        refuse_infinity(values, missing, range(values.shape[1]))
        return Table(array, values, missing, missing, self.codes)

    def read_frame(self, frame: nw.DataFrame[Any], marker: Any) -> Table:
        """A table from a frame of the same columns; null and NaN are always missing."""
        shape = len(frame), int(sum(self.widths))
        values = np.empty(shape, order="F")
        missing = np.empty(shape, dtype=bool, order="F")
        holes = missing if self.is_numeric else np.empty(frame.shape, dtype=bool, order="F")
        place = 0
        for k, (code, column) in enumerate(zip(self.codes, frame.iter_columns(), strict=True)):
            self._check_family(code, column)
            coordinates, unknown = code.read(column, marker)
            end = place + code.width
            values[:, place:end], missing[:, place:end] = coordinates, unknown[:, None]
            holes[:, k] = unknown if code.family == "number" else column.is_null().to_numpy()
            place = end
        refuse_infinity(values, missing, [frame.columns[k] for k in self.groups])
        return Table(frame, values, missing, holes, self.codes)

    def _check_family(self, code: ColumnCode, column: nw.Series[Any]) -> None:
        found = family_of(column)
        if code.family in ("any", found) or found == "nothing":
            return
        if isinstance(code, CategoryCode) and found == "number" and not any(isinstance(c, str) for c in code.categories):
            return
        raise ValueError(
            f"column {column.name!r} held {_HOLDS[code.family]} in training, now it holds {_HOLDS[found]} ({column.dtype}); "
            "convert it to what it was"
        )

    def describe(self, frame: nw.DataFrame[Any], marker: Any = math.nan) -> list[ColumnSummary]:
        """A line per column for people."""
        table = self.read_frame(frame, marker)
        return [
            ColumnSummary(column.name, str(column.dtype), code.kind, len(frame), int(holes.sum()), _treatment(code, column))
            for code, column, holes in zip(self.codes, frame.iter_columns(), table.holes.T, strict=True)
        ]


def describe_columns(frame: Any, constraints: Any = None, max_categories: int | None = 50) -> list[ColumnSummary]:
    """What the columns of a frame hold and what an imputer would make of them.

    >>> import polars as pl
    >>> [(one.name, one.kind) for one in describe_columns(pl.DataFrame({"age": [31, None], "sex": ["f", "m"]}))]
    [('age', 'integer'), ('sex', 'category')]
    """
    eager = nw.from_native(frame, eager_only=True)
    return Encoding.of_frame(eager, constraints, max_categories).describe(eager)


def refuse_infinity(values: NDArray[np.floating], missing: NDArray[np.bool_], names: Sequence[Any]) -> None:
    """An error that names the columns with infinite values, if there are any."""
    infinite = [repr(name) for k, name in enumerate(names) if (np.isinf(values[:, k]) & ~missing[:, k]).any()]
    if infinite:
        raise ValueError(
            f"Input X contains infinity in columns {', '.join(infinite[:5])}; "
            "replace infinite values by missing ones or by finite numbers"
        )


def _choose_code(column: nw.Series[Any], wish: Constraint, max_categories: int | None, marker: Any) -> ColumnCode:
    family = family_of(column)
    n_null = int(column.null_count())
    if family == "number" and wish.categories is None and not wish.ordered:
        return _number_code(column.name, _number_kind(column), wish, column, marker)
    if wish.limits_numbers and (family in ("label", "other") or wish.categories is not None):
        raise ValueError(
            f"column {column.name!r} holds {_HOLDS[family]}: bounds, integer and non_negative are for numbers; "
            'use {"categories": [...]}'
        )
    if n_null == len(column):
        # A column of numbers, or of no type, gets 0; one of text or dates has no such value and stays empty.
        return NumberCode("empty") if family == "nothing" else IdleCode("empty")
    if family == "moment" and wish.categories is None:
        return _moment_code(column, wish)
    if family == "other":
        if wish != NO_CONSTRAINT:
            raise ValueError(f"column {column.name!r} of type {column.dtype} cannot be imputed, so it takes no constraints")
        return IdleCode("other")
    return _category_code(column, wish, max_categories)


def _category_code(column: nw.Series[Any], wish: Constraint, max_categories: int | None) -> ColumnCode:
    observed = {plain_label(label) for label in column.drop_nulls().to_list()}
    declared = declared_labels(column)
    ordered = wish.ordered or is_ordered(column)
    if wish.categories is not None:
        allowed = [plain_label(label) for label in wish.categories]
        strange = sorted(map(str, observed - set(allowed)))
        if not observed & set(allowed):
            raise ValueError(
                f"categories of column {column.name!r} must occur in it, got {allowed[:10]}, it has {strange[:10]}"
            )
        if strange:
            warn_user(
                f"column {column.name!r} has observed values that are not among its categories ({', '.join(strange[:5])}); "
                "they stay, and are never imputed",
                OtimputeWarning,
            )
    else:
        allowed = [plain_label(label) for label in declared] if declared is not None else sorted(observed, key=_sort_key)
        n_observed = len(column) - int(column.null_count())
        rare = declared is None and len(observed) > max(_FEW_LABELS, n_observed / 2)
        if max_categories is not None and (rare or len(observed) > max_categories):
            return IdleCode("text")
    # What never occurred cannot be told apart; with an order it still has a place between its neighbours.
    return CategoryCode(tuple(label for label in allowed if ordered or label in observed), ordered)


def _number_kind(column: nw.Series[Any]) -> str:
    if column.dtype == nw.Object:
        kinds = python_types(column)
        return "boolean" if kinds == {bool} else "integer" if kinds == {int} else "number"
    if column.dtype == nw.Boolean:
        return "boolean"
    return "integer" if column.dtype.is_integer() else "number"


def _number_code(
    name: Any, kind: str, wish: Constraint, column: nw.Series[Any] | None = None, marker: Any = math.nan
) -> NumberCode:
    if kind == "boolean" and wish.limits_numbers:
        raise ValueError(f"column {name!r} holds booleans, which bounds, integer and non_negative do not concern")
    low, high = (_as_number(name, bound, open_end) for bound, open_end in zip(wish.bounds, (-math.inf, math.inf), strict=True))
    if wish.non_negative:
        low = max(low, 0.0)
    if wish.integer or kind == "integer":
        low, high = (_whole(low, math.ceil), _whole(high, math.floor))
    if low > high:
        raise ValueError(f"column {name!r} has no possible value: its constraints leave nothing between {low} and {high}")
    code = NumberCode(kind, low, high, wish.integer)
    if column is not None and not code.is_free:
        values, missing = replace(code).read(column, marker)
        outside = values[~missing & ((values[:, 0] < low) | (values[:, 0] > high)), 0]
        if len(outside):
            warn_user(
                f"column {name!r} has {len(outside)} observed values outside its bounds ({low:g} to {high:g}), for example "
                f"{outside[0]:g}; they stay, imputed ones are within",
                OtimputeWarning,
            )
    return code


def _as_number(name: Any, bound: Any, open_end: float) -> float:
    if bound is None:
        return open_end
    if isinstance(bound, (bool, str)) or not np.isscalar(bound) or math.isnan(float(bound)):  # type: ignore[arg-type]
        raise TypeError(f"bounds of column {name!r} must be numbers, or None where open, got {bound!r}")
    return float(bound)  # type: ignore[arg-type]


def _whole(bound: float, rounding: Any) -> float:
    return float(rounding(bound)) if math.isfinite(bound) else bound


def _moment_code(column: nw.Series[Any], wish: Constraint) -> MomentCode:
    moment, unit = moment_kind(column)
    if wish.integer or wish.non_negative:
        raise ValueError(f"column {column.name!r} holds dates or times, which integer and non_negative do not concern")
    bounds = [_as_moment(column.name, bound, moment, unit) for bound in wish.bounds]
    if None not in bounds and bounds[0] > bounds[1]:  # type: ignore[operator]
        raise ValueError(f"column {column.name!r} has no possible value between {wish.bounds[0]} and {wish.bounds[1]}")
    return MomentCode.fit(column, moment, unit, *bounds)


def _as_moment(name: Any, bound: Any, moment: str, unit: str) -> int | None:
    if bound is None:
        return None
    try:
        if moment == "Time":
            bound = np.datetime64(f"1970-01-01T{bound}")
        kind: Any = np.timedelta64 if moment == "Duration" else np.datetime64
        return int(kind(bound, unit).view(np.int64))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f'bounds of column {name!r} must be dates or times such as "2024-01-31", or None where open, got {bound!r}'
        ) from error


def _sort_key(label: Any) -> tuple[str, Any]:
    return ("", label) if isinstance(label, (bool, int, float)) else ("text", label)


def _treatment(code: ColumnCode, column: nw.Series[Any]) -> str:
    if isinstance(code, NumberCode):
        if code.kind == "empty" or int(column.null_count()) == len(column):
            return "has no value: filled with 0"
        span = "" if code.low == -math.inf and code.high == math.inf else f" from {code.low:g} to {code.high:g}"
        whole = "whole " if code.whole or code.kind == "integer" else ""
        return "true or false" if code.kind == "boolean" else f"{whole}numbers{span}"
    if isinstance(code, CategoryCode):
        n = len(code.categories)
        return f"one of {n} categories" + (" in their order" if code.ordered else "") if n > 1 else "the one value there is"
    if isinstance(code, MomentCode):
        return "moments as fine as those observed"
    if code.kind == "text":
        n = int(column.n_unique())
        return f"left alone, holes stay: {n} distinct texts (raise max_categories to use them)"
    return (
        "left alone: has no value" if code.kind == "empty" else f"left alone, holes stay: type {column.dtype} is not supported"
    )
