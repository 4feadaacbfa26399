"""A table as received, as numbers with missing values, and completed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .categories import CategoryCode
from .codes import ColumnCode, NumberCode, clip_and_round, fit_into, observed_category_of, write_column
from .kinds import ColumnKind
from .native import as_sparse_as, columns_of, series_like

_CHUNK = 8192  # rows of an array that are filled at a time


@dataclass(frozen=True)
class Table:
    """What an imputer sees (``values``, ``missing``) and what is needed to give the table back (``source``, ``holes``).

    A column of the source may be several coordinates, or none. An entry can be missing without being a hole: a category
    never seen in training says nothing, yet stays.
    """

    source: Any  # a NumPy array or a narwhals frame
    values: NDArray[np.floating]  # [n, D] coordinates; arbitrary where missing
    missing: NDArray[np.bool_]  # [n, D]
    holes: NDArray[np.bool_]  # [n, d]: what is to be filled in the source
    codes: tuple[ColumnCode, ...]  # of the d columns
    solved: NDArray[np.bool_] | None = None  # [n, d]: what the source holds only since equations were solved
    is_batch: bool = False  # whether the source came as a record batch of Arrow, which is a table here

    @property
    def is_frame(self) -> bool:
        """Whether the table came as a frame."""
        return isinstance(self.source, nw.DataFrame)

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Where a value was missing ``[n, d]``, solved ones included."""
        return self.holes if self.solved is None else self.holes | self.solved

    def numbers(self) -> NDArray[np.floating]:
        """One number per column ``[n, d]``: a category's is its place among the categories, of what is not used it is 0."""
        if self.values.shape == self.holes.shape and all(isinstance(code, NumberCode) for code in self.codes):
            return self.values
        numbers, place = np.zeros(self.holes.shape), 0
        for k, code in enumerate(self.codes):
            coordinates = self.values[:, place : place + code.width]
            if isinstance(code, CategoryCode):
                numbers[:, k] = observed_category_of(code, coordinates)
            elif code.width:
                numbers[:, k] = coordinates[:, 0]
            place += code.width
        return numbers

    def numbers_like_source(self, numbers: NDArray[np.float64], keep: NDArray[np.bool_]) -> Any:
        """Numbers ``[n, d]`` of the columns to ``keep`` as a table of the kind that came, with its names and index."""
        if not self.is_frame:
            return numbers[:, keep]
        columns = [series_like(self.source, name, numbers[:, k], nw.Float64()) for k, name in enumerate(self.source.columns)]
        dropped = [name for k, name in enumerate(self.source.columns) if not keep[k]]
        return self.source.with_columns(*columns).drop(dropped).to_native()

    def complete(
        self, filled: NDArray[np.float64], keep: NDArray[np.bool_], integers: str, indicators: NDArray[np.int64]
    ) -> Any:
        """The table with ``filled`` (the missing coordinates, row by row) in place of missing values.

        Columns outside ``keep`` are dropped; for each column in ``indicators`` one that says where it was missing is added.
        """
        if self.is_frame:
            return self._complete_frame(filled, keep, integers, indicators)
        return self._complete_array(filled, keep, integers, indicators)

    def _complete_array(
        self, filled: NDArray[np.float64], keep: NDArray[np.bool_], integers: str, indicators: NDArray[np.int64]
    ) -> NDArray[Any]:
        has_fractions = self.source.dtype.kind == "f"
        kind = np.dtype(np.float64) if not has_fractions and self.holes.any() and integers == "float" else self.source.dtype
        # order="K" keeps Fortran tables as they came; a fresh array is writeable even when the source was not.
        completed = self.source.astype(kind, order="K", copy=True)
        if filled.size:
            self._write_numbers(completed, filled)
        if not keep.all():
            completed = completed[:, keep]
        if len(indicators):
            completed = np.hstack([completed, self.absent[:, indicators].astype(kind)])
        return completed  # type: ignore[no-any-return]

    def _write_numbers(self, completed: NDArray[Any], filled: NDArray[np.float64]) -> None:
        """Fill in the missing values of an array, all columns at once; those without a value in training keep them."""
        is_filled = np.array([isinstance(code, NumberCode) for code in self.codes])
        codes = [code if isinstance(code, NumberCode) else NumberCode(ColumnKind.NUMBER) for code in self.codes]
        low, high, whole = (np.array([getattr(code, name) for code in codes]) for name in ("low", "high", "whole"))
        place = 0
        for begin in range(0, len(completed), _CHUNK):
            rows, holes = completed[begin : begin + _CHUNK], self.missing[begin : begin + _CHUNK]
            column = np.nonzero(holes)[1]
            cells, place = filled[place : place + len(column)], place + len(column)
            bounds = low[column], high[column]
            fitting = fit_into(clip_and_round(cells, *bounds, whole[column]), completed.dtype, *bounds)
            written = self.holes[begin : begin + _CHUNK] & is_filled
            rows[written] = fitting[written[holes]]

    def _complete_frame(
        self, filled: NDArray[np.float64], keep: NDArray[np.bool_], integers: str, indicators: NDArray[np.int64]
    ) -> Any:
        frame = self.source
        dense = self._as_columns(filled)
        changed, place = [], 0
        columns = zip(self.codes, frame.iter_columns(), columns_of(frame), strict=True)
        for k, (code, original, column) in enumerate(columns):
            rows = np.flatnonzero(self.holes[:, k])
            if keep[k] and len(rows):
                points = dense[rows, place : place + code.width]
                written = write_column(code, column, rows, points, integers).alias(column.name)
                changed.append(as_sparse_as(original, written))
            place += code.width
        changed += [
            series_like(frame, f"missingindicator_{frame.columns[k]}", self.absent[:, k], nw.Boolean()) for k in indicators
        ]
        completed = frame.with_columns(*changed) if changed else frame.clone()
        return completed.drop([name for k, name in enumerate(frame.columns) if not keep[k]])

    def _as_columns(self, filled: NDArray[np.float64]) -> NDArray[np.float64]:
        """An array ``[n, D]``, column by column in memory, of the missing coordinates that are given row by row."""
        dense, place = np.empty(self.missing.shape, order="F"), 0
        for begin in range(0, len(dense), _CHUNK):
            missing = np.ascontiguousarray(self.missing[begin : begin + _CHUNK])
            rows, n_cells = np.zeros(missing.shape), int(np.count_nonzero(missing))
            rows[missing] = filled[place : place + n_cells]
            dense[begin : begin + _CHUNK] = rows
            place += n_cells
        return dense


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


def with_fields_of(source: nw.DataFrame[Any], completed: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """An Arrow table with the metadata that fields of the source have and kept their type."""
    before, after = source.to_native().schema, completed.to_native().schema
    fields = [
        before.field(field.name) if field.name in before.names and before.field(field.name).type == field.type else field
        for field in after
    ]
    schema = completed.__native_namespace__().schema(fields, metadata=before.metadata)
    return nw.from_native(completed.to_native().cast(schema), eager_only=True)
