"""Algorithm 3's loop: cycles over columns, a few updates of each column's model, and between them everything else.

The table holds predictions wherever a value is missing. In turn, each column's model is updated by the gradient of the batch
divergence in that column, and predicts it anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._interrupt import one_interrupt
from .._warn import warn_user
from ..exceptions import DivergedError, OtimputeWarning
from ..fitting import Callback, FitProgress
from ._checkpoint import Checkpoint
from ._nets import Target, write_predictions
from ._pair_threads import Batches
from ._trainees import Trainee

_MOST_HELD = 0.05  # share of predictions at their limits, where only far tails belong
_MOST_SWEEPS = 30  # over the columns of a new row
_SETTLED = 1e-3  # a new row whose values move by less, in standard deviations, is done
_BLOCK_SECONDS = 0.1  # how long compiled code runs before Python may see Ctrl-C, a callback or the clock


class Part(Protocol):
    """What a training consists of, and a checkpoint of it."""

    def state(self) -> Any:
        """All that training changes."""

    def restore(self, state: Any) -> None:
        """Return to a `state`."""


class Trainer(Part, Protocol):
    """Updates models; its state is that of its optimizer and of the batches."""

    def update(self, trainee: Trainee, first: int, count: int, rate: float, l2: float) -> None:
        """Update one model ``count`` times, with the batches of the steps from ``first`` on."""


class ColumnModels(Part, Protocol):
    """One model per column, whoever computes it; its state is a copy of all parameters."""

    def predict(self, values: NDArray[np.float32], rows: NDArray[np.int64], column: int) -> NDArray[np.float32]:
        """Predictions of one column for some rows of a working copy."""

    def trainer(self, batches: Batches, trainees: Sequence[Trainee]) -> Trainer:
        """What updates these models."""


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

    def state(self) -> tuple[Any, ...]:
        """The present order, and what decides the next ones."""
        return self.current, self._rng.bit_generator.state

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to a `state`."""
        self.current, self._rng.bit_generator.state = state


@dataclass
class _Position:
    """How far a training has come."""

    step: int = 0
    cycle: int = 0  # whole ones
    visited: int = 0  # columns whose turn in this cycle is over
    updated: int = 0  # updates in the present turn
    movement: float = 0.0  # largest change of a value in this cycle
    before: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))  # the column as its turn began


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
            self._kept = self._models.state(), read_columns(self._values, self._trainees)

    def bring_back(self, step: int) -> None:
        """Return to the best state, if there was one and any update since."""
        if self._kept is None or step == self._step:
            return
        self._models.restore(self._kept[0])
        write_columns(self._values, self._trainees, self._kept[1])

    def state(self) -> tuple[Any, ...]:
        """What is the best so far."""
        return self._score, self.cycle, self._step, self._kept

    def restore(self, state: tuple[Any, ...]) -> None:
        """Take this for the best so far."""
        self._score, self.cycle, self._step, self._kept = state


def read_columns(values: NDArray[np.float32], trainees: Sequence[Trainee]) -> list[NDArray[np.float32]]:
    """A copy of what models predicted into a table, column by column."""
    return [values[trainee.rows, trainee.target.column] for trainee in trainees]


def write_columns(values: NDArray[np.float32], trainees: Sequence[Trainee], columns: Sequence[NDArray[np.float32]]) -> None:
    """Put back what was read."""
    for trainee, column_values in zip(trainees, columns, strict=True):
        values[trainee.rows, trainee.target.column] = column_values


def run_cycles(
    trainees: Sequence[Trainee],
    order: ColumnOrder,
    models: ColumnModels,
    batches: Batches,
    schedule: CycleSchedule,
    score: Callable[[], dict[str, float]] | None,
    start_counts: bool,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint,
) -> CycleOutcome:
    """Train until the schedule, a score that no longer falls, the clock, a callback or Ctrl-C says stop.

    ``score`` judges hidden values after each cycle; its first entry decides, and the best cycle's models and table are kept.
    The start is among them if it ``start_counts``, that is, if the table holds what the models predict.
    """
    history: dict[str, list[float]] = {"cycle": [], "loss": [], "movement": []}
    if not trainees:
        return CycleOutcome(0, 0, "nothing to train", True, history)
    values, trainer = batches.cells.values, models.trainer(batches, trainees)
    best = BestCycle(models, values, trainees)
    parts: list[Part] = [order, models, trainer, best]
    total = schedule.max_cycles * schedule.n_updates * len(trainees)
    begun = time.perf_counter()
    at, block = _Position(), 1
    reason, converged = "max_cycles", False
    # Where nothing is missing, nothing can stand still: models only practise.
    stillness = 0.0 if any(len(trainee.rows) for trainee in trainees) else float("nan")
    found = checkpoint.load()
    if found is not None:
        at, begun, history = _Position(**found["at"]), begun - found["seconds"], found["history"]
        write_columns(values, trainees, found["columns"])
        for part, part_state in zip(parts, found["parts"], strict=True):
            part.restore(part_state)
    del found  # as large as the state itself

    def state() -> dict[str, Any]:
        # Not what a model practises on: an update predicts whatever it draws.
        return {
            "at": vars(at),
            "seconds": time.perf_counter() - begun,
            "history": history,
            "columns": read_columns(values, trainees),
            "parts": [part.state() for part in parts],
        }

    def record(movement: float) -> None:
        history["cycle"].append(at.cycle)
        history["loss"].append(batches.evaluate([(trainee.plan, trainee.batch_size) for trainee in trainees]))
        history["movement"].append(movement)
        scores = score() if score is not None else {}
        for name, value in scores.items():
            history.setdefault(f"validation_{name}", []).append(value)
        if scores and (start_counts or at.cycle > 0):
            best.offer(next(iter(scores.values())), at.cycle, at.step)

    def tell() -> bool:
        progress = FitProgress(at.step, total, time.perf_counter() - begun, history)
        answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
        return any(answers)

    with one_interrupt(waits=checkpoint.path is not None) as interrupt:
        if not history["cycle"]:
            record(float("nan"))
        while at.cycle < schedule.max_cycles and reason == "max_cycles" and not converged:
            if at.visited == at.updated == 0:
                order.next()
                at.movement = stillness
            while at.visited < len(trainees) and reason == "max_cycles":
                trainee = trainees[order.current[at.visited]]
                column = trainee.target.column
                practised = values[trainee.practice, column]
                if at.updated == 0:  # and not a turn that a checkpoint was written in
                    at.before = values[trainee.rows, column]
                try:
                    while at.updated < schedule.n_updates and reason == "max_cycles":
                        count = min(block, schedule.n_updates - at.updated)
                        clock = time.perf_counter()
                        trainer.update(trainee, at.step, count, schedule.rate(at.cycle), schedule.l2)
                        at.updated, at.step = at.updated + count, at.step + count
                        if count == block:
                            elapsed = max(time.perf_counter() - clock, 1e-6)
                            block = int(np.clip(block * _BLOCK_SECONDS / elapsed, 1, block * 4))
                        if tell():
                            reason = "callback"
                        elif interrupt.happened:
                            reason = "interrupted"
                        elif at.step < total and time.perf_counter() >= schedule.deadline:
                            reason = "max_seconds"
                        checkpoint.offer(state, now=reason != "max_cycles")
                finally:
                    values[trainee.practice, column] = practised
                everywhere = np.concatenate([trainee.rows, trainee.practice])
                predictions = finite_predictions(models, values, everywhere, column)
                write_predictions(values, trainee.rows, trainee.target, predictions)
                if len(at.before):
                    at.movement = max(at.movement, float(np.abs(values[trainee.rows, column] - at.before).max()))
                at.visited, at.updated = at.visited + 1, 0
            if reason == "max_cycles":
                at.cycle, at.visited = at.cycle + 1, 0
                record(at.movement)
                converged = at.movement < schedule.smallest_change
                if score is not None and at.cycle - best.cycle >= schedule.patience and not converged:
                    reason = "validation"
    if interrupt.happened:
        reason = "interrupted"
    if converged:
        reason = "tol"
    best.bring_back(at.step)
    for trainee in trainees if interrupt.happened else []:  # the signal may have come before a column's check
        finite_predictions(models, values, np.concatenate([trainee.rows, trainee.practice]), trainee.target.column)
    return CycleOutcome(at.cycle, best.cycle if score is not None else at.cycle, reason, converged, history)


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


def warn_of_held_predictions(values: NDArray[np.float32], trainees: Sequence[Trainee]) -> None:
    """Say so where many predictions are held at their limits: a healthy training hardly ever gets there."""
    n_held = n_all = 0
    for trainee in trainees:
        column, low, high = trainee.target.column, np.float32(trainee.target.low), np.float32(trainee.target.high)
        if low == high:
            continue  # a column that no longer varies in a warm start: held by design
        predictions = values[trainee.rows, column]
        n_held += int(((predictions <= low) | (predictions >= high)).sum())
        n_all += len(predictions)
    held = n_held / max(n_all, 1)
    if held > _MOST_HELD:
        warn_user(
            f"{held:.0%} of the imputed values are held at one range beyond the observed ones; if the training runs away "
            "(see history_), lower learning_rate or pass scale=True",
            OtimputeWarning,
        )


def settle_rows(
    values: NDArray[np.float32],
    missing: NDArray[np.bool_],
    targets: Sequence[Target],
    models: ColumnModels,
    max_cycles: int = _MOST_SWEEPS,
) -> None:
    """Predict the ``missing`` entries in turn, each row until none of its own moves any more."""
    active = missing.any(axis=1)
    for _ in range(max_cycles):
        moves = np.zeros(len(values), dtype=bool)
        for target in targets:
            rows = np.flatnonzero(missing[:, target.column] & active)
            before = values[rows, target.column]
            write_predictions(values, rows, target, finite_predictions(models, values, rows, target.column))
            moves[rows] |= np.abs(values[rows, target.column] - before) > _SETTLED
        active = moves
        if not active.any():
            return
