"""Collect the content of a report from an imputer and a table, without changing either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._checks import check_count, check_flag
from .._random import generator
from ..estimator import BaseImputer
from ..inference import MultipleImputer
from ._before_after import completed_like, names_of, read_table, see
from ._check import check_on_hidden
from ._columns import count_violations, describe_columns
from ._error_bars import bars_at, describe_bars
from ._joint import describe_joint
from ._knowledge import describe_knowledge
from ._missingness import describe_missingness
from ._reproduce import describe_reproduction, notes_on
from ._training import describe_training
from ._verdict import give_verdict
from .collect_multiple import collect_multiple
from .data import HiddenCheck, ReportData, TableFacts

_CHUNK = 100_000


def collect(
    imputer: BaseImputer | MultipleImputer,
    X: Any,
    X_imputed: Any = None,
    *,
    check: bool = True,
    max_rows: int = 10_000,
    random_state: int = 0,
    source: str | None = None,
    command: str | None = None,
    not_used: Sequence[str] = (),
) -> ReportData:
    """Collect the content of a report on a fitted imputer and a table; the parameters are those of `report`.

    ``source`` is the name of the table's file and ``command`` the shell command that created the report, if any; ``not_used``
    are columns of the file that are not in ``X``.
    """
    if isinstance(imputer, MultipleImputer):
        return collect_multiple(
            imputer, X, max_rows=max_rows, random_state=random_state, source=source, command=command, not_used=not_used
        )
    if not isinstance(imputer, BaseImputer):
        raise TypeError(f"imputer must be from otimpute, got {type(imputer).__name__}; fit an AutoImputer, for example")
    check_is_fitted(imputer)
    check_flag("check", check)
    check_count("max_rows", max_rows, at_least=10)
    seed = check_count("random_state", random_state, at_least=0)
    table = read_table(imputer, X)
    names, n_rows = names_of(imputer), len(table.holes)
    by_rules = any(getattr(imputer, name) is not None for name in ("groups", "time", "derive", "applicable"))
    given = imputer.transform(X) if X_imputed is None and by_rules else X_imputed  # which look at more than one row's values
    completed = None if given is None else completed_like(imputer, table, given)
    rows = np.sort(generator(seed, "rows").choice(n_rows, min(n_rows, max_rows), replace=False))
    seen = see(imputer, table, completed, rows)
    if completed is None or len(rows) == n_rows:
        violations = Counter(count_violations(imputer, seen))
    else:
        violations = Counter()
        for begin in range(0, n_rows, _CHUNK):
            chunk = np.arange(begin, min(begin + _CHUNK, n_rows))
            violations.update(count_violations(imputer, see(imputer, table, completed, chunk)))
    n_missing = table.holes.sum(axis=0)
    facts = TableFacts(
        source, type(imputer).__name__, n_rows, len(names), int(n_missing.sum()), int(table.holes.any(axis=1).sum()), len(rows),
        X_imputed is None,
    )  # fmt: skip
    missingness = describe_missingness(names, table.codes, table.holes, seen)
    checked = check_on_hidden(imputer, table, max_rows, seed) if check else "It was not requested."
    done = checked if isinstance(checked, HiddenCheck) else None
    draws = getattr(imputer, "target", "") == "distribution"
    checks = {each.name: each for each in done.columns} if done else None
    fitted = X_imputed is not None and imputer.training_table_.rows.are_all_of(table.values, table.missing)
    bars = bars_at(imputer, table, rows, fitted=fitted)
    bar_summary = None if bars is None else describe_bars(imputer, table, completed, rows, bars)
    typical = {each.name: each.words for each in bar_summary.columns} if bar_summary else {}
    columns = [
        replace(column, error_bar=typical.get(column.name, ""))
        for column in describe_columns(seen, n_missing, n_rows, violations, checks, draws=draws)
    ]
    training = describe_training(imputer, [column.name for column in columns if column.n_missing])
    no_check = "" if done else str(checked)
    return ReportData(
        title=f"Imputation of {source}" if source else "Imputation report",
        table=facts,
        verdict=give_verdict(facts, missingness, training, columns, done, no_check, draws=draws),
        missingness=missingness,
        training=training,
        columns=columns,
        error_bars=bar_summary,
        joint=describe_joint(seen, generator(seed, "points")),
        check=done,
        no_check=no_check,
        reproduce=describe_reproduction(imputer, names, table, source, command),
        notes=notes_on(facts, not_used),
        known=describe_knowledge(imputer, names, table),
    )
