"""Maps of numbers from 0 to 1, or from −1 to 1: the stronger the colour, the larger the number; minus signs mark negative ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ..._markup import short
from .axes import box, figure, label, path

Cells = Sequence[Sequence[float | None]]

N_LEVELS = 10  # of colour; the style sheet has as many
_MOST_WITH_NUMBERS = 13  # columns
_NAME_LETTERS = 18
_LETTER = 6.6


def heat_map(
    title: str, finding: str, rows: Sequence[str], columns: Sequence[str], cells: Cells, *, signed: bool = False
) -> Element:
    """A map with names on both sides, and numbers if there is room."""
    written = len(columns) <= _MOST_WITH_NUMBERS
    width, height = (36, 24) if written else (20, 20)
    left, top = (_room(names) for names in (rows, columns))
    marks = coloured(cells, left, top, width, height, signed=signed)
    marks += [
        label(name, left - 6, top + (k + 0.5) * height + 4, most=_NAME_LETTERS, text_anchor="end")
        for k, name in enumerate(rows)
    ]
    marks += [
        label(name, left + (k + 0.5) * width + 4, top - 6, most=_NAME_LETTERS, upward=True) for k, name in enumerate(columns)
    ]
    if written:
        marks += [
            label(f"{value:.2f}".replace("-", "−"), left + (k + 0.5) * width, top + (j + 0.5) * height + 4, text_anchor="middle", class_="cell")
            for j, row in enumerate(cells) for k, value in enumerate(row) if value is not None
        ]  # fmt: skip
    bottom = top + len(rows) * height
    marks += legend(left, bottom + 10, signed=signed)
    return figure(title, finding, max(left + len(columns) * width + 8, left + 170), bottom + 30, *marks)


def coloured(cells: Cells, left: float, top: float, width: float, height: float, *, signed: bool = False) -> list[Element]:
    """The cells of a map, one path per colour; unknown ones are crossed out."""
    by_class: dict[str, list[str]] = defaultdict(list)
    for j, row in enumerate(cells):
        for k, value in enumerate(row):
            x, y = left + k * width, top + j * height
            level = None if value is None else round(min(abs(value), 1.0) * N_LEVELS)
            if value is None:
                by_class["unknown-cell"].append(f"M{short(x)} {short(y + height)}l{short(width)} {short(-height)}")
            elif level:
                by_class[f"{'less' if value < 0 else 'more'} level-{level}"].append(box(x, y, width, height))
                if value < 0:
                    by_class["minus"].append(f"M{short(x + 3)} {short(y + height - 3)}h5")
    n_columns = len(cells[0]) if cells else 0
    frame = path([box(left, top, n_columns * width, len(cells) * height)], "frame")
    order = sorted(by_class, key=lambda name: name == "minus")  # signs are drawn over colours
    return [frame, *(path(by_class[name], name) for name in order)]


def legend(left: float, top: float, *, signed: bool) -> list[Element]:
    """What the colours stand for."""
    levels = range(-N_LEVELS if signed else 0, N_LEVELS + 1, 2)
    ends = ("−1", "1") if signed else ("0", "1")
    begin = left + 18
    end = begin + 10 * len(levels)
    return [
        label(ends[0], begin - 5, top + 10, text_anchor="end", class_="tick"),
        *coloured([[level / N_LEVELS for level in levels]], begin, top, 10, 12, signed=signed),
        label(ends[1], end + 5, top + 10, class_="tick"),
    ]


def _room(names: Sequence[str]) -> float:
    longest = max((min(len(name), _NAME_LETTERS) for name in names), default=0)
    return 16 + max(longest, 3) * _LETTER
