"""What each column of a table is there for: to be imputed, to inform others, or to pass through unseen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import Array, Maybe, stored
from ..exceptions import ParameterValueError
from ..table import ColumnKind, Table
from .derived import DerivedColumns
from .identifiers import identifiers_among
from .informative import informative_columns
from .names import find_columns, names_of
from .predictors import AUTO, check_informed, named_in, read_predictors


@stored(imputed="table", predictors=Maybe(Array("table table", np.bool_)))
@dataclass(frozen=True)
class ColumnRoles:
    """Which columns are imputed, and which inform them; found out once, for all rows to come."""

    imputed: NDArray[np.bool_]  # [d]: others keep their missing values
    predictors: NDArray[np.bool_] | None  # [d, d]: row by row, which columns inform one; None where all do

    def __len__(self) -> int:
        return len(self.imputed)


@dataclass(frozen=True)
class ColumnWishes:
    """What a user said about columns, as given."""

    columns: Any = None
    exclude: Any = None
    identifiers: str = "set aside"
    predictors: Any = None
    constraints: Any = None
    used_elsewhere: tuple[Any, ...] = ()  # names, and lists of names, of columns that are no identifiers

    def idle(self, read: Any, derived: DerivedColumns | None = None) -> dict[int, ColumnKind]:
        """Columns of a frame or array that nobody is to look at, by position, and why; computed ones need no look."""
        nothing = np.zeros(len(names_of(read)), dtype=bool)
        excluded = nothing if self.exclude is None else find_columns("exclude", self.exclude, read)[0]
        wanted, one_by_one = (nothing, False) if self.columns is None else find_columns("columns", self.columns, read)
        named = wanted & one_by_one
        if (named & excluded).any():
            name = names_of(read)[int(np.flatnonzero(named & excluded)[0])]
            accepted = "made of columns that are not in columns too"
            raise ParameterValueError("exclude", name, accepted, "name it in one of them")
        if excluded.all():
            raise ParameterValueError("exclude", self.exclude, "some of the columns, not all", "nothing would be left")
        idle = {int(k): ColumnKind.EXCLUDED for k in np.flatnonzero(excluded)}
        related = np.array([derived is not None and name in derived.natures for name in names_of(read)], dtype=bool)
        if (related & excluded).any():
            name = names_of(read)[int(np.flatnonzero(related & excluded)[0])]
            raise ParameterValueError("exclude", name, "made of columns that derive does not name", "leave out one of the two")
        if derived is not None:
            idle |= {names_of(read).index(name): ColumnKind.DERIVED for name in derived.targets}
        if self.identifiers == "set aside" and isinstance(read, nw.DataFrame):
            named = named | related | named_in(self.predictors, read) | self._named_elsewhere(read)
            found = identifiers_among(read) & ~excluded & ~named
            if not (found | excluded).all():  # a table of nothing else is not one of identifiers
                idle |= {int(k): ColumnKind.IDENTIFIER for k in np.flatnonzero(found)}
        return idle

    def roles(self, read: Any, table: Table) -> ColumnRoles:
        """Which columns are imputed from which others, of a table that was read."""
        unseen = np.array([code.kind.is_idle for code in table.codes], dtype=bool)
        passing = np.array([code.kind.passes_unseen for code in table.codes], dtype=bool)
        imputed = self._imputed(read) & ~passing
        if not imputed.any():
            raise ParameterValueError("columns", self.columns, "at least one column that is not excluded")
        if isinstance(self.predictors, str) and self.predictors == AUTO:
            return ColumnRoles(imputed, informative_columns(table, imputed))
        matrix = read_predictors(self.predictors, read, passing)
        if matrix is not None:
            with_holes = np.asarray(table.holes.any(axis=0))
            check_informed(matrix, imputed & with_holes & ~unseen, read)
            imputed = imputed & (matrix.any(axis=1) | with_holes)  # as in mice, complete columns need no predictors
        return ColumnRoles(imputed, matrix)

    def _imputed(self, read: Any) -> NDArray[np.bool_]:
        if self.columns is None:
            return np.ones(len(names_of(read)), dtype=bool)
        wanted, _ = find_columns("columns", self.columns, read)
        if not wanted.any():
            raise ParameterValueError("columns", self.columns, "at least one column", "pass None to impute all")
        return wanted

    def _named_elsewhere(self, read: Any) -> NDArray[np.bool_]:
        named: list[Any] = list(self.constraints) if isinstance(self.constraints, Mapping) else []
        for each in self.used_elsewhere:
            named += list(each) if isinstance(each, list | tuple) else [each]
        return np.array([name in named for name in names_of(read)], dtype=bool)
