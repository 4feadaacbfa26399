"""Figures of the fit: curves, or the weights of experts."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._text import number
from ..data import Curve, Weights
from .axes import WIDTH, Scale, axes, dot, figure, path, plain
from .heat import heat_map

_MOST_POINTS = 300
_HEIGHT = 220


def curve(shown: Curve, step_name: str) -> Element:
    """Draw a quantity during training."""
    last = len(shown.values) - 1
    some = sorted({*range(0, last, max(1, last // _MOST_POINTS)), last})
    across = Scale.over(shown.steps, 62, WIDTH - 16)
    up = Scale.over([*shown.values, 0.0] if min(shown.values) > 0 else shown.values, _HEIGHT - 44, 14)
    points = [(across(shown.steps[k]), up(shown.values[k])) for k in some]
    finding = (
        f"From {number(shown.values[0])} to {number(shown.values[-1])} at {step_name} {shown.steps[-1]:,.0f}; the lowest was "
        f"{number(min(shown.values))}."
    )
    return figure(
        shown.name.capitalize(),
        finding,
        WIDTH,
        _HEIGHT,
        *axes(across, up, across_label=step_name),
        path(["M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)], "curve"),
        path([dot(*points[-1])], "dot-curve"),
    )


def weights(found: Weights) -> Element:
    """Draw the weight of each expert (across) in each column (down)."""
    means = {
        name: sum(row[k] for row in found.weights) / len(found.weights) for k, name in enumerate(found.experts)
    }  # fmt: skip
    most = sorted(means, key=lambda name: -means[name])
    finding = "On average over columns: " + ", ".join(f"{plain(name)} {means[name]:.2f}" for name in most) + "."
    return heat_map("Weights of the experts, by column", finding, found.columns, found.experts, found.weights)
