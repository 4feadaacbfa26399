"""Tables of a score: data sets by methods, one table per setting."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import rankdata

from ..._checks import check_choice
from ...catalogue import METRICS
from ..outcome import Outcome
from .blocks import Blocks, relative_scores, shared_blocks
from .cells import Cell, aggregate, scores_by_seed
from .names import lower_is_better, sort_methods, sort_settings


def render_table(
    outcomes: Iterable[Outcome], score: str, part: str = "train", fmt: str = "text", *, spread: bool = True
) -> str:
    """Return tables of a score: mean ± standard deviation over seeds, with the best of each row marked.

    Parameters
    ----------
    outcomes
        Outcomes of a benchmark.
    score
        A key of `Outcome.scores`, or ``"seconds"`` or ``"added_mib"``.
    part
        ``"train"`` or ``"test"``.
    fmt
        ``"text"`` or ``"markdown"``: a table per setting. The last two rows are the average rank, and the geometric mean of
        the score relative to the column mean (or to the best method of each row if the column mean was not run), both over
        the data sets and seeds that the compared methods share. A number in brackets is the number of seeds of a cell that
        has fewer than others in its row. ``"csv"``: one line per cell, in full precision.
    spread
        Whether to show the standard deviations in text and Markdown.

    >>> outcomes = [
    ...     Outcome("iris", "mcar-30", method, seed, "train", {"rmse": base + seed / 10}, 1.0, 50.0, 150, 4)
    ...     for method, base in {"mean": 1.0, "knn": 0.5}.items() for seed in range(2)
    ... ]
    >>> print(render_table(outcomes, "rmse"))
    rmse (train), mcar-30
                                       mean             knn
    iris                      1.050 ± 0.071  0.550 ± 0.071*
    average rank, 1 of 1 set           2.00            1.00
    relative to 'mean'                1.000           0.524
    <BLANKLINE>
    * lowest in its row; ± standard deviation over seeds; (n) seeds, if fewer than others.
    """
    check_choice("fmt", fmt, ("text", "markdown", "csv"))
    outcomes = list(outcomes)
    cells = aggregate(outcomes, score, part)
    if not cells:
        parts = sorted({each.part for each in outcomes})
        raise ValueError(
            "no task has finished yet"
            if not parts
            else f"there are no test rows; pass part {', '.join(map(repr, parts))}, or run a suite with a test_fraction"
            if part not in parts
            else f"no task has a finite {score!r}; run a suite with n_draws to score draws"
            if score in METRICS and METRICS[score].of_draws
            else f"no task has a finite {score!r}"
        )
    if fmt == "csv":
        return _csv(cells, score, part)
    lower = lower_is_better(score)
    render = _markdown if fmt == "markdown" else _text
    tables = []
    for setting in sort_settings(cell.setting for cell in cells):
        here = [each for each in outcomes if each.setting == setting and each.part == part]
        methods = sort_methods(each.method for each in here)  # including methods that always failed
        blocks = shared_blocks(scores_by_seed(here, score, part))
        rows = _rows([cell for cell in cells if cell.setting == setting], methods, blocks, spread, lower)
        tables.append(render(f"{score} ({part}), {setting}", rows))
    mark = f"{'bold:' if fmt == 'markdown' else '*'} {'lowest' if lower else 'highest'} in its row"
    legend = f"{mark}; ± standard deviation over seeds; (n) seeds, if fewer than others."
    return "\n\n".join([*tables, legend if spread else f"{mark}; (n) seeds, if fewer than others."])


@dataclass(frozen=True)
class _Entry:
    text: str
    best: bool = False


_ABSENT = _Entry("–")


def _rows(cells: Sequence[Cell], methods: Sequence[str], blocks: Blocks, spread: bool, lower: bool) -> list[list[_Entry]]:
    """Return the table of one setting: a header, a row per data set, and two summary rows over the shared data sets."""
    datasets = sorted({cell.dataset for cell in cells})
    by_place = {(cell.dataset, cell.method): cell for cell in cells}
    rows = [[_Entry(""), *map(_Entry, methods)]]
    for dataset in datasets:
        row = [by_place.get((dataset, method)) for method in methods]
        winner = (min if lower else max)((cell for cell in row if cell), key=lambda cell: cell.mean)
        most = max(cell.n_seeds for cell in row if cell)
        # Mark all values that look the same when printed.
        best = [cell is not None and _mean(cell) == _mean(winner) for cell in row]
        shown = [_number(cell, most, spread) if cell else _ABSENT.text for cell in row]
        rows.append([_Entry(dataset), *map(_Entry, shown, best)])
    if not blocks.keys:
        return rows
    ranks = rankdata(blocks.means if lower else -blocks.means, axis=1).mean(axis=0)
    reference, ratios = relative_scores(blocks, lower_is_better=lower)
    n, total = len(blocks.keys), len(datasets)
    for title, values, form in (
        (f"average rank, {n} of {total} set{'s' * (total > 1)}", ranks, "{:.2f}"),
        (f"relative to {reference!r}" if reference == "mean" else f"relative to the {reference}", ratios, "{:.3f}"),
    ):
        texts = {method: form.format(value) for method, value in zip(blocks.methods, values, strict=True)}
        rows.append([_Entry(title), *(_Entry(texts[method]) if method in texts else _ABSENT for method in methods)])
    return rows


def _number(cell: Cell, most_seeds: int, spread: bool) -> str:
    """Format mean ± sd, and the number of seeds if others have more."""
    sd = f" ± {cell.sd:.{_decimals(cell)}f}" if spread and cell.n_seeds > 1 else ""
    return _mean(cell) + sd + (f" ({cell.n_seeds})" if cell.n_seeds < most_seeds else "")


def _mean(cell: Cell) -> str:
    return f"{cell.mean:.{_decimals(cell)}f}"


def _decimals(cell: Cell) -> int:
    """Return the number of decimals: three, or as many as show three digits of a small mean."""
    return min(max(3, 2 - math.floor(math.log10(abs(cell.mean)))), 9) if cell.mean else 3


def _text(title: str, rows: Sequence[Sequence[_Entry]]) -> str:
    texts = [[entry.text + ("*" if entry.best else " ") for entry in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [[row[0].ljust(widths[0]), *(t.rjust(w) for t, w in zip(row[1:], widths[1:], strict=True))] for row in texts]
    return "\n".join([title, *(" ".join(line).rstrip() for line in lines)])


def _markdown(title: str, rows: Sequence[Sequence[_Entry]]) -> str:
    texts = [[f"**{entry.text}**" if entry.best else _escape(entry.text) for entry in row] for row in rows]
    ruler = [":--", *("--:" for _ in rows[0][1:])]
    return "\n".join([f"### {_escape(title)}", "", *(f"| {' | '.join(line)} |" for line in [texts[0], ruler, *texts[1:]])])


def _escape(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return re.sub(r"([\\`*|<>\[\]])", r"\\\1", " ".join(text.split()))


def _csv(cells: Sequence[Cell], score: str, part: str) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["score", "part", "setting", "dataset", "method", "mean", "sd", "n_seeds"])
    for cell in cells:
        sd = repr(cell.sd) if cell.n_seeds > 1 else ""
        writer.writerow([score, part, cell.setting, cell.dataset, cell.method, repr(cell.mean), sd, cell.n_seeds])
    return buffer.getvalue()
