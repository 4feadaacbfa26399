"""Draw all figures of a set of outcomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...catalogue import METRICS
from ..outcome import Outcome
from ..summary.blocks import shared_blocks
from ..summary.cells import aggregate, scores_by_seed
from ..summary.names import sort_settings
from ..summary.ranks import average_ranks
from .bars import BAR_SCORES, draw_bars, draw_out_of_sample_bars
from .ranks_diagram import draw_ranks
from .run_times import draw_run_times
from .style import save_figure
from .time_accuracy import TRADE_SCORES, draw_time_accuracy
from .win_matrix import draw_wins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COMPARED = sorted((name for name in METRICS if METRICS[name].compared), key=lambda name: METRICS[name].compared)


def draw_figures(
    outcomes: Sequence[Outcome], folder: Path | str, formats: Sequence[str] = ("svg", "png"), *, dpi: int = 150
) -> list[Path]:
    """Draw all figures that are possible with these outcomes, and return the files.

    These are bars of every setting, bars of training and new rows if new rows were imputed, run times, time against accuracy
    and, for each score on which methods can be compared, average ranks and the matrix of wins (in separate files for new
    rows). The same outcomes give the same SVG files, byte for byte.

    >>> from tempfile import TemporaryDirectory
    >>> outcomes = [Outcome("iris", "mcar-30", "mean", 0, "train", {"rmse": 1.0}, 0.1, 5.0, 150, 4)]
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in draw_figures(outcomes, folder, formats=["svg"])]
    ['bars-mcar-30.svg', 'run-times.svg', 'time-accuracy.svg']
    """
    if not outcomes:
        raise ValueError("outcomes is empty, so there is nothing to draw; run a benchmark task first")
    if not any(aggregate(outcomes, "seconds", part) for part in ("train", "test")):
        raise ValueError("all tasks failed, so there is nothing to draw; `otimpute benchmark status` shows why")
    folder = Path(folder)
    paths = []
    for name, draw in _figures(outcomes):
        figure = draw()
        for kind in formats:
            path = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.{kind}"
            save_figure(figure, path, dpi)
            paths.append(path)
    return paths


def _figures(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, Callable[[], Figure]]]:
    for setting in sort_settings(o.setting for o in outcomes):
        here = [o for o in outcomes if o.setting == setting]
        for part, name, draw in (("train", "bars", draw_bars), ("test", "out-of-sample", draw_out_of_sample_bars)):
            if any(aggregate(here, score, part) for score in BAR_SCORES):
                yield f"{name}-{setting}", partial(draw, outcomes, setting)
    yield "run-times", partial(draw_run_times, outcomes)
    if any(shared_blocks(scores_by_seed(outcomes, score, "train")).keys for score in TRADE_SCORES):
        yield "time-accuracy", partial(draw_time_accuracy, outcomes)
    for part, suffix in (("train", ""), ("test", "-new-rows")):
        for score in _COMPARED:
            if len(average_ranks(outcomes, score, part).methods) > 1:
                yield f"ranks-{score}{suffix}", partial(draw_ranks, outcomes, score, part)
                yield f"wins-{score}{suffix}", partial(draw_wins, outcomes, score, part)
