"""Bring columns of any magnitude to mean 0 and spread 1, and imputed values back.

Columns are first divided by a power of two near their largest value (exact), so that means and variances of values near
1e300 or 1e-300 neither overflow nor vanish. A few far outliers do not set the scale of a column: values more than three
times the 1 %–99 % range outside of it are clipped before the spread is taken, and no value counts as farther than
`FARTHEST` spreads from the mean. All this concerns the working copy only; observed values are never written back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, Real, stored
from .._threads import FEW, each_in_threads, workers_in_use

FARTHEST = 50.0
_FARTHEST_OF_ALL = 1e30  # where outliers count too: what squares and single precision can hold
_LARGEST_POWER = 1000  # of two that is a number, as is one divided by it
_FEWEST_FOR_OUTLIERS = 10  # of fewer values none can be called an outlier


@stored(exponent="columns", centre="columns", spread=Array("columns", at_least=0), limit=Real(above=0, finite=False))
@dataclass(frozen=True)
class Standardiser:
    """Per column: value = (z · spread + centre) · 2^exponent; ``spread`` 0 marks a column with one distinct value."""

    exponent: NDArray[np.int32]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    limit: float

    def only(self, columns: NDArray[np.int64]) -> Standardiser:
        """That of some columns."""
        return Standardiser(self.exponent[columns], self.centre[columns], self.spread[columns], self.limit)

    @classmethod
    def fit(
        cls,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        *,
        rescale: bool = True,
        robust: bool = True,
        scaled: NDArray[np.bool_] | None = None,
        n_threads: int | None = None,
        row_weight: NDArray[np.float64] | None = None,
    ) -> Standardiser:
        """Learn from the observed entries.

        With ``rescale=False`` columns are centred only, as those that are ``scaled`` always are; with ``robust=False``
        outliers count like any other value. Mean and spread are weighted where rows have a ``row_weight [n]``. Without
        ``n_threads`` some of those in use for the fit share the columns.

        >>> table = np.array([[1e300, 5.0], [3e300, 5.0]])
        >>> scaler = Standardiser.fit(table, np.zeros((2, 2), dtype=bool))
        >>> scaler.apply(table).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        """
        d = values.shape[1]
        exponent, centre, spread = np.zeros(d, np.int32), np.zeros(d), np.zeros(d)

        def fit_column(k: int) -> None:
            column = values[~missing[:, k], k].astype(np.float64)
            if column.size == 0:
                return
            to_rescale = rescale and not (scaled is not None and scaled[k])
            if to_rescale:
                column, exponent[k] = _near_one(column)
            if column.min() == column.max():
                centre[k] = column[0]
                return
            if to_rescale:
                column, more = _near_one(_clip_outliers(column) if robust else column)
                exponent[k] += more
            own_weight = None if row_weight is None else row_weight[~missing[:, k]]
            centre[k] = np.average(column, weights=own_weight)
            spread[k] = _spread(column, centre[k], own_weight) if to_rescale else 1.0

        if n_threads is None:
            workers_in_use().map(fit_column, range(d), most_threads=FEW)
        else:
            each_in_threads(fit_column, range(d), n_threads)
        limit = np.inf if not rescale else FARTHEST if robust else _FARTHEST_OF_ALL
        return cls(exponent, centre, spread, limit)

    def apply(self, values: NDArray[np.floating], columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Standardised copy of all, or some, ``columns`` of a table."""
        if columns is not None and len(columns) < len(self.centre):
            return self.only(columns).apply(values[:, columns])
        with np.errstate(over="ignore"):  # an outlier may be too far for its column's scale: the clip brings it back
            z = _times_power(values, -self.exponent)
            z -= self.centre
            z /= np.where(self.spread > 0, self.spread, 1.0)
        return np.clip(z, -self.limit, self.limit, out=z)

    @property
    def unit(self) -> NDArray[np.float64]:
        """What one standard deviation of each column is in its own units."""
        with np.errstate(over="ignore"):
            return np.minimum(np.ldexp(self.spread, self.exponent), np.finfo(np.float64).max)

    def apply_entries(self, values: NDArray[np.floating], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Standardised entries, the entry at place i being of column ``columns[i]``; those of one-valued columns are 0."""
        spread = np.where(self.spread > 0, self.spread, np.inf)[columns]
        with np.errstate(over="ignore"):
            z = (_times_power(values, -self.exponent, columns) - self.centre[columns]) / spread
        return np.clip(z, -self.limit, self.limit)

    def restore(self, z: NDArray[np.floating], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Original units of standardised entries ``z``, the entry at place i being of column ``columns[i]``."""
        scaled = z.astype(np.float64) * self.spread[columns] + self.centre[columns]
        with np.errstate(over="ignore"):
            restored = _times_power(scaled, self.exponent, columns)
        largest = np.finfo(np.float64).max
        return np.clip(restored, -largest, largest)


def _times_power(
    values: NDArray[np.floating], exponent: NDArray[np.int32], columns: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """``values · 2^exponent`` in double precision, by column; of entries, the one at place i being of column ``columns[i]``.

    Rows are contiguous whatever those of ``values`` are: the order in memory decides the last bits of later sums.

    >>> _times_power(np.array([[3.0, 1e-300]]), np.array([-1, 1030])).tolist() == [[1.5, 1e-300 * 2.0**1000 * 2.0**30]]
    True
    """
    if np.abs(exponent).max(initial=0) <= _LARGEST_POWER:  # the same numbers, several times as fast
        power = np.ldexp(1.0, exponent)
        power = power if columns is None else power[columns]
        return np.asarray(np.multiply(values, power, dtype=np.float64, order="C"))
    return np.asarray(np.ldexp(values.astype(np.float64), exponent if columns is None else exponent[columns], order="C"))


def _spread(column: NDArray[np.float64], mean: float, weight: NDArray[np.float64] | None) -> float:
    return float(column.std() if weight is None else np.sqrt(np.average((column - mean) ** 2, weights=weight)))


def _near_one(column: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """The column divided by a power of two, its largest value now between ½ and 1, and the exponent."""
    exponent = int(np.frexp(np.abs(column).max())[1])
    return np.ldexp(column, -exponent), exponent


def _clip_outliers(column: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(column) < _FEWEST_FOR_OUTLIERS:
        return column
    low = np.quantile(column, 0.01, method="higher")
    high = np.quantile(column, 0.99, method="lower")
    reach = 3 * (high - low)
    return np.clip(column, low - reach, high + reach) if reach > 0 else column
