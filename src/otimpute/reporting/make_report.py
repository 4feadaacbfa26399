"""`otimpute.report`: what was missing, what was filled in, and whether to believe it, in one page."""

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
from .collect import collect
from .data import ReportData


@dataclass(frozen=True)
class Report:
    """A report: plain ``data``, and the page made of it. Shows itself in notebooks."""

    data: ReportData

    @cached_property
    def html(self) -> str:
        """The page: one file that needs no other, and no network."""
        from .render import render

        return render(self.data)

    def as_dict(self) -> dict[str, Any]:
        """Everything the report says, as JSON can hold it."""
        return self.data.as_dict()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        page = self.html.encode()
        with appears_whole(Path(path)) as part:
            part.write_bytes(page)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of the page and of the notebook apart; it may run its script and nothing else.
        frame = element(
            "iframe", srcdoc=self.html, sandbox="allow-scripts", title=self.data.title, width="100%", height="800",
            style="border: 1px solid #8884; border-radius: 6px",
        )  # fmt: skip
        return to_html(frame)


def report(
    imputer: BaseImputer,
    X: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    X_imputed: Any = None,
    check: bool = True,
    max_rows: int = 10_000,
    random_state: int = 0,
) -> Report:
    """Show what was missing in a table, what an imputer filled in, and whether to believe it.

    The page has a verdict in plain words; how much is missing, in which patterns, and what goes with it; how the fit went;
    observed against imputed values of every column; correlations before and after; how far off the method is on values that
    are hidden from it, next to the column mean, KNN and ICE; and what is needed to reproduce it all. Neither the imputer nor
    the table is changed.

    Parameters
    ----------
    imputer : a fitted imputer of otimpute
    X : array or frame [n_rows, n_columns]
        A table with holes: the one it was fitted to, or another with the same columns.
    path : path, default=None
        Where to write the page.
    X_imputed : array or frame, default=None
        What ``fit_transform`` or ``transform`` made of ``X``; without it, holes are filled by ``imputer.transform`` for the
        report, which treats every row alone.
    check : bool, default=True
        Hide some of the observed values, of at most 2000 rows, and fill them in. Rows that the imputer was not fitted to are
        filled as ``transform`` fills them; for the table of the fit a copy is fitted to what is left, which takes about as
        long as the first fit did.
    max_rows : int, default=10000
        Pictures and comparisons of a longer table are made from a sample of so many rows; the page says so.
    random_state : int, default=0
        For that sample and the hidden values.

    Returns
    -------
    Report
        With ``data``, ``as_dict()``, ``html`` and ``save(path)``; in a notebook it shows itself.

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
    >>> [each.name for each in found.data.columns if each.light == "caution"]  # nothing tells anything about the third column
    ['2']
    """
    require("jinja2", "a report", "report")  # before the work, not after it
    data = collect(imputer, X, X_imputed, check=check, max_rows=max_rows, random_state=random_state)
    made = Report(data)
    if path is not None:
        made.save(path)
    return made
