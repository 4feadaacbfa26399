"""What every imputer does with what its user knows of the table, before it learns and after it has imputed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..exceptions import OtimputeWarning
from ..fitting import Cells
from ..knowledge import (
    Applicability,
    ColumnRoles,
    DerivedColumns,
    is_about_rows,
    plain_applicable,
    plain_columns,
    plain_predictors,
)
from ..table import ColumnKind, Encoding, Table, as_frame
from .table_parameters import HasTableParameters
from .training_table import TrainingTable


class KnowsItsTable(HasTableParameters):
    """Leaves alone what is not to be imputed and what cannot exist, and computes what follows from the rest."""

    training_table_: TrainingTable
    indicator_columns_: NDArray[np.int64]
    n_features_in_: int

    def _choose_encoding(self, read: Any, derived: DerivedColumns | None = None) -> Encoding:
        idle = self._wishes.idle(read, derived)
        if isinstance(read, nw.DataFrame):
            return Encoding.of_frame(read, self.constraints, self.max_categories, self._missing_values(), idle)
        return Encoding.of_array(read, self.constraints, self._missing_values(), idle)

    def _known_encoding(self, sample: Any, encoding: Encoding) -> Encoding:
        """The encoding of a long table of which there is a sample, but for columns that are to be left alone."""
        read = as_frame(sample)
        return encoding.with_idle(self._wishes.idle(read, self._derived_from(read)))

    def _refuse_rows_together(self, what: str) -> None:
        """Raise where rows are imputed with the help of others, which need not be at hand."""
        given = [name for name in ("groups", "time") if getattr(self, name) is not None]
        if given:
            raise ValueError(
                f"{' and '.join(given)} use other rows of a group, and {what} has a few rows at a time; fit to a table in "
                "memory and call transform, with the rows of a group together"
            )

    def _as_table(self, read: Any, encoding: Encoding) -> Table:
        marker = self._missing_values()
        return encoding.read_frame(read, marker) if isinstance(read, nw.DataFrame) else encoding.read_array(read, marker)

    def _missing_values(self) -> Any:
        value = self.missing_values
        if value is None:
            return float("nan")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"missing_values must be a number or NaN, got {value!r}")
        return value

    def _derived_from(self, read: Any) -> DerivedColumns | None:
        """What was said about columns that are computed, and relations between columns."""
        return None if self.derive is None else DerivedColumns.of(self.derive, read, self._missing_values())

    def _read_known(self, read: Any, encoding: Encoding, derived: DerivedColumns | None) -> Table:
        """A table with what equations determine, and which cells these are."""
        if derived is None:
            return self._as_table(read, encoding)
        solved = derived.solve(read)
        was_missing = ~derived.known(read)
        return replace(self._as_table(solved, encoding), solved=was_missing & derived.known(solved))

    def _narrowed(self, table: Table, roles: ColumnRoles) -> Table:
        """A table whose holes are only those that are to be filled."""
        passing = np.array([code.kind.passes_unseen for code in table.codes])  # these have no holes anyway
        if not (roles.imputed | passing).all():
            table = replace(table, holes=table.holes & roles.imputed)
        rules = self._applicability(table.source)
        return table if rules is None else replace(table, holes=rules.narrowed(table))

    def _applicability(self, read: Any) -> Applicability | None:
        """Where values can exist, of the columns about which something is said."""
        return None if self.applicable is None else Applicability.of(self.applicable, read, self._missing_values())

    def _check_rows_are_known(self, table: Table) -> None:
        """Raise where it was said of certain rows what applies to them, and these are others."""
        if is_about_rows(self.applicable) and not self.training_table_.rows.are_all_of(table.values, table.missing):
            raise ValueError(
                "applicable is a table about the rows of the fit, and these are others; fit with conditions such as "
                '{"pregnancies": "sex == \'f\'"} to impute new rows'
            )

    def _warn_of_inapplicable(self, table: Table) -> None:
        """Say so where a value was observed that should not exist."""
        rules = self._applicability(table.source)
        if rules is not None:
            rules.warn_of_observed(table)

    def _complete(self, table: Table, cells: Cells) -> Any:
        """The table with values in its holes, but for those that turn out not to exist in a completed row."""
        kept, rules = self.training_table_.kept, self._applicability(table.source)
        if rules is not None:
            table = rules.settled(table, lambda some: self._finished(some, cells, np.ones_like(kept), np.arange(0), said=False))
        return self._finished(table, cells, kept, self.indicator_columns_)

    def _finished(
        self, table: Table, cells: Cells, kept: NDArray[np.bool_], indicators: NDArray[np.int64], *, said: bool = True
    ) -> Any:
        """The table with values in its holes, in line with how columns are related; where that cannot be, it is ``said``."""
        completed = table.complete(cells, kept, self.integers, indicators)
        derived = self.training_table_.derived
        if derived is None:
            return completed
        codes = dict(zip(self.training_table_.encoding.names, table.codes, strict=True))
        with warnings.catch_warnings():
            if not said:
                warnings.simplefilter("ignore", OtimputeWarning)
            return derived.finish(table.source, completed, codes)

    def _plain_parameter(self, name: str, value: Any) -> Any:
        if not hasattr(self, "training_table_"):
            return value
        training = self.training_table_
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist()
        if name == "columns":
            return plain_columns(value, training.roles.imputed, names)
        if name == "exclude":
            excluded = np.array([code.kind == ColumnKind.EXCLUDED for code in training.encoding.codes])
            return plain_columns(value, excluded, names)
        if name == "applicable":
            return plain_applicable(value)
        return plain_predictors(value, training.roles, names) if name == "predictors" else value
