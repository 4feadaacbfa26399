"""Figures of several completed tables: draws over rounds, and the Monte-Carlo error against the number of tables."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ..._markup import short
from ..._text import count, share
from ..multiple_data import MultipleColumn, MultipleImputation, Trace
from .axes import Scale, axes, dot, figure, path, plain

_WIDTH, _HEIGHT = 260, 190


def trace(name: str, shown: Trace) -> Element:
    """Draw how the draws of a column developed over the rounds, a line per table."""
    n_rounds = len(shown.lines[0])
    across = Scale(1, n_rounds, 64, _WIDTH - 12)
    up = Scale.over([value for line in shown.lines for value in line], _HEIGHT - 44, 8, margin=0.1)
    lines = [_line([(across(k + 1), up(value)) for k, value in enumerate(line)]) for line in shown.lines]
    return figure(
        f"Draws of {plain(name)} over the rounds",
        f"{shown.what.capitalize()} in {count(len(lines), 'table')}: {shown.words}.",
        _WIDTH,
        _HEIGHT,
        *axes(across, up, across_label="round"),
        path(lines, "table-line"),
    )


def error_against_tables(column: MultipleColumn, several: MultipleImputation) -> Element:
    """Draw the Monte-Carlo error of a mean or share against the number of tables; all columns have the same scale."""
    points, n_tables = column.error_against_tables, several.n_tables
    largest = max(error for each in several.columns for _, error in each.error_against_tables)
    across = Scale(0, points[-1][0], 64, _WIDTH - 12)
    up = Scale.over([0.0, 100 * largest], _HEIGHT - 44, 8)
    now = next(error for m, error in points if m == n_tables)
    return figure(
        f"Monte-Carlo error of the {plain(column.what)} of {plain(column.name)} against the number of tables",
        f"{share(now)} of the standard error with {n_tables} tables.",
        _WIDTH,
        _HEIGHT,
        *axes(across, up, across_label="tables", up_label="% of the standard error"),
        path([_line([(across(m), up(100 * error)) for m, error in points])], "curve"),
        path([dot(across(n_tables), up(100 * now))], "dot-curve"),
    )


def _line(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)
