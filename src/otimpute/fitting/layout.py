"""What the columns of an array stand for in the table it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .._text import listed
from ..table import ColumnCode, ColumnKind, Encoding, NumberCode

_MOST_NAMED = 10


class Helpers(Protocol):
    """Knows the rows that a fit sees, and what they say about each other."""

    def said_of(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The helper columns ``[n, H]`` of all rows, from those of the table ``[n, H]`` that they are about."""
        ...

    def only(self, which: NDArray[np.int64]) -> Helpers:
        """Some of the helpers."""
        ...

    def hide_like_missing(
        self, missing: NDArray[np.bool_], hidden: NDArray[np.bool_], stands_for: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """What to hide ``[n, G]`` of all rows, so that it is as far from what is known as missing values are."""
        ...


@dataclass(frozen=True)
class ColumnLayout:
    """Which columns of a table the D columns of an array belong to.

    A number takes one column of the array, a category several, which are always missing together. The last columns may be
    helpers, which belong to no column of the table: they say what other rows tell about a column, and are never missing.

    Parameters
    ----------
    groups : array [D]
        For each column of the array, the position of its column in the table. Columns of one group are adjacent.
    scaled : array of bool [D]
        Which columns come in units of their own and must not be standardised, such as those of categories.
    names : tuple
        Names of all columns of the table.
    codes : tuple
        What all columns of the table hold: numbers with bounds, categories, dates.
    imputed : array of bool [d] or None
        Which columns of the table are imputed; the missing values of others are nobody's business. None: all.
    predictors : array of bool [d, d] or None
        Which columns of the table may inform each of them, row by row. None: all. Honoured by `fit_within_predictors`.
    helped : array [H]
        The column of the array that each helper is about. The group of a helper is its own.
    helpers : Helpers or None
        Makes them again when more values are hidden; None where nobody can.

    Examples
    --------
    >>> layout = ColumnLayout.of_numbers(["height", "weight"])
    >>> layout.groups.tolist(), layout.scaled.tolist()
    ([0, 1], [False, False])
    """

    groups: NDArray[np.int64]
    scaled: NDArray[np.bool_]
    names: tuple[Any, ...]
    codes: tuple[ColumnCode, ...]
    imputed: NDArray[np.bool_] | None = None
    predictors: NDArray[np.bool_] | None = None
    helped: NDArray[np.int64] = field(default_factory=lambda: np.arange(0))
    helpers: Helpers | None = None

    @classmethod
    def of_numbers(cls, names: Sequence[Any]) -> ColumnLayout:
        """The layout of a table in which every column is a number."""
        n = len(names)
        return cls(np.arange(n), np.zeros(n, dtype=bool), tuple(names), tuple(NumberCode(ColumnKind.NUMBER) for _ in names))

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        used: NDArray[np.bool_],
        imputed: NDArray[np.bool_] | None = None,
        predictors: NDArray[np.bool_] | None = None,
    ) -> ColumnLayout:
        """The layout of the ``used`` coordinates of an encoded table."""
        names: tuple[Any, ...] = encoding.names or tuple(range(len(encoding.codes)))
        return cls(encoding.groups[used], encoding.scaled[used], names, encoding.codes, imputed, predictors)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def own(self) -> slice:
        """The columns of the array that are those of the table."""
        return slice(len(self.groups) - len(self.helped))

    @property
    def column_of_each(self) -> NDArray[np.int64]:
        """The column of the table that each column of the array, a helper too, says something about."""
        return np.concatenate([self.groups[self.own], self.groups[self.helped]])

    @property
    def code_of_each(self) -> list[ColumnCode]:
        """What each column of the array holds; helpers are numbers."""
        return [self.codes[place] for place in self.groups[self.own]] + [NumberCode(ColumnKind.NUMBER) for _ in self.helped]

    @property
    def is_imputed(self) -> NDArray[np.bool_]:
        """Which columns of the array belong to columns that are imputed."""
        own = self.groups[self.own]
        imputed = np.ones(len(own), dtype=bool) if self.imputed is None else self.imputed[own]
        return np.concatenate([imputed, np.zeros(len(self.helped), dtype=bool)])

    def only(self, columns: NDArray[np.int64]) -> ColumnLayout:
        """The layout of some columns of the array, each of which may inform all others; helpers come with what they help."""
        own, more = columns[columns < self.own.stop], columns[columns >= self.own.stop] - self.own.stop
        return replace(
            self,
            groups=self.groups[columns],
            scaled=self.scaled[columns],
            predictors=None,
            helped=np.searchsorted(own, self.helped[more]),
            helpers=None if self.helpers is None else self.helpers.only(more),
        )

    def with_helpers(self, helped: NDArray[np.int64], helpers: Helpers) -> ColumnLayout:
        """With a helper for each of some columns of the array."""
        groups = np.concatenate([self.groups, len(self.names) + np.arange(len(helped))])
        return replace(
            self, groups=groups, scaled=np.concatenate([self.scaled, self.scaled[helped]]), helped=helped, helpers=helpers
        )

    def of_some_rows(self) -> Self:
        """The layout of a part of the rows: what others say about them stays as it is."""
        return replace(self, helpers=None)

    def with_helpers_of(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.floating]:
        """All rows of the fit with helper columns made anew, for whoever hides values: nothing of these is left in any."""
        if self.helpers is None or len(self.helped) == 0:
            return values
        own = self.own.stop
        return np.hstack([values[:, :own], self.helpers.said_of(values[:, self.helped], missing[:, self.helped])])

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which coordinates of the table, those of columns without a value included, and helpers are columns of the array.

        >>> ColumnLayout.of_numbers(["height", "weight"]).used.tolist()
        [True, True]
        """
        return np.concatenate([np.isin(self.encoding.groups, self.groups), np.ones(len(self.helped), dtype=bool)])

    @property
    def encoding(self) -> Encoding:
        """That of the table."""
        return Encoding(tuple(name for name in self.names if isinstance(name, str)), self.codes)  # an array has numbers

    def place_of(self, column: Any, parameter: str) -> int:
        """Where a column is in the table that a ``parameter`` names: by its name, in an array by its position.

        >>> ColumnLayout.of_numbers(["height", "weight"]).place_of("weight", "methods")
        1
        """
        if column in self.names:
            return self.names.index(column)
        near = get_close_matches(str(column), [str(name) for name in self.names], 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{parameter} must name columns of the table, which are "
            f"{listed([repr(name) for name in self.names], _MOST_NAMED)}; got {column!r}{meant}"
        )

    def describe(self, columns: NDArray[np.int64]) -> str:
        """Names of the table's columns behind some columns of the array, for people; the first ten of them."""
        names = [str(self.names[group]) for group in np.unique(self.groups[columns])]
        return ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")
