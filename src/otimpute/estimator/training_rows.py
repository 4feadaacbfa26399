"""Which rows an imputer was fitted to: enough to recognise them, not enough to read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._row_noise import keys_by_content
from .._stored import Array, stored

_MOST_ROWS = 16_384
_CHUNK = 32_768  # rows hashed at a time: what fits into a cache


@stored(keys="K", centre=Array("coordinates", nan=True))
@dataclass(frozen=True)
class TrainingRows:
    """Hashes of some rows of the table that was fitted, evenly spread over it, and the means of their columns."""

    n_rows: int  # of the table
    keys: NDArray[np.uint64]  # [K]
    centre: NDArray[np.float64]  # [D]: NaN where these rows have no value

    def __post_init__(self) -> None:
        if self.n_rows < 1 or len(self.keys) != len(_places(self.n_rows)):
            raise ValueError(f"{len(self.keys)} hashes do not belong to {self.n_rows} rows")

    @classmethod
    def of(cls, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> TrainingRows:
        """Remember a table."""
        rows = _places(len(values))
        some, holes = values[rows], missing[rows]
        return cls(len(values), _keys(some, holes), column_means(some, holes))

    def are_all_of(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> bool:
        """Whether this is the table that was fitted.

        >>> X = np.arange(6.0).reshape(3, 2)
        >>> nothing = np.zeros((3, 2), dtype=bool)
        >>> fitted = TrainingRows.of(X, nothing)
        >>> fitted.are_all_of(X, nothing), fitted.are_all_of(X + 1, nothing)
        (True, False)
        """
        rows = _places(self.n_rows)
        return len(values) == self.n_rows and np.array_equal(self.keys, _keys(values[rows], missing[rows]))

    def among(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
        """Which rows are known to have been in training, and the share of all that probably were.

        Only rows that occurred once are recognised: where a row is a few categories, new ones look like old ones.
        """
        keys, counts = np.unique(self.keys, return_counts=True)
        seen = np.isin(_keys(values, missing), keys[counts == 1]) & ~missing.all(axis=1)
        return seen, min(float(seen.mean()) * self.n_rows / len(self.keys), 1.0)


def _places(n_rows: int) -> NDArray[np.int64]:
    return np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.int64)


def _keys(values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.uint64]:
    chunks = [slice(begin, begin + _CHUNK) for begin in range(0, len(values), _CHUNK)]
    return np.concatenate([np.empty(0, np.uint64), *(keys_by_content(values[chunk], missing[chunk], 0) for chunk in chunks)])


def column_means(values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Means of what is known of each column, NaN where nothing is.

    >>> column_means(np.array([[1.0, 1e308], [3.0, 1e308]]), np.array([[False, False], [True, False]])).tolist()
    [1.0, 1e+308]
    """
    means = np.full(values.shape[1], np.nan)
    for k in range(len(means)):  # one by one, so that what is in between fits into a cache
        known = values[~missing[:, k], k].astype(np.float64)
        if len(known):
            largest = max(np.abs(known).max(), np.finfo(np.float64).tiny)  # a sum of huge numbers is infinite
            means[k] = (known / largest).mean() * largest
    return means
