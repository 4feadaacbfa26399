"""Columns that are computed from others, and relations between columns, kept in imputed tables.

An imputer uses `DerivedColumns` in three places. Before it reads a table to fit, ``derived = DerivedColumns.of(derive, frame)``
checks the rules and remembers what the columns are like; ``frame = derived.solve(frame)`` then fills in what the rules
determine, so that the imputer learns from it. ``derived.targets`` need no model. After imputation ``derived.finish(original,
completed, codes)`` brings the imputed cells in line. New rows are solved and finished by the same object, each row alone.

Derived columns: rules of three kinds.

- ``{"total": "a + b"}`` or ``"total = a + b"``: the column ``total`` is computed, never guessed at.
- ``"a + b == 100"``: an equation that holds without a column that is its result.
- ``"start <= end"``, ``"a + b < c"``: inequalities.

Inequalities hold exactly where they compare columns as they are; what is computed may be off by the last digits: by one part in
10⁹ of the largest term (of float32 columns, one in 10⁶; of dates, some microseconds). The result of an equation may
differ by half of what the observed values of its column are rounded to: a bmi given as 22.9 by 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._stored import Real, stored
from .._text import count, listed
from .._warn import warn_user
from ..exceptions import OtimputeWarning
from ..table import ColumnCode, NumberCode, as_frame
from ..table.codes import without_type
from ..table.kinds import ColumnKind, Family, MomentKind
from ..table.moments import python_moments, write_moments
from ..table.native import as_sparse_as, columns_of, family_of
from .adjustment import Adjustment, is_broken, tolerance_of
from .inverse import numbers_of, solve_for
from .natures import Nature, limited, natures_of
from .rules import Rule, check_kinds, check_names, in_order, read_rules
from .tree import Column
from .values import MICROSECONDS_PER_DAY, ValueKind, Values, read_columns

_MOST_NAMED = 5


class Violation(NamedTuple):
    """Rows in which a rule does not hold."""

    rule: str
    rows: NDArray[np.int64]

    def __str__(self) -> str:
        return f"{self.rule!r} in {count(len(self.rows), 'row')} ({listed(list(map(str, self.rows)), _MOST_NAMED)})"


@stored(missing_values=Real(finite=False))
@dataclass(frozen=True)
class DerivedColumns:
    """Equations and inequalities between columns.

    >>> import polars as pl
    >>> table = pl.DataFrame({"a": [1.0, None, 4.0], "b": [2.0, 3.0, None], "total": [None, 5.0, None]})
    >>> derived = DerivedColumns.of({"total": "a + b"}, table)
    >>> derived.targets
    ('total',)
    >>> solved = derived.solve(nw.from_native(table))
    >>> solved["total"].to_list(), solved["a"].to_list()
    ([3.0, 5.0, None], [1.0, 2.0, 4.0])
    """

    rules: tuple[Rule, ...]  # equations first, in the order in which their targets can be computed
    natures: dict[str, Nature]  # of the columns that rules name
    missing_values: float = math.nan

    def __post_init__(self) -> None:
        for rule in self.rules:
            for name in rule.columns - self.natures.keys():
                raise ValueError(f"a rule on a column {name!r} that is not there")

    @classmethod
    def of(cls, derive: Any, frame: Any, missing_values: float = math.nan) -> DerivedColumns:
        """Read and check rules, and look at the columns they name.

        Parameters
        ----------
        derive : dict, str, or list of both
            Expressions by the column they compute, ``{"bmi": "weight / (height / 100) ** 2"}`` (or expressions of narwhals,
            which compute but are not solved for their parts); equations, ``"total = a + b"``; relations, ``"start <= end"``.
        frame : frame
            The table that is fitted.
        missing_values : float
            A number that means a missing value.
        """
        read = as_frame(frame) if not isinstance(frame, nw.DataFrame) else frame
        if read is None:
            raise TypeError("derive needs column names, which an array has none of; pass a frame")
        rules = read_rules(derive, read)
        check_names(rules, read.columns)
        names = sorted(frozenset[str]().union(*(rule.columns for rule in rules)))
        table = read_columns(read, names, missing_values)
        rules = in_order(rules)
        natures = natures_of(read, table)
        for name in [name for name in names if table[name].kind == ValueKind.NOTHING]:
            kind = _kind_by(rules, name, table)
            table[name], natures[name] = _nothing(kind, len(read)), replace(natures[name], kind=kind)
        return cls(tuple(check_kinds(rule, table) for rule in rules), natures, missing_values)

    def known(self, frame: nw.DataFrame[Any]) -> NDArray[np.bool_]:
        """Where the columns that rules name have a value ``[n, d]``; true in all others."""
        known = np.ones(frame.shape, dtype=bool)
        for name, each in self._read(frame).items():
            known[:, frame.columns.index(name)] = each.known
        return known

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns that are computed, which no model imputes."""
        return tuple(rule.target for rule in self.rules if rule.target)

    def violations(self, frame: nw.DataFrame[Any]) -> tuple[Violation, ...]:
        """The rules that do not hold in a table, and in which rows; where something is missing, nothing is said."""
        return self._violations(self._read(frame), self.natures)

    def solve(self, frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """The table with the missing cells that equations determine; a warning says where observed values contradict rules.

        A cell is determined where everything else in an equation is known and exactly one value makes it hold: one that the
        column can hold, whole where it holds integers, and inside the range of what was observed (all on one side of 0). It
        gets as many decimals as observed values have if the equation then still holds to what its result is rounded to.
        """
        table, filled = self._solved(frame)
        solved = self._written(frame, table, filled)
        found = self._violations(self._read(solved), self.natures)
        if found:
            which = "; ".join(map(str, found))
            warn_user(f"the table contradicts derive: {which}; observed values stay as they are", OtimputeWarning)
        return solved

    @np.errstate(all="ignore")
    def finish(
        self, original: nw.DataFrame[Any], completed: nw.DataFrame[Any], codes: Mapping[str, ColumnCode] | None = None
    ) -> nw.DataFrame[Any]:
        """The completed table with its imputed cells in line with the rules; a warning says in which rows that cannot be.

        Targets that were missing are computed from what is in their row now. Where a rule does not hold then, imputed cells
        move as little as it takes: in proportion to their size where a column holds sizes, else to the column's spread.
        Observed cells, and those that equations determined, stay.

        Parameters
        ----------
        original : frame
            The table before imputation, solved or not.
        completed : frame
            The same rows after it.
        codes : dict of codes by column name, optional
            The imputer's, for their bounds and their rounding to whole numbers.
        """
        known, _ = self._solved(original)
        present = [column for column in columns_of(completed) if column.name in self.natures]
        rules = [rule for rule in self.rules if rule.columns <= {column.name for column in present}]
        if not rules:
            return completed
        done = self._read(completed)
        natures = self._natures_in(original, present, codes or {})
        start = {name: _either(known[name], done[name]) for name in natures}
        table = Adjustment(rules, natures, start, {name: ~known[name].known for name in natures}).run()
        was_missing = {name: ~each.known for name, each in self._read(original).items()}
        changed = {
            name: was_missing[name] & each.known & (~done[name].known | (each.values != done[name].values))
            for name, each in table.items()
        }
        finished = self._written(completed, table, changed)
        self._report(rules, finished, natures, known)
        return finished

    def _report(
        self, rules: Sequence[Rule], finished: nw.DataFrame[Any], natures: Mapping[str, Nature], known: Mapping[str, Values]
    ) -> None:
        table, found = self._read(finished), []
        for rule in rules:
            imputed = ~np.logical_and.reduce([known[name].known for name in rule.columns])
            rows = np.flatnonzero(is_broken(rule, table, natures) & imputed)
            if len(rows):
                found.append(str(Violation(str(rule), rows)))
        if found:
            which = "; ".join(found)
            warn_user(f"what was imputed cannot be brought in line with derive: {which}", OtimputeWarning)

    @np.errstate(all="ignore")
    def _violations(self, table: Mapping[str, Values], natures: Mapping[str, Nature]) -> tuple[Violation, ...]:
        rules = [rule for rule in self.rules if rule.columns <= table.keys()]
        found = (Violation(str(rule), np.flatnonzero(is_broken(rule, table, natures))) for rule in rules)
        return tuple(each for each in found if len(each.rows))

    def _natures_in(
        self, original: nw.DataFrame[Any], present: Sequence[nw.Series[Any]], codes: Mapping[str, ColumnCode]
    ) -> dict[str, Nature]:
        natures = {}
        for column in present:
            nature = self.natures[column.name]
            if column.dtype.is_float() and original.get_column(column.name).dtype.is_integer():
                nature = replace(nature, per_unit=0.0)  # an imputer that gives back floats may
            natures[column.name] = limited(nature, codes[column.name], column) if column.name in codes else nature
        return natures

    def _read(self, frame: nw.DataFrame[Any]) -> dict[str, Values]:
        names = [name for name in self.natures if name in frame.columns]
        read = read_columns(frame, names, self.missing_values)
        kinds = {name: self.natures[name].kind for name in names}
        nothing = {name for name in names if read[name].kind == ValueKind.NOTHING}
        return {name: _nothing(kinds[name], len(frame)) if name in nothing else read[name] for name in names}

    @np.errstate(all="ignore")
    def _solved(self, frame: nw.DataFrame[Any]) -> tuple[dict[str, Values], dict[str, NDArray[np.bool_]]]:
        """The columns with what equations determine, and where that is."""
        read = self._read(frame)
        table = {name: Values(each.kind, each.values.copy(), each.known.copy()) for name, each in read.items()}
        equations = [rule for rule in self.rules if rule.sign == "==" and rule.columns <= table.keys()]
        goes_on = True
        while goes_on:
            goes_on = False
            for rule in equations:
                for name in sorted(rule.columns):
                    goes_on |= self._solve_one(rule, name, table)
        return table, {name: each.known & ~read[name].known for name, each in table.items()}

    def _solve_one(self, rule: Rule, name: str, table: dict[str, Values]) -> bool:
        """Fill in where only this column is missing in an equation; whether there was anything."""
        others = [table[other].known for other in rule.columns if other != name]
        rows = np.flatnonzero(np.logical_and.reduce([~table[name].known, *others]))
        nature = self.natures[name]
        if not len(rows) or nature.kind in (ValueKind.TEXT, ValueKind.OTHER):
            return False
        part = {other: Values(each.kind, each.values[rows], each.known[rows]) for other, each in table.items()}
        if name == rule.target:
            values = nature.nearest(numbers_of(rule.right, part))
            determined = np.isfinite(values)
        else:
            here, there = (rule.left, rule.right) if name in rule.left.columns else (rule.right, rule.left)
            if name in there.columns:
                return False
            solved = solve_for(here, name, numbers_of(there, part), part, nature.low, nature.high)
            exact = np.where(solved.known, solved.values, 0.0)
            values, determined = exact, np.zeros(len(rows), dtype=bool)
            for candidates in (nature.nearest(exact), nature.as_written(exact)):  # rounded as the others, if that will do
                part[name] = Values(nature.kind, candidates.astype(part[name].values.dtype), solved.known)
                will_do = solved.known & (np.abs(rule.excess(part)) <= tolerance_of(rule, part, self.natures))
                values, determined = np.where(will_do, candidates, values), determined | will_do
        table[name].values[rows[determined]] = values[determined]
        table[name].known[rows[determined]] = True
        return bool(determined.any())

    def _written(
        self, frame: nw.DataFrame[Any], table: Mapping[str, Values], where: Mapping[str, NDArray[np.bool_]]
    ) -> nw.DataFrame[Any]:
        """The frame with values in some cells of some columns."""
        changed = []
        for original, column in zip(frame.iter_columns(), columns_of(frame), strict=True):
            rows = np.flatnonzero(where.get(column.name, ()))
            if len(rows):
                written = _write(column, rows, table[column.name].values[rows].astype(np.float64), table[column.name].kind)
                changed.append(as_sparse_as(original, written.alias(column.name)))
        return frame.with_columns(*changed) if changed else frame


def _kind_by(rules: Sequence[Rule], name: str, table: Mapping[str, Values]) -> ValueKind:
    """What a column without a value must hold to be compared with what rules compare it with."""
    for rule in rules:
        for here, there in ((rule.left, rule.right), (rule.right, rule.left)):
            kind = there.evaluate(table).kind if here == Column(name) else ValueKind.NOTHING
            if kind not in (ValueKind.NOTHING, ValueKind.TEXT):
                return kind
    return ValueKind.NUMBER


def _nothing(kind: ValueKind, n: int) -> Values:
    """A column without a value."""
    values: NDArray[Any] = np.full(n, np.nan)
    if kind in (ValueKind.CONDITION, ValueKind.TEXT):
        values = np.zeros(n, dtype=bool) if kind == ValueKind.CONDITION else np.full(n, "", dtype=object)
    return Values(kind, values, np.zeros(n, dtype=bool))


def _either(first: Values, second: Values) -> Values:
    """The first where it is known, else the second."""
    return Values(first.kind, np.where(first.known, first.values, second.values), first.known | second.known)


def _write(column: nw.Series[Any], rows: NDArray[np.int64], values: NDArray[np.float64], kind: ValueKind) -> nw.Series[Any]:
    """A column with values in some rows."""
    family = family_of(column)
    if family == Family.NUMBER:
        return NumberCode(ColumnKind.NUMBER).write(column, rows, values[:, None], "round")
    moments = (
        np.rint(values * MICROSECONDS_PER_DAY).astype(np.int64) if kind == ValueKind.DATE or family == Family.MOMENT else None
    )
    if family == Family.MOMENT and moments is not None:
        return write_moments(column, rows, moments, "us")
    if moments is not None:
        return without_type(column, rows, python_moments(MomentKind.DATETIME, moments, "us"))
    return without_type(column, rows, [bool(each) if kind == ValueKind.CONDITION else each for each in values.tolist()])
