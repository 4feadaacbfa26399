"""Columns as people name them, found in a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._text import listed
from ..exceptions import ParameterTypeError, ParameterValueError

_MOST_NAMED = 20


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of some kind, and no mapping."""
    return not isinstance(value, Mapping) and hasattr(value, "columns") and hasattr(value, "shape")


def names_of(read: Any) -> list[Any]:
    """The columns of a frame, or the positions of those of an array."""
    return list(read.columns) if isinstance(read, nw.DataFrame) else list(range(read.shape[1]))


def find_column(parameter: str, name: Any, names: Sequence[Any]) -> int:
    """The position of a column; for one that is not there an error says which was meant.

    >>> find_column("columns", "size", ["age", "size"])
    1
    >>> find_column("columns", "sise", ["age", "size"])
    Traceback (most recent call last):
    otimpute.exceptions.ParameterValueError: columns must be made of columns of X, got 'sise'; did you mean 'size'? There ...
    """
    for place, own in enumerate(names):
        if type(own) is type(name) and own == name:
            return place
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and int(name) in names:
        return list(names).index(int(name))
    texts = {str(own).lower(): own for own in names}
    near = get_close_matches(str(name).lower(), texts, 1)
    there = f"here are {listed([str(own) for own in names], _MOST_NAMED)}"
    advice = f"did you mean {texts[near[0]]!r}? T{there}" if near else f"t{there}"
    raise ParameterValueError(parameter, name, "made of columns of X", advice)


def find_columns(parameter: str, wanted: Any, read: Any) -> tuple[NDArray[np.bool_], bool]:
    """Which columns of a frame or array are meant, and whether they were named one by one.

    ``wanted`` is a name or position, a collection of them, a boolean per column, a callable that gets the table and returns
    one of these, or a selector of narwhals or polars.
    """
    names = names_of(read)
    if _is_selector(wanted):
        return _mask([find_column(parameter, name, names) for name in _select(parameter, wanted, read)], len(names)), False
    if callable(wanted):
        return find_columns(parameter, wanted(read.to_native() if isinstance(read, nw.DataFrame) else read), read)[0], False
    if isinstance(wanted, (str, int, np.integer)) and not isinstance(wanted, bool):
        wanted = [wanted]
    is_frame = hasattr(wanted, "__dataframe__") or hasattr(wanted, "__array__")
    if is_frame or (isinstance(wanted, list) and wanted and all(isinstance(each, bool) for each in wanted)):
        flags = np.asarray(wanted)
        if flags.dtype == bool:
            if flags.size != len(names):
                accepted = f"one boolean for each of the {len(names)} columns"
                raise ParameterValueError(parameter, wanted, accepted, "names do as well")
            return flags.ravel().copy(), True
        wanted = flags.ravel().tolist()
    if not isinstance(wanted, Iterable):
        raise ParameterTypeError(parameter, wanted, "a list of columns such as ['age', 'income'], a callable or a selector")
    return _mask([find_column(parameter, name, names) for name in wanted], len(names)), True


def _mask(places: Sequence[int], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, dtype=bool)
    found[list(places)] = True
    return found


def _is_selector(wanted: Any) -> bool:
    return isinstance(wanted, nw.Expr) or (type(wanted).__module__.partition(".")[0] == "polars" and hasattr(wanted, "meta"))


def _select(parameter: str, wanted: Any, read: Any) -> list[Any]:
    if not isinstance(read, nw.DataFrame):
        raise ParameterTypeError(parameter, wanted, "positions of columns where X is an array", "pass a frame to use selectors")
    if isinstance(wanted, nw.Expr):
        return list(read.select(wanted).columns)
    if not read.implementation.is_polars():
        advice = "for other frames there are narwhals.selectors"
        raise ParameterTypeError(parameter, wanted, "a selector of polars where X is a frame of polars only", advice)
    return list(read.to_native().select(wanted).columns)
