"""How the fit went: curves, or the weights of experts."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._words import number
from ..data import Curve, Weights
from .axes import WIDTH, Scale, axes, dot, figure, path, plain
from .heat import heat_map

_MOST_POINTS = 300
_HEIGHT = 220


def curve(shown: Curve, step_name: str) -> Element:
    """A quantity in the course of training."""
    every = max(1, len(shown.values) // _MOST_POINTS)
    some = sorted({*range(0, len(shown.values), every), len(shown.values) - 1})
    across = Scale.over(shown.steps, 62, WIDTH - 14)
    up = Scale.over([*shown.values, 0.0] if min(shown.values) > 0 else shown.values, _HEIGHT - 44, 14)
    points = [(across(shown.steps[k]), up(shown.values[k])) for k in some]
    drawn = "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)
    finding = f"From {number(shown.values[0])} to {number(shown.values[-1])} in {number(shown.steps[-1])} {step_name}s; lowest {number(min(shown.values))}."
    return figure(
        shown.name.capitalize(), finding, WIDTH, _HEIGHT, *axes(across, up, across_label=step_name), path([drawn], "curve"),
        path([dot(*points[-1])], "dot-curve"),
    )  # fmt: skip


def weights(found: Weights) -> Element:
    """How much each expert (across) is trusted in each column (down)."""
    means = [sum(row[k] for row in found.weights) / max(len(found.weights), 1) for k in range(len(found.experts))]
    order = sorted(range(len(means)), key=lambda k: -means[k])
    finding = "On average over columns: " + ", ".join(f"{plain(found.experts[k])} {means[k]:.2f}" for k in order[:4]) + "."
    return heat_map("Weights of the experts, by column", finding, found.columns, found.experts, found.weights)
