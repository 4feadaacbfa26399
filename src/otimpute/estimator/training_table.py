"""The table an imputer was fitted to, as far as new rows and people need to know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, IfThere, RecordOf, Whole, stored
from ..fitting import Cells, ColumnLayout
from ..knowledge import ColumnRoles, DerivedColumns, Panel, PanelColumns
from ..table import CategoryCode, ColumnKind, Encoding, Table
from .training_rows import TrainingRows


@stored(
    empty="coordinates",
    kept="table",
    n_rows=Whole(at_least=1),
    n_missing=Array("table", at_least=0),
    panel=IfThere(RecordOf((Panel,))),
    derived=IfThere(RecordOf((DerivedColumns,))),
)
@dataclass(frozen=True)
class TrainingTable:
    """How columns are encoded, which of them had no value, and which rows there were.

    Columns of the user's table become coordinates; those without any value are seen by no imputer, and neither
    are those that say to which group of a panel a row belongs.
    """

    encoding: Encoding
    empty: NDArray[np.bool_]  # coordinates that no imputer sees
    kept: NDArray[np.bool_]  # columns of the table that come out
    n_rows: int
    n_missing: NDArray[np.int64]  # by column of the table
    rows: TrainingRows
    roles: ColumnRoles
    panel: Panel | None = None  # what the other rows of a group say
    derived: DerivedColumns | None = None  # columns that are computed, and relations between columns

    def __post_init__(self) -> None:
        n_columns = len(self.encoding.codes)
        if len(self.encoding.groups) != len(self.empty) or not n_columns == len(self.kept) == len(self.n_missing) == len(
            self.roles
        ):
            raise ValueError("the encoding has other columns than the table")
        if self.panel is not None and not self.panel.belongs_to(n_columns, self.empty):
            raise ValueError("groups, times or helpers are of other columns than those of the table")

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        table: Table,
        roles: ColumnRoles,
        *,
        keep_empty: bool,
        panel_columns: PanelColumns | None = None,
        derived: DerivedColumns | None = None,
    ) -> TrainingTable:
        """What is to be remembered of a table."""
        empty = np.asarray(table.missing.all(axis=0))
        is_derived = np.array([code.kind == ColumnKind.DERIVED for code in table.codes])
        panel = None
        if panel_columns is not None:
            panel = Panel.of(panel_columns, table, ~empty, _names(encoding))
            # Beside the mean of the others, a column that tells groups apart would give each value away: it is what is missing
            # from the sum. A number that stands for a group says nothing by its size.
            says_group = np.isin(encoding.groups, panel_columns.group)
            is_category = np.repeat([isinstance(code, CategoryCode) for code in encoding.codes], encoding.widths)
            empty |= says_group & ~(is_category & panel.knows_neighbours)
        return cls(
            encoding,
            empty,
            np.asarray(~table.holes.all(axis=0) | keep_empty | is_derived),
            len(table.holes),
            np.count_nonzero(table.holes, axis=0),
            TrainingRows.of(table.values, table.missing),
            roles,
            panel,
            derived,
        )

    def of_rows(self, table: Table) -> TrainingTable:
        """Had some rows been the table of the fit, encoded as the whole was."""
        alone = self.empty | table.missing.all(axis=0)
        panel = None if self.panel is None else Panel.of(self.panel.columns, table, ~alone, _names(self.encoding))
        return replace(self, empty=alone, n_rows=len(table.holes), panel=panel)

    @cached_property
    def layout(self) -> ColumnLayout:
        """Of the coordinates that imputers see."""
        layout = ColumnLayout.of(self.encoding, ~self.empty, self.roles.imputed, self.roles.predictors)
        if self.panel is None:
            return layout
        return layout.with_helpers(np.searchsorted(np.flatnonzero(~self.empty), self.panel.helped), self.panel)

    @property
    def rows_are_alone(self) -> bool:
        """Whether a row is imputed the same whatever rows it comes with; those of a panel have to come with their group."""
        return self.panel is None

    def arrays_of(self, table: Table) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """Values and missing entries of what imputers see, helpers last; no copy is made of a plain table of values."""
        values = table.values[:, ~self.empty] if self.empty.any() else table.values
        if self.panel is not None and len(self.panel.helped):
            values = np.hstack([values, self.panel.helpers_of(table, _names(self.encoding))])
        return values, self.missing_of(table)

    def missing_of(self, table: Table) -> NDArray[np.bool_]:
        """The missing entries alone: helpers never are."""
        missing = table.missing[:, ~self.empty] if self.empty.any() else table.missing
        if self.panel is None or len(self.panel.helped) == 0:
            return missing
        return np.hstack([missing, np.zeros((len(missing), len(self.panel.helped)), dtype=bool)])

    def wanted_of(self, table: Table) -> NDArray[np.bool_]:
        """Which entries of those arrays are to be imputed: missing ones of columns, and rows, that nobody left out."""
        if table.holes is table.missing:
            return self.missing_of(table)
        wanted = table.holes[:, self.encoding.groups[~self.empty]]
        return np.hstack([wanted, np.zeros((len(wanted), len(self.layout.helped)), dtype=bool)])

    def with_empty_columns(self, table: Table, cells: Cells) -> Cells:
        """Imputed entries for all missing coordinates of a table: 0, which is not written, where a column had no value."""
        if not self.empty.any():
            return cells
        every = np.zeros(int(table.missing.sum()))
        every[~self.empty[np.nonzero(table.missing)[1]]] = cells
        return every


def _names(encoding: Encoding) -> Sequence[Any]:
    return encoding.names or range(len(encoding.codes))
