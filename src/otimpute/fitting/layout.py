"""What the columns of an array stand for in the table it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    imputed : array of bool [d] or None
        Which columns of the table are imputed; the missing values of others are nobody's business. None: all.
    predictors : array of bool [d, d] or None
        Which columns of the table may inform each of them, row by row. None: all. Honoured by `fit_within_predictors`.

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
    def is_imputed(self) -> NDArray[np.bool_]:
        """Which columns of the array belong to columns that are imputed."""
        return np.ones(len(self), dtype=bool) if self.imputed is None else self.imputed[self.groups]

    def only(self, columns: NDArray[np.int64]) -> ColumnLayout:
        """The layout of some columns of the array, each of which may inform all others."""
        return replace(self, groups=self.groups[columns], scaled=self.scaled[columns], predictors=None)

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

    def describe(self, columns: NDArray[np.int64]) -> str:
        """Names of the table's columns behind some columns of the array, for people; the first ten of them."""
        names = [str(self.names[group]) for group in np.unique(self.groups[columns])]
        return ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")
