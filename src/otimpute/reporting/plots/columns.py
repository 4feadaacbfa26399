"""Figure of the observed and imputed values of a column."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._text import share
from ..data import ColumnReport, Shape, ShapeKind
from .axes import box, figure, label, line, names_beside, path, plain, room_for

_WIDTH = 340
_HEIGHT = 168
_LEFT, _RIGHT, _BASE, _TOP = 10, _WIDTH - 10, 132, 6
_BAR_PITCH, _BAR_THICKNESS = 34, 12
_MOST_LETTERS = 16
_LONG_LABEL = 12  # letters; there is only room for two longer labels


def observed_against_imputed(column: ColumnReport) -> Element | None:
    """Draw a histogram (area: observed, line: imputed), or bars of values (plain: observed, hatched: imputed)."""
    if column.shape is None:
        return None
    title = f"Observed and imputed values of {plain(column.name)}"
    return _bars(title, column.shape) if column.shape.kind == ShapeKind.BARS else _bins(title, column, column.shape)


def _bins(title: str, column: ColumnReport, shape: Shape) -> Element:
    drawn = [shape.observed] if shape.few else [shape.observed, shape.imputed, *shape.tables]
    highest = max(max(heights) for heights in drawn) or 1.0
    outline = _curve if shape.tables else _steps
    marks = [path([outline(shape.observed, highest) + "z"], "observed-area")]
    if shape.tables:
        marks.append(path([outline(heights, highest) for heights in shape.tables], "table-line"))
    elif shape.few:
        marks.append(path([_tick(_LEFT + at * (_RIGHT - _LEFT)) for at in shape.few], "imputed-tick"))
    elif column.n_filled:
        marks.append(path([_steps(shape.imputed, highest)], "imputed-line"))
    marks.append(line(_LEFT, _BASE, _RIGHT, _BASE, "axis"))
    places = list(zip(shape.labels, shape.at, strict=True))
    for words, at in places[:: len(places) - 1] if max(map(len, shape.labels)) > _LONG_LABEL else places:
        anchor = "start" if at < 0.08 else "end" if at > 0.92 else "middle"
        marks.append(label(words, _LEFT + at * (_RIGHT - _LEFT), _BASE + 30, most=22, text_anchor=anchor, class_="tick"))
    said = [f"{each.name} {each.observed} observed, {each.imputed} imputed" for each in column.statistics]
    return figure(title, "; ".join(said) or "Nothing was imputed.", _WIDTH, _HEIGHT, *marks)


def _tick(x: float) -> str:
    return f"M{short(x)} {_BASE + 2}l3.5 10h-7z"


def _steps(heights: list[float], highest: float) -> str:
    width = (_RIGHT - _LEFT) / len(heights)
    tops = [_BASE - (_BASE - _TOP) * height / highest for height in heights]
    steps = [f"V{short(y)}H{short(_LEFT + (k + 1) * width)}" for k, y in enumerate(tops)]
    return f"M{_LEFT} {_BASE}{''.join(steps)}V{_BASE}"


def _curve(heights: list[float], highest: float) -> str:
    width = (_RIGHT - _LEFT) / len(heights)
    points = [(_LEFT + (k + 0.5) * width, _BASE - (_BASE - _TOP) * height / highest) for k, height in enumerate(heights)]
    return f"M{_LEFT} {_BASE}" + "".join(f"L{short(x)} {short(y)}" for x, y in points) + f"L{_RIGHT} {_BASE}"


def _range(low: float, high: float, y: float) -> str:
    middle = y + _BAR_THICKNESS
    return f"M{short(low)} {short(middle - 4)}v8M{short(low)} {short(middle)}H{short(high)}M{short(high)} {short(middle - 4)}v8"


def _bars(title: str, shape: Shape) -> Element:
    height = len(shape.labels) * _BAR_PITCH
    left = room_for(shape.labels, _MOST_LETTERS)
    longest = [max(each) for each in zip(shape.imputed, *shape.tables, strict=True)]
    unit = (_WIDTH - left - 48) / (max(*shape.observed, *longest) or 1.0)
    marks = names_beside(shape.labels, left, 0, _BAR_PITCH, _MOST_LETTERS)
    for shares, class_, offset in ((shape.observed, "observed", 4), (shape.imputed, "imputed", 5 + _BAR_THICKNESS)):
        tops = [k * _BAR_PITCH + offset for k in range(len(shares))]
        marks.append(path([box(left, y, unit * part, _BAR_THICKNESS) for y, part in zip(tops, shares, strict=True)], class_))
        ends = longest if class_ == "imputed" else shares
        marks += [
            label(share(part), left + unit * end + 5, y + _BAR_THICKNESS - 2, class_="small")
            for y, part, end in zip(tops, shares, ends, strict=True)
        ]
    if shape.tables:
        ranges = [(min(each), max(each)) for each in zip(*shape.tables, strict=True)]
        pieces = [_range(left + unit * low, left + unit * high, k * _BAR_PITCH + 11) for k, (low, high) in enumerate(ranges)]
        marks.append(path(pieces, "table-range"))
    said = [
        f"{plain(name)} {share(a)} and {share(b)}"
        for name, a, b in zip(shape.labels, shape.observed, shape.imputed, strict=True)
    ]
    finding = f"Fractions of observed and of imputed values: {'; '.join(said)}."
    return figure(title, finding, _WIDTH, height, *marks, line(left, 0, left, height, "axis"))
