"""Several completed tables, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from .._threads import Workers
from ..table import as_frame

_IMPUTATION, _ROW = ".imp", ".id"  # what mice calls them


class CompletedTables(Sequence[Any]):
    """Tables that differ in their imputed values only: a sequence whose items are made when they are asked for.

    Parameters
    ----------
    n_tables : int
        How many there are.
    make : callable
        Returns a table, from its position.
    original : table
        The table with its missing values.
    n_jobs : int, default=1
        How many are made at a time while iterating.

    Examples
    --------
    >>> import numpy as np
    >>> import otimpute
    >>> X = np.array([[1.0, 2.1], [2.0, 3.9], [3.0, 6.2], [4.0, np.nan], [5.0, 9.8]])
    >>> tables = otimpute.MultipleImputer(m=3, random_state=0).fit(X).tables_
    >>> len(tables), tables[1].shape, tables.long().shape
    (3, (5, 2), (15, 4))
    """

    def __init__(self, n_tables: int, make: Callable[[int], Any], original: Any, n_jobs: int = 1):
        self._n_tables, self._make, self._original, self._n_jobs = n_tables, make, original, n_jobs

    def __len__(self) -> int:
        return self._n_tables

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._make(each) for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"there are {len(self)} tables, 0 to {len(self) - 1}, got {place}")
        return self._make(int(place) % len(self))

    def __iter__(self) -> Iterator[Any]:
        with Workers(self._n_jobs) as workers:
            for begin in range(0, len(self), self._n_jobs):
                yield from workers.map(self._make, range(begin, min(begin + self._n_jobs, len(self))))

    def __repr__(self) -> str:
        return f"CompletedTables({len(self)} tables)"

    def long(self, *, include_original: bool = False) -> Any:
        """All tables below each other, with two more columns in front, as mice's ``complete("long")`` has them.

        ``.imp`` counts the tables from 1, ``.id`` their rows. With ``include_original`` the table with its missing values
        comes first, as ``.imp`` 0. An array becomes an array of numbers with these two columns in front.
        """
        numbered = list(enumerate(self, start=1))
        if include_original:
            numbered.insert(0, (0, self._original))
        return _stack(numbered)


def _stack(numbered: list[tuple[int, Any]]) -> Any:
    frames = [as_frame(table) for _, table in numbered]
    if any(frame is None for frame in frames):
        return np.concatenate(
            [np.column_stack([np.full(len(table), k), np.arange(1, len(table) + 1), table]) for k, table in numbered]
        )
    parts = []
    for (k, _), frame in zip(numbered, frames, strict=True):
        assert frame is not None
        for name in (_IMPUTATION, _ROW):
            if name in frame.columns:
                raise ValueError(f"the table has a column {name!r}, which the long format adds; rename it")
        numbers = nw.lit(k, nw.Int64).alias(_IMPUTATION), (nw.col(_ROW) + 1).cast(nw.Int64)
        parts.append(frame.with_row_index(_ROW).with_columns(*numbers).select(_IMPUTATION, _ROW, *frame.columns))
    return nw.concat(parts).to_native()
