"""Algorithm 1's loop: windows of compiled steps, and between them everything a person may want to know or stop.

A *window* is a twentieth of the planned steps, but at least 50. Its mean of every imputed value is compared with the window
before (has it settled?), and the last windows are averaged into the result: single iterates are noisy, their mean is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._interrupt import one_interrupt
from ..exceptions import DivergedError
from ..fitting import Callback, FitProgress
from ._checkpoint import Checkpoint

FloatArray = NDArray[np.float64]
Score = Callable[[NDArray[np.floating]], tuple[float, float]]  # MAE and RMSE of the cells of a fit

N_WINDOWS = 20
_SHORTEST_WINDOW = 50
_BLOCK_SECONDS = 0.1  # how long compiled code runs before Python may see Ctrl-C, a callback or the clock


@dataclass(frozen=True)
class Schedule:
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

    def window_end(self, start: int) -> int:
        """Where a window ends; none straddles the start of the tail, so that the average begins exactly there."""
        return min(edge for edge in (start + self.window, self.n_steps, self.tail_start) if edge > start)


@dataclass
class Outcome:
    """Where a descent ended."""

    cells: NDArray[np.floating]  # [n_cells]
    n_steps: int
    stop_reason: str
    converged: bool
    history: dict[str, list[float]]


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

    def __init__(self, schedule: Schedule, score: Score | None):
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


def descend(
    steps: Steps, schedule: Schedule, scores: Sequence[Score | None], callbacks: Sequence[Callback], checkpoint: Checkpoint
) -> list[Outcome]:
    """Move the cells down the batch Sinkhorn divergence until the schedule, the clock, a callback or Ctrl-C says stop.

    Several fits end together, but one that has settled keeps what it had then. Callbacks and checkpoint see the first alone.
    """
    windows = [_Windows(schedule, score) for score in scores]
    settled: dict[int, Outcome] = {}
    # In a window too short to draw most rows, values stand still because nobody asked them: that is not settling.
    can_settle = schedule.tolerance > 0 and steps.rows_per_step * schedule.window >= steps.n_rows
    begun = time.perf_counter()
    step, start, block = 0, 0, 8
    reason = "max_steps"
    before = checkpoint.load()
    if before is not None:
        step, start, begun = before["step"], before["start"], begun - before["seconds"]
        steps.restore(before["cells"])
        windows[0].restore(before["windows"], steps)
    del before  # as large as the state itself

    def state() -> dict[str, Any]:
        seconds = time.perf_counter() - begun
        return {"step": step, "start": start, "seconds": seconds, "cells": steps.state(), "windows": windows[0].state(steps)}

    def close_window() -> dict[int, float]:
        means = steps.window_means(start, step)
        return {fit: windows[fit].close(start, step, means[fit], steps) for fit in range(steps.n_fits) if fit not in settled}

    def outcome(fit: int, reason: str) -> Outcome:
        result = windows[fit].result(fit, steps)
        if not np.isfinite(result).all():
            raise _diverged(step)
        return Outcome(result, step, reason, reason == "tol", windows[fit].history)

    try:
        with one_interrupt(waits=checkpoint.path is not None) as interrupt:
            while step < schedule.n_steps and reason == "max_steps":
                window_end = schedule.window_end(start)
                count = min(block, window_end - step)
                clock = time.perf_counter()
                losses, errors = steps.take(step, schedule.rates(step, count), start)
                step += count
                elapsed = time.perf_counter() - clock
                if count == block:
                    block = int(np.clip(block * _BLOCK_SECONDS / max(elapsed, 1e-6), block / 4 + 1, block * 4))
                going = [fit for fit in range(steps.n_fits) if fit not in settled]
                for fit in going:
                    windows[fit].add(losses[:, fit], errors[:, fit])
                if not np.isfinite(losses[:, going]).all():
                    raise _diverged(step)
                if step == window_end:
                    movements, start = close_window(), step
                    for fit, movement in movements.items():
                        if can_settle and movement <= schedule.tolerance:
                            settled[fit] = outcome(fit, "tol")
                progress = FitProgress(step, schedule.n_steps, time.perf_counter() - begun, windows[0].history)
                answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
                if len(settled) == steps.n_fits:
                    break
                if any(answers):
                    reason = "callback"
                elif interrupt.happened:
                    reason = "interrupted"
                elif step < schedule.n_steps and time.perf_counter() >= schedule.deadline:
                    reason = "max_seconds"
                checkpoint.offer(state, now=reason != "max_steps")
        if interrupt.happened:
            reason = "interrupted"
            # The signal may come after a block was computed and before it was counted: the rows know which step was the last.
            step = max(step, steps.steps_done())
        if step > start:
            close_window()
        return [settled.get(fit) or outcome(fit, reason) for fit in range(steps.n_fits)]
    finally:
        steps.close()


def _diverged(step: int) -> DivergedError:
    return DivergedError(
        f"numbers became infinite or NaN at step {step}; raise epsilon, lower learning_rate, "
        "or leave scale=True so that columns of very different size are comparable"
    )
