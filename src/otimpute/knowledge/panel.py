"""Panel data: what the other rows of a group, and of a time, say about every value, as columns that help to impute.

There is one helper for each coordinate that differs within groups. It is complete, is built from the table at hand and never
comes out. New rows are completed beside the stored rows of their groups and beside each other: they are treated together.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._row_noise import keys_by_content
from .._stored import Array, Real, stored
from .._text import count
from .._warn import warn_user
from ..exceptions import Message, OtimputeWarning, ParameterTypeError, ParameterValueError, Term
from ..table import ColumnCode, MomentCode, NumberCode, Standardiser, Table
from ._other_rows import Rows, Strength
from ._runs import hide_in_company

Cells = NDArray[np.float64]
Holes = NDArray[np.bool_]

_FARTHEST = 10.0  # standard deviations that a value may seem to lie from the mean, or one mistyped number would reach many rows
_NOTHING_NEW = 0.05  # standard deviations: of a complete column that others tell so well, a helper would be a copy
_RATHER_NEAR = 0.5  # of what is left of a value beside its group's mean
_MOST_COORDINATES = 100  # of wider tables only columns with missing values get helpers


@stored(group=Array("A", at_least=0))
@dataclass(frozen=True)
class PanelColumns:
    """Which columns of a table say to what group a row belongs, and when it was observed."""

    group: NDArray[np.int64]  # [A]
    time: int | None

    @classmethod
    def named(cls, groups: Any, time: Any, names: Sequence[Any], codes: Sequence[ColumnCode]) -> PanelColumns | None:
        """Those with the names, or the positions in an array, that people pass; None where they pass none."""
        wanted = [] if groups is None else [groups] if not isinstance(groups, list | tuple) else list(groups)
        if groups is not None and not wanted:
            raise ParameterValueError("groups", groups, "a column or a list of columns", "pass None for a table without groups")
        group = [_place("groups", each, names) for each in wanted]
        if len(set(group)) < len(group):
            raise ParameterValueError("groups", groups, "different columns")
        if time is None:
            return cls(np.array(group, np.int64), None) if group else None
        at = _place("time", time, names)
        if at in group:
            raise ParameterValueError("time", time, "another column than those of the groups")
        if not isinstance(codes[at], MomentCode | NumberCode) or codes[at].has_labels:
            raise ParameterValueError(
                "time", time, "a column of numbers or dates", f"this one holds {codes[at].kind}: convert it first"
            )
        return cls(np.array(group, np.int64), at)

    def check(self, table: Table, names: Sequence[Any]) -> None:
        """Raise where a row has no group or no time."""
        for place in [*self.group.tolist(), *([] if self.time is None else [self.time])]:
            n = int(_is_missing(table, place).sum())
            if n:
                raise ValueError(
                    Message(
                        f"column {names[place]!r}, which is given as ",
                        Term("time" if place == self.time else "groups"),
                        f", is missing in {count(n, 'row')}: what a row belongs to is not imputed; fill it in or drop the rows",
                    )
                )

    def labels_of(self, table: Table) -> list[Any]:
        """The group of every row: a text or a number, or a tuple of these where several columns make it."""
        columns = [
            table.source[table.source.columns[place]].to_list() if table.is_frame else table.source[:, place].tolist()
            for place in self.group.tolist()
        ]
        if not columns:
            return [0] * len(table.holes)
        plain = [[_plain(each) for each in column] for column in columns]
        return plain[0] if len(plain) == 1 else list(zip(*plain, strict=True))

    def times_of(self, table: Table) -> Cells:
        """When every row was observed, as numbers; 0 where nobody said."""
        if self.time is None:
            return np.zeros(len(table.holes))
        return np.asarray(table.values[:, sum(code.width for code in table.codes[: self.time])], dtype=np.float64)


@stored(
    group=Array("P", at_least=0),
    time="P",
    step=Real(above=0),
    identity="P",
    helped=Array("J", index_of="coordinates"),
    centre="J",
    unit=Array("J", at_least=0),
    values="P J",
    missing="P J",
)
@dataclass(frozen=True)
class Panel:
    """The rows of a fit, by group and time, and how much rows of a group tell about each other."""

    columns: PanelColumns
    labels: list[Any]  # of the groups, in order
    group: NDArray[np.int64]  # [P]
    time: Cells  # [P]: 0 where nobody said
    step: float  # of time that is typical
    identity: NDArray[np.uint64]  # [P]: by which rows of the fit are recognised when they come again
    helped: NDArray[np.int64]  # [J]: coordinates with a helper
    centre: Cells  # [J]
    unit: Cells  # [J]
    strengths: list[Strength]  # [J]
    values: Cells  # [P, J]: in standard deviations, 0 where missing
    missing: NDArray[np.bool_]  # [P, J]

    def __post_init__(self) -> None:
        try:
            n_groups = len(set(self.labels))
        except TypeError:
            raise ValueError("groups must be texts, numbers or tuples of these") from None
        fits = len(self.strengths) == len(self.helped) and self.group.max(initial=-1) < len(self.labels) == n_groups
        if not fits or (np.diff(self.helped) <= 0).any():
            raise ValueError("columns, groups and rows do not go together")

    def belongs_to(self, n_columns: int, unseen: Holes) -> bool:
        """Whether columns and coordinates are those of a table, of which imputers do not see some coordinates."""
        places = [*self.columns.group.tolist(), *([] if self.columns.time is None else [self.columns.time])]
        inside = all(0 <= place < n_columns for place in places) and self.helped.min(initial=0) >= 0
        return inside and self.helped.max(initial=-1) < len(unseen) and not unseen[self.helped].any()

    @classmethod
    def of(cls, columns: PanelColumns, table: Table, seen: Holes, names: Sequence[Any]) -> Panel:
        """Learned from a table of which imputers see the coordinates ``seen``."""
        columns.check(table, names)
        helped = _candidates(columns, table, seen)
        scaler = Standardiser.fit(table.values[:, helped], table.missing[:, helped], scaled=_scaled(table)[helped])
        centre, unit = scaler.restore(np.zeros(len(helped)), np.arange(len(helped))), scaler.unit
        nothing = np.empty((0, len(helped)))
        start = cls(
            columns, [], np.arange(0), np.empty(0), 1.0, np.empty(0, np.uint64), helped, centre, unit,
            [Strength()] * len(helped), nothing, nothing > 0,
        )  # fmt: skip
        whole = start._with_rows(table)
        _warn_of_rows(whole)
        order = _order(whole.group, whole.time, table)
        strengths = whole._rows.at(order).strengths(whole.values[order], whole.missing[order], generator(0, "panel"))
        away = whole._rows.said_of(whole.values, whole.missing, strengths) - whole.values
        tells = whole.missing.any(axis=0) | (np.sqrt((away**2).mean(axis=0)) > _NOTHING_NEW)
        return replace(whole, strengths=strengths).only(np.flatnonzero(tells))

    def said_of(self, values: NDArray[np.floating], missing: Holes) -> Cells:
        """The helpers of the rows of the fit, where others of their values are missing than were."""
        return self._in_units(self._rows.said_of(self._standardised(values, missing), missing, self.strengths))

    def only(self, which: NDArray[np.int64]) -> Panel:
        """With some of the helpers."""
        return replace(
            self, helped=self.helped[which], centre=self.centre[which], unit=self.unit[which], values=self.values[:, which],
            missing=self.missing[:, which], strengths=[self.strengths[k] for k in which.tolist()],
        )  # fmt: skip

    def hide_like_missing(
        self, missing: Holes, hidden: Holes, stands_for: Cells, rng: np.random.Generator
    ) -> tuple[Holes, Cells]:
        """About as much of every column as is hidden, with as much around it as missing values have, and what it stands for."""
        columns = zip(missing.T, hidden.T, stands_for.T, strict=True)
        found, counts = zip(*(hide_in_company(self._rows, *each, rng) for each in columns), strict=True)
        return np.stack(found, axis=1), np.stack(counts, axis=1)

    @property
    def knows_neighbours(self) -> bool:
        """Whether values are told by those nearby in time rather than by the mean of their group."""
        return bool(self.strengths) and float(np.mean([each.share for each in self.strengths])) > _RATHER_NEAR

    def helpers_of(self, table: Table, names: Sequence[Any]) -> Cells:
        """The helpers of rows that may be new, beside those of the fit; a row that was there comes in place of what it was."""
        self.columns.check(table, names)
        both = self._with_rows(table)
        n_new = len(both.labels) - len(self.labels)
        if n_new and len(self.columns.group):
            warn_user(
                Message(
                    Term("groups"),
                    f": {count(n_new, 'group')} of these rows did not occur in the fit; of these only their rows here and "
                    "what all groups have in common are known",
                ),
                OtimputeWarning,
            )
        n_before = len(both.group) - len(table.holes)
        order = _order(both.group[n_before:], both.time[n_before:], table)
        rows = np.concatenate([np.arange(n_before), n_before + order])
        said = np.empty((len(order), len(self.helped)))
        said[order] = both._rows.at(rows).said_of(both.values[rows], both.missing[rows], self.strengths)[n_before:]
        return self._in_units(said)

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self.group, None if self.columns.time is None else self.time / self.step)

    def _with_rows(self, table: Table) -> Panel:
        """With the rows of a table at the end, and without those of the fit that they are."""
        own = self.columns.labels_of(table)
        labels = [*self.labels, *sorted(set(own).difference(self.labels), key=repr)]
        place = {label: k for k, label in enumerate(labels)}
        group, time = np.array([place[label] for label in own], np.int64), self.columns.times_of(table)
        if self.columns.time is None:
            content = np.column_stack([group, table.values]), np.column_stack([np.zeros(len(group), bool), table.missing])
        else:
            content = np.column_stack([group, time]), np.zeros((len(group), 2), dtype=bool)
        identity = keys_by_content(*content, 0)
        stay = ~np.isin(self.identity, identity)
        missing = table.missing[:, self.helped]
        group, time = np.concatenate([self.group[stay], group]), np.concatenate([self.time[stay], time])
        return replace(
            self, labels=labels, group=group, time=time, identity=np.concatenate([self.identity[stay], identity]),
            step=self.step if len(self.group) else _typical_step(group, time),
            values=np.concatenate([self.values[stay], self._standardised(table.values[:, self.helped], missing)]),
            missing=np.concatenate([self.missing[stay], missing]),
        )  # fmt: skip

    def _standardised(self, values: NDArray[np.floating], missing: Holes) -> Cells:
        z = (np.where(missing, self.centre, values) - self.centre) / np.where(self.unit > 0, self.unit, 1.0)
        return np.clip(z, -_FARTHEST, _FARTHEST)

    def _in_units(self, said: Cells) -> Cells:
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            return np.clip(said * self.unit + self.centre, -largest, largest)


def _place(parameter: str, column: Any, names: Sequence[Any]) -> int:
    """Where a column is, by its name, or in an array by its position."""
    by_name = {str(name): k for k, name in enumerate(names)}
    if isinstance(column, bool) or not isinstance(column, str | int | np.integer):
        raise ParameterTypeError(parameter, column, "the name of a column, or its position in an array")
    if str(column) not in by_name:
        known = ", ".join(list(map(repr, by_name))[:10]) + (", …" if len(by_name) > 10 else "")
        raise ParameterValueError(parameter, column, f"a column of the table, which has {known}")
    return by_name[str(column)]


def _plain(label: Any) -> Any:
    """A label as a text or a number that is the same whatever type of column it stands in."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        return int(label)
    if isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, dt.date):  # datetimes are dates too
        return label.isoformat().removesuffix("T00:00:00")
    return str(label)


def _is_missing(table: Table, place: int) -> Holes:
    """Where a column is missing, whether anybody is to impute it or not."""
    column = table.source[:, place]
    return np.asarray(table.holes[:, place] | (column.is_null().to_numpy() if table.is_frame else np.isnan(column)))


def _coordinates(table: Table) -> NDArray[np.int64]:
    """The column that each coordinate belongs to."""
    return np.repeat(np.arange(len(table.codes)), [code.width for code in table.codes])


def _scaled(table: Table) -> Holes:
    return np.array([code.is_scaled for code in table.codes], dtype=bool)[_coordinates(table)]


def _candidates(columns: PanelColumns, table: Table, seen: Holes) -> NDArray[np.int64]:
    """Coordinates that other rows may tell about: those with missing values, and in tables not too wide all numbers."""
    of_column = _coordinates(table)
    is_number = np.array([isinstance(code, NumberCode | MomentCode) for code in table.codes], dtype=bool)[of_column]
    wanted = table.missing.any(axis=0) | (is_number & (seen.sum() <= _MOST_COORDINATES))
    given = np.isin(of_column, [*columns.group.tolist(), *([] if columns.time is None else [columns.time])])
    return np.flatnonzero(wanted & seen & ~given)


def _typical_step(group: NDArray[np.int64], time: Cells) -> float:
    """The median time from one row of a group to the next."""
    order = np.lexsort((time, group))
    steps = np.diff(time[order])[np.diff(group[order]) == 0]
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 1.0


def _order(group: NDArray[np.int64], time: Cells, table: Table) -> NDArray[np.int64]:
    """An order of rows that depends on what they hold only: sums, and what is drawn, are the same however they come."""
    content = np.column_stack([group, time, table.values])
    known = np.column_stack([np.zeros((len(group), 2), dtype=bool), table.missing])
    return np.argsort(keys_by_content(content, known, 0), kind="stable")


def _warn_of_rows(panel: Panel) -> None:
    """Say so where groups or times are not what they are expected to be, and what is done."""
    alone = int((np.bincount(panel.group) == 1).sum()) if len(panel.columns.group) else 0
    if alone:
        have = "has" if alone == 1 else "have"
        every = "every group has" if alone == len(panel.labels) else f"{count(alone, 'group')} of {len(panel.labels)} {have}"
        warn_user(
            Message(Term("groups"), f": {every} one row, about which only what all groups have in common is known"),
            OtimputeWarning,
        )
    if panel.columns.time is not None:
        repeated = len(panel.group) - len(panel._rows.moments.row)
        if repeated:
            where, shared = ("a group", "group and time") if len(panel.columns.group) else ("the table", "a time")
            warn_user(
                Message(
                    Term("time"),
                    f": {count(repeated, 'row')} share{'s' * (repeated == 1)} {shared} with another row; "
                    f"rows of {where} at one time are averaged for earlier and later ones, and are no neighbours of each other",
                ),
                OtimputeWarning,
            )
