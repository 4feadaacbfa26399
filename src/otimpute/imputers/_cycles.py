"""Algorithm 3's loop: cycles over columns, a few updates of each column's model, and between them everything else.

The table holds predictions wherever a value is missing. In turn, each column's model is updated by the gradient of the batch
divergence in that column, and predicts it anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._compile import load
from ..estimator import Callback, FitProgress
from ..exceptions import DivergedError
from ._batches import column_gradient
from ._interrupt import one_interrupt
from ._nets import Nets, Target, begin_update, finish_update, run_updates, write_predictions
from ._pair_threads import Batches
from ._trainees import Trainee

_BLOCK_SECONDS = 0.1  # how long compiled code runs before Python may see Ctrl-C, a callback or the clock


class ColumnModels(Protocol):
    """One model per column, whoever computes it."""

    def predict(self, values: NDArray[np.float32], rows: NDArray[np.int64], column: int) -> NDArray[np.float32]:
        """Predictions of one column for some rows of a working copy."""

    def state(self) -> Any:
        """A copy of all parameters."""

    def restore(self, state: Any) -> None:
        """Return to a `state`."""


@dataclass(frozen=True)
class CycleSchedule:
    """How long and how fast to train, and when to stop."""

    max_cycles: int
    n_updates: int
    learning_rate: float
    step_decay: float
    l2: float
    smallest_change: float  # a cycle that changes no value by more has converged
    patience: int
    deadline: float

    def rate(self, cycle: int) -> float:
        """The step size of a cycle, falling geometrically to ``step_decay`` of the first one."""
        return float(self.learning_rate * self.step_decay ** (cycle / self.max_cycles))


@dataclass
class CycleOutcome:
    """How a training ended."""

    n_cycles: int
    best_cycle: int
    stop_reason: str
    converged: bool
    history: dict[str, list[float]]


class ColumnOrder:
    """In which order the columns are visited, cycle after cycle."""

    def __init__(self, kind: str, n_missing: Sequence[int], rng: np.random.Generator):
        self._kind, self._rng = kind, rng
        self.current = np.argsort(n_missing, kind="stable") if kind == "increasing" else np.arange(len(n_missing))

    def next(self) -> NDArray[np.int64]:
        """The order of the next cycle."""
        if self._kind == "random":
            self.current = self._rng.permutation(len(self.current))
        return self.current


def column_gradients(batches: Batches, trainee: Trainee) -> None:
    """Gradients of the pairs drawn last for this trainee."""
    workspaces, found = batches.room(trainee.batch_size, 1)
    cells, geometry, plan, target = batches.cells, batches.geometry, trainee.plan, trainee.target
    batches.threads.each_pair(
        lambda thread, pair: column_gradient(
            cells, geometry, plan, workspaces[thread], target.column, target.both_sides, pair, found
        )
    )


class NetTrainer:
    """Update built-in networks: all in compiled code, and on one thread without Python in between."""

    def __init__(self, nets: Nets, batches: Batches, trainees: Sequence[Trainee]):
        self.nets, self.batches = nets, batches
        n_pairs = batches.threads.n_pairs
        most = max((min(len(t.rows) + len(t.practice), 2 * n_pairs * t.batch_size) for t in trainees), default=0)
        self.listed = np.empty(most, np.int64)
        self.buffer = np.empty((2, int(nets.sizes.sum()) * most), np.float32)
        self.gradient = np.empty(nets.parameters.shape[1], np.float32)
        for trainee in trainees[:1]:
            cells, geometry, plan, target = batches.cells, batches.geometry, trainee.plan, trainee.target
            workspaces, found = batches.room(trainee.batch_size, 1)
            load(begin_update, cells, plan, found, target, nets, 0, self.listed, self.buffer)
            load(column_gradient, cells, geometry, plan, workspaces[0], target.column, target.both_sides, 0, found)
            load(finish_update, cells, found, target, nets, 0, self.buffer, self.gradient, 0.0, 0.0)

    def update(self, trainee: Trainee, first: int, count: int, rate: float, l2: float) -> None:
        """Update one model ``count`` times, with the batches of the steps from ``first`` on."""
        cells, geometry, target = self.batches.cells, self.batches.geometry, trainee.target
        workspaces, found = self.batches.room(trainee.batch_size, 1)
        if len(workspaces) == 1:
            run_updates(
                cells, geometry, trainee.plan, workspaces[0], found, target, self.nets, first, count,
                self.listed, self.buffer, self.gradient, rate, l2,
            )  # fmt: skip
            return
        for step in range(first, first + count):
            n_listed = begin_update(cells, trainee.plan, found, target, self.nets, step, self.listed, self.buffer)
            column_gradients(self.batches, trainee)
            finish_update(cells, found, target, self.nets, n_listed, self.buffer, self.gradient, rate, l2)


class BestCycle:
    """The models and the table of the cycle with the lowest score."""

    def __init__(self, models: ColumnModels, values: NDArray[np.float32], trainees: Sequence[Trainee]):
        self._models, self._values, self._trainees = models, values, trainees
        self._score, self._step, self.cycle = np.inf, 0, 0
        self._kept: tuple[Any, list[NDArray[np.float32]]] | None = None

    def offer(self, score: float, cycle: int, step: int) -> None:
        """Keep the present state if its score is the best so far."""
        if score < self._score:
            self._score, self.cycle, self._step = score, cycle, step
            self._kept = self._models.state(), [self._values[t.rows, t.target.column] for t in self._trainees]

    def restore(self, step: int) -> None:
        """Return to the best state, if there was one and any update since."""
        if self._kept is None or step == self._step:
            return
        self._models.restore(self._kept[0])
        for trainee, column_values in zip(self._trainees, self._kept[1], strict=True):
            self._values[trainee.rows, trainee.target.column] = column_values


def run_cycles(
    trainees: Sequence[Trainee],
    order: ColumnOrder,
    models: ColumnModels,
    update: Callable[[Trainee, int, int, float, float], None],
    schedule: CycleSchedule,
    values: NDArray[np.float32],
    evaluate: Callable[[], float],
    score: Callable[[], dict[str, float]] | None,
    start_counts: bool,
    callbacks: Sequence[Callback],
) -> CycleOutcome:
    """Train until the schedule, a score that no longer falls, the clock, a callback or Ctrl-C says stop.

    ``score`` judges hidden values after each cycle; its first entry decides, and the best cycle's models and table are kept.
    The start is among them if it ``start_counts``, that is, if the table holds what the models predict.
    """
    history: dict[str, list[float]] = {"cycle": [], "loss": [], "movement": []}
    if not trainees:
        return CycleOutcome(0, 0, "nothing to train", True, history)
    best = BestCycle(models, values, trainees)
    total = schedule.max_cycles * schedule.n_updates * len(trainees)
    begun = time.perf_counter()
    step, block = 0, 1
    cycle, reason, converged = 0, "max_cycles", False
    # Where nothing is missing, nothing can stand still: models only practise.
    stillness = 0.0 if any(len(trainee.rows) for trainee in trainees) else float("nan")

    def record(movement: float) -> None:
        history["cycle"].append(cycle)
        history["loss"].append(evaluate())
        history["movement"].append(movement)
        scores = score() if score is not None else {}
        for name, value in scores.items():
            history.setdefault(f"validation_{name}", []).append(value)
        if scores and (start_counts or cycle > 0):
            best.offer(next(iter(scores.values())), cycle, step)

    def tell() -> bool:
        progress = FitProgress(step, total, time.perf_counter() - begun, history)
        answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
        return any(answers)

    with one_interrupt() as interrupt:
        record(float("nan"))
        while cycle < schedule.max_cycles and reason == "max_cycles" and not converged:
            movement = stillness
            for place in order.next():
                trainee = trainees[place]
                column = trainee.target.column
                before = values[trainee.rows, column]
                practised = values[trainee.practice, column]
                try:
                    done = 0
                    while done < schedule.n_updates and reason == "max_cycles":
                        count = min(block, schedule.n_updates - done)
                        clock = time.perf_counter()
                        update(trainee, step, count, schedule.rate(cycle), schedule.l2)
                        done, step = done + count, step + count
                        if count == block:
                            elapsed = max(time.perf_counter() - clock, 1e-6)
                            block = int(np.clip(block * _BLOCK_SECONDS / elapsed, 1, block * 4))
                        if tell():
                            reason = "callback"
                        elif step < total and time.perf_counter() >= schedule.deadline:
                            reason = "max_seconds"
                finally:
                    values[trainee.practice, column] = practised
                everywhere = np.concatenate([trainee.rows, trainee.practice])
                predictions = finite_predictions(models, values, everywhere, column)
                write_predictions(values, trainee.rows, trainee.target, predictions)
                if len(before):
                    movement = max(movement, float(np.abs(values[trainee.rows, column] - before).max()))
                if reason != "max_cycles":
                    break
            else:
                cycle += 1
                record(movement)
                converged = movement < schedule.smallest_change
                if score is not None and cycle - best.cycle >= schedule.patience and not converged:
                    reason = "validation"
    if interrupt.happened:
        reason = "interrupted"
    if converged:
        reason = "tol"
    best.restore(step)
    for trainee in trainees if interrupt.happened else []:  # the signal may have come before a column's check
        finite_predictions(models, values, np.concatenate([trainee.rows, trainee.practice]), trainee.target.column)
    return CycleOutcome(cycle, best.cycle if score is not None else cycle, reason, converged, history)


def finite_predictions(
    models: ColumnModels, values: NDArray[np.float32], rows: NDArray[np.int64], column: int
) -> NDArray[np.float32]:
    """Predictions of one column, or an error: a NaN must not look like an imputation."""
    predictions = models.predict(values, rows, column)
    if not np.isfinite(predictions).all():
        raise DivergedError(
            f"the model of column {column} predicts infinite values or NaN; lower learning_rate, raise epsilon, or leave "
            "scale=True; a module of your own must be finite wherever its inputs are"
        )
    return predictions


def share_at_limits(values: NDArray[np.float32], trainees: Sequence[Trainee]) -> float:
    """How many of the predictions are held at their limits, where a healthy training hardly ever gets."""
    n_held = n_all = 0
    for trainee in trainees:
        column, low, high = trainee.target.column, np.float32(trainee.target.low), np.float32(trainee.target.high)
        predictions = values[trainee.rows, column]
        n_held += int(((predictions <= low) | (predictions >= high)).sum())
        n_all += len(predictions)
    return n_held / max(n_all, 1)


def settle_rows(
    values: NDArray[np.float32],
    missing: NDArray[np.bool_],
    targets: Sequence[Target],
    models: ColumnModels,
    tolerance: float,
    max_cycles: int,
) -> None:
    """Predict the ``missing`` entries in turn, each row until none of its own moves by more than ``tolerance``."""
    active = missing.any(axis=1)
    for _ in range(max_cycles):
        moves = np.zeros(len(values), dtype=bool)
        for target in targets:
            rows = np.flatnonzero(missing[:, target.column] & active)
            before = values[rows, target.column]
            write_predictions(values, rows, target, finite_predictions(models, values, rows, target.column))
            moves[rows] |= np.abs(values[rows, target.column] - before) > tolerance
        active = moves
        if not active.any():
            return
