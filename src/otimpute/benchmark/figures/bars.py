"""The paper's figure: panels of grouped bars, one group per data set, one bar per method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._optional import require
from ...catalogue import METRICS, MethodStyle
from ..outcome import Outcome
from ..summary.cells import aggregate
from ..summary.names import dataset_labels, method_label, score_label, setting_label, sort_methods
from .style import INK, add_caption, add_legend, house_style, method_styles, new_figure, pale, plain, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR_SCORES = ("mae", "rmse", "wasserstein2")
_DOTS = "...."
_GROUP = 0.86  # width of a group, relative to the distance of groups
_MOST_BARS = 200  # in a row of panels; with more, the data sets continue below
_EXPLOSION = 5  # a mean above so many times the median of its data set is ignored for the scale


@dataclass(frozen=True)
class _Bar:
    """One bar of each group."""

    method: str
    part: str
    style: MethodStyle


@dataclass(frozen=True, eq=False)
class _Panel:
    """Heights of the bars of one score; NaN for no bar."""

    label: str
    scaled: bool
    limit: float  # top of the axis
    means: NDArray[np.float64]  # [bar, data set]
    sds: NDArray[np.float64]  # [bar, data set]

    def of(self, datasets: NDArray[np.int64]) -> _Panel:
        """Return the panel of some of the data sets, with the same axis."""
        return replace(self, means=self.means[:, datasets], sds=self.sds[:, datasets])


def draw_bars(outcomes: Sequence[Outcome], setting: str) -> Figure:
    """Draw MAE, RMSE and scaled squared W2 of every method and data set in one setting, mean ± 1 sd over seeds.

    The squared W2 of a data set is divided by the largest mean among its methods, ignoring outliers. Bars far above the
    others are cut off and labelled with their height.
    """
    styles = method_styles(o.method for o in outcomes)
    methods = sort_methods(o.method for o in outcomes if o.setting == setting and o.part == "train")
    bars = [_Bar(method, "train", styles[method]) for method in methods]
    legend = {method_label(bar.method): bar.style for bar in bars}
    return _draw(outcomes, setting, bars, legend, f"Error of the imputed values, {setting_label(setting)}")


def draw_out_of_sample_bars(outcomes: Sequence[Outcome], setting: str) -> Figure:
    """Like `draw_bars` for the methods that can impute new rows: plain bars for training rows, dotted for new rows."""
    styles = method_styles(o.method for o in outcomes)
    methods = sort_methods(o.method for o in outcomes if o.setting == setting and o.part == "test")
    bars = [
        _Bar(method, part, MethodStyle(color, hatch, ""))
        for method in methods
        for part, color, hatch in (("train", styles[method].color, ""), ("test", pale(styles[method].color), _DOTS))
    ]
    legend = {method_label(bar.method): bar.style for bar in bars if bar.part == "train"}
    legend |= {"training rows": MethodStyle("none", "", ""), "new rows": MethodStyle("none", _DOTS, "")}
    return _draw(outcomes, setting, bars, legend, f"Error on training rows and on new rows, {setting_label(setting)}")


def _draw(
    outcomes: Sequence[Outcome], setting: str, bars: Sequence[_Bar], legend: dict[str, MethodStyle], title: str
) -> Figure:
    shown = {(bar.method, bar.part) for bar in bars}
    here = [o for o in outcomes if o.setting == setting and (o.method, o.part) in shown]
    labels = dataset_labels(o.dataset for o in here)
    panels = [panel for score in BAR_SCORES if (panel := _collect(here, score, list(labels), bars))]
    if not panels:
        raise ValueError(f"no outcome of setting {setting!r} has any of the scores {', '.join(BAR_SCORES)}")
    n_lines = min(math.ceil(len(labels) * len(bars) / _MOST_BARS), len(labels))
    lines = np.array_split(np.arange(len(labels)), n_lines)
    names = np.array([plain(label) for label in labels.values()])
    with house_style():
        longest = len(lines[0])
        width = min(max(2 + 0.068 * longest * len(bars), 7), 13)
        figure = new_figure(width, 1 + n_lines * (0.8 + 2.2 * len(panels)))
        rows = figure.subplots(n_lines * len(panels), 1, squeeze=False)[:, 0].reshape(n_lines, len(panels))
        for line, column in zip(lines, rows, strict=True):
            for axes, panel in zip(column, panels, strict=True):
                _draw_panel(axes, panel.of(line), bars)
                axes.set_xticks([])
                axes.set_xlim(-0.5, longest - 0.5)
            column[-1].set_xticks(range(len(line)), names[line], rotation=40, ha="right", rotation_mode="anchor")
        patch = require("matplotlib.patches", "drawing figures", "bench").Patch
        look = {"edgecolor": INK, "linewidth": 0.4}
        handles = {label: patch(facecolor=s.color, hatch=s.hatch, **look) for label, s in legend.items()}
        add_legend(figure, title, handles)
        add_caption(figure, _caption(panels))
    return figure


def _caption(panels: Sequence[_Panel]) -> str:
    text = "Mean over seeds, error bars ± 1 standard deviation; lower is better."
    if any(panel.scaled for panel in panels):
        text += " Squared W₂ is divided by the largest mean of each data set, ignoring outliers."
    if any((panel.means > panel.limit).any() for panel in panels):
        text += " A number above the axis is the height of a bar that was cut off."
    if any(np.isnan(panel.means).any() for panel in panels):
        text += " – means not computed."
    return text


def _collect(outcomes: Sequence[Outcome], score: str, datasets: Sequence[str], bars: Sequence[_Bar]) -> _Panel | None:
    means = np.full((len(bars), len(datasets)), np.nan)
    sds = np.zeros_like(means)
    for part in {bar.part for bar in bars}:
        places = {bar.method: i for i, bar in enumerate(bars) if bar.part == part}
        for cell in aggregate(outcomes, score, part):
            place = places[cell.method], datasets.index(cell.dataset)
            means[place], sds[place] = cell.mean, np.nan_to_num(cell.sd)
    if np.isnan(means).all():
        return None
    power = METRICS[score].power
    tame = _tame(means, _EXPLOSION**power)
    if power == 1:
        return _Panel(score_label(score), False, axis_limit(means, sds, tame), means, sds)
    scale = np.nan_to_num(tame).max(axis=0)
    scale[scale == 0] = 1
    means, sds, tame = means / scale, sds / scale, tame / scale
    return _Panel(f"{score_label(score)}, scaled", True, axis_limit(means, sds, tame), means, sds)


def _tame(means: NDArray[np.float64], times: float) -> NDArray[np.float64]:
    """Return the means, with NaN for those above ``times`` the median of their data set."""
    ordered = np.sort(means, axis=0)  # NaN last
    # The lower median: with two methods, the worse one may be the outlier.
    middle = np.maximum((~np.isnan(means)).sum(axis=0) - 1, 0) // 2
    median = np.take_along_axis(ordered, middle[None], axis=0)
    return np.where(means <= times * median, means, np.nan)


def _draw_panel(axes: Axes, panel: _Panel, bars: Sequence[_Bar]) -> None:
    n_bars, n_datasets = panel.means.shape
    width = _GROUP / n_bars
    collection = require("matplotlib.collections", "drawing figures", "bench").PolyCollection
    for group in range(1, n_datasets, 2):
        axes.axvspan(group - 0.5, group + 0.5, color="#f3f3f3", linewidth=0, zorder=0)
    axes.grid(axis="y")
    for i, bar in enumerate(bars):
        x = np.arange(n_datasets) + (i - (n_bars - 1) / 2) * width
        mean, sd = panel.means[i], panel.sds[i]
        # One collection per method, because `axes.bar` creates an artist for every bar, which takes seconds.
        shapes = _rectangles(x, np.minimum(mean, panel.limit), width)
        axes.add_collection(collection(shapes, facecolor=bar.style.color, edgecolor=INK, linewidth=0.3))
        if bar.style.hatch:  # separate from the fill: an SVG would repeat the whole pattern for every colour under it
            axes.add_collection(collection(shapes, facecolor="none", hatch=bar.style.hatch, edgecolor=INK, linewidth=0))
        spread = (sd > 0) & (mean <= panel.limit)
        axes.errorbar(x[spread], mean[spread], sd[spread], fmt="none", ecolor=INK, elinewidth=0.6)
    axes.set_ylim(0, panel.limit)
    axes.set_ylabel(plain(panel.label))
    axes.tick_params(axis="x", length=0)
    for group in range(n_datasets):
        _note_absent(axes, group, np.isnan(panel.means[:, group]), width)
        _note_cut(axes, group, panel.means[:, group], panel.limit, width)


def _rectangles(x: NDArray[np.float64], heights: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    left, right, floor = x - width / 2, x + width / 2, np.zeros_like(x)
    corners = [(left, floor), (left, heights), (right, heights), (right, floor)]
    return np.moveaxis(np.array(corners), 2, 0)[np.isfinite(heights)]  # [bar, corner, 2]


def axis_limit(means: NDArray[np.float64], sds: NDArray[np.float64], tame: NDArray[np.float64]) -> float:
    """Return the top of an axis that shows all bars and their error bars, except outliers.

    >>> axis_limit(np.array([1.0, 0.5, 25.0]), np.zeros(3), tame=np.array([1.0, 0.5, np.nan]))
    1.04
    """
    heights = np.array([means, means + sds])
    usual = 1.6 * np.nanquantile(tame, 0.98)
    return 1.04 * float(heights[heights <= usual].max(initial=0)) or 1.0


def _note_absent(axes: Axes, group: int, absent: NDArray[np.bool_], width: float) -> None:
    n_bars = len(absent)
    places = [0.0] if absent.all() else [(i - (n_bars - 1) / 2) * width for i in np.flatnonzero(absent)]
    for place in places:
        axes.annotate("–", (group + place, 0), (0, 1), textcoords="offset points", ha="center", va="bottom", fontsize=8)


def _note_cut(axes: Axes, group: int, means: NDArray[np.float64], limit: float, width: float) -> None:
    cut = [i for i in range(len(means)) if means[i] > limit]
    for turn, i in enumerate(cut):
        x = group + (i - (len(means) - 1) / 2) * width
        # Bars are narrower than text, so the labels of a group are spread around its bars.
        shift = 9 * (turn - (len(cut) - 1) / 2)
        axes.annotate(
            short_number(float(means[i])),
            (x, limit),
            (shift, 9),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=7.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "<|-", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6, "color": INK},
        )
