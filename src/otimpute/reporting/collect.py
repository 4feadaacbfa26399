"""Collect the content of a report from an imputer and a table, without changing either."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import otimpute

from .._checks import check_count, check_flag
from .._random import generator
from .._text import count, listed
from ..estimator import BaseImputer
from ..table import CategoryCode, Table
from ._before_after import completed_like, names_of, read_table, see
from ._check import check_on_hidden
from ._columns import count_violations, describe_columns
from ._error_bars import bars_at, describe_bars
from ._joint import describe_joint
from ._missingness import describe_missingness
from ._training import describe_training
from ._verdict import give_verdict
from .data import HiddenCheck, ReportData, Reproduce, TableFacts

_CHUNK = 100_000
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "narwhals")


def collect(
    imputer: BaseImputer,
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
    if not isinstance(imputer, BaseImputer):
        raise TypeError(f"imputer must be from otimpute, got {type(imputer).__name__}; fit an AutoImputer, for example")
    check_is_fitted(imputer)
    check_flag("check", check)
    check_count("max_rows", max_rows, at_least=10)
    seed = check_count("random_state", random_state, at_least=0)
    table = read_table(imputer, X)
    names, n_rows = names_of(imputer), len(table.holes)
    completed = None if X_imputed is None else completed_like(imputer, table, X_imputed)
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
    fitted = completed is not None and imputer.training_table_.rows.are_all_of(table.values, table.missing)
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
        reproduce=_reproduce(imputer, table, source, command),
        notes=_notes(facts, not_used),
    )


def _notes(facts: TableFacts, not_used: Sequence[str]) -> list[str]:
    notes = []
    if not_used:
        notes.append(f"Columns neither used, nor imputed, nor in this report: {listed(not_used)}.")
    if facts.n_shown < facts.n_rows:
        notes.append(
            f"The table has {count(facts.n_rows, 'row')}: missing values were counted in all of them, figures and "
            f"comparisons use a random sample of {facts.n_shown:,}."
        )
    if facts.from_transform and facts.n_missing:
        notes.append(
            f"Values{' of the sample' * (facts.n_shown < facts.n_rows)} were imputed for this report by transform, which "
            "treats every row separately; fit_transform may give other values. Pass X_imputed to show those."
        )
    return notes


def _reproduce(imputer: BaseImputer, table: Table, source: str | None, command: str | None) -> Reproduce:
    parameters = {name: repr(value) for name, value in imputer.get_params(deep=False).items()}
    words = []
    random_state = getattr(imputer, "random_state", 0)
    if not isinstance(random_state, Integral):
        given = "None" if random_state is None else f"a {type(random_state).__name__}"
        words.append(
            f"random_state was {given}: a randomised method gives other values next time; "
            "pass an integer for reproducible results."
        )
    home = "otimpute" if type(imputer).__name__ in otimpute.__all__ else type(imputer).__module__.rpartition(".")[0]
    read = f"pd.read_csv({source!r})" if source and source.endswith(".csv") else f"...  # {source or 'your table'}"
    code = "\n".join(
        [
            "import pandas as pd",
            "import otimpute",
            f"from {home} import {type(imputer).__name__}",
            "",
            f"X = {read}",
            f"imputer = {BaseEstimator.__repr__(imputer, N_CHAR_MAX=10**6)}",
            "X_imputed = imputer.fit_transform(X)",
            'otimpute.report(imputer, X, "report.html", X_imputed=X_imputed)',
        ]
    )
    return Reproduce(
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        parameters,
        _versions(),
        _fingerprint(names_of(imputer), table),
        code,
        command,
        words,
    )


def _versions() -> dict[str, str]:
    found = {"otimpute": otimpute.__version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # bundled without its metadata
            continue
    return found | {"system": f"{platform.system()} {platform.machine()}"}


def _fingerprint(names: Sequence[str], table: Table) -> str:
    """Return a hash of names, values, missing entries and the order of rows."""
    digest = hashlib.sha256(repr((table.holes.shape, *names)).encode())
    place = 0
    for k, code in enumerate(table.codes):
        for values, missing in zip(
            *(each[:, place : place + code.width].T for each in (table.values, table.missing)), strict=True
        ):
            digest.update(np.where(missing, np.nan, values).astype(np.float64).tobytes())
        if isinstance(code, CategoryCode):
            digest.update(repr(code.categories).encode())
        pools = isinstance(code, CategoryCode) and code.pools_rest
        unread = ~table.holes[:, k] & (table.missing[:, place] | pools if code.width else True)
        if unread.any():  # text, and categories that are rare or were not in training
            digest.update(repr(table.source[:, k].to_list()).encode())
        place += code.width
    digest.update(np.packbits(table.holes).tobytes())
    return digest.hexdigest()[:16]
