"""Common elements of figures: frames, scales, labels and bars.

Colours, strokes and fonts are set by classes in the page's style sheet, so that figures follow its theme.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from unicodedata import combining, east_asian_width
from xml.etree.ElementTree import Element

from ..._markup import element, short
from .._scale import nice_labels, nice_places

WIDTH = 410  # of a figure that may be scaled down to the screen of a phone; wider ones scroll
_HALF = 460  # width of half a page: wider figures get the full width
_LETTER = 7.2  # approximate width
_BAR_PITCH = 24
_LARGEST = sys.float_info.max


def figure(title: str, finding: str, width: float, height: float, *marks: Element) -> Element:
    """Create a figure with a title and a description."""
    room = "wide full" if width > _HALF else "wide" if width > WIDTH else None
    return element(
        "svg", element("title", title), element("desc", finding), *marks, role="img", width=width, height=height,
        viewBox=f"0 0 {short(width)} {short(height)}", class_=room,
    )  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """A map of numbers from ``low`` to ``high`` to positions from ``start`` to ``end``, clipped at the ends."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, margin: float = 0.0) -> Scale:
        """Create a scale that covers all values."""
        known = list(values)
        low, high = min(known), max(known)
        if high / 2 - low / 2 <= 1e-12 * max(abs(low), abs(high)):
            low, high = low - (abs(low) / 10 or 0.5), high + (abs(high) / 10 or 0.5)
        edge = margin * (high / 2 - low / 2)
        return cls(max(low - edge, -_LARGEST), min(high + edge, _LARGEST), start, end)

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halved to avoid overflow
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the positions and labels of round numbers."""
        places = nice_places(self.low, self.high).tolist()
        return [(self(place), label.replace("-", "−")) for place, label in zip(places, nice_labels(places), strict=True)]


def plain(name: str) -> str:
    """Return a name on one line; an empty one as ``''``.

    >>> plain(" a  b "), plain("")
    ('a b', "''")
    """
    return " ".join(name.split()) or "''"


def shortened(name: str, most: int) -> str:
    """Shorten a name to a given number of letters; wide East Asian characters and emoji count twice.

    >>> shortened("temperature", 8), shortened("温度温度温度", 8), shortened("short", 8)
    ('tempera…', '温度温…', 'short')
    """
    widths = _widths(name)
    return name if not widths or widths[-1] <= most else name[: bisect_right(widths, most - 1)].rstrip() + "…"


def room_for(names: Iterable[str], most: int) -> float:
    """Return the width of labels of at most so many letters, with a margin."""
    longest = max(((_widths(plain(name)) or [0])[-1] for name in names), default=0)
    return 14 + _LETTER * min(max(longest, 4), most)


def _widths(name: str) -> list[int]:
    return list(accumulate(2 if east_asian_width(letter) in "WF" else int(not combining(letter)) for letter in name))


def label(words: str, x: float, y: float, *, most: int = 1000, upward: bool = False, **attributes: str | None) -> Element:
    """Create a text label, shortened if necessary; a tooltip then has the full text."""
    words = plain(words)
    shown = shortened(words, most)
    whole = [element("title", words)] if shown != words else []
    turn = f"rotate(-90 {short(x)} {short(y)})" if upward else None
    return element("text", *whole, shown, x=x, y=y, transform=turn, **attributes)


def names_beside(names: Sequence[str], right: float, top: float, pitch: float, most: int) -> list[Element]:
    """Create the names of rows, on their left."""
    return [label(name, right - 7, top + (k + 0.5) * pitch + 4, most=most, text_anchor="end") for k, name in enumerate(names)]


def names_above(names: Sequence[str], left: float, bottom: float, pitch: float, most: int) -> list[Element]:
    """Create the names of columns, vertically above them."""
    return [label(name, left + (k + 0.5) * pitch + 4, bottom - 7, most=most, upward=True) for k, name in enumerate(names)]


def stripes(n: int, top: float, width: float, pitch: float) -> Element:
    """Create a darker background for every second of ``n`` rows."""
    return path([box(0, top + k * pitch, width, pitch) for k in range(0, n, 2)], "stripe")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    """Create a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(pieces: Iterable[str], class_: str, tooltip: str = "") -> Element:
    """Create a single element from many path segments."""
    return element("path", *([element("title", tooltip)] if tooltip else []), d="".join(pieces), class_=class_)


def box(x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle as a path segment."""
    return f"M{short(x)} {short(y)}h{short(width)}v{short(height)}h{short(-width)}z"


def dot(x: float, y: float) -> str:
    """Return a dot as a path segment, for a stroke with round caps."""
    return f"M{short(x)} {short(y)}h0"


def axes(across: Scale, up: Scale, *, across_label: str, up_label: str = "") -> list[Element]:
    """Create the axes of a figure."""
    marks = [line(across.start, y, across.end, y, "grid") for y, _ in up.ticks()]
    marks.append(line(across.start, up.start, across.end, up.start, "axis"))
    marks += [label(words, across.start - 6, y + 4, text_anchor="end", class_="tick") for y, words in up.ticks()]
    marks += [label(words, x, up.start + 17, text_anchor="middle", class_="tick") for x, words in _apart(across.ticks())]
    middle = (across.start + across.end) / 2
    marks.append(label(across_label, middle, up.start + 35, text_anchor="middle", class_="tick"))
    if up_label:
        marks.append(label(up_label, 12, (up.start + up.end) / 2, upward=True, text_anchor="middle", class_="tick"))
    return marks


def _apart(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Thin out the labels of an axis until they do not overlap."""
    for every in range(1, len(ticks)):
        some = list(ticks[::every])
        if all(b[0] - a[0] > _LETTER * (len(a[1]) + len(b[1])) / 2 + 8 for a, b in pairwise(some)):
            return some
    return list(ticks[:1])


@dataclass(frozen=True)
class Bar:
    """A bar: its name, length (from 0 to 1), label and CSS class."""

    name: str
    length: float
    words: str
    class_: str


def bars(title: str, finding: str, rows: Sequence[Bar], *, width: float = WIDTH, most: int = 22) -> Element:
    """Create a figure of horizontal bars with names, of at most ``most`` letters, and labels."""
    left = room_for((bar.name for bar in rows), most)
    room = width - left - room_for((bar.words for bar in rows), 20)
    marks = names_beside([bar.name for bar in rows], left, 0, _BAR_PITCH, most)
    for k, bar in enumerate(rows):
        y, length = k * _BAR_PITCH, max(room * bar.length, 1.0)
        marks.append(path([box(left, y + 4, length, _BAR_PITCH - 8)], bar.class_, f"{plain(bar.name)}: {bar.words}"))
        marks.append(label(bar.words, left + length + 6, y + 16, class_="tick"))
    height = len(rows) * _BAR_PITCH
    return figure(title, finding, width, height, *marks, line(left, 0, left, height, "axis"))
