"""Diagnostics of a multiple imputation: draws beside observed values, what is unknown, and whether draws had settled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._markup import element, to_html
from .._optional import require
from .._random import generator
from .._text import count, number, number_beside, share
from .._threads import single_blas_thread
from ..baselines.chained import ChainedFit
from ..table import CategoryCode, ColumnCode, ColumnKind, MomentCode, Table, labels_of, seconds_of, to_numbers
from .convergence import Convergence
from .matched_comparison import MatchedComparison, compare_matched
from .pooled import PooledEstimates
from .pooling import pool_estimates

Floats = NDArray[np.float64]

_MOST_ROWS = 2000  # that are matched, drawn at random from longer tables
_STATISTICS = ("mean", "sd", "5 %", "25 %", "50 %", "75 %", "95 %")
_SHOWN = ("missing", "observed", "imputed", "low", "high", "fmi", "mc_error", "needed", "drift", "matched", "finding")


@dataclass(frozen=True, eq=False)
class ColumnDiagnostics:
    """Diagnostics of one column with missing values.

    Attributes
    ----------
    name, kind : str
        Its name, and what it holds.
    labels : tuple of str
        Classes of a category or boolean; empty for numbers and dates.
    observed : array [n_observed]
        Observed values; of classes their positions among ``labels``, of dates seconds since the first one, of
        imputed ones before they are rounded.
    draws : array [m, n_missing]
        Imputed values of every table, in the order of the rows.
    statistics : tuple of str
        What is compared: mean, standard deviation and quantiles of numbers, or the share of each class.
    of_observed : array [n_statistics]
        The statistics of the observed values.
    of_draws : array [m, n_statistics]
        The statistics of the imputed values, by table.
    pooled : PooledEstimates or None
        Rubin's rules for the mean of the completed column, or for the share of each class that occurs: variances within and
        between tables, fraction of missing information, Monte-Carlo error. None if nothing varies.
    convergence : Convergence or None
        How the draws developed over rounds; None for imputers without rounds, and for loaded ones, which do not know it.
    matched : MatchedComparison or None
        Imputed values compared with observed ones in rows that are alike; None if there are too few.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    observed: Floats = field(repr=False)
    draws: Floats = field(repr=False)
    statistics: tuple[str, ...]
    of_observed: Floats = field(repr=False)
    of_draws: Floats = field(repr=False)
    pooled: PooledEstimates | None
    convergence: Convergence | None = field(repr=False)
    matched: MatchedComparison | None
    code: ColumnCode = field(repr=False)

    @property
    def uncertain(self) -> int | None:
        """Position in ``pooled`` of what has the largest fraction of missing information; None if nothing varies."""
        return None if self.pooled is None else int(np.argmax(self.pooled.fmi))

    @property
    def fmi(self) -> float:
        """Fraction of missing information of the mean, or of the class for which it is largest."""
        return math.nan if self.pooled is None else float(self.pooled.fmi.max())

    @property
    def monte_carlo_error(self) -> float:
        """Standard deviation of the pooled mean, or of the share above, over repetitions of the imputation."""
        return math.nan if self.pooled is None else float(self.pooled.monte_carlo_error[self.uncertain])

    @property
    def tables_needed(self) -> int:
        """How many tables make the standard error reproducible (von Hippel, 2020)."""
        return 2 if self.pooled is None else int(self.pooled.tables_needed().max())

    @property
    def findings(self) -> tuple[str, ...]:
        """What needs attention, in words; empty if nothing does."""
        found = []
        if self.matched is not None and self.matched.is_clear:
            found.append(f"{_difference(self.matched, is_class=bool(self.labels))} than in observed rows that are alike")
        if self.convergence is not None and self.convergence.has_drifted:
            moved = f"{abs(self.convergence.drift):.1f} standard errors"
            found.append(f"draws were still moving in the last rounds, by {moved}; more rounds are needed")
        return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics:
    """Diagnostics of a multiple imputation, by column with missing values.

    Attributes
    ----------
    n_tables : int
        Number of tables, m.
    n_rows : int
        Number of rows.
    columns : tuple of ColumnDiagnostics
        The columns with missing values, in the order of the table.

    Examples
    --------
    >>> import numpy as np
    >>> import otimpute
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> X = np.column_stack([x, 0.5 * x + rng.normal(size=200)])
    >>> X[:80, 1] = np.nan
    >>> found = otimpute.MultipleImputer(m=10, random_state=0).fit(X).diagnostics()
    >>> [(column.name, column.findings) for column in found.columns]
    [('1', ())]
    """

    n_tables: int
    n_rows: int
    columns: tuple[ColumnDiagnostics, ...]
    _frames: str = "pandas"

    def __getitem__(self, name: str) -> ColumnDiagnostics:
        for column in self.columns:
            if column.name == str(name):
                return column
        raise KeyError(f"{name!r} has no missing values; columns that have: {', '.join(each.name for each in self.columns)}")

    def summary(self) -> Any:
        """A frame with a row per column.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            polars if the table was, with a first column ``column``; else pandas, with the names as index. ``missing`` is a
            share, ``observed`` the mean of observed values and ``imputed`` that of imputed ones over all tables, ``low`` and
            ``high`` its range over tables (dates: seconds since the first one). Of classes, all these are shares of the class
            with the largest ``fmi``. ``mc_error`` is the Monte-Carlo error of the pooled mean or share, ``needed`` how many
            tables would do, ``matched`` the difference to observed rows that are alike, in standard deviations or as a share,
            and ``finding`` says what needs attention.
        """
        rows = [self._row(column) for column in self.columns]
        columns = {name: [row[k] for row in rows] for k, name in enumerate(_SHOWN)}
        names = [column.name for column in self.columns]
        if self._frames == "polars":
            return require("polars", "summary() of polars tables").DataFrame({"column": names, **columns})
        pandas = require("pandas", "summary()")
        return pandas.DataFrame(columns, index=pandas.Index(names, name="column"))

    def _row(self, column: ColumnDiagnostics) -> tuple[Any, ...]:
        k = _main_statistic(column)
        imputed = column.of_draws[:, k]
        moved, matched = column.convergence, column.matched
        return (
            column.draws.shape[1] / self.n_rows,
            float(column.of_observed[k]),
            *(float(of(imputed)) for of in (np.mean, np.min, np.max)),
            column.fmi,
            column.monte_carlo_error,
            column.tables_needed,
            math.nan if moved is None else moved.drift,
            math.nan if matched is None else matched.difference,
            "; ".join(column.findings),
        )

    def _title(self) -> str:
        return f"Diagnostics of {count(self.n_tables, 'table')}, {count(len(self.columns), 'column')} with missing values"

    def _rows(self) -> list[list[str]]:
        lines = []
        for column in self.columns:
            missing, *means, fmi, error, needed, drift, matched, finding = self._row(column)
            spread = float(column.of_observed[1]) if not column.labels else 1.0
            called = f"{column.name} = {column.labels[_main_statistic(column)]}" if column.labels else column.name
            if isinstance(column.code, MomentCode):
                words = labels_of(column.code, np.array(means))
            else:
                words = [number_beside(each, spread) for each in means]
            shown = ["–" if math.isnan(each) else f"{each:.2f}" for each in (fmi, drift, matched)]
            small = "–" if math.isnan(error) else number(error)
            lines.append([called, share(missing), *words, shown[0], small, str(needed), *shown[1:], finding or "–"])
        return lines

    def __repr__(self) -> str:
        rows = [["", *_SHOWN], *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *cells, finding in rows:
            middle = (cell.rjust(width) for cell, width in zip(cells, widths[1:-1], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *middle, finding]))
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        head = element("tr", *(element("th", name) for name in ("", *_SHOWN)))
        body = [element("tr", element("th", name), *(element("td", cell) for cell in cells)) for name, *cells in self._rows()]
        return to_html(element("table", element("caption", self._title()), element("thead", head), element("tbody", *body)))


def diagnose(
    table: Table,
    names: Sequence[str],
    groups: NDArray[np.int64],
    cells: Floats,
    *,
    integers: str,
    traces: dict[int, Floats],
    frames: str,
) -> Diagnostics:
    """Diagnostics of draws ``cells [m, N]`` of the missing coordinates of a table, whose columns are ``groups``.

    ``traces`` are means and standard deviations ``[n_rounds, m, 2]`` of the draws, by column.
    """
    n, m = len(table.holes), len(cells)
    is_drawn = np.array([not code.kind.is_idle for code in table.codes])  # others are computed, or nobody's
    incomplete = np.flatnonzero(table.holes.any(axis=0) & is_drawn).tolist()
    numbers = {k: np.empty((m, n)) for k in incomplete}
    rows = np.sort(generator(0, "matched rows").choice(n, min(n, _MOST_ROWS), replace=False))
    sample = np.empty((m, len(rows), table.values.shape[1]))
    before = to_numbers(table.codes, np.where(table.missing, np.nan, table.values))
    completed = np.array(table.values, dtype=np.float64)
    for each, draw in enumerate(cells):
        completed[table.missing] = draw
        sample[each] = completed[rows]
        written = to_numbers(table.codes, completed, integers)
        for k in incomplete:
            numbers[k][each] = np.where(table.holes[:, k], written[:, k], before[:, k])
    columns = []
    for k in incomplete:
        code, holes, values, trace = table.codes[k], table.holes[:, k], numbers[k], traces.get(k)
        labels, n_columns = _labels(code), len(incomplete)
        known = values[0, rows] < len(code.categories) if isinstance(code, CategoryCode) else np.full(len(rows), True)
        there = holes | ~np.isnan(values[0])  # elsewhere a value cannot exist
        known = known & there[rows]
        used = rows[known]  # rare categories that were pooled are never imputed, and not compared
        convergence = None
        if trace is not None:
            convergence = Convergence.of(trace[:, :, 0], trace[:, :, 1], n_missing=int(holes.sum()), n_columns=n_columns)
        with single_blas_thread():
            others = sample[:, known][:, :, groups != k]
            matched = compare_matched(labels, values[:, used], others, holes[used], n_columns=n_columns)
        columns.append(
            ColumnDiagnostics(
                name=str(names[k]),
                kind=code.kind,
                labels=labels,
                observed=values[0, there & ~holes],
                draws=values[:, holes],
                statistics=labels or _STATISTICS,
                of_observed=_statistics(values[0, there & ~holes], len(labels)),
                of_draws=np.array([_statistics(draw[holes], len(labels)) for draw in values]),
                pooled=_pooled(values[:, there], labels),
                convergence=convergence,
                matched=matched,
                code=code,
            )
        )
    return Diagnostics(m, n, tuple(columns), frames)


def traces_by_column(table: Table, fits: Sequence[ChainedFit]) -> dict[int, Floats]:
    """Traces ``[n_rounds, m, 2]`` of the columns that were drawn, in seconds where they are dates."""
    found: dict[int, Floats] = {}
    traces = [fit.trace for fit in fits if fit.trace is not None]
    if traces:
        for place, k in enumerate(fits[0].traced):
            if k >= len(table.codes):  # of a helper, which is no column
                continue
            unit = seconds_of(table.codes[k]) if isinstance(table.codes[k], MomentCode) else 1.0
            found[k] = np.stack([trace[:, place] for trace in traces], axis=1) * unit
    return found


def _labels(code: ColumnCode) -> tuple[str, ...]:
    if isinstance(code, CategoryCode):
        return tuple(str(label) for label in code.labels)
    return tuple(labels_of(code, np.arange(2.0))) if code.kind == ColumnKind.BOOLEAN else ()


def _statistics(values: Floats, n_classes: int) -> Floats:
    if n_classes:
        return np.bincount(values.astype(np.int64), minlength=n_classes) / max(len(values), 1)
    spread = values.std(ddof=1) if len(values) > 1 else math.nan
    return np.array([values.mean(), spread, *np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95))])


def _pooled(values: Floats, labels: tuple[str, ...]) -> PooledEstimates | None:
    """The mean of a completed column ``[m, n]``, or shares of classes, by Rubin's rules."""
    n = values.shape[1]
    named = {label: (values == k).astype(np.float64) for k, label in enumerate(labels)} if labels else {"mean": values}
    varying = {name: each for name, each in named.items() if (each != each[:1, :1]).any()}
    if not varying or n < 2:
        return None
    means = np.array([each.mean(axis=1) for each in varying.values()]).T
    variances = np.array([each.var(axis=1, ddof=1) / n for each in varying.values()]).T
    return pool_estimates(means, variances, names=list(varying), df_complete=n - 1)


def _main_statistic(column: ColumnDiagnostics) -> int:
    """Position among its statistics of the mean, or of the class with the largest fraction of missing information."""
    if not column.labels or column.pooled is None:
        return 0
    return column.labels.index(column.pooled.names[int(np.argmax(column.pooled.fmi))])


def _difference(found: MatchedComparison, *, is_class: bool) -> str:
    way, size = "higher" if found.difference > 0 else "lower", abs(found.difference)
    if is_class:
        return f"the share of {found.name} is {100 * size:.0f} percentage points {way} among imputed values"
    if found.name == "spread":
        way = "more" if found.difference > 0 else "less"
        return f"imputed values differ from what other columns suggest by {size:.1f} standard deviations {way}"
    return f"imputed values are {size:.1f} standard deviations {way}"
