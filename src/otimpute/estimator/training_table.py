"""The table an imputer was fitted to, as far as new rows and people need to know it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, Whole, stored
from ..fitting import Cells, ColumnLayout
from ..knowledge import ColumnRoles
from ..table import Encoding, Table
from .training_rows import TrainingRows


@stored(empty="coordinates", kept="table", n_rows=Whole(at_least=1), n_missing=Array("table", at_least=0))
@dataclass(frozen=True)
class TrainingTable:
    """How columns are encoded, which of them had no value, and which rows there were.

    Columns of the user's table become coordinates; those without any value are seen by no imputer.
    """

    encoding: Encoding
    empty: NDArray[np.bool_]  # coordinates without a value
    kept: NDArray[np.bool_]  # columns of the table that come out
    n_rows: int
    n_missing: NDArray[np.int64]  # by column of the table
    rows: TrainingRows
    roles: ColumnRoles

    def __post_init__(self) -> None:
        n_columns = len(self.encoding.codes)
        if len(self.encoding.groups) != len(self.empty) or not n_columns == len(self.kept) == len(self.n_missing) == len(
            self.roles
        ):
            raise ValueError("the encoding has other columns than the table")

    @classmethod
    def of(cls, encoding: Encoding, table: Table, roles: ColumnRoles, *, keep_empty: bool) -> TrainingTable:
        """What is to be remembered of a table."""
        return cls(
            encoding,
            np.asarray(table.missing.all(axis=0)),
            np.asarray(~table.holes.all(axis=0) | keep_empty),
            len(table.holes),
            np.count_nonzero(table.holes, axis=0),
            TrainingRows.of(table.values, table.missing),
            roles,
        )

    @cached_property
    def layout(self) -> ColumnLayout:
        """Of the coordinates that imputers see."""
        return ColumnLayout.of(self.encoding, ~self.empty, self.roles.imputed, self.roles.predictors)

    def arrays_of(self, table: Table) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """Values and missing entries of the coordinates that imputers see; no copy is made when all had a value."""
        if not self.empty.any():
            return table.values, table.missing
        return table.values[:, ~self.empty], table.missing[:, ~self.empty]

    def wanted_of(self, table: Table) -> NDArray[np.bool_]:
        """Which entries of those arrays are to be imputed: missing ones of columns, and rows, that nobody left out."""
        if table.holes is table.missing:
            return self.arrays_of(table)[1]
        return np.asarray(table.holes[:, self.encoding.groups[~self.empty]])

    def with_empty_columns(self, table: Table, cells: Cells) -> Cells:
        """Imputed entries for all missing coordinates of a table: 0, which is not written, where a column had no value."""
        if not self.empty.any():
            return cells
        every = np.zeros(int(table.missing.sum()))
        every[~self.empty[np.nonzero(table.missing)[1]]] = cells
        return every
