"""Figure of run times by method and data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..outcome import Outcome
from ..summary.cells import aggregate
from ..summary.names import dataset_labels, method_label, sort_methods
from .style import add_caption, add_legend, house_style, marker_look, method_styles, new_figure, plain, show_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_PARTS = {"train": "seconds to fit", "test": "seconds for new rows"}


def draw_run_times(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the seconds of each method on each data set, mean over seeds and settings, from the smallest data set on."""
    size = {o.dataset: (o.n * o.d, o.n, o.d) for o in outcomes if o.n}
    datasets = sorted(size, key=lambda dataset: (size[dataset], dataset))
    labels = dataset_labels(datasets)
    styles = method_styles(o.method for o in outcomes)
    times = {part: cells for part in _PARTS if (cells := aggregate(outcomes, "seconds", part))}
    with house_style():
        figure = new_figure(min(max(2 + 0.42 * len(datasets), 7), 12), 2.4 + 2.9 * len(times))
        rows = figure.subplots(len(times), 1, sharex=True, squeeze=False)[:, 0]
        handles: dict[str, Line2D] = {}
        for axes, (part, cells) in zip(rows, times.items(), strict=True):
            for method in sort_methods(cell.method for cell in cells):
                own = [[cell.mean for cell in cells if (cell.method, cell.dataset) == (method, name)] for name in datasets]
                seconds = [np.mean(values) if values else np.nan for values in own]
                (line,) = axes.plot(seconds, linewidth=0.9, **marker_look(styles[method]))
                handles.setdefault(method_label(method), line)
            axes.set_yscale("log")
            show_seconds(axes.yaxis, axes.get_ylim())
            axes.grid(axis="both")
            axes.set_ylabel(_PARTS[part])
        names = [plain(f"{labels[name]} ({size[name][1]} × {size[name][2]})") for name in datasets]
        rows[-1].set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
        add_legend(figure, "Run times on data sets of growing size", handles)
        add_caption(figure, "Mean over the seeds and settings that were run. Data sets sorted by size (rows × columns).")
    return figure
