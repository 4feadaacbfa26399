"""What is needed to repeat an imputation, and what the report did not show."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

import otimpute

from .._text import count, listed
from ..estimator import BaseImputer
from ..inference import MultipleImputer
from ..table import CategoryCode, Table
from .data import Reproduce, TableFacts

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "narwhals")


def describe_reproduction(
    imputer: BaseImputer | MultipleImputer, names: Sequence[str], table: Table, source: str | None, command: str | None
) -> Reproduce:
    """Return parameters, versions, a fingerprint of the table, and code that repeats the imputation."""
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
    calls = ["X_imputed = imputer.fit_transform(X)", 'otimpute.report(imputer, X, "report.html", X_imputed=X_imputed)']
    if isinstance(imputer, MultipleImputer):
        calls = ["tables = imputer.fit_transform(X)", 'otimpute.report(imputer, X, "report.html")']
    code = "\n".join(
        [
            "import pandas as pd",
            "import otimpute",
            f"from {home} import {type(imputer).__name__}",
            "",
            f"X = {read}",
            f"imputer = {BaseEstimator.__repr__(imputer, N_CHAR_MAX=10**6)}",
            *calls,
        ]
    )
    return Reproduce(
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        parameters,
        _versions(),
        _fingerprint(names, table),
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


def notes_on(facts: TableFacts, not_used: Sequence[str]) -> list[str]:
    """Return what readers must know of the report itself."""
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
