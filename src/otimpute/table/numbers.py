"""A table as one number per cell: a category is its place among the categories, a date the seconds since the first one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._text import number
from .categories import CategoryCode
from .codes import ColumnCode, MomentCode, NumberCode, category_of, observed_category_of, seconds_of
from .kinds import ColumnKind

Cells = NDArray[np.float64]


def to_numbers(codes: Sequence[ColumnCode], coordinates: Cells, integers: str | None = None) -> Cells:
    """Convert coordinates, NaN where unknown, to one number per cell ``[n, d]``.

    With the ``integers`` parameter of an imputer, the numbers are those that would be written into the table.
    """
    numbers, place = np.full((len(coordinates), len(codes)), np.nan), 0
    for k, code in enumerate(codes):
        points = coordinates[:, place : place + code.width]
        if isinstance(code, CategoryCode):
            place_of = observed_category_of if integers is None else category_of
            numbers[:, k] = np.where(np.isnan(points).any(axis=1), np.nan, place_of(code, points))
        elif isinstance(code, MomentCode):
            numbers[:, k] = points[:, 0] * seconds_of(code)
        elif isinstance(code, NumberCode):
            numbers[:, k] = points[:, 0] if integers is None else code.obey(points[:, 0])
            if (integers == "round" and code.kind == ColumnKind.INTEGER) or (integers and code.kind == ColumnKind.BOOLEAN):
                numbers[:, k] = np.rint(numbers[:, k])  # a boolean is right or wrong, even with integers="float"
        place += code.width
    return numbers


def labels_of(code: ColumnCode, values: Cells) -> list[str]:
    """Return values of a column as text."""
    if isinstance(code, CategoryCode):
        return [str(code.labels[int(value)]) for value in values]
    if code.kind == ColumnKind.BOOLEAN:
        return ["true" if value else "false" for value in values]
    if isinstance(code, MomentCode):
        moments = code.python_values(values[:, None] / seconds_of(code))
        return [str(each).removesuffix(" 00:00:00") for each in moments]  # whole days have no time of day
    return [number(float(value)) for value in values]
