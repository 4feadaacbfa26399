"""Figures of the table as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ..._markup import short
from ..._text import count, share
from ..data import Projection
from .axes import WIDTH, Scale, axes, dot, figure, path
from .heat import heat_map

_HEIGHT = 330


def correlations(when: str, columns: Sequence[str], cells: Sequence[Sequence[float | None]]) -> Element:
    """Draw the correlations before or after imputation."""
    pairs = [abs(value) for j, row in enumerate(cells) for value in row[:j] if value is not None]
    mean = f"{sum(pairs) / len(pairs):.2f}" if pairs else "unknown"
    finding = f"{count(len(columns), 'column')}; the mean absolute correlation is {mean}."
    return heat_map(f"Correlations {when}", finding, columns, columns, cells, signed=True)


def projection(found: Projection) -> Element:
    """Draw the rows on their first two principal components: dots were complete, crosses have imputed values."""
    across = Scale.over((x for x, _, _ in found.points), 56, WIDTH - 12, margin=0.06)
    up = Scale.over((y for _, y, _ in found.points), _HEIGHT - 46, 12, margin=0.06)
    complete = [dot(across(x), up(y)) for x, y, n in found.points if not n]
    imputed = [_cross(across(x), up(y)) for x, y, n in found.points if n]
    x_name, y_name = [f"component {k + 1} ({share(each)} of the variance)" for k, each in enumerate(found.explained)]
    frame = axes(across, up, across_label=x_name, up_label=y_name)
    finding = (
        f"{count(len(complete), 'complete row')} as dots, {count(len(imputed), 'row')} with imputed values as crosses; the "
        f"two components explain {share(sum(found.explained))} of the variance."
    )
    return figure(
        "Rows on their first two principal components", finding, WIDTH, _HEIGHT, *frame, path(complete, "dot-observed"),
        path(imputed, "cross-imputed"),
    )  # fmt: skip


def _cross(x: float, y: float) -> str:
    return f"M{short(x - 2.5)} {short(y - 2.5)}l5 5m-5 0l5 -5"
