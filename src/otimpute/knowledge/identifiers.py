"""Columns that name rows rather than describe them: row numbers, keys, hashes.

Whoever imputes from them learns rows by heart. Only what is clear is set aside: no fractions, no dates, no columns in which a
value repeats, nothing in a small table, and no number that may be a time.
"""

from __future__ import annotations

import re
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

_FEWEST_ROWS = 20
_RELATED = 0.5  # correlation of ranks from which on a row number is taken for a time that others follow
_MOST_COMPARED = 200  # columns
_KEY_NAME = re.compile(  # customer_id, idPatient, customerID, row, Unnamed: 0
    r"^(id|key|row|index|idx|rowid|row[ _.-]?(id|names?|nr|no|num|number|index)|unnamed: ?\d+|uuid|guid|hash|)$"
    r"|[ _.-](id|key|uuid|guid|hash)$|^(id|key|uuid|guid|hash)[ _.-]",
    re.IGNORECASE,
)
_CAMEL_KEY = re.compile(r"[a-z0-9](Id|ID|Key|Uuid|UUID|Guid|GUID)$|^(id|key)[A-Z]")
_TIME_NAME = re.compile(
    r"(^|[ _.-])(t|time|step|wave|round|visit|period|year|yr|quarter|month|week|wk|day|hour|hr|minute|min|second|sec|date|"
    r"season|epoch|age|order|rank|trial|session)s?([ _.-]|$)",
    re.IGNORECASE,
)
_HASH = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z]{0,8}[-_#]?\d{2,}")  # C00123; no date


def identifiers_among(frame: nw.DataFrame[Any]) -> NDArray[np.bool_]:
    """Which columns of a frame look like identifiers.

    >>> import polars as pl
    >>> n = 30
    >>> frame = pl.DataFrame({"patient_id": range(500, 500 + 7 * n, 7), "year": range(1990, 1990 + n), "size": [1.5, 2.5] * 15})
    >>> identifiers_among(nw.from_native(frame)).tolist()
    [True, False, False]
    """
    return np.array([_looks_like_one(column, frame) for column in frame.iter_columns()], dtype=bool)


def _looks_like_one(column: nw.Series[Any], frame: nw.DataFrame[Any]) -> bool:
    name = str(column.name)
    if column.dtype.is_integer():
        known = column.drop_nulls()
        if len(known) < _FEWEST_ROWS or _TIME_NAME.search(name) or known.n_unique() < len(known):
            return False
        if is_key_name(name):
            return True
        return len(known) == len(frame) and _counts_rows(known) and not _says_something(column, frame)
    if column.dtype == nw.String or (column.dtype == nw.Object and column.implementation.is_pandas_like()):
        known = column.drop_nulls()
        if len(known) < _FEWEST_ROWS:
            return False
        texts = known.to_list()
        if not all(isinstance(each, str) for each in texts) or len(set(texts)) < len(texts):
            return False
        if is_key_name(name) or all(map(_HASH.fullmatch, texts)):
            return True
        return not _TIME_NAME.search(name) and all(map(_CODE.fullmatch, texts))
    return False


def is_key_name(name: str) -> bool:
    """Whether a column says by its name that it holds keys.

    >>> [name for name in ("id", "customer_id", "OrderId", "Unnamed: 0", "idea", "paid", "humid", "score") if is_key_name(name)]
    ['id', 'customer_id', 'OrderId', 'Unnamed: 0']
    """
    return bool(_KEY_NAME.search(name.strip()) or _CAMEL_KEY.search(name))


def _counts_rows(known: nw.Series[Any]) -> bool:
    numbers = known.to_numpy()
    return numbers[0] in (0, 1) and bool((numbers[1:].astype(np.int64) - numbers[:-1].astype(np.int64) == 1).all())


def _says_something(column: nw.Series[Any], frame: nw.DataFrame[Any]) -> bool:
    """Whether a column of numbers rises or falls with the row number: then it may be the time."""
    others = [each for each in frame.iter_columns() if each.name != column.name and each.dtype.is_numeric()]
    for other in others[:_MOST_COMPARED]:
        values = other.cast(nw.Float64).to_numpy()
        known = np.flatnonzero(np.isfinite(values))
        if len(known) < _FEWEST_ROWS or (values[known] == values[known[0]]).all():
            continue
        ranks = np.argsort(np.argsort(values[known], kind="stable"), kind="stable")
        if abs(np.corrcoef(known, ranks)[0, 1]) >= _RELATED:
            return True
    return False
