"""A figure of what people knew of their table: which columns inform which."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._text import count
from ..knowledge_data import PredictorMatrix
from .axes import box, dot, figure, names_above, names_beside, path, plain, room_for, stripes

_SIDE = 20
_SMALL_SIDE = 12  # with many columns
_MOST_LARGE = 30
_MOST_LETTERS = 18


def predictor_matrix(found: PredictorMatrix) -> Element:
    """Draw which columns (across) inform which imputed ones (down)."""
    side = _SIDE if max(len(found.columns), len(found.imputed)) <= _MOST_LARGE else _SMALL_SIDE
    left, top = room_for(found.imputed, _MOST_LETTERS), room_for(found.columns, _MOST_LETTERS)
    inset = side / 10
    corners = {
        wanted: [
            (left + k * side, top + j * side)
            for j, row in enumerate(found.informs)
            for k, own in enumerate(row)
            if own is wanted
        ]
        for wanted in (True, False, None)
    }
    marks = [
        stripes(len(found.imputed), top, left + len(found.columns) * side, side),
        path([box(x + inset, y + inset, side - 2 * inset, side - 2 * inset) for x, y in corners[True]], "more level-9"),
        path([dot(x + side / 2, y + side / 2) for x, y in corners[False]], "dot-there"),
        path([f"M{short(x)} {short(y + side)}l{short(side)} {short(-side)}" for x, y in corners[None]], "unknown-cell"),
    ]
    marks += names_beside(found.imputed, left, top, side, _MOST_LETTERS)
    marks += names_above(found.columns, left, top, side, _MOST_LETTERS)
    fewest = min(range(len(found.imputed)), key=lambda k: sum(own is True for own in found.informs[k]))
    n = sum(own is True for own in found.informs[fewest])
    finding = (
        f"{count(len(found.imputed), 'imputed column')}, down, and {count(len(found.columns), 'column')} that may inform them, "
        f"across. The fewest inform {plain(found.imputed[fewest])}: {count(n, 'column')}."
    )
    width, height = left + len(found.columns) * side + 14, top + len(found.imputed) * side + 8
    return figure("Which columns inform which", finding, width, height, *marks)
