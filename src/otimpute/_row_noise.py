"""Noise that belongs to a row, so that a row is filled alike whatever rows it comes with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ._splitmix import GOLDEN, mix

_HOLE = np.uint64(0x5BF0363546290F)  # stands for what is not known


def keys_by_place(n_rows: int, seed: int) -> NDArray[np.uint64]:
    """A key per row of a table that is filled as a whole: equal rows differ, as equal people do."""
    return _mixed(np.arange(n_rows, dtype=np.uint64) + np.uint64(seed))


def keys_by_content(values: NDArray[np.floating], missing: NDArray[np.bool_], seed: int) -> NDArray[np.uint64]:
    """A key per row from its observed values only.

    >>> rows = np.array([[1.0, 2.0], [3.0, 0.0]])
    >>> missing = np.array([[False, False], [False, True]])
    >>> bool((keys_by_content(rows, missing, 0)[1:] == keys_by_content(rows[1:], missing[1:], 0)).all())
    True
    """
    key = np.full(len(values), seed, dtype=np.uint64)
    for k in range(values.shape[1]):
        bits = (values[:, k].astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: the two zeros are one number
        key = _mixed(key ^ np.where(missing[:, k], _HOLE, bits))
    return key


def other_keys(keys: NDArray[np.uint64], which: int) -> NDArray[np.uint64]:
    """Keys of the same rows whose random numbers have nothing to do with those of ``keys``; the 0-th are ``keys`` themselves.

    >>> keys = keys_by_place(2, 0)
    >>> bool((other_keys(keys, 0) == keys).all()), bool((other_keys(keys, 1) == keys).any())
    (True, False)
    """
    return keys if which == 0 else _mixed(keys ^ _mixed(np.full(1, which, dtype=np.uint64)))


def uniform(keys: NDArray[np.uint64], which: int) -> NDArray[np.float64]:
    """The ``which``-th random number between 0 and 1 of each row."""
    with np.errstate(over="ignore"):
        bits = _mixed(keys + np.uint64(which) * GOLDEN)
    return np.asarray(((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def normal(keys: NDArray[np.uint64], n_columns: int, *, first: int = 0) -> NDArray[np.float64]:
    """Standard normal numbers ``[n_rows, n_columns]``, from each row's random numbers beginning with the ``first``."""
    return np.column_stack([ndtri(uniform(keys, first + k)) for k in range(n_columns)])


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        return np.asarray(mix(bits + GOLDEN))
