"""Columns as expressions see them: numbers, text, conditions or dates, and where they are known."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._text import Keyword
from ..table.codes import NumberCode
from ..table.kinds import ColumnKind, Family, MomentKind
from ..table.moments import moment_kind, read_moments
from ..table.native import columns_of, family_of, nulls_of, python_types

MICROSECONDS_PER_DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class ExpressionError(ValueError):
    """An expression cannot be read, or makes no sense for the columns it names.

    Attributes
    ----------
    text : str
        The expression.
    problem : str
        What is wrong with it.
    position : int or None
        Where in the text, if it is wrong in one place.
    """

    def __init__(self, text: str, problem: str, position: int | None = None) -> None:
        super().__init__(text, problem, position)
        self.text, self.problem, self.position = text, problem, position

    def __str__(self) -> str:
        if self.position is None:
            return f"in {self.text!r}: {self.problem}"
        begin = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[begin:].partition("\n")[0].replace("\t", " ")
        return f"{self.problem}\n    {line}\n    {' ' * (self.position - begin)}^"


class ValueKind(Keyword):
    """What the values of a column or an expression are; in words that follow "holds"."""

    NUMBER = "numbers"
    TEXT = "text"
    CONDITION = "true or false"
    DATE = "dates"
    NOTHING = "no values"
    OTHER = "values that are neither numbers, text nor dates"


class Values(NamedTuple):
    """One value per row, and where it is known.

    Numbers are float64, conditions bool, text an array of objects; dates are float64 too, the days since 1970 (in UTC if they
    have a time zone), and durations and times of day numbers of days, all to the microsecond. What stands where nothing is
    known means nothing.
    """

    kind: ValueKind
    values: NDArray[Any]
    known: NDArray[np.bool_]

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Where a condition is known to be true."""
        return np.asarray(self.values & self.known)


def read_column(column: nw.Series[Any], missing_values: float = math.nan) -> Values:
    """The values of a column; null, NaN and the number ``missing_values`` are unknown.

    >>> import narwhals as nw, polars as pl
    >>> read_column(nw.from_native(pl.Series("age", [3, None]), series_only=True))
    Values(kind='numbers', values=array([ 3., nan]), known=array([ True, False]))
    """
    family = family_of(column)
    if family == Family.NUMBER:
        numbers, missing, _ = NumberCode(ColumnKind.NUMBER).read(column, missing_values)
        if column.dtype == nw.Boolean or (column.dtype == nw.Object and python_types(column) == {bool}):
            return Values(ValueKind.CONDITION, np.where(missing, 0, numbers[:, 0]) == 1, ~missing)
        return Values(ValueKind.NUMBER, np.asarray(numbers[:, 0], dtype=np.float64), ~missing)
    known = ~nulls_of(column)
    if family == Family.MOMENT:
        moment, _ = moment_kind(column)
        kind = ValueKind.DATE if moment in (MomentKind.DATE, MomentKind.DATETIME) else ValueKind.NUMBER
        return Values(kind, np.where(known, read_moments(column, "us") / MICROSECONDS_PER_DAY, np.nan), known)
    if family == Family.LABEL:
        cells = [str(label) if seen else "" for label, seen in zip(column.to_list(), known, strict=True)]
        return Values(ValueKind.TEXT, np.array(cells, dtype=object), known)
    kind = ValueKind.NOTHING if family == Family.NOTHING else ValueKind.OTHER
    return Values(kind, np.full(len(column), np.nan), known)


def read_columns(
    frame: nw.DataFrame[Any], names: Iterable[str], missing_values: float = math.nan, text: str = ""
) -> dict[str, Values]:
    """Some columns of a frame, by name; ``text`` is the expression that names them."""
    places = {name: k for k, name in enumerate(frame.columns)}
    wanted = set(names)
    for name in sorted(wanted - places.keys()):
        raise ExpressionError(text, no_such_column(name, frame.columns))
    return {column.name: read_column(column, missing_values) for column in columns_of(frame.select(list(wanted)))}


def no_such_column(name: str, names: Iterable[Any]) -> str:
    """What to say of a name that no column has.

    >>> no_such_column("heigth", ["height", "weight"])
    "there is no column 'heigth'; did you mean 'height'?"
    """
    names = [str(each) for each in names]
    near = get_close_matches(name, names, 1, cutoff=0.6)
    advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names[:8]))}{' ...' * (len(names) > 8)}"
    return f"there is no column {name!r}; {advice}"


def days_of(moment: str) -> float:
    """A date as people write it, in days since 1970; ValueError if it is none.

    >>> days_of("1970-02-01"), days_of("1970-01-01T12:00")
    (31.0, 0.5)
    """
    read = dt.datetime.fromisoformat(moment)
    zoned = read if read.tzinfo is not None else read.replace(tzinfo=dt.UTC)
    return ((zoned - _EPOCH) // _MICROSECOND) / MICROSECONDS_PER_DAY
