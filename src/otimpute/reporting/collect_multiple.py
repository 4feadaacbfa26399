"""Collect the content of a report on several completed tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._checks import check_count
from .._random import generator
from .._text import count
from ..estimator import Rating
from ..inference import MultipleImputer
from ._before_after import completed_like, names_of, read_table, see
from ._columns import count_violations, describe_columns, shape_of
from ._joint import describe_joint
from ._knowledge import describe_knowledge
from ._missingness import describe_missingness
from ._multiple import describe_multiple, multiple_verdict, shown_tables, statistics_of
from ._reproduce import describe_reproduction, notes_on
from ._verdict import filled_and_kept
from .data import ReportData, TableFacts, Training

_CHUNK = 100_000
_NOT_CHECKED = "Draws are not meant to be close to single hidden values; other diagnostics say how good they are."


def collect_multiple(
    imputer: MultipleImputer,
    X: Any,
    *,
    max_rows: int,
    random_state: int,
    source: str | None,
    command: str | None,
    not_used: Sequence[str],
) -> ReportData:
    """Collect the content of a report on a fitted `MultipleImputer` and the table it was fitted to."""
    check_is_fitted(imputer)
    check_count("max_rows", max_rows, at_least=10)
    seed = check_count("random_state", random_state, at_least=0)
    first, tables = imputer.imputers_[0], imputer.complete(X)
    table = read_table(first, X)
    names, n_rows = names_of(first), len(table.holes)
    rows = np.sort(generator(seed, "rows").choice(n_rows, min(n_rows, max_rows), replace=False))
    violations: Counter[tuple[int, str]] = Counter()
    for completed in tables:
        same = completed_like(first, table, completed)
        for begin in range(0, n_rows, _CHUNK):
            chunk = np.arange(begin, min(begin + _CHUNK, n_rows))
            violations.update(count_violations(first, see(first, table, same, chunk)))
    seen = see(first, table, completed_like(first, table, tables[0]), rows)
    n_missing = table.holes.sum(axis=0)
    facts = TableFacts(
        source, f"MultipleImputer with {type(first).__name__}", n_rows, len(names), int(n_missing.sum()),
        int(table.holes.any(axis=1).sum()), len(rows), False,
    )  # fmt: skip
    missingness = describe_missingness(names, table.codes, table.holes, seen)
    found = imputer.diagnostics(X)
    multiple = describe_multiple(found, {str(name) for name in getattr(first, "delta", None) or ()})
    diagnosed = {column.name: column for column in found.columns}
    said = {column.name: column for column in multiple.columns}
    columns = []
    for column in describe_columns(seen, n_missing, n_rows, violations, None, draws=True):
        if column.name in diagnosed:
            own = diagnosed[column.name]
            shape = shape_of(own.code, own.observed, own.draws.ravel(), shown_tables(own.draws))
            column = replace(column, n_filled=column.n_missing, shape=shape, statistics=statistics_of(own))
            if column.light is not Rating.BAD:
                column = replace(column, light=said[column.name].light, words=said[column.name].words)
        columns.append(column)
    notes = [f"There are {count(len(tables), 'completed table')}; the table as a whole is shown for the first of them."]
    return ReportData(
        title=f"Multiple imputation of {source}" if source else "Multiple imputation report",
        table=facts,
        verdict=multiple_verdict(filled_and_kept(columns), multiple, missingness),
        missingness=missingness,
        training=Training([], None, "round", [], None, [], None),
        columns=columns,
        error_bars=None,
        joint=describe_joint(seen, generator(seed, "points")),
        check=None,
        no_check=_NOT_CHECKED,
        reproduce=describe_reproduction(imputer, names, table, source, command),
        notes=[*notes, *notes_on(facts, not_used)],
        multiple=multiple,
        known=describe_knowledge(first, names, table),
    )
