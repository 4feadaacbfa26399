"""`otimpute.report`: a report on missing and imputed values, and how far to trust them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .._files import appears_whole
from .._markup import element, to_html
from .._optional import require
from ..estimator import BaseImputer
from ..inference import MultipleImputer
from .collect import collect
from .data import ReportData


@dataclass(frozen=True)
class Report:
    """A report: its ``data`` and the HTML page made from it, which notebooks display."""

    data: ReportData

    @cached_property
    def html(self) -> str:
        """The page as a single self-contained HTML file."""
        from .render import render

        return render(self.data)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the report as JSON data."""
        return self.data.as_dict()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, atomically."""
        page = self.html.encode()
        with appears_whole(Path(path)) as part:
            part.write_bytes(page)

    def _repr_html_(self) -> str:
        # An iframe separates the styles of the page and the notebook; the sandbox allows only the page's script.
        frame = element(
            "iframe", srcdoc=self.html, sandbox="allow-scripts", title=self.data.title, width="100%", height="800",
            style="border: 1px solid #8884; border-radius: 6px",
        )  # fmt: skip
        return to_html(frame)


def report(
    imputer: BaseImputer | MultipleImputer,
    X: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    X_imputed: Any = None,
    check: bool = True,
    max_rows: int = 10_000,
    random_state: int = 0,
) -> Report:
    """Create a report on the missing values of a table, the imputed values, and how far to trust them.

    The page has a verdict in plain words; the number, patterns and predictors of missing values; the progress of the fit;
    observed and imputed values of every column; correlations before and after; the errors of the imputer on hidden values,
    compared with the column mean, KNN and ICE; and information to reproduce the result. Neither the imputer nor the table is
    changed.

    Parameters
    ----------
    imputer : a fitted imputer of otimpute
        Of a `MultipleImputer`, the page has diagnostics of all its tables instead of the fit and the check on hidden values;
        ``X`` is the table that was fitted, ``X_imputed`` and ``check`` are not used.
    X : array or frame [n_rows, n_columns]
        A table with missing values: the one it was fitted on, or another with the same columns.
    path : path, default=None
        File to write the page to.
    X_imputed : array or frame, default=None
        The result of ``fit_transform(X)`` or ``transform(X)``; by default, values are imputed for the report by
        ``imputer.transform``, which treats every row separately.
    check : bool, default=True
        Whether to hide some observed values, of at most 2000 rows, and impute them. Rows that the imputer was not fitted on
        are imputed as by ``transform``; for the training table, a copy is fitted on the remaining values, which takes about
        as long as the first fit.
    max_rows : int, default=10000
        For longer tables, figures and comparisons use a random sample of this many rows; the page says so.
    random_state : int, default=0
        Seed of that sample and of the hidden values.

    Returns
    -------
    Report
        An object with ``data``, ``as_dict()``, ``html`` and ``save(path)``; notebooks display it.

    Examples
    --------
    >>> import numpy as np
    >>> import otimpute
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> X = np.column_stack([x, 2 * x, rng.normal(size=200)])
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> imputer = otimpute.SinkhornImputer(random_state=0)
    >>> X_imputed = imputer.fit_transform(X)
    >>> found = otimpute.report(imputer, X, X_imputed=X_imputed)  # add "report.html" to keep the page
    >>> [(each.key, each.light) for each in found.data.verdict]
    [('kept', 'good'), ('converged', 'good'), ('better', 'good'), ('trusted', 'caution'), ('chance', 'unknown')]
    >>> [each.name for each in found.data.columns if each.light == "caution"]  # the third column is independent of the others
    ['2']
    """
    require("jinja2", "a report", "report")  # fail before the work
    data = collect(imputer, X, X_imputed, check=check, max_rows=max_rows, random_state=random_state)
    made = Report(data)
    if path is not None:
        made.save(path)
    return made
