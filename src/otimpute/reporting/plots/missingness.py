"""What is missing: how much, together with what, in which rows, and what tells where."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ..._markup import element
from ..._words import count, listed, share
from ..data import ColumnHoles, Matrix, Patterns, Predictors
from .axes import WIDTH, Bar, bars, box, dot, figure, label, line, path, plain
from .heat import coloured, heat_map, legend

MOST_BARS = 30
_MOST_MATRIX_NAMES = 40
_MATRIX_LETTERS = 16


def holes_by_column(columns: Sequence[ColumnHoles]) -> Element:
    """How much is missing in which column, those with most of it first."""
    incomplete = sorted((each for each in columns if each.n_missing), key=lambda each: -each.share)
    most = incomplete[0]
    finding = (
        f"{count(len(incomplete), 'column')} of {len(columns)} with holes; most in {plain(most.name)}, {share(most.share)}."
    )
    rows = [
        Bar(each.name, each.share, f"{share(each.share)} · {each.n_missing:,}", "missing") for each in incomplete[:MOST_BARS]
    ]
    return bars("How much is missing, by column", finding, rows)


def patterns(found: Patterns) -> Element:
    """Which columns are missing together (dots), and in how many rows (bars above them)."""
    left, top, pitch, high = 150, 96, 22, 70
    n = max(len(found.rows), 1)
    step = min((WIDTH - left) / n, 40)
    bottom = top + pitch * len(found.columns)
    largest = max((each.n_rows for each in found.rows), default=1)
    marks = [path([box(0, top + k * pitch, left + n * step, pitch) for k in range(0, len(found.columns), 2)], "stripe")]
    marks += [
        label(name, left - 8, top + (k + 0.5) * pitch + 4, most=20, text_anchor="end") for k, name in enumerate(found.columns)
    ]
    absent = []
    for j, pattern in enumerate(found.rows):
        x = left + (j + 0.5) * step
        height = max(high * pattern.n_rows / largest, 1)
        names = [plain(found.columns[k]) for k in pattern.missing]
        what = f"missing: {listed(names)}" if names else "nothing missing"
        places = [top + (k + 0.5) * pitch for k in pattern.missing]
        absent += [dot(x, top + (k + 0.5) * pitch) for k in range(len(found.columns)) if k not in pattern.missing]
        kind = "missing" if names else "complete"
        marks.append(
            element(
                "g",
                element("title", f"{count(pattern.n_rows, 'row')} ({share(pattern.share)}), {what}"),
                path([box(x - step * 0.32, top - 8 - height, step * 0.64, height)], kind),
                label(f"{pattern.n_rows:,}", x, top - 12 - height, text_anchor="middle", class_="tick"),
                *([line(x, places[0], x, places[-1], "together")] if len(places) > 1 else []),
                path([dot(x, y) for y in places], "dot-missing"),
            )
        )
    first = found.rows[0]
    often = listed([plain(found.columns[k]) for k in first.missing]) or "nothing"
    finding = (
        f"{count(found.n_patterns, 'pattern')}; the most frequent one, in {count(first.n_rows, 'row')} "
        f"({share(first.share)}), has {often} missing."
    )
    marks.insert(1, path(absent, "dot-there"))
    return figure("Which columns are missing together", finding, WIDTH, bottom + 4, *marks)


def matrix(found: Matrix) -> Element:
    """Where in the table values are missing: columns across, blocks of rows down."""
    n_blocks, n_columns = len(found.share), len(found.columns)
    width, height = max(7.0, min(26.0, 420 / n_columns)), max(5.0, min(16.0, 300 / n_blocks))
    named = n_columns <= _MOST_MATRIX_NAMES
    left, top = 56, 24 + 6.6 * min(max(len(name) for name in found.columns), _MATRIX_LETTERS) if named else 28
    if named:
        names = [
            label(name, left + (k + 0.5) * width + 4, top - 6, most=_MATRIX_LETTERS, upward=True)
            for k, name in enumerate(found.columns)
        ]
    else:
        every = range(9, n_columns, 10)
        names = [label(str(k + 1), left + (k + 0.5) * width, top - 8, text_anchor="middle", class_="tick") for k in every]
    bottom = top + n_blocks * height
    marked = sorted({round(k * (n_blocks - 1) / 5) for k in range(6)})
    rows = [
        label(f"{found.first_rows[j]:,}", left - 6, top + (j + 0.5) * height + 4, text_anchor="end", class_="tick")
        for j in marked
    ]
    per_block = max(1, round(found.n_rows / n_blocks))
    finding = f"{count(found.n_rows, 'row')} in blocks of about {per_block:,}, {count(n_columns, 'column')} in the order of the table."
    wide = max(left + n_columns * width + 8, left + 150)
    cells = coloured(found.share, left, top, width, height)
    return figure(
        "Where in the table values are missing",
        finding,
        wide,
        bottom + 30,
        *cells,
        *names,
        *rows,
        *legend(left, bottom + 10, signed=False),
    )


def predictors(found: Predictors) -> Element:
    """How much the values of one column (across) tell about where another (down) is missing."""
    if found.strongest:
        first = found.strongest[0]
        finding = (
            f"Strongest: where {plain(first.missing)} is missing goes with {plain(first.column)}, {first.strength:.2f} of 1."
        )
    else:
        finding = "No column tells more than chance would about where another is missing."
    return heat_map("Which columns tell where others are missing", finding, found.missing, found.columns, found.strength)
