"""Algorithm 1 as a training: windows of compiled steps.

A *window* is a twentieth of the planned steps, but at least 50. Its mean of every imputed value is compared with the window
before (has it settled?), and the last windows are averaged into the result: single iterates are noisy, their mean is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._device import PAIRS_A_SECOND
from ...exceptions import DivergedError, InPython, Message, Term
from ...fitting import Callback, StopReason
from ...fitting.checkpoint import NO_CHECKPOINT, Checkpoint
from ...fitting.training import Look, Process, Schedule, TrainingOutcome, train
from ..gpu.gpu_steps import GpuFit, GpuSteps

Score = Callable[[NDArray[np.floating]], tuple[float, float]]  # MAE and RMSE of the cells of a fit

N_WINDOWS = 20
_SHORTEST_WINDOW = 50


@dataclass(frozen=True)
class DescentSchedule:
    """How long and how fast to descend, and when to stop."""

    n_steps: int
    learning_rate: float
    step_decay: float
    tail_average: float
    tolerance: float
    deadline: float  # in terms of time.perf_counter()

    def rates(self, first: int, count: int) -> NDArray[np.float64]:
        """Step sizes, falling geometrically to ``step_decay`` of the first one."""
        steps = np.arange(first, first + count)
        return self.learning_rate * self.step_decay ** (steps / self.n_steps)

    @property
    def window(self) -> int:
        """Steps per window."""
        return min(self.n_steps, max(_SHORTEST_WINDOW, -(-self.n_steps // N_WINDOWS)))

    @property
    def tail_start(self) -> int:
        """First step that counts for the average."""
        return self.n_steps - round(self.tail_average * self.n_steps)


@dataclass(frozen=True)
class DescentProblem:
    """What a descent starts from, wherever it is computed."""

    fit: GpuFit
    schedule: DescentSchedule
    batch_size: int
    n_pairs: int
    score: Score | None

    @property
    def cpu_seconds(self) -> float:
        """About how long the CPU would take."""
        return self.schedule.n_steps * self.n_pairs * self.batch_size**2 / PAIRS_A_SECOND

    @property
    def kind(self) -> tuple[Any, ...]:
        """What descents that run together on a GPU have in common."""
        plan = self.fit.plan
        learns_metric, has_pools = len(self.fit.geometry.metric) > 0, len(plan.x_rows) > 0
        iterations = plan.n_cross_iterations, plan.n_self_iterations
        return self.fit.free.shape, self.schedule, self.batch_size, self.n_pairs, iterations, learns_metric, has_pools


@dataclass
class Descended:
    """Where the descent of a fit ended."""

    cells: NDArray[np.floating]  # [n_cells]
    outcome: TrainingOutcome


def empty_history(validates: bool) -> dict[str, list[float]]:
    """What a fit records of every window."""
    names = ["step", "learning_rate", "loss", "marginal_error", "movement"]
    if validates:
        names += ["validation_mae", "validation_rmse"]
    return {name: [] for name in names}


class Steps(Protocol):
    """Where the cells of one fit, or of several side by side, are; and what moves them."""

    n_fits: int
    n_rows: int
    rows_per_step: int

    def take(
        self, first: int, rates: NDArray[np.float64], window_start: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Take a step with each of the ``rates``; returns their losses and marginal errors, both ``[steps, fits]``."""
        ...

    def window_means(self, window_start: int, step: int) -> Sequence[Any]:
        """Of each fit, the mean of every cell since the window began; another window begins."""
        ...

    def read(self, fit: int) -> Any:
        """The cells of a fit as they are."""
        ...

    def on_host(self, cells: Any) -> NDArray[np.floating]:
        """Cells as an array of NumPy's."""
        ...

    def from_host(self, cells: NDArray[np.floating]) -> Any:
        """And back."""
        ...

    def steps_done(self) -> int:
        """How many steps the rows have seen."""
        ...

    def state(self) -> dict[str, Any]:
        """What steps change, of a single fit."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a `state`."""
        ...

    def close(self) -> None:
        """End what the steps hold."""
        ...


class _Windows:
    """Of one fit, the mean of every cell window after window; what is recorded of each; the mean over those of the tail."""

    def __init__(self, schedule: DescentSchedule, score: Score | None):
        self._schedule, self._score = schedule, score
        self._previous: Any = None
        self._tail: Any = None
        self._tail_steps = 0
        self._losses: list[NDArray[np.float64]] = []
        self._errors: list[NDArray[np.float64]] = []
        self.history = empty_history(score is not None)

    def add(self, losses: NDArray[np.float64], errors: NDArray[np.float64]) -> None:
        """Count the steps of a block."""
        self._losses.append(losses)
        self._errors.append(errors)

    def close(self, start: int, step: int, mean: Any, steps: Steps) -> float:
        """Note the mean of a window; returns how far it moved since the last one."""
        history = self.history
        movement = float("nan") if self._previous is None else _root_mean_square(mean - self._previous)
        history["step"].append(step)
        history["learning_rate"].append(float(self._schedule.rates(step - 1, 1)[0]))
        history["loss"].append(float(np.mean(np.concatenate(self._losses))) if self._losses else float("nan"))
        history["marginal_error"].append(float(np.mean(np.concatenate(self._errors))) if self._errors else float("nan"))
        history["movement"].append(movement)
        if self._score is not None:
            mae, rmse = self._score(steps.on_host(mean))
            history["validation_mae"].append(mae)
            history["validation_rmse"].append(rmse)
        if start >= self._schedule.tail_start:
            self._tail_steps += step - start
            share = (step - start) / self._tail_steps
            if self._tail is None:
                self._tail = mean
            else:
                self._tail += (mean - self._tail) * share
        self._previous = mean
        self._losses, self._errors = [], []
        return movement

    def result(self, fit: int, steps: Steps) -> NDArray[np.floating]:
        """The mean over the tail, or over the last window before it; without averaging, the cells as they are."""
        if self._tail is not None:
            return steps.on_host(self._tail)
        if self._schedule.tail_average == 0 or self._previous is None:
            return steps.on_host(steps.read(fit))
        return steps.on_host(self._previous)

    def state(self, steps: Steps) -> dict[str, Any]:
        """All that a continued fit needs of this."""
        none = np.empty(0)
        return {
            "history": self.history,
            "losses": np.concatenate([none, *self._losses]),
            "errors": np.concatenate([none, *self._errors]),
            "previous": none if self._previous is None else steps.on_host(self._previous),
            "tail": none if self._tail is None else steps.on_host(self._tail),
            "tail_steps": self._tail_steps,
        }

    def restore(self, state: dict[str, Any], steps: Steps) -> None:
        """Return to a `state`."""
        self.history, self._tail_steps = state["history"], state["tail_steps"]
        self._losses, self._errors = [state["losses"]], [state["errors"]]
        self._previous, self._tail = (
            steps.from_host(state[name]) if len(state[name]) else None for name in ("previous", "tail")
        )


def _root_mean_square(difference: Any) -> float:
    difference *= difference
    return math.sqrt(difference.mean())


class _Descent(Process):
    """Cells that move down the batch Sinkhorn divergence.

    Several fits move together, but one that has settled keeps what it had. Callbacks and checkpoint see the first alone.
    """

    in_blocks = looks_at_end = True

    def __init__(self, steps: Steps, schedule: DescentSchedule, scores: Sequence[Score | None]):
        self._steps, self._schedule = steps, schedule
        self._windows = [_Windows(schedule, score) for score in scores]
        self._start = 0  # of the window
        # In a window too short to draw most rows, values stand still because nobody asked them: that is not settling.
        self._can_settle = schedule.tolerance > 0 and steps.rows_per_step * schedule.window >= steps.n_rows
        self.settled: dict[int, Descended] = {}
        self.history = self._windows[0].history

    @property
    def _going(self) -> list[int]:
        return [fit for fit in range(self._steps.n_fits) if fit not in self.settled]

    def advance(self, first: int, count: int) -> int:
        losses, errors = self._steps.take(first, self._schedule.rates(first, count), self._start)
        for fit in self._going:
            self._windows[fit].add(losses[:, fit], errors[:, fit])
        if not np.isfinite(losses[:, self._going]).all():
            raise _diverged(first + count)
        return count

    def look(self, step: int, *, whole: bool) -> Look:
        means = self._steps.window_means(self._start, step)
        for fit in self._going:
            movement = self._windows[fit].close(self._start, step, means[fit], self._steps)
            if whole and self._can_settle and movement <= self._schedule.tolerance:
                self.settled[fit] = self.end(fit, TrainingOutcome(step, step, StopReason.TOL, {}))
        self._start = step
        return Look(not self._going)

    def end(self, fit: int, outcome: TrainingOutcome) -> Descended:
        """What a fit has come to."""
        cells = self._windows[fit].result(fit, self._steps)
        if not np.isfinite(cells).all():
            raise _diverged(outcome.n_steps)
        return Descended(cells, replace(outcome, history=self._windows[fit].history))

    def steps_taken(self, counted: int) -> int:
        return max(counted, self._steps.steps_done())

    def state(self) -> dict[str, Any]:
        return {"start": self._start, "cells": self._steps.state(), "windows": self._windows[0].state(self._steps)}

    def restore(self, state: dict[str, Any]) -> None:
        self._start = state["start"]
        self._steps.restore(state["cells"])
        self._windows[0].restore(state["windows"], self._steps)
        self.history = self._windows[0].history


def descend_on_gpu(
    problems: Sequence[DescentProblem], callbacks: Sequence[Callback] = (), checkpoint: Checkpoint = NO_CHECKPOINT
) -> list[Descended]:
    """Descents of one kind, all at once."""
    first = problems[0]
    steps = GpuSteps([each.fit for each in problems], first.schedule.n_steps, first.batch_size, first.n_pairs)
    return descend(steps, first.schedule, [each.score for each in problems], callbacks, checkpoint)


def descend(
    steps: Steps,
    schedule: DescentSchedule,
    scores: Sequence[Score | None],
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint,
) -> list[Descended]:
    """Move the cells of all fits until they have settled or the schedule, the clock, a callback or Ctrl-C says stop."""
    with closing(steps):
        process = _Descent(steps, schedule, scores)
        plan = Schedule(schedule.n_steps, schedule.window, deadline=schedule.deadline, edge=schedule.tail_start)
        outcome = train(process, plan, callbacks, checkpoint)
        return [process.settled.get(fit) or process.end(fit, outcome) for fit in range(steps.n_fits)]


def _diverged(step: int) -> DivergedError:
    return DivergedError(
        Message(
            f"numbers became infinite or NaN at step {step}; raise epsilon, lower learning_rate, or ",
            InPython("leave ", "pass "),
            Term("scale", True),
            " so that columns of very different size are comparable",
        )
    )
