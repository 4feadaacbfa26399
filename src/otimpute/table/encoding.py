"""All columns of a table as coordinates: which code suits a column, learned once, applied to every table after."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from .categories import CategoryCode
from .choose import HOLDS, choose_code, number_code
from .codes import ColumnCode, IdleCode, MomentCode, NumberCode, equal_to
from .constraint import NO_CONSTRAINT, read_constraints
from .extent import extents_of
from .kinds import ColumnKind, Family, MomentKind
from .moments import moment_kind
from .native import columns_of, family_of, has_no_value
from .table import Table

NOTHING_IDLE: Mapping[int, ColumnKind] = {}


@dataclass(frozen=True)
class ColumnSummary:
    """What a column holds and what an imputer makes of it."""

    name: str
    dtype: str
    kind: ColumnKind
    n_rows: int
    n_missing: int
    treatment: str


@stored()
@dataclass(frozen=True)
class Encoding:
    """The code of every column, in order."""

    names: tuple[str, ...]  # () for those of an array
    codes: tuple[ColumnCode, ...]

    @classmethod
    def of_array(
        cls,
        array: NDArray[Any],
        constraints: Any = None,
        marker: Any = math.nan,
        idle: Mapping[int, ColumnKind] = NOTHING_IDLE,
    ) -> Encoding:
        """Columns of an array are numbers; constraints go by their position, and must leave a number of its type.

        Those at the positions ``idle`` are left alone, for the reason that is given.
        """
        by_column = read_constraints(constraints, range(array.shape[1]))
        for name, constraint in by_column.items():
            if constraint.categories is not None or constraint.ordered:
                raise ValueError(f"column {name} of an array holds numbers, not categories; pass a data frame instead")
        values = array if array.dtype.kind == "f" else array.astype(np.float64)
        extents = extents_of(values if marker != marker else np.where(equal_to(array, marker), np.nan, values))
        dtype = array.dtype if array.dtype.kind == "f" else None
        if dtype is None:  # rounded for their type, unless asked to become floats
            extents = [replace(extent, whole=False) for extent in extents]
        codes = [
            IdleCode(idle[name])
            if name in idle
            else number_code(name, ColumnKind.NUMBER, by_column.get(name, NO_CONSTRAINT), extent, dtype)
            for name, extent in enumerate(extents)
        ]
        return cls((), tuple(codes))

    @classmethod
    def of_frame(
        cls,
        frame: nw.DataFrame[Any],
        constraints: Any = None,
        max_categories: int | None = 50,
        marker: Any = math.nan,
        idle: Mapping[int, ColumnKind] = NOTHING_IDLE,
    ) -> Encoding:
        """Choose a code per column from what it holds, but for those at the positions ``idle``."""
        by_column = read_constraints(constraints, frame.columns)
        codes = [
            IdleCode(idle[k])
            if k in idle
            else choose_code(column, by_column.get(column.name, NO_CONSTRAINT), max_categories, marker)
            for k, column in enumerate(columns_of(frame))
        ]
        return cls(tuple(map(str, frame.columns)), tuple(codes))

    @classmethod
    def of_facts(
        cls,
        names: Sequence[str],
        columns: Sequence[nw.Series[Any] | None],
        counts: Sequence[Counter[Any] | None],
        sample: Any,
        constraints: Any,
        max_categories: int | None,
        marker: Any,
    ) -> Encoding:
        """Choose a code per column from short columns that stand for long ones, or, where there is none, from a sample of rows.

        ``counts`` are those of all labels, where they are known.
        """
        by_column = read_constraints(constraints, names)
        codes = []
        for column, counted, rows in zip(columns, counts, columns_of(nw.from_native(sample, eager_only=True)), strict=True):
            constraint = by_column.get(rows.name, NO_CONSTRAINT)
            is_number = column is not None and family_of(column) == Family.NUMBER
            if column is None or (is_number and (constraint.categories is not None or constraint.ordered)):
                column, counted = rows, None
            is_label = family_of(column) == Family.LABEL
            codes.append(
                choose_code(column.alias(rows.name), constraint, max_categories, marker, counted if is_label else None)
            )
        return cls(tuple(names), tuple(codes))

    def with_idle(self, idle: Mapping[int, ColumnKind]) -> Encoding:
        """The same with columns at some positions left alone."""
        codes = [IdleCode(idle[k]) if k in idle else code for k, code in enumerate(self.codes)]
        return replace(self, codes=tuple(codes))

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
    def kinds(self) -> dict[str, ColumnKind]:
        """What each column holds, by name."""
        names = self.names or map(str, range(len(self.codes)))
        return {name: code.kind for name, code in zip(names, self.codes, strict=True)}

    @property
    def descriptions(self) -> dict[str, str]:
        """The same with the bounds that imputed numbers keep to: "number ≥ 0"."""
        return {
            name: f"{'whole ' * code.whole}{kind}{code.range}" if isinstance(code, NumberCode) else kind
            for (name, kind), code in zip(self.kinds.items(), self.codes, strict=True)
        }

    @property
    def categories(self) -> dict[str, list[Any]]:
        """Those of the columns of categories and booleans, by name."""
        return {
            name: list(code.labels) if isinstance(code, CategoryCode) else [False, True]
            for name, code in zip(self.names, self.codes, strict=False)
            if isinstance(code, CategoryCode) or code.kind == ColumnKind.BOOLEAN
        }

    def read_array(self, array: NDArray[Any], marker: Any) -> Table:
        """A table from a two-dimensional numeric array; NaN is always missing."""
        idle = [code.width == 1 and isinstance(code, IdleCode) for code in self.codes]
        unlike = [k for k, code in enumerate(self.codes) if not isinstance(code, NumberCode) and not idle[k]]
        if unlike:
            name = self.names[unlike[0]]
            raise ValueError(f"column {name!r} held no numbers in training, so an array will not do; pass a data frame")
        self._check_width(array.shape[1])
        values = array if array.dtype.kind == "f" else array.astype(np.float64)
        missing = np.isnan(values)
        missing |= equal_to(array, marker)
        holes, unseen = missing, [code.kind.passes_unseen for code in self.codes]
        if any(unseen):
            holes, missing = missing & ~np.array(unseen), missing | np.array(unseen)
        refuse_infinity(values, missing, range(values.shape[1]))
        return Table(array, values, missing, holes, self.codes)

    def read_frame(self, frame: nw.DataFrame[Any], marker: Any) -> Table:
        """A table from a frame of the same columns; null and NaN are always missing."""
        self._check_names(frame)
        shape = len(frame), int(sum(self.widths))
        values = np.empty(shape, order="F")
        missing = np.empty(shape, dtype=bool, order="F")
        holes = missing if self.is_numeric else np.empty(frame.shape, dtype=bool, order="F")
        place = 0
        for k, (code, column) in enumerate(zip(self.codes, columns_of(frame), strict=True)):
            end = place + code.width
            is_float = isinstance(code, NumberCode) and column.dtype.is_float()  # which fits, also where it has no value
            if not is_float and has_no_value(column):  # whatever its type
                values[:, place:end], missing[:, place:end], holes[:, k] = np.nan, True, not code.kind.passes_unseen
            else:
                if not is_float:
                    _check_family(code, column)
                coordinates, unknown, holes[:, k] = code.read(column, marker)
                values[:, place:end], missing[:, place:end] = coordinates, unknown[:, None]
            place = end
        refuse_infinity(values, missing, [frame.columns[k] for k in self.groups])
        return Table(frame, values, missing, holes, self.codes)

    def check_types(self, frame: nw.DataFrame[Any]) -> None:
        """Refuse a frame, which may have no rows, whose columns are of other types than those of their names in training."""
        codes = dict(zip(self.names, self.codes, strict=True))
        for column in frame.iter_columns():
            _check_family(codes[column.name], column)

    def _check_names(self, frame: nw.DataFrame[Any]) -> None:
        """Scikit-learn does so for names that are text; others must not be mixed up either."""
        self._check_width(frame.shape[1])
        names = tuple(map(str, frame.columns))
        if self.names and names != self.names:
            raise ValueError(f"columns must be {list(self.names)[:20]}, in this order, got {list(names)[:20]}")

    def _check_width(self, n_columns: int) -> None:
        if n_columns != len(self.codes):
            raise ValueError(f"the table of the first fit has {len(self.codes)} columns, got {n_columns}; pass the same ones")

    def describe(self, frame: nw.DataFrame[Any], marker: Any = math.nan) -> list[ColumnSummary]:
        """A line per column for people."""
        table = self.read_frame(frame, marker)
        return [
            ColumnSummary(column.name, str(column.dtype), code.kind, len(frame), int(holes.sum()), _treatment(code, column))
            for code, column, holes in zip(self.codes, columns_of(frame), table.holes.T, strict=True)
        ]


def describe_columns(
    frame: Any,
    constraints: Any = None,
    max_categories: int | None = 50,
    idle: Mapping[int, ColumnKind] = NOTHING_IDLE,
) -> list[ColumnSummary]:
    """What the columns of a frame hold and what an imputer would make of them; those at the positions ``idle`` are left alone.

    >>> import polars as pl
    >>> [(one.name, one.kind) for one in describe_columns(pl.DataFrame({"age": [31, None], "sex": ["f", "m"]}))]
    [('age', 'integer'), ('sex', 'category')]
    """
    eager = nw.from_native(frame, eager_only=True)
    return Encoding.of_frame(eager, constraints, max_categories, idle=idle).describe(eager)


def _check_family(code: ColumnCode, column: nw.Series[Any]) -> None:
    found = family_of(column)
    if isinstance(code, MomentCode) and found == Family.MOMENT:
        kinds = {code.moment, moment_kind(column)[0]}
        fits = len(kinds) == 1 or kinds == {MomentKind.DATE, MomentKind.DATETIME}
    elif isinstance(code, CategoryCode) and found == Family.NUMBER:
        fits = not any(isinstance(label, str) for label in code.categories)
    else:
        fits = code.family in (Family.ANY, found)
    if not fits:
        raise ValueError(
            f"column {column.name!r} held {HOLDS[code.family]} in training, now it holds {HOLDS[found]} ({column.dtype}); "
            "convert it to what it was"
        )


def refuse_infinity(values: NDArray[np.floating], missing: NDArray[np.bool_], names: Sequence[Any]) -> None:
    """An error that names the columns with infinite values, if there are any."""
    found = np.isinf(values)
    if found.any() and (found := found & ~missing).any():
        infinite = [repr(name) for name, is_infinite in zip(names, found.any(axis=0), strict=True) if is_infinite]
        raise ValueError(
            f"Input X contains infinity in columns {', '.join(infinite[:5])}; "
            "replace infinite values by missing ones or by finite numbers"
        )


def _treatment(code: ColumnCode, column: nw.Series[Any]) -> str:
    if isinstance(code, NumberCode):
        whole = "whole " if code.whole or code.kind == ColumnKind.INTEGER else ""
        return "true or false" if code.kind == ColumnKind.BOOLEAN else f"{whole}numbers{code.range}"
    if isinstance(code, CategoryCode):
        n = len(code.categories)
        if code.pools_rest:
            return f"one of the {n} most frequent labels"
        return f"one of {n} in order" if code.ordered else f"one of {n} labels" if n > 1 else "the one value"
    if isinstance(code, MomentCode):
        return "dates or times"
    if code.kind == ColumnKind.TEXT:
        values = column.drop_nulls()
        return f"left alone ({'hardly repeats' if values.n_unique() > len(values) / 2 else 'no text is frequent'})"
    if code.kind.passes_unseen or code.kind == ColumnKind.DERIVED:
        return _IDLE[code.kind]
    return "left empty (no value)" if code.kind == ColumnKind.EMPTY else f"left alone ({column.dtype})"


_IDLE = {
    ColumnKind.EXCLUDED: "left alone (excluded)",
    ColumnKind.IDENTIFIER: "left alone (looks like an identifier)",
    ColumnKind.DERIVED: "computed from other columns",
}
