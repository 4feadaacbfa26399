"""Critical-difference diagram: average ranks on a line, with bars that join methods that do not differ significantly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...catalogue import MethodStyle
from ..outcome import Outcome
from ..summary.names import method_label, on_part, score_label, setting_label, sort_settings
from ..summary.ranks import Ranks, average_ranks
from .style import (
    FAINT,
    INK,
    add_caption,
    bold_if_ours,
    house_style,
    marker_look,
    method_styles,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Heights in units of one line of labels.
_TICKS, _BAR, _GAP = 1.3, 0.42, 0.55
_INCHES_PER_LINE = 0.21


def draw_ranks(outcomes: Sequence[Outcome], score: str, part: str = "train") -> Figure:
    """Draw average ranks over all settings and, if there are several, in each of them. See `average_ranks` for the tests."""
    overall = average_ranks(outcomes, score, part)
    if len(overall.methods) < 2:
        raise ValueError(f"ranks need two methods with {score!r} on a shared data set and setting, got {overall.methods}")
    settings = sort_settings(o.setting for o in outcomes)
    each = {s: average_ranks([o for o in outcomes if o.setting == s], score, part) for s in settings}
    each = {s: ranks for s, ranks in each.items() if len(ranks.methods) > 1} if len(settings) > 1 else {}
    styles = method_styles(o.method for o in outcomes)
    with house_style():
        n_columns = 2 if len(each) > 1 else 1
        panels = [overall, *each.values()]
        lines = [_height(overall), *(max(map(_height, panels[i : i + n_columns])) for i in range(1, len(panels), n_columns))]
        width = max(12.5, 9.7 + 0.35 * max(len(panel.methods) for panel in panels)) if n_columns == 2 else 7.5
        figure = new_figure(width, 1.4 + sum(0.35 + _INCHES_PER_LINE * line for line in lines))
        rows = on_part(part, (o.part for o in outcomes))
        figure.suptitle(plain(f"Average rank by {score_label(score)}{rows} (1 is best)"))
        grid = figure.add_gridspec(len(lines), n_columns, height_ratios=lines)
        title = "All settings" if len(settings) > 1 else setting_label(settings[0])
        _draw_line(figure.add_subplot(grid[0, :]), overall, title, styles, 9.5)
        for i, (setting, ranks) in enumerate(each.items()):
            axes = figure.add_subplot(grid[1 + i // n_columns, i % n_columns])
            _draw_line(axes, ranks, setting_label(setting), styles, 8.5)
        add_caption(figure, _caption(overall))
    return figure


def _caption(ranks: Ranks) -> str:
    text = (
        f"{ranks.n_datasets} data sets, {ranks.n_blocks} pairs of data set and setting. Ranks are averaged over the settings "
        "of a data set, then over data sets. "
    )
    if ranks.testable:
        text += "Bars join neighbours without a significant difference (Wilcoxon signed-rank tests over data sets, Holm, 5 %)."
    else:
        text += "Too few data sets to test whether methods differ."
    if ranks.undecided:
        pairs = [f"{method_label(one)} and {method_label(other)}" for one, other in ranks.undecided]
        text += f" Over all settings, these do not differ significantly either, but no bar joins them: {', '.join(pairs)}."
    if not math.isnan(ranks.friedman_p):
        text += f" Friedman's test over data sets, all settings: p = {ranks.friedman_p:.2g}."
    if ranks.n_blocks_left_out:
        text += f" Pairs left out because a compared method has no score: {ranks.n_blocks_left_out}."
    if ranks.left_out:
        text += f" Not compared overall because run on too few pairs: {', '.join(map(method_label, ranks.left_out))}."
    return text


def _levels(ranks: Ranks) -> list[int]:
    """Return a level for each bar, such that bars on the same level do not touch."""
    ends: list[int] = []  # by level: index of the last method under its rightmost bar
    levels = []
    for clique in ranks.cliques:  # sorted by their first method
        first, last = (ranks.methods.index(method) for method in (clique[0], clique[-1]))
        level = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[level : level + 1] = [last]
        levels.append(level)
    return levels


def _height(ranks: Ranks) -> float:
    return _TICKS + _BAR * (1 + max(_levels(ranks), default=-1)) + _GAP + math.ceil(len(ranks.methods) / 2)


def _draw_line(axes: Axes, ranks: Ranks, title: str, styles: dict[str, MethodStyle], size: float) -> None:
    worst = len(ranks.methods)
    axes.set_title(plain(title), fontweight="bold", loc="center")
    axes.axis("off")
    axes.set_xlim(1 - 0.02 * worst, worst + 0.02 * worst)
    axes.set_ylim(-_height(ranks) + _TICKS, _TICKS)
    axes.plot([1, worst], [0, 0], color=INK, linewidth=1)
    for tick in range(1, worst + 1):
        axes.plot([tick, tick], [0, 0.25], color=INK, linewidth=1)
        axes.text(tick, 0.4, str(tick), ha="center", va="bottom", fontsize=8)
    levels = _levels(ranks)
    place = dict(zip(ranks.methods, ranks.ranks, strict=True))
    for clique, level in zip(ranks.cliques, levels, strict=True):
        y = -_BAR * (level + 1)
        axes.plot([place[clique[0]], place[clique[-1]]], [y, y], color=INK, linewidth=3.5, solid_capstyle="round")
    below = -_BAR * (1 + max(levels, default=-1)) - _GAP
    n_left = math.ceil(worst / 2)
    for i, method in enumerate(ranks.methods):
        left = i < n_left
        # The outermost label comes first, so that no line crosses another.
        y = below - (i if left else worst - 1 - i) - 0.3
        edge = 1 if left else worst
        axes.plot([place[method], place[method], edge], [0, y, y], color=FAINT, linewidth=0.8, zorder=1)
        axes.plot(place[method], 0, zorder=3, clip_on=False, **marker_look(styles[method]))
        words = plain(method_label(method)), f"{place[method]:.2f}"
        axes.annotate(
            "  ".join(words if left else words[::-1]),
            (edge, y),
            (-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=size,
            fontweight=bold_if_ours(method),
        )
