"""Figure of the wins, ties and losses of each pair of methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..outcome import Outcome
from ..summary.names import lower_is_better, method_label, on_part, score_label
from ..summary.wins import wins
from .style import INK, add_caption, bold_if_ours, house_style, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_wins(outcomes: Sequence[Outcome], score: str, part: str = "train") -> Figure:
    """Draw in how many (data set, setting) blocks the method of a row beat, tied with and lost to that of a column."""
    result = wins(outcomes, score, part)
    played = result.wins + result.ties + result.losses
    points = result.wins + result.ties / 2
    share = np.where(played > 0, points / np.maximum(played, 1), np.nan)
    order = np.argsort(-points.sum(axis=1) / np.maximum(played.sum(axis=1), 1), kind="stable")
    names = [result.methods[i] for i in order]
    with house_style():
        figure = new_figure(2.6 + 0.85 * len(names), 2.4 + 0.52 * max(len(names), 4))
        better = "lower" if lower_is_better(score) else "higher"
        rows = on_part(part, (o.part for o in outcomes))
        figure.suptitle(plain(f"How often each method has the {better} {score_label(score)}{rows}"))
        axes = figure.subplots()
        axes.set_facecolor("#dddddd")  # for the diagonal and for pairs without a shared block
        image = axes.imshow(share[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for row, i in enumerate(order):
            for column, j in enumerate(order):
                if played[i, j]:
                    text = f"{result.wins[i, j]}/{result.ties[i, j]}/{result.losses[i, j]}"
                    color = "white" if share[i, j] > 0.6 else INK
                    axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
        labels = [plain(method_label(name)) for name in names]
        axes.set_xticks(range(len(names)), labels, rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(names)), labels)
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            for tick, name in zip(ticks, names, strict=True):
                tick.set_fontweight(bold_if_ours(name))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        figure.colorbar(image, ax=axes, label="share of wins (a tie is half)", shrink=0.8)
        add_caption(
            figure,
            "Wins/ties/losses of the row's method against the column's, over data sets and settings. A tie: the 95 % "
            "confidence interval of the mean difference over shared seeds contains 0 (with one seed: a difference within 1 %).",
        )
    return figure
