"""Figures of missing values: by column, by pattern, by row, and their predictors."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ..._markup import element
from ..._text import count, listed, share
from ..data import ColumnHoles, Matrix, Pattern, Patterns, Predictors
from .axes import WIDTH, Bar, bars, box, dot, figure, label, line, names_above, names_beside, path, plain, room_for, stripes
from .heat import LEGEND_HEIGHT, coloured, heat_map, legend

MOST_BARS = 20
_PITCH = 22
_HIGHEST = 70  # of the bars above patterns
_MOST_DIGITS = 3  # longer numbers are written vertically
_MOST_MATRIX_NAMES = 40
_MOST_LETTERS = 18


def holes_by_column(columns: Sequence[ColumnHoles]) -> Element:
    """Draw the missing values by column, those with the most first."""
    incomplete = sorted((each for each in columns if each.n_missing), key=lambda each: -each.share)
    first = incomplete[0]
    finding = (
        f"{len(incomplete)} of {count(len(columns), 'column')} with missing values; most in {plain(first.name)}, "
        f"{share(first.share)}."
    )
    rows = [
        Bar(each.name, each.share, f"{share(each.share)} · {each.n_missing:,}", "missing") for each in incomplete[:MOST_BARS]
    ]
    return bars("Missing values by column", finding, rows)


def patterns(found: Patterns) -> Element:
    """Draw which columns are missing together (dots), and in how many rows (bars above them)."""
    n_columns, n_patterns = len(found.columns), len(found.rows)
    counts = [f"{each.n_rows:,}" for each in found.rows]
    long = max(map(len, counts)) > _MOST_DIGITS
    left, top = room_for(found.columns, _MOST_LETTERS), _HIGHEST + (room_for(counts, 12) if long else 26)
    step = min((WIDTH - left) / n_patterns, 40)
    largest = max(each.n_rows for each in found.rows)
    middles = [top + (k + 0.5) * _PITCH for k in range(n_columns)]
    there = [
        dot(left + (j + 0.5) * step, middles[k])
        for j, pattern in enumerate(found.rows) for k in range(n_columns) if k not in pattern.missing
    ]  # fmt: skip
    marks = [
        stripes(n_columns, top, left + n_patterns * step, _PITCH),
        *names_beside(found.columns, left, top, _PITCH, _MOST_LETTERS),
        path(there, "dot-there"),
    ]
    for j, pattern in enumerate(found.rows):
        x, height = left + (j + 0.5) * step, max(_HIGHEST * pattern.n_rows / largest, 1)
        places = [middles[k] for k in pattern.missing]
        marks.append(
            element(
                "g",
                element("title", _in_words(found, pattern)),
                path([box(x - step * 0.32, top - 8 - height, step * 0.64, height)], "missing" if places else "complete"),
                label(
                    counts[j],
                    x + 4 * long,
                    top - 12 - height,
                    upward=long,
                    text_anchor=None if long else "middle",
                    class_="small",
                ),
                *([line(x, places[0], x, places[-1], "together")] if len(places) > 1 else []),
                path([dot(x, y) for y in places], "dot-missing"),
            )
        )
    finding = f"{count(found.n_patterns, 'pattern')}. The most frequent: {_in_words(found, found.rows[0])}."
    return figure("Which columns are missing together", finding, WIDTH, top + n_columns * _PITCH, *marks)


def _in_words(found: Patterns, pattern: Pattern) -> str:
    names = listed([plain(found.columns[k]) for k in pattern.missing])
    return f"{count(pattern.n_rows, 'row')} ({share(pattern.share)}) with {f'{names} missing' if names else 'nothing missing'}"


def matrix(found: Matrix) -> Element:
    """Draw where in the table values are missing: columns across, blocks of rows down."""
    n_blocks, n_columns = len(found.share), len(found.columns)
    named = n_columns <= _MOST_MATRIX_NAMES
    left, top = room_for([f"{found.n_rows:,}"], 12), room_for(found.columns, _MOST_LETTERS) if named else 28.0
    width, height = max(7.0, min(26.0, (WIDTH - left - 14) / n_columns)), max(5.0, min(16.0, 300 / n_blocks))
    bottom = top + n_blocks * height
    marks = coloured(found.share, left, top, width, height, positive="missing")
    if named:
        marks += names_above(found.columns, left, top, width, _MOST_LETTERS)
    else:
        tenths = [k for k in range(n_columns) if k == 0 or k % 10 == 9]
        marks += [label(f"{k + 1}", left + (k + 0.5) * width, top - 8, text_anchor="middle", class_="tick") for k in tenths]
    for j in sorted({round(k * (n_blocks - 1) / 5) for k in range(6)}):
        row = f"{found.first_rows[j]:,}"
        marks.append(label(row, left - 7, top + (j + 0.5) * height + 4, text_anchor="end", class_="tick"))
    rows_at_once = max(1, round(found.n_rows / n_blocks))
    emptiest = max(range(n_blocks), key=lambda j: sum(found.share[j]))
    finding = (
        f"{count(found.n_rows, 'row')} in blocks of about {rows_at_once:,}, {count(n_columns, 'column')} in the order of the "
        f"table. Most values are missing in the block that starts at row {found.first_rows[emptiest]:,}: "
        f"{share(sum(found.share[emptiest]), n_columns)}."
    )
    whole_width = left + max(n_columns * width + 14, 150)
    marks += legend(left, bottom, positive="missing")
    return figure("Where in the table values are missing", finding, whole_width, bottom + LEGEND_HEIGHT, *marks)


def predictors(found: Predictors) -> Element:
    """Draw how well the values of one column (across) predict where another (down) is missing."""
    finding = "No column predicts better than chance where another is missing."
    if found.strongest:
        first = found.strongest[0]
        finding = f"Strongest: {plain(first.column)} predicts missing {plain(first.missing)}, {first.strength:.2f} of 1."
    return heat_map("Which columns predict missing values of others", finding, found.missing, found.columns, found.strength)
