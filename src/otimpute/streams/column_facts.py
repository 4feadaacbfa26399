"""What there is to know of all values of a column in order to choose its code."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._optional import require
from ..table import Family, family_of, plain_label
from .row_sample import bits_of_labels

Bits = NDArray[np.uint64]
Missing = NDArray[np.bool_]
_MOST_LABELS = 1 << 16  # that are counted; what is frequent among more is judged by the sample
_ENOUGH = 20  # values: from so many on, their number changes nothing in how a column of numbers is treated


class ColumnFacts:
    """How many values of a column are missing, and the extent, labels or step of the others; facts of parts can be merged."""

    def __init__(self, name: str, kind: Any) -> None:
        self.name, self.type = name, kind
        pa = require("pyarrow", "reading batches", "cli")
        self.family = family_of(_series(pa.array([], kind)))
        self.n = self.n_missing = 0
        self.low: Any = None
        self.high: Any = None
        self.whole = True  # numbers: whether all are
        self.step = 0  # dates and times: what divides all their distances
        self.counts: Counter[Any] | None = Counter()  # of labels; None where there are too many different ones

    def add(self, column: Any, marker: float) -> tuple[Bits, Missing]:
        """Take note of the values of an Arrow array; returns bits that tell them apart, and where they are missing."""
        if self.family == Family.NUMBER:
            bits, missing = self._add_numbers(column, marker)
        else:
            missing, bits = column.is_null().to_numpy(zero_copy_only=False), np.zeros(len(column), np.uint64)
            if self.family == Family.MOMENT:
                bits = self._add_moments(column, missing)
            elif self.family == Family.LABEL:
                bits = self._add_labels(column)
        n_missing = int(np.count_nonzero(missing))
        self.n, self.n_missing = self.n + len(column) - n_missing, self.n_missing + n_missing
        return bits, missing

    def merge(self, other: ColumnFacts) -> None:
        """Add what another one has seen of the same column."""
        if other.n and self.family in (Family.NUMBER, Family.MOMENT):
            self._widen(other.low, other.high, other.step)
        self.n, self.n_missing, self.whole = self.n + other.n, self.n_missing + other.n_missing, self.whole and other.whole
        self._count(other.counts)

    def column(self) -> nw.Series[Any] | None:
        """A short column that gets the code of the whole one, with its `counts`; None where a sample is needed."""
        pa = require("pyarrow", "reading batches", "cli")
        values: list[Any] = []
        if self.family == Family.LABEL:
            if self.counts is None or getattr(self.type, "ordered", False):
                return None
            return _series(pa.array(sorted(map(str, self.counts)), pa.string()))
        if self.n and self.family == Family.MOMENT:
            values = [self.low, self.high, self.low + self.step]
            return _series(pa.array(values, pa.int64()).cast(_integers_of(self.type)).cast(self.type))
        if self.n and self.family == Family.NUMBER:
            values = [self.low, self.high, *[self.low] * (_ENOUGH if self.n >= _ENOUGH else 0)]
            if not self.whole:
                values.append(0.5 if self.low < 0 < self.high else self.low + 0.5 if self.low >= 0 else self.high - 0.5)
            is_whole_type = self.family == Family.NUMBER and pa.types.is_integer(self.type)
            numbers = pa.array([int(each) for each in values] if is_whole_type else values)
            return _series(numbers.cast(self.type, safe=False))
        return _series(pa.nulls(1, self.type))

    def as_data(self) -> dict[str, Any]:
        """The same as plain data."""
        counts = None if self.counts is None else sorted(self.counts.items(), key=lambda pair: str(pair[0]))
        return {name: getattr(self, name) for name in _PLAIN} | {"counts": counts}

    def take_over(self, data: dict[str, Any]) -> None:
        """What `as_data` returned."""
        for name in _PLAIN:
            setattr(self, name, data[name])
        self.counts = None if data["counts"] is None else Counter(dict(map(tuple, data["counts"])))

    def _add_numbers(self, column: Any, marker: float) -> tuple[Bits, Missing]:
        values, missing = numbers_of(column, marker)
        observed = values[~missing] if missing.any() else values
        if len(observed):
            low, high = float(observed.min()), float(observed.max())
            if math.isinf(low) or math.isinf(high):
                raise ValueError(
                    f"Input X contains infinity in columns {self.name!r}; "
                    "replace infinite values by missing ones or by finite numbers"
                )
            self._widen(low, high, 0)
            self.whole = self.whole and bool((np.rint(observed) == observed).all())
        return (values + 0.0).view(np.uint64), missing

    def _add_moments(self, column: Any, missing: Missing) -> Bits:
        pa = require("pyarrow", "reading batches", "cli")
        numbers = column.cast(_integers_of(column.type)).fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
        observed = numbers[~missing]
        if len(observed):
            low = int(observed.min())
            self._widen(low, int(observed.max()), int(np.gcd.reduce(observed - low)))
        return np.asarray(numbers.astype(np.int64).view(np.uint64))

    def _add_labels(self, column: Any) -> Bits:
        if self.counts is not None:
            pairs = column.value_counts().to_pylist()
            self._count(Counter({plain_label(each["values"]): each["counts"] for each in pairs if each["values"] is not None}))
        return bits_of_labels(column)

    def _widen(self, low: Any, high: Any, step: int) -> None:
        if self.low is None:
            self.low, self.high, self.step = low, high, step
            return
        if self.family == Family.MOMENT:
            self.step = math.gcd(self.step, step, abs(low - self.low))
        self.low, self.high = min(self.low, low), max(self.high, high)

    def _count(self, counts: Counter[Any] | None) -> None:
        if self.counts is None or counts is None:
            self.counts = None
            return
        self.counts.update(counts)
        if len(self.counts) > _MOST_LABELS:
            self.counts = None


def numbers_of(column: Any, marker: float) -> tuple[NDArray[np.float64], Missing]:
    """The numbers of an Arrow array, and where they are null, NaN or the ``marker``."""
    pa = require("pyarrow", "reading batches", "cli")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    own = column.to_numpy(zero_copy_only=False)  # nulls are NaN
    values = own.astype(np.float64, copy=False)
    missing = np.isnan(values)
    if marker == marker:
        missing |= own == (own.dtype.type(marker) if own.dtype.kind == "f" else marker)
    return values, missing


_PLAIN = ("n", "n_missing", "low", "high", "whole", "step")


def _series(array: Any) -> nw.Series[Any]:
    pa = require("pyarrow", "reading batches", "cli")
    return nw.from_native(pa.chunked_array([array]), series_only=True)


def _integers_of(kind: Any) -> Any:
    pa = require("pyarrow", "reading batches", "cli")
    return pa.int32() if kind.bit_width == 32 else pa.int64()
