"""Algorithm 3 as a training: cycles over columns, a few updates of each column's model.

The table holds predictions wherever a value is missing. In turn, each column's model is updated by the gradient of the batch
divergence in that column, and predicts it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._warn import warn_user
from ...exceptions import DivergedError, InPython, Message, OtimputeWarning, Term
from ...fitting import Callback, StopReason
from ...fitting.checkpoint import Checkpoint
from ...fitting.training import Look, Process, Schedule, TrainingOutcome, train
from ..batches.pair_threads import Batches
from .nets import Target, write_predictions
from .trained_columns import TrainedColumn

_MOST_HELD = 0.05  # share of predictions at their limits, where only far tails belong
_MOST_SWEEPS = 30  # over the columns of a new row
_SETTLED = 1e-3  # a new row whose values move by less, in standard deviations, is done


class Part(Protocol):
    """What a training consists of, and a checkpoint of it."""

    def state(self) -> Any:
        """All that training changes."""

    def restore(self, state: Any) -> None:
        """Return to a `state`."""


class Trainer(Part, Protocol):
    """Updates models; its state is that of its optimizer and of the batches."""

    def update(self, trained_column: TrainedColumn, first: int, count: int, rate: float, l2: float) -> None:
        """Update one model ``count`` times, with the batches of the steps from ``first`` on."""


class ColumnModels(Part, Protocol):
    """One model per column, whoever computes it; its state is a copy of all parameters."""

    def predict(self, values: NDArray[np.float32], rows: NDArray[np.int64], column: int) -> NDArray[np.float32]:
        """Predictions of one column for some rows of a working copy."""

    def trainer(self, batches: Batches, trained_columns: Sequence[TrainedColumn]) -> Trainer:
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


def read_columns(values: NDArray[np.float32], trained_columns: Sequence[TrainedColumn]) -> list[NDArray[np.float32]]:
    """A copy of what models predicted into a table, column by column."""
    return [values[trained_column.rows, trained_column.target.column] for trained_column in trained_columns]


def write_columns(
    values: NDArray[np.float32], trained_columns: Sequence[TrainedColumn], columns: Sequence[NDArray[np.float32]]
) -> None:
    """Put back what was read."""
    for trained_column, column_values in zip(trained_columns, columns, strict=True):
        values[trained_column.rows, trained_column.target.column] = column_values


def run_cycles(
    trained_columns: Sequence[TrainedColumn],
    order: ColumnOrder,
    models: ColumnModels,
    batches: Batches,
    schedule: CycleSchedule,
    score: Callable[[], dict[str, float]] | None,
    start_counts: bool,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint,
) -> TrainingOutcome:
    """Train until the schedule, a score that no longer falls, the clock, a callback or Ctrl-C says stop; counts in cycles.

    ``score`` judges hidden values after each cycle; its first entry decides, and the best cycle's models and table are kept.
    The start is among them if it ``start_counts``, that is, if the table holds what the models predict.
    """
    if not trained_columns:
        return TrainingOutcome(0, 0, StopReason.NOTHING_TO_TRAIN, _empty_history())
    process = _Cycles(trained_columns, order, models, batches, schedule, score, start_counts)
    a_cycle = process.steps_per_cycle
    plan = Schedule(schedule.max_cycles * a_cycle, a_cycle, schedule.patience * a_cycle, schedule.deadline)
    outcome = train(process, plan, callbacks, checkpoint)
    reason = StopReason.MAX_CYCLES if outcome.stop_reason == StopReason.MAX_STEPS else outcome.stop_reason
    return TrainingOutcome(outcome.n_steps // a_cycle, outcome.best_step // a_cycle, reason, outcome.history)


def _empty_history() -> dict[str, list[float]]:
    return {"cycle": [], "loss": [], "movement": []}


class _Cycles(Process):
    """Columns have their turns; in a turn the column's model is updated some times, and then predicts the column anew."""

    in_blocks = looks_at_start = True

    def __init__(
        self,
        trained_columns: Sequence[TrainedColumn],
        order: ColumnOrder,
        models: ColumnModels,
        batches: Batches,
        schedule: CycleSchedule,
        score: Callable[[], dict[str, float]] | None,
        start_counts: bool,
    ):
        self._columns_to_train, self._order, self._models, self._batches = trained_columns, order, models, batches
        self._schedule, self._score, self._start_counts = schedule, score, start_counts
        self._values, self._trainer = batches.cells.values, models.trainer(batches, trained_columns)
        self.steps_per_cycle = schedule.n_updates * len(trained_columns)
        self._movement = float("nan")  # largest change of a value in this cycle
        self._before = np.empty(0, np.float32)  # the column as its turn began
        self._turn: tuple[TrainedColumn, NDArray[np.float32]] | None = None  # and the values that its model practises on
        self.history = _empty_history()

    def advance(self, first: int, count: int) -> int:
        turn, updated = divmod(first, self._schedule.n_updates)
        cycle, place = divmod(turn, len(self._columns_to_train))
        if first % self.steps_per_cycle == 0:
            self._order.next()
            # Where nothing is missing, nothing can stand still: models only practise.
            self._movement = 0.0 if any(len(trained_column.rows) for trained_column in self._columns_to_train) else float("nan")
        trained_column = self._columns_to_train[self._order.current[place]]
        if updated == 0:
            self._before = self._values[trained_column.rows, trained_column.target.column]
        if self._turn is None:  # it begins, or a checkpoint was written in it
            self._turn = trained_column, self._values[trained_column.practice, trained_column.target.column]
        count = min(count, self._schedule.n_updates - updated)
        self._trainer.update(trained_column, first, count, self._schedule.rate(cycle), self._schedule.l2)
        if updated + count == self._schedule.n_updates:
            self.finish()
        return count

    def finish(self) -> None:
        """End the turn, if one has begun."""
        if self._turn is None:
            return
        trained_column, practised = self._turn
        values, column = self._values, trained_column.target.column
        values[trained_column.practice, column] = practised
        everywhere = np.concatenate([trained_column.rows, trained_column.practice])
        write_predictions(
            values, trained_column.rows, trained_column.target, finite_predictions(self._models, values, everywhere, column)
        )
        if len(self._before):
            self._movement = max(self._movement, float(np.abs(values[trained_column.rows, column] - self._before).max()))
        self._turn = None

    def look(self, step: int, *, whole: bool) -> Look:  # noqa: ARG002
        cycle = step // self.steps_per_cycle
        self.history["cycle"].append(cycle)
        self.history["loss"].append(self._batches.evaluate([(each.plan, each.batch_size) for each in self._columns_to_train]))
        self.history["movement"].append(self._movement)
        scores = {} if self._score is None else self._score()
        for name, value in scores.items():
            self.history.setdefault(f"validation_{name}", []).append(value)
        counts = scores and (self._start_counts or cycle > 0)
        return Look(self._movement < self._schedule.smallest_change, next(iter(scores.values())) if counts else None)

    def keep(self) -> Any:
        return self._models.state(), read_columns(self._values, self._columns_to_train)

    def bring_back(self, kept: Any) -> None:
        self._models.restore(kept[0])
        write_columns(self._values, self._columns_to_train, kept[1])

    @property
    def _parts(self) -> list[Part]:
        return [self._order, self._models, self._trainer]

    def state(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "movement": self._movement,
            "before": self._before,
            # Not what a model practises on: an update predicts whatever it draws.
            "columns": read_columns(self._values, self._columns_to_train),
            "parts": [part.state() for part in self._parts],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.history, self._movement, self._before = state["history"], state["movement"], state["before"]
        write_columns(self._values, self._columns_to_train, state["columns"])
        for part, part_state in zip(self._parts, state["parts"], strict=True):
            part.restore(part_state)


def finite_predictions(
    models: ColumnModels, values: NDArray[np.float32], rows: NDArray[np.int64], column: int
) -> NDArray[np.float32]:
    """Predictions of one column, or an error: a NaN must not look like an imputation."""
    predictions = models.predict(values, rows, column)
    if not np.isfinite(predictions).all():
        raise DivergedError(
            Message(
                f"the model of column {column} predicts infinite values or NaN; lower learning_rate, raise epsilon, or ",
                InPython("leave ", "pass "),
                Term("scale", True),
                "; a module of your own must be finite wherever its inputs are",
            )
        )
    return predictions


def warn_of_held_predictions(values: NDArray[np.float32], trained_columns: Sequence[TrainedColumn]) -> None:
    """Say so where many predictions are held at their limits: a healthy training hardly ever gets there."""
    n_held = n_all = 0
    for trained_column in trained_columns:
        column, low, high = (
            trained_column.target.column,
            np.float32(trained_column.target.low),
            np.float32(trained_column.target.high),
        )
        if low == high:
            continue  # a column that no longer varies in a warm start: held by design
        predictions = values[trained_column.rows, column]
        n_held += int(((predictions <= low) | (predictions >= high)).sum())
        n_all += len(predictions)
    held = n_held / max(n_all, 1)
    if held > _MOST_HELD:
        warn_user(
            Message(
                f"{held:.0%} of the imputed values are held at one range beyond the observed ones; if the training runs away",
                InPython(" (see history_)"),
                ", lower learning_rate or pass ",
                Term("scale", True),
            ),
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
