"""A picture of a sensitivity analysis: estimates and intervals against delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require

if TYPE_CHECKING:
    from .sensitivity_analysis import Sensitivity

_ESTIMATE, _TIPPING, _FAINT = "#3d6fb4", "#d1495b", "#8a8f98"
_WIDTH, _HEIGHT, _MOST_BESIDE = 5.2, 3.6, 3
_MOST_TICKS = 10


def draw_sensitivity(result: Sensitivity, parameters: Sequence[str], null: float) -> list[Any]:
    """A new figure with a panel per parameter."""
    plt = require("matplotlib.pyplot", "plot()")
    n_beside = min(len(parameters), _MOST_BESIDE)
    n_rows = math.ceil(len(parameters) / n_beside)
    size = (_WIDTH * n_beside, _HEIGHT * n_rows)
    _, grid = plt.subplots(n_rows, n_beside, figsize=size, squeeze=False, layout="constrained")
    panels = list(grid.flat)
    for unused in panels[len(parameters) :]:
        unused.remove()
    for panel, parameter in zip(panels, parameters, strict=False):
        _draw_panel(panel, result, parameter, null)
    return panels[: len(parameters)]


def _draw_panel(panel: Any, result: Sensitivity, parameter: str, null: float) -> None:
    axis, k = result._axis, result.pooled[0].names.index(parameter)
    order = np.argsort(axis.positions)
    amounts = np.array(axis.amounts)[order]
    estimate, low, high = (
        np.array([getattr(each, what)[k] for each in result.pooled])[order] for what in ("estimate", "low", "high")
    )
    panel.fill_between(amounts, low, high, color=_ESTIMATE, alpha=0.15, linewidth=0)
    panel.plot(amounts, estimate, color=_ESTIMATE, linewidth=1.5)
    panel.errorbar(amounts, estimate, (estimate - low, high - estimate), fmt="o", markersize=5, color=_ESTIMATE, capsize=3)
    panel.axhline(null, color=_FAINT, linestyle="--", linewidth=1)
    panel.annotate(f"{null:g}", (1, null), xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
                   va="center", color=_FAINT)  # fmt: skip
    ticker = require("matplotlib.ticker", "plot()")
    if axis.is_log:
        panel.set_xscale("log")
        panel.xaxis.set_minor_locator(ticker.NullLocator())
    if axis.is_log or len(amounts) <= _MOST_TICKS:
        panel.xaxis.set_major_locator(ticker.FixedLocator(amounts))
        panel.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    tipping = result.tipping_point(parameter, null=null)
    if tipping is None:
        panel.set_title("no tipping point", loc="center", fontsize="medium", color=_FAINT)
    else:
        panel.axvline(tipping, color=_TIPPING, linestyle=":", linewidth=1.3)
        panel.annotate(
            f"tipping point {tipping:.3g}", (tipping, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", color=_TIPPING,
        )  # fmt: skip
    panel.set_xlabel(axis.title.replace("$", r"\$"))
    panel.set_ylabel(f"{parameter}, {100 * result.pooled[0].level:g} % interval".replace("$", r"\$"))
    panel.spines[["top", "right"]].set_visible(False)
