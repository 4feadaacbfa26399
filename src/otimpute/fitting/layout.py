"""What the columns of an array stand for in the table it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._text import listed
from ..table import ColumnCode, ColumnKind, Encoding, NumberCode

_MOST_NAMED = 10


@dataclass(frozen=True)
class ColumnLayout:
    """Which columns of a table the D columns of an array belong to.

    A number takes one column of the array, a category several, which are always missing together.

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

    @classmethod
    def of_numbers(cls, names: Sequence[Any]) -> ColumnLayout:
        """The layout of a table in which every column is a number."""
        n = len(names)
        return cls(np.arange(n), np.zeros(n, dtype=bool), tuple(names), tuple(NumberCode(ColumnKind.NUMBER) for _ in names))

    @classmethod
    def of(cls, encoding: Encoding, used: NDArray[np.bool_]) -> ColumnLayout:
        """The layout of the ``used`` coordinates of an encoded table."""
        names: tuple[Any, ...] = encoding.names or tuple(range(len(encoding.codes)))
        return cls(encoding.groups[used], encoding.scaled[used], names, encoding.codes)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which coordinates of the table, those of columns without a value included, are columns of the array.

        >>> ColumnLayout.of_numbers(["height", "weight"]).used.tolist()
        [True, True]
        """
        return np.isin(self.encoding.groups, self.groups)

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
