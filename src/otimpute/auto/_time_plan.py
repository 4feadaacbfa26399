"""Which experts there is time for in the end, from what they took in the trial."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ..baselines.gaussian_em import GaussianEMModel
from ..fitting import CellModel, is_made_of
from ._choices import named_in
from ._columns import Cells, Columns
from ._experts import MEAN
from ._trial import Trial, Weighed, weigh

_USED = 0.8  # of the time there is: what is expected from a sample of the rows is not quite right
_ROWS_APPLIED = 128  # to see how long new rows take


def plan_final_fit(
    trial: Trial,
    weighed: Weighed,
    columns: Columns,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    *,
    needed: tuple[str, ...],
    most_rows: int,
    seconds_left: float,
) -> tuple[Trial, Weighed, int]:
    """The experts that can be fitted and applied in time, weighed among themselves, and on how many rows.

    Fewer rows are fitted before an expert is given up, but not fewer than were tried; then goes the one whose weight is dear.
    The mean, a Gaussian, whose spread error bars are made of, those ``needed`` and those that people chose for a
    column always stay.
    """
    always = {MEAN, *needed, *named_in(trial.choices)}
    n, n_tried = len(values), len(trial.rows)
    largest = min(n, most_rows)
    sizes = sorted(
        {largest, *(size for size in (largest // 3, largest // 10) if size > n_tried), min(n_tried, n)}, reverse=True
    )
    a_new_row = dict.fromkeys(trial.names, 0.0)
    if sizes[-1] < n:
        some = trial.rows[:_ROWS_APPLIED]
        holes = missing[some]
        start = columns.restore(np.zeros(int(holes.sum())), holes)
        a_new_row = {name: _seconds_to_apply(model, values[some], holes, start) for name, model in trial.fitted.items()}

    def seconds(name: str, size: int) -> float:
        return trial.seconds[name] * max(size / n_tried, 1.0) + a_new_row[name] * (n - size)

    while True:
        counts = {name: float(weight) for name, weight in zip(trial.names, weighed.weights.mean(axis=0), strict=True)}
        stay = [name for name in trial.names if name in always or is_made_of(trial.fitted[name], GaussianEMModel)]
        fitted = [name for name in trial.names if name in stay or counts[name] > 0]
        for size in sizes:
            if sum(seconds(name, size) for name in fitted) <= _USED * seconds_left:
                return trial, weighed, size
        able_to_go = [name for name in fitted if name not in stay]
        if not able_to_go:
            return trial, weighed, sizes[-1]
        dearest = max(able_to_go, key=lambda name: seconds(name, sizes[-1]) / counts[name])
        trial = trial.only([name for name in trial.names if name != dearest])
        weighed = weigh(trial, columns)


def _seconds_to_apply(model: CellModel, rows: NDArray[np.floating], holes: NDArray[np.bool_], start: Cells) -> float:
    """What a new row takes."""
    begun = time.perf_counter()
    model.impute_cells(rows, holes, start)
    return (time.perf_counter() - begun) / len(rows)
