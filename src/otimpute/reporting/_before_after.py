"""A table before and after imputation, as one number per cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..estimator import BaseImputer
from ..table import (
    CategoryCode,
    ColumnCode,
    Table,
    as_frame,
    has_zone,
    to_numbers,
)

Cells = NDArray[np.float64]
_UNITS = ((86_400 * 365.25, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True)
class BeforeAfter:
    """Some rows of a table, before and after imputation.

    Categories are represented by their index among the categories, dates by the seconds since the first one.
    """

    names: list[str]
    kinds: list[str]  # as shown to readers
    codes: tuple[ColumnCode, ...]
    before: Cells  # [n, d]: NaN where missing
    after: Cells  # [n, d]: NaN where not imputed
    holes: NDArray[np.bool_]  # [n, d]
    still_holes: NDArray[np.bool_]  # [n, d]: still missing after imputation
    changed: NDArray[np.bool_]  # [n, d]: observed values that were changed
    values: NDArray[np.floating]  # [n, D]: coordinates before
    missing: NDArray[np.bool_]  # [n, D]
    coordinates: Cells  # [n, D]: after

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Which missing cells were imputed."""
        return self.holes & ~np.isnan(self.after)

    @property
    def left_empty(self) -> NDArray[np.bool_]:
        """Which cells without a value are not missing, or not to be imputed."""
        return ~self.holes & np.isnan(self.before)

    def take(self, rows: NDArray[np.int64]) -> BeforeAfter:
        """Return some of the rows."""
        parts = (
            "before", "after", "holes", "still_holes", "changed", "values", "missing", "coordinates",
        )  # fmt: skip
        return replace(self, **{name: getattr(self, name)[rows] for name in parts})


def is_nominal(code: ColumnCode) -> bool:
    """Whether a column holds unordered categories."""
    return isinstance(code, CategoryCode) and not code.ordered


def is_pooled(code: ColumnCode, values: Cells) -> NDArray[np.bool_]:
    """Which values of a column represent pooled rare categories."""
    return values >= len(code.categories) if isinstance(code, CategoryCode) else np.zeros(len(values), dtype=bool)


def centre_and_spread(values: Cells) -> tuple[Cells, Cells]:
    """Return mean and standard deviation of the known values of each column; 0 and 0 if there are none."""
    known = ~np.isnan(values)
    n = np.maximum(known.sum(axis=0), 1)
    largest = np.abs(np.where(known, values, 0.0)).max(axis=0, initial=0.0)
    shrunk = np.where(known, values / np.where(largest > 0, largest, 1.0), 0.0)  # so that squares do not overflow
    mean = shrunk.sum(axis=0) / n
    spread = np.sqrt(np.where(known, (shrunk - mean) ** 2, 0.0).sum(axis=0) / n)
    return mean * largest, np.where(spread > 1e-12, spread, 0.0) * largest


def standardised(values: Cells) -> Cells:
    """Standardise columns, NaN where unknown; constant columns become 0."""
    centre, spread = centre_and_spread(values)
    return np.where(spread > 0, (values - centre) / np.where(spread > 0, spread, 1.0), values * 0.0)


def read_table(imputer: BaseImputer, X: Any) -> Table:
    """Read the table as the imputer does, without changing the imputer."""
    return imputer.read_table(X)


def names_of(imputer: BaseImputer) -> list[str]:
    """Return the names of the table's columns."""
    return [str(name) for name in getattr(imputer, "feature_names_in_", range(imputer.n_features_in_))]


def see(imputer: BaseImputer, table: Table, completed: Any, rows: NDArray[np.int64]) -> BeforeAfter:
    """Return some rows before and after imputation; if ``completed`` is None, the imputer imputes them as new rows."""
    part = rows_of(table, rows)
    if completed is None:
        training = imputer.training_table_
        cells = training.with_empty_columns(part, imputer.model_.impute_cells(*training.arrays_of(part)))
        after = part.complete(cells, np.ones_like(training.kept), imputer.integers, np.arange(0))
    else:
        after = completed[rows.tolist()] if part.is_frame else completed[rows]
    encoding, marker = imputer.training_table_.encoding, np.nan if imputer.missing_values is None else imputer.missing_values
    try:
        read = encoding.read_frame(after, marker) if part.is_frame else encoding.read_array(after, marker)
    except ValueError as error:  # about X_imputed, because X was read before
        raise ValueError(f"X_imputed does not match X: {error}") from error
    was, now = numbers_in(part), numbers_in(read)
    return BeforeAfter(
        names_of(imputer), _kinds(part), part.codes, was, now, part.holes, read.holes, _changed(part, read, was, now),
        part.values, part.missing, np.where(read.missing, np.nan, read.values),
    )  # fmt: skip


def _kinds(table: Table) -> list[str]:
    if not table.is_frame:
        return [code.kind for code in table.codes]
    pairs = zip(table.codes, table.source.iter_columns(), strict=True)
    return [f"{code.kind} in UTC" if has_zone(column) else code.kind for code, column in pairs]


def _changed(before: Table, after: Table, was: Cells, now: Cells) -> NDArray[np.bool_]:
    """Return which observed cells were changed; values without a numeric code are compared by ``repr``."""
    changed: NDArray[np.bool_] = ~before.holes & (was != now)
    for k, code in enumerate(before.codes):
        unread = ~before.holes[:, k] & (
            (np.isnan(was[:, k]) & np.isnan(now[:, k])) | (code.width == 0) | is_pooled(code, was[:, k])
        )
        if unread.any():
            cells = zip(*(table.source[:, k].to_list() for table in (before, after)), strict=True)
            changed[:, k] = np.where(unread, [repr(old) != repr(new) for old, new in cells], changed[:, k])
    return changed


def rows_of(table: Table, rows: NDArray[np.int64]) -> Table:
    """Return some rows of a table."""
    source = table.source[rows.tolist()] if table.is_frame else table.source[rows]
    return replace(table, source=source, values=table.values[rows], missing=table.missing[rows], holes=table.holes[rows])


def completed_like(imputer: BaseImputer, table: Table, X_imputed: Any) -> Any:
    """Return the table with the columns of ``X_imputed``; dropped columns stay incomplete, added ones are ignored."""
    frame = as_frame(X_imputed)
    n_rows = len(frame) if frame is not None else len(X_imputed)
    if n_rows != len(table.holes):
        raise ValueError(f"X_imputed must have the {len(table.holes)} rows of X, got {n_rows}; pass the imputed X")
    if not table.is_frame:
        array = np.asarray(X_imputed if frame is None else frame.to_numpy(), dtype=np.float64)
        kept = np.flatnonzero(imputer.training_table_.kept)
        if array.shape[1] < len(kept):
            raise ValueError(f"X_imputed must have at least {len(kept)} columns, got {array.shape[1]}; pass the imputed X")
        completed = np.where(table.missing, np.nan, table.values)
        completed[:, kept] = array[:, : len(kept)]
        return completed
    if frame is None or frame.implementation != table.source.implementation:
        kind = type(nw.to_native(table.source)).__module__.partition(".")[0]
        raise TypeError(f"X_imputed must be a table of {kind}, as X is, got {type(X_imputed).__name__}")
    return table.source.with_columns(*(column for column in frame.iter_columns() if column.name in table.source.columns))


def numbers_in(table: Table) -> Cells:
    """Return one number per cell, NaN where missing."""
    numbers = to_numbers(table.codes, np.where(table.missing, np.nan, table.values))
    numbers[table.holes] = np.nan
    return numbers


def spread_of(table: Table, k: int) -> float:
    """Return the standard deviation of the observed values of a column."""
    code, begin = table.codes[k], sum(code.width for code in table.codes[:k])
    part = slice(begin, begin + code.width)
    numbers = to_numbers([code], np.where(table.missing[:, part], np.nan, table.values[:, part]))
    return float(centre_and_spread(numbers)[1][0])


def unit_of(seconds: Cells) -> tuple[float, str]:
    """Return a suitable unit of time for a column: its seconds and its name."""
    span = float(np.ptp(seconds))
    return next((unit for unit in _UNITS if span >= 2 * unit[0]), _UNITS[-1])
