"""Heat maps of numbers from 0 to 1, or from −1 to 1 with a minus sign on negative ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ..._markup import short
from .axes import box, figure, label, names_above, names_beside, path, room_for

Cells = Sequence[Sequence[float | None]]

_N_LEVELS = 10  # of colour, as in the style sheet
_MOST_WITH_NUMBERS = 9  # columns
_MOST_LETTERS = 16  # of a name
_LEGEND_WIDTH = 150
LEGEND_HEIGHT = 30


def heat_map(
    title: str, finding: str, rows: Sequence[str], columns: Sequence[str], cells: Cells, *, signed: bool = False
) -> Element:
    """Create a heat map with row and column names, and numbers if there is room."""
    with_numbers = len(columns) <= _MOST_WITH_NUMBERS
    width, height = (30, 24) if with_numbers else (20, 20)
    left, top = room_for(rows, _MOST_LETTERS), room_for(columns, _MOST_LETTERS)
    bottom = top + len(rows) * height
    marks = coloured(cells, left, top, width, height)
    marks += names_beside(rows, left, top, height, _MOST_LETTERS) + names_above(columns, left, top, width, _MOST_LETTERS)
    known = [
        (left + (k + 0.5) * width, top + (j + 0.5) * height, value)
        for j, row in enumerate(cells) for k, value in enumerate(row) if value is not None
    ]  # fmt: skip
    if with_numbers:
        marks += [label(_written(value), x, y + 4, text_anchor="middle", class_="cell") for x, y, value in known]
    else:
        marks.append(path([f"M{short(x - 3)} {short(y)}h6" for x, y, value in known if round(value, 1) < 0], "minus"))
    marks += legend(left, bottom, signed=signed)
    return figure(title, finding, left + max(len(columns) * width + 8, _LEGEND_WIDTH), bottom + LEGEND_HEIGHT, *marks)


def _written(value: float) -> str:
    """Format a number from −1 to 1 compactly, as in correlation tables.

    >>> _written(0.456), _written(-0.5), _written(1.0), _written(-0.001)
    ('.46', '−.50', '1', '0')
    """
    return {"0.00": "0", "-0.00": "0", "1.00": "1", "-1.00": "−1"}.get(
        f"{value:.2f}", f"{value:.2f}".replace("0.", ".").replace("-", "−")
    )


def coloured(cells: Cells, left: float, top: float, width: float, height: float, *, positive: str = "more") -> list[Element]:
    """Create the cells of a heat map, one path per colour; unknown cells are crossed out."""
    by_class: dict[str, list[str]] = defaultdict(list)
    for j, row in enumerate(cells):
        for k, value in enumerate(row):
            x, y = left + k * width, top + j * height
            if value is None:
                by_class["unknown-cell"].append(f"M{short(x)} {short(y + height)}l{short(width)} {short(-height)}")
            elif level := round(min(abs(value), 1.0) * _N_LEVELS):
                by_class[f"{'less' if value < 0 else positive} level-{level}"].append(box(x, y, width, height))
    frame = path([box(left, top, len(cells[0]) * width, len(cells) * height)], "frame")
    return [frame, *(path(pieces, name) for name, pieces in by_class.items())]


def legend(left: float, bottom: float, *, signed: bool = False, positive: str = "more") -> list[Element]:
    """Create the legend of the colours, below a heat map."""
    levels = range(-_N_LEVELS if signed else 0, _N_LEVELS + 1, 2)
    begin, top = left + 20, bottom + 12
    return [
        label("−1" if signed else "0", begin - 5, top + 10, text_anchor="end", class_="tick"),
        *coloured([[level / _N_LEVELS for level in levels]], begin, top, 10, 12, positive=positive),
        label("1", begin + 10 * len(levels) + 5, top + 10, class_="tick"),
    ]
