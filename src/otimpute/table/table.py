"""A table as received becomes numbers and holes, and holes filled with numbers become the same kind of table again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """What an imputer sees (``values``, ``missing``) and what is needed to give the table back (``source``)."""

    source: Any  # a NumPy array or a narwhals frame
    values: NDArray[np.floating]  # [n, d]; arbitrary where missing
    missing: NDArray[np.bool_]  # [n, d]

    @property
    def is_frame(self) -> bool:
        """Whether the table came as a frame."""
        return isinstance(self.source, nw.DataFrame)

    def complete(
        self, filled: NDArray[np.float64], keep: NDArray[np.bool_], integers: str, indicators: NDArray[np.int64]
    ) -> Any:
        """The table with ``filled`` (row by row) in its holes.

        Columns outside ``keep`` are dropped; for each column in ``indicators`` one that says where it was missing is added.
        """
        if self.is_frame:
            return self._complete_frame(filled, keep, integers, indicators)
        return self._complete_array(filled, keep, integers, indicators)

    def _complete_array(
        self, filled: NDArray[np.float64], keep: NDArray[np.bool_], integers: str, indicators: NDArray[np.int64]
    ) -> NDArray[Any]:
        whole = self.source.dtype.kind != "f"
        kind = np.dtype(np.float64) if whole and self.missing.any() and integers == "float" else self.source.dtype
        # order="K" keeps Fortran tables as they came; a fresh array is writeable even when the source was not.
        completed = self.source.astype(kind, order="K", copy=True)
        if filled.size:
            completed[self.missing] = _fit_into(filled, kind)
        if not keep.all():
            completed = completed[:, keep]
        if len(indicators):
            completed = np.hstack([completed, self.missing[:, indicators].astype(kind)])
        return completed  # type: ignore[no-any-return]

    def _complete_frame(
        self, filled: NDArray[np.float64], keep: NDArray[np.bool_], integers: str, indicators: NDArray[np.int64]
    ) -> Any:
        frame = self.source
        dense = np.empty(self.missing.shape)
        dense[self.missing] = filled
        changed = []
        for k, column in enumerate(frame.iter_columns()):
            rows = np.flatnonzero(self.missing[:, k])
            if not keep[k] or not len(rows):
                continue
            if not _is_number(column.dtype):  # no value at all, so no type to keep either
                changed.append(_like(frame, column.name, dense[:, k], nw.Float64()))
                continue
            if integers == "float" and not column.dtype.is_float():
                column = column.cast(nw.Float64)
            changed.append(column.scatter(rows, _as_series(dense[rows, k], column)))
        changed += [_like(frame, f"missingindicator_{frame.columns[k]}", self.missing[:, k], nw.Boolean()) for k in indicators]
        completed = frame.with_columns(*changed) if changed else frame.clone()
        return completed.drop([name for k, name in enumerate(frame.columns) if not keep[k]])


def read_array(array: NDArray[Any], missing_values: Any) -> Table:
    """A table from a two-dimensional numeric array; NaN is always missing."""
    values = array if array.dtype.kind == "f" else array.astype(np.float64)
    missing = np.isnan(values)
    missing |= _marked(array, missing_values)
    _refuse_infinity(values, missing, range(values.shape[1]))
    return Table(array, values, missing)


def read_frame(frame: nw.DataFrame[Any], missing_values: Any) -> Table:
    """A table from a frame of numeric, integer and boolean columns; null and NaN are always missing."""
    unfit = [column for column in frame.iter_columns() if not _is_number(column.dtype) and not column.is_null().all()]
    if unfit:
        listed = ", ".join(f"{column.name!r} ({column.dtype})" for column in unfit[:5])
        more = f" and {len(unfit) - 5} more" if len(unfit) > 5 else ""
        raise TypeError(
            f"columns must hold numbers or booleans, got {listed}{more}; drop them, encode them as numbers, or convert numbers "
            "stored as text or objects (pandas: pd.to_numeric or X.convert_dtypes(), polars: .cast(pl.Float64))"
        )
    values = np.empty(frame.shape, order="F")
    missing = np.empty(frame.shape, dtype=bool, order="F")
    for k, column in enumerate(frame.iter_columns()):
        if not _is_number(column.dtype):
            values[:, k], missing[:, k] = np.nan, True
            continue
        absent = column.is_null().to_numpy()
        if column.dtype.is_integer():
            # 2⁵³ + 1 and 2⁵³ are different integers but the same float: compared first, rounded (Arrow refuses to) then.
            own = column.fill_null(0).to_numpy()
            values[:, k] = np.where(absent, np.nan, own)
        else:
            values[:, k] = column.cast(nw.Float64).to_numpy()
            own = values[:, k] if column.dtype == nw.Boolean else column.to_numpy()
        missing[:, k] = absent | np.isnan(values[:, k]) | _marked(own, missing_values)
    _refuse_infinity(values, missing, frame.columns)
    return Table(frame, values, missing)


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """``X`` as an eager narwhals frame, or None when it is no frame at all."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except (TypeError, ValueError) as error:  # narwhals refuses frames whose column names repeat
        names = [str(name) for name in getattr(X, "columns", [])]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if not repeated:
            raise
        raise ValueError(f"column names must differ, got {', '.join(map(repr, repeated))} more than once") from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy frame, whose values are not computed yet; pass X.collect()")
    return frame if isinstance(frame, nw.DataFrame) else None


def _is_number(dtype: Any) -> bool:
    """Floats, integers that NumPy has too, and booleans."""
    return bool(dtype.is_float() or dtype == nw.Boolean or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)))


def _refuse_infinity(values: NDArray[np.floating], missing: NDArray[np.bool_], names: Sequence[Any]) -> None:
    infinite = [repr(name) for k, name in enumerate(names) if (np.isinf(values[:, k]) & ~missing[:, k]).any()]
    if infinite:
        raise ValueError(
            f"Input X contains infinity in columns {', '.join(infinite[:5])}; "
            "replace infinite values by missing ones or by finite numbers"
        )


def _marked(values: NDArray[Any], marker: Any) -> NDArray[np.bool_]:
    """Where ``values`` equal the number that marks missing ones, compared in their own type."""
    if marker != marker:  # NaN marks nothing that is not found anyway
        return np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(values == values.dtype.type(marker))
    whole = np.isfinite(marker) and marker == int(marker)
    return np.asarray(values == int(marker)) if whole else np.zeros(values.shape, dtype=bool)


def _as_series(values: NDArray[np.float64], column: nw.Series[Any]) -> nw.Series[Any]:
    kind = np.dtype("bool" if column.dtype == nw.Boolean else str(column.dtype).lower())
    return _like(column, column.name, _fit_into(values, kind), column.dtype)


def _like(source: Any, name: str, values: NDArray[Any], dtype: Any) -> nw.Series[Any]:
    series = nw.new_series(name, values, dtype=dtype, backend=source.implementation)
    native = nw.to_native(source)
    if source.implementation.is_pandas_like() and hasattr(native, "index") and len(series) == len(source):
        series = nw.maybe_set_index(series, index=native.index)  # keep the rows aligned, whatever the index
    return series


def _fit_into(values: NDArray[np.float64], kind: np.dtype[Any]) -> NDArray[Any]:
    """Round for whole-number kinds, and stay inside what the kind can hold."""
    if kind.kind == "b":
        return values >= 0.5
    if kind.kind == "f":
        largest = np.finfo(kind).max
        return np.clip(values, -largest, largest).astype(kind)
    bounds = np.iinfo(kind)
    rounded = np.rint(values)
    cells = np.empty(len(values), dtype=kind)
    # float(2⁶³ − 1) rounds up to 2⁶³, which no longer fits: compare first, convert what is inside.
    too_large, too_small = rounded >= float(bounds.max), rounded <= float(bounds.min)
    inside = ~(too_large | too_small)
    cells[too_large], cells[too_small] = bounds.max, bounds.min
    cells[inside] = rounded[inside].astype(kind)
    return cells
