"""Style of all figures: one style per method, fonts, and how figures are created and saved."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._files import appears_whole
from ..._optional import require
from ...catalogue import METHODS, MethodStyle
from ..summary.names import is_ours, sort_methods

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#222222"
FAINT = "#8a8a8a"

_RC = {
    "font.family": "DejaVu Sans",  # included in matplotlib, so the same everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "grid.color": "#d5d5d5",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "svg.fonttype": "path",
    "svg.hashsalt": "otimpute",  # element ids that depend on the figure only
}
_NO_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


# Spare styles for methods without one: one list for other methods, one for ours.
_SPARE = {
    False: (
        MethodStyle("#f4ec7b", "///|||", (3, 1, 0)),
        MethodStyle("#794609", "", (4, 1, 45)),
        MethodStyle("#80bcb7", "|||---", (3, 1, 180)),
        MethodStyle("#5d5d5d", "///---", "8"),
        MethodStyle("#094b3e", "", (4, 1, 0)),
        MethodStyle("#d1b6de", "\\\\\\|||", (6, 1, 0)),
    ),
    True: (MethodStyle("#ffefdf", "\\\\\\---", (5, 1, 180)), MethodStyle("#710000", "", "H")),
}


def method_styles(methods: Iterable[str]) -> dict[str, MethodStyle]:
    """Return a style for each method: fixed for known methods; others get spare styles in turn, then unused ones.

    >>> method_styles(["zebra", "mean"])["mean"] == method_styles(["mean"])["mean"]
    True
    """
    ordered = sort_methods(methods)
    own = {name: method.style for name, method in METHODS.items() if method.style}
    pools = {
        ours: cycle([*spare, *(style for name, style in own.items() if name not in ordered and METHODS[name].ours == ours)])
        for ours, spare in _SPARE.items()
    }
    return {method: own.get(method) or next(pools[is_ours(method)]) for method in ordered}


def marker_look(style: MethodStyle) -> dict[str, Any]:
    """Return the marker arguments of a method's line."""
    size = 11 if style.marker == "*" else 6.5
    edge = {"markeredgecolor": INK, "markeredgewidth": 0.6}
    return {"color": style.color, "marker": style.marker, "markersize": size, **edge}


@contextmanager
def house_style() -> Iterator[None]:
    """Use matplotlib's defaults and the settings above within a ``with`` block."""
    with require("matplotlib.style", "drawing figures", "bench").context(["default", _RC]):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Create an empty figure with constrained layout; sizes in inches."""
    figure: Figure = require("matplotlib.figure", "drawing figures", "bench").Figure((width, height), layout="constrained")
    return figure


def plain(text: str) -> str:
    r"""Escape text so that matplotlib finds no formula in it.

    >>> print(plain("a$b"))
    a\$b
    """
    return text.replace("$", r"\$")


def add_legend(figure: Figure, title: str, entries: Mapping[str, Any]) -> None:
    """Add the title of a figure and, below it, the legend in as many columns as fit."""
    labels = [plain(label) for label in entries]
    width = figure.get_figwidth()
    rows = next((rows for rows in range(1, len(labels)) if _inches(labels, rows) < width), len(labels))
    figure.legend(
        list(entries.values()),
        labels,
        loc="outside upper center",
        ncols=math.ceil(len(labels) / rows),
        title=plain(title),
        title_fontproperties={"weight": "bold", "size": 12},
    )


def _inches(labels: Sequence[str], rows: int) -> float:
    """Estimate the width of a legend with so many rows."""
    return sum(0.6 + 0.075 * max(map(len, labels[i : i + rows])) for i in range(0, len(labels), rows))


def add_caption(figure: Figure, text: str) -> None:
    """Add small print below the panels, wrapped to the width of the figure."""
    characters = int(figure.get_figwidth() * 17)
    figure.supxlabel("\n".join(textwrap.wrap(plain(text), characters)), fontsize=8, color="#444444", x=0.01, ha="left")


def pale(color: str) -> str:
    """Return the colour halfway to white.

    >>> pale("#d9240b")
    '#ec9185'
    """
    return "#" + "".join(f"{(int(color[i : i + 2], 16) + 255) // 2:02x}" for i in (1, 3, 5))


def show_seconds(axis: Axis, limits: tuple[float, float]) -> None:
    """Label a logarithmic axis with plain numbers, also between the powers of ten if it spans only a few."""
    ticker = require("matplotlib.ticker", "drawing figures", "bench")
    if limits[1] < 50 * limits[0]:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def bold_if_ours(method: str) -> str:
    """Return the font weight of a method's label."""
    return "bold" if is_ours(method) else "normal"


def short_number(value: float) -> str:
    """Format a number with about three digits.

    >>> short_number(25.13), short_number(1234.5), short_number(4.2e7)
    ('25.1', '1234', '4e+07')
    """
    return f"{value:.0f}" if 100 <= value < 1e5 else f"{value:.3g}" if value < 100 else f"{value:.0e}"


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure atomically; the same figure gives the same bytes."""
    with appears_whole(path) as part, house_style():
        figure.savefig(part, dpi=dpi, metadata=_NO_DATE.get(path.suffix))
