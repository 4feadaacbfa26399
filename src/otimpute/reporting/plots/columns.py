"""Observed against imputed values of one column."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._words import share
from ..data import ColumnReport, Shape
from .axes import box, figure, label, line, path, plain

_WIDTH = 340
_HEIGHT = 170
_LEFT, _RIGHT, _BASE, _TOP = 10, _WIDTH - 10, 128, 10
_BAR_LEFT, _BAR_RIGHT = 112, _WIDTH - 44
_TICK = 9


def observed_against_imputed(column: ColumnReport) -> Element | None:
    """Shares of bins (area observed, line imputed), or of values (plain bars observed, hatched imputed)."""
    if column.shape is None:
        return None
    title = f"Observed and imputed values of {plain(column.name)}"
    if column.shape.kind == "bars":
        return _bars(title, column.shape)
    return _bins(title, column, column.shape)


def _bins(title: str, column: ColumnReport, shape: Shape) -> Element:
    highest = max(*shape.observed, *(shape.imputed if not shape.few else [0.0]), 1e-9)
    marks = [path([_steps(shape.observed, highest, closed=True)], "observed-area")]
    if shape.few:
        places = [_LEFT + at * (_RIGHT - _LEFT) for at in shape.few]
        marks.append(
            path([f"M{short(x)} {short(_BASE + 2)}v{_TICK}m-3 0l3 -{_TICK}l3 {_TICK}z" for x in places], "imputed-tick")
        )
    elif column.n_filled:
        marks.append(path([_steps(shape.imputed, highest, closed=False)], "imputed-line"))
    marks.append(line(_LEFT, _BASE, _RIGHT, _BASE, "axis"))
    for words, at in zip(shape.labels, shape.at, strict=True):
        x = _LEFT + at * (_RIGHT - _LEFT)
        anchor = "start" if at < 0.08 else "end" if at > 0.92 else "middle"
        marks.append(label(words, x, _BASE + 28, most=18, text_anchor=anchor, class_="tick"))
    said = [f"{each.name} {each.observed} observed, {each.imputed} imputed" for each in column.statistics]
    finding = "; ".join(said) or "Nothing was imputed."
    return figure(title, finding, _WIDTH, _HEIGHT, *marks)


def _steps(heights: list[float], highest: float, *, closed: bool) -> str:
    width = (_RIGHT - _LEFT) / len(heights)
    pieces = [f"M{_LEFT} {_BASE}"]
    for k, height in enumerate(heights):
        y = _BASE - (_BASE - _TOP) * height / highest
        pieces.append(f"V{short(y)}H{short(_LEFT + (k + 1) * width)}")
    return "".join(pieces) + f"V{_BASE}" + "z" * closed


def _bars(title: str, shape: Shape) -> Element:
    pitch, thick = 32, 11
    highest = max(*shape.observed, *shape.imputed, 1e-9)
    room = _BAR_RIGHT - _BAR_LEFT
    marks, observed, imputed = [], [], []
    for k, (name, a, b) in enumerate(zip(shape.labels, shape.observed, shape.imputed, strict=True)):
        y = k * pitch + 4
        observed.append(box(_BAR_LEFT, y, room * a / highest, thick))
        imputed.append(box(_BAR_LEFT, y + thick + 1, room * b / highest, thick))
        marks += [
            label(name, _BAR_LEFT - 7, y + thick + 4, most=15, text_anchor="end"),
            label(share(a), _BAR_LEFT + room * a / highest + 5, y + thick - 1, class_="small"),
            label(share(b), _BAR_LEFT + room * b / highest + 5, y + 2 * thick, class_="small"),
        ]
    marks += [path(observed, "observed"), path(imputed, "imputed")]
    marks.append(line(_BAR_LEFT, 0, _BAR_LEFT, len(shape.labels) * pitch, "axis"))
    said = [
        f"{plain(name)} {share(a)} and {share(b)}"
        for name, a, b in zip(shape.labels, shape.observed, shape.imputed, strict=True)
    ]
    return figure(
        title, f"Shares of observed and of imputed values: {'; '.join(said)}.", _WIDTH, len(shape.labels) * pitch + 4, *marks
    )
