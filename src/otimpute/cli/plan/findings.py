"""What a table shows of itself, for the draft of a plan: ranges, labels, identifiers, groups and time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._optional import require
from ...table import ColumnKind, ColumnSummary

_EXPECTED_TWICE = 5
_MOST_LABELS = 20
_TIMES = re.compile(r"(?i)(?:^|[^a-z])(?:time|year|month|week|day|date|quarter|wave|visit|period|round|hour|t)(?:$|[^a-z])")
_KEYS = re.compile(r"(?:^|[^A-Za-z])(?i:id|key|nr|no|code|number)$|[a-z](?:Id|ID)$")


@dataclass(frozen=True)
class Finding:
    """What is seen of one column."""

    name: str
    kind: ColumnKind
    treatment: str
    n_missing: int
    n_rows: int
    n_distinct: int | None
    lowest: Any = None  # of numbers and dates
    highest: Any = None
    labels: tuple[Any, ...] = ()  # of categories, if there are few

    @property
    def is_unique(self) -> bool:
        """Whether every row has another value."""
        return self.n_missing == 0 and self.n_distinct == self.n_rows


def find(frame: Any, columns: Sequence[ColumnSummary]) -> list[Finding]:
    """Look at the columns of an Arrow table."""
    pc = require("pyarrow.compute", "reading tables", "cli")
    found = []
    for column in columns:
        cells = frame.column(column.name)
        n_missing = int(cells.is_null(nan_is_null=True).to_numpy().sum())
        lowest = highest = None
        labels: tuple[Any, ...] = ()
        try:
            values = cells.drop_null().unique()
        except NotImplementedError:  # for example lists
            found.append(Finding(column.name, column.kind, column.treatment, n_missing, len(cells), None))
            continue
        if column.kind in (ColumnKind.NUMBER, ColumnKind.INTEGER, ColumnKind.MOMENT) and len(values):
            lowest, highest = (each.as_py() for each in pc.min_max(values).values())
        if column.kind in (ColumnKind.CATEGORY, ColumnKind.ORDERED) and len(values) <= _MOST_LABELS:
            labels = tuple(sorted(values.to_pylist(), key=str))
        found.append(
            Finding(column.name, column.kind, column.treatment, n_missing, len(cells), len(values), lowest, highest, labels)
        )
    return found


def likely_panel(frame: Any, found: Sequence[Finding]) -> tuple[str, str] | None:
    """Return a column of groups and one of times, such that no group has a time twice; None if no two look like it."""
    complete = [each for each in found if each.n_missing == 0 and (each.n_distinct or 0) > 1 and not each.is_unique]
    times = [
        each
        for each in complete
        if each.kind == ColumnKind.MOMENT or (_TIMES.search(each.name) and each.kind == ColumnKind.INTEGER)
    ]
    groups = [each for each in complete if each not in times and _may_name_groups(each)]
    for time in sorted(times, key=lambda each: _TIMES.search(each.name) is None):
        for group in sorted(groups, key=lambda each: -(each.n_distinct or 0)):
            if _never_twice(frame, group.name, time.name):
                return group.name, time.name
    return None


def _may_name_groups(found: Finding) -> bool:
    """Whether a column has labels, or numbers that are called one's own."""
    return found.kind in (ColumnKind.CATEGORY, ColumnKind.TEXT) or (
        found.kind == ColumnKind.INTEGER and _KEYS.search(found.name) is not None
    )


def _never_twice(frame: Any, group: str, time: str) -> bool:
    """Whether no pair occurs twice, though by chance several would."""
    n = frame.num_rows
    sizes = [frame.group_by(name).aggregate([([], "count_all")]).column("count_all").to_numpy() for name in (group, time)]
    alike = [(size * (size - 1)).sum() / (n * (n - 1)) for size in sizes]  # chance of two rows to have the same
    if alike[0] * alike[1] * n * (n - 1) / 2 < _EXPECTED_TWICE:
        return False
    return bool(frame.group_by([group, time]).aggregate([]).num_rows == n)
