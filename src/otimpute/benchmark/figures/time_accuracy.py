"""Figure of run time against error, one point per method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._optional import require
from ...catalogue import MethodStyle
from ..outcome import Outcome
from ..summary.blocks import relative_scores, shared_blocks
from ..summary.cells import scores_by_seed
from ..summary.names import method_label, on_part, score_label
from .style import (
    FAINT,
    add_caption,
    house_style,
    marker_look,
    method_styles,
    new_figure,
    plain,
    show_seconds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRADE_SCORES = ("rmse", "energy_distance")
_SHORTEST = 1e-6  # seconds; the resolution of clocks


@dataclass(frozen=True, eq=False)
class _Trade:
    """Time and relative error of the methods of one panel."""

    score: str
    reference: str
    methods: tuple[str, ...]
    seconds: NDArray[np.float64]  # [method]
    errors: NDArray[np.float64]  # [method]
    n_blocks: int
    left_out: tuple[str, ...]


def draw_time_accuracy(outcomes: Sequence[Outcome]) -> Figure:
    """Draw seconds to fit against the error relative to the column mean, geometric means over the shared blocks."""
    trades = [trade for score in TRADE_SCORES if (trade := _collect(outcomes, score))]
    if not trades:
        raise ValueError(f"the methods have no data set and setting in common with one of the scores {', '.join(TRADE_SCORES)}")
    styles = method_styles(o.method for o in outcomes)
    lines = require("matplotlib.lines", "drawing figures", "bench")
    with house_style():
        figure = new_figure(2.4 + 4.6 * len(trades), 4.6)
        figure.suptitle(f"Accuracy and run time{on_part('train', (o.part for o in outcomes))}")
        columns = figure.subplots(1, len(trades), squeeze=False)[0]
        for axes, trade in zip(columns, trades, strict=True):
            _draw_panel(axes, trade, styles)
        shown = [method for method in styles if any(method in trade.methods for trade in trades)]
        handles = [lines.Line2D([], [], linestyle="", label=plain(method_label(m)), **_look(styles[m])) for m in shown]
        figure.legend(handles=handles, loc="outside right center")
        add_caption(figure, _caption(trades))
    return figure


def _collect(outcomes: Sequence[Outcome], score: str) -> _Trade | None:
    blocks = shared_blocks(scores_by_seed(outcomes, score, "train"))
    if not blocks.keys:
        return None
    reference, errors = relative_scores(blocks)
    shared = set(blocks.keys)
    times = {k: v for k, v in scores_by_seed(outcomes, "seconds", "train").items() if (k[1], k[0]) in shared}
    seconds = np.maximum(shared_blocks(times, blocks.methods).means, _SHORTEST)
    mean_seconds = np.exp(np.log(seconds).mean(axis=0))
    return _Trade(score, reference, blocks.methods, mean_seconds, errors, len(blocks.keys), blocks.left_out)


def pareto_front(seconds: NDArray[np.float64], errors: NDArray[np.float64]) -> list[int]:
    """Return the points that no other point beats in both time and error, from the fastest on.

    >>> pareto_front(np.array([1.0, 2.0, 3.0]), np.array([0.9, 0.95, 0.5]))
    [0, 2]
    """
    front: list[int] = []
    for i in np.lexsort((errors, seconds)):
        if not front or errors[i] < errors[front[-1]]:
            front.append(int(i))
    return front


def _draw_panel(axes: Axes, trade: _Trade, styles: dict[str, MethodStyle]) -> None:
    front = pareto_front(trade.seconds, trade.errors)
    axes.step(trade.seconds[front], trade.errors[front], where="post", color=FAINT, linewidth=1, linestyle="--", zorder=1)
    for method, x, y in zip(trade.methods, trade.seconds, trade.errors, strict=True):
        axes.plot(x, y, **_look(styles[method]))
    axes.set_xscale("log")
    axes.margins(x=0.12)
    show_seconds(axes.xaxis, axes.get_xlim())
    axes.margins(y=0.12)
    axes.grid()
    axes.set_title(plain(score_label(trade.score)), fontweight="bold")
    axes.set_xlabel("seconds to fit")
    axes.set_ylabel("error relative to the column mean" if trade.reference == "mean" else "error relative to the best method")


def _look(style: MethodStyle) -> dict[str, Any]:
    return marker_look(style) | {"markersize": 14 if style.marker == "*" else 9}


def _caption(trades: Sequence[_Trade]) -> str:
    text = (
        f"Geometric means over {min(trade.n_blocks for trade in trades)} pairs of data set and setting; "
        "lower left is better. Dashed line: the methods that no other beats in both."
    )
    left_out = {method_label(method): None for trade in trades for method in trade.left_out}
    return text + (f" Not shown because run on too few of them: {', '.join(left_out)}." if left_out else "")
