"""What pictures share: a frame with a name and a finding, scales, labels that fit, bars.

Colours, strokes and fonts are those of classes in the page's style sheet, so that pictures follow its theme.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from unicodedata import combining, east_asian_width
from xml.etree.ElementTree import Element

from ..._markup import element, short
from .._scale import nice_places

WIDTH = 480  # of a picture that may be scaled down to a telephone's screen; wider ones scroll
_BAR_LABEL, _BAR_WORDS, _BAR_PITCH = 150, 86, 24
_LABEL_LETTERS = 22


def figure(title: str, finding: str, width: float, height: float, *marks: Element) -> Element:
    """A picture with a name, and what it shows in words."""
    return element(
        "svg", element("title", title), element("desc", finding), *marks, role="img", width=width, height=height,
        viewBox=f"0 0 {short(width)} {short(height)}", class_="wide" if width > WIDTH else None,
    )  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """Numbers from ``low`` to ``high`` as places from ``start`` to ``end``; what lies outside stands at the edge."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, margin: float = 0.0) -> Scale:
        """A scale that holds all values."""
        known = list(values) or [0.0, 1.0]
        low, high = min(known), max(known)
        if high / 2 - low / 2 <= 1e-12 * max(abs(low), abs(high)):
            low, high = low - (abs(low) / 10 or 0.5), high + (abs(high) / 10 or 0.5)
        edge = margin * (high / 2 - low / 2)
        return cls(low - edge, high + edge, start, end)

    def __call__(self, value: float) -> float:
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # the halves of huge numbers have a difference
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Places of round numbers, and these."""
        return [(self(place), f"{place:.6g}".replace("-", "−")) for place in nice_places(self.low, self.high).tolist()]


def plain(name: str) -> str:
    """A name in one line, and visible if it is empty.

    >>> plain(" a\\nb "), plain("")
    ('a b', "''")
    """
    return " ".join(name.split()) or "''"


def shortened(name: str, most: int) -> str:
    """A name in a given number of letters; those of East Asia and pictures count twice.

    >>> shortened("temperature", 8), shortened("温度温度温度", 8), shortened("short", 8)
    ('tempera…', '温度温…', 'short')
    """
    widths = list(accumulate(2 if east_asian_width(letter) in "WF" else int(not combining(letter)) for letter in name))
    if not widths or widths[-1] <= most:
        return name
    return name[: bisect_right(widths, most - 1)] + "…"


def label(words: str, x: float, y: float, *, most: int = 1000, upward: bool = False, **attributes: str) -> Element:
    """Words at a place, shortened if need be; the pointer shows them in full."""
    words = plain(words)
    shown = shortened(words, most)
    whole = [element("title", words)] if shown != words else []
    turn = f"rotate(-90 {short(x)} {short(y)})" if upward else None
    return element("text", *whole, shown, x=x, y=y, transform=turn, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(pieces: Iterable[str], class_: str, tooltip: str = "") -> Element:
    """Many marks as one element."""
    return element("path", *([element("title", tooltip)] if tooltip else []), d="".join(pieces), class_=class_)


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as a piece of a path."""
    return f"M{short(x)} {short(y)}h{short(width)}v{short(height)}h{short(-width)}z"


def dot(x: float, y: float) -> str:
    """A dot as a piece of a path whose line has round ends."""
    return f"M{short(x)} {short(y)}h0"


def cross(x: float, y: float, arm: float = 3) -> str:
    """A cross as a piece of a path."""
    return f"M{short(x - arm)} {short(y - arm)}l{short(2 * arm)} {short(2 * arm)}m{short(-2 * arm)} 0l{short(2 * arm)} {short(-2 * arm)}"


def axes(across: Scale, up: Scale, *, across_label: str = "", up_label: str = "") -> list[Element]:
    """The frame of a picture with numbers on both sides."""
    marks = [line(across.start, y, across.end, y, "grid") for y, _ in up.ticks()]
    marks += [line(across.start, up.start, across.end, up.start, "axis")]
    marks += [label(words, across.start - 6, y + 4, text_anchor="end", class_="tick") for y, words in up.ticks()]
    marks += [label(words, x, up.start + 16, text_anchor="middle", class_="tick") for x, words in _apart(across.ticks())]
    middle = (across.start + across.end) / 2
    if across_label:
        marks.append(label(across_label, middle, up.start + 33, text_anchor="middle", class_="tick"))
    if up_label:
        marks.append(label(up_label, 12, (up.start + up.end) / 2, upward=True, text_anchor="middle", class_="tick"))
    return marks


def _apart(ticks: Sequence[tuple[float, str]], letter: float = 7.5) -> list[tuple[float, str]]:
    """Labels of an axis that do not touch: all of them, or every second one, ..."""
    for every in range(1, len(ticks) + 1):
        some = list(ticks[::every])
        if all(b[0] - a[0] > letter * (len(a[1]) + len(b[1])) / 2 + 6 for a, b in pairwise(some)):
            return some
    return []


@dataclass(frozen=True)
class Bar:
    """A bar: what it is, how long (from 0 to 1), what it says, and the class of its colour."""

    name: str
    length: float
    words: str
    class_: str


def bars(title: str, finding: str, rows: Sequence[Bar]) -> Element:
    """Horizontal bars, each with its name and its number."""
    room = WIDTH - _BAR_LABEL - _BAR_WORDS
    marks: list[Element] = []
    for k, bar in enumerate(rows):
        y = k * _BAR_PITCH
        length = room * bar.length
        marks += [
            label(bar.name, _BAR_LABEL - 8, y + 16, most=_LABEL_LETTERS, text_anchor="end"),
            path([box(_BAR_LABEL, y + 4, max(length, 1), _BAR_PITCH - 8)], bar.class_, f"{plain(bar.name)}: {bar.words}"),
            label(bar.words, _BAR_LABEL + length + 6, y + 16, class_="tick"),
        ]
    return figure(
        title,
        finding,
        WIDTH,
        len(rows) * _BAR_PITCH + 4,
        *marks,
        line(_BAR_LABEL, 0, _BAR_LABEL, len(rows) * _BAR_PITCH, "axis"),
    )
