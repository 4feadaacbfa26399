"""Summaries of error bars: typical ones by column, and the most uncertain cells."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._text import number, number_beside, share
from ..estimator import BaseImputer, bars_of, has_error_bars
from ..table import CategoryCode, ColumnCode, MomentCode, NumberCode, Table, labels_of
from ._before_after import Cells, completed_like, names_of, read_table, rows_of, see, spread_of, unit_of
from .data import ColumnBar, ErrorBarSummary, UnsureCell

_MOST_CELLS = 10


def error_bars(imputer: BaseImputer, X: Any, X_imputed: Any) -> ErrorBarSummary | None:
    """Summarise the error bars of the table that was just fitted; None if the imputer has none."""
    table = read_table(imputer, X)
    rows = np.arange(len(table.holes))
    bars = bars_at(imputer, table, rows, fitted=True)
    return None if bars is None else describe_bars(imputer, table, completed_like(imputer, table, X_imputed), rows, bars)


def bars_at(imputer: BaseImputer, table: Table, rows: NDArray[np.int64], *, fitted: bool) -> Cells | None:
    """Return the error bars ``[len(rows), d]`` of some rows: those of the fit, or those of new rows."""
    if not has_error_bars(imputer):
        return None
    if fitted and hasattr(imputer, "imputation_std_"):  # not stored in model files
        return bars_of(imputer, imputer.imputation_std_)[rows]
    part = rows_of(table, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were already shown when the table was imputed
        transform: Any = imputer.transform
        return bars_of(imputer, transform(part.source.to_native() if part.is_frame else part.source, return_std=True)[1])


def describe_bars(imputer: BaseImputer, table: Table, completed: Any, rows: NDArray[np.int64], bars: Cells) -> ErrorBarSummary:
    """Summarise the error bars of some ``rows``; imputed values are those of ``completed``, or else of ``transform``."""
    names, holes = names_of(imputer), table.holes[rows]
    known = [np.flatnonzero(holes[:, k] & ~np.isnan(bars[:, k])) for k in range(len(names))]
    widest = [mine[np.argsort(-bars[mine, k], kind="stable")[:_MOST_CELLS]] for k, mine in enumerate(known)]
    places = np.unique(np.concatenate(widest))
    after = see(imputer, table, completed, rows[places]).after
    columns: list[ColumnBar] = []
    cells: dict[bool, list[UnsureCell]] = {False: [], True: []}  # numbers and labels
    for k, code in enumerate(table.codes):
        if not len(known[k]) or not code.width:
            continue
        typical = float(np.median(bars[known[k], k]))
        columns.append(ColumnBar(names[k], typical, _text(code, typical)))
        size = 1.0 if code.has_labels else spread_of(table, k)
        for place in widest[k].tolist():
            value, bar = after[np.searchsorted(places, place), k], float(bars[place, k])
            if size > 0 and not np.isnan(value):
                shown = _value(code, float(value), bar)
                cells[code.has_labels].append(
                    UnsureCell(int(rows[place]) + 1, names[k], shown, _text(code, bar), bar / size)
                )  # fmt: skip
    numbers, categories = (sorted(each, key=lambda cell: -cell.size)[:_MOST_CELLS] for each in cells.values())
    return ErrorBarSummary(columns, numbers, categories)


def _text(code: ColumnCode, bar: float) -> str:
    if code.has_labels:
        return f"{share(bar)} wrong"
    if isinstance(code, MomentCode):
        size, unit = unit_of(np.array([0.0, bar]))
        return f"± {number(bar / size)} {unit}"
    return f"± {number(bar)}{' places' if isinstance(code, CategoryCode) else ''}"


def _value(code: ColumnCode, value: float, bar: float) -> str:
    if isinstance(code, NumberCode) and not code.has_labels:
        return number_beside(value, bar)
    return labels_of(code, np.array([value]))[0]
