"""Algorithm 1's loop: windows of compiled steps, and between them everything a person may want to know or stop.

A *window* is a twentieth of the planned steps, but at least 50. Its mean of every imputed value is compared with the window
before (has it settled?), and the last windows are averaged into the result: single iterates are noisy, their mean is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compile import load
from .._interrupt import one_interrupt
from ..estimator import Callback, FitProgress
from ..exceptions import DivergedError
from ._batches import LAST_STEP, PLACE, Cells, Geometry, Plan, draw_pair, make_gradients, make_workspace, pair_gradient
from ._checkpoint import Checkpoint
from ._pair_threads import PairThreads
from ._steps import apply_step, close_window, index_cells, read_cells, run_steps, write_cells

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


def make_cells(values: NDArray[np.float32], missing: NDArray[np.bool_]) -> Cells:
    """State for a working copy whose holes already hold their start."""
    n_cells = int(missing.sum())
    if n_cells > np.iinfo(np.int32).max:
        raise ValueError(f"{n_cells} values are missing, more than the 2³¹ − 1 one fit can hold; impute parts of the rows")
    rows = np.full((len(values) + 1, 4), -1, np.int32)
    rows[:, PLACE] = 0
    column = np.empty(n_cells, np.int32)
    index_cells(missing, rows, column)
    kind = values.dtype
    return Cells(values, rows, np.zeros((len(values), 2), kind), column, np.zeros((n_cells, 2), kind))


class _Stepper:
    """Take steps, the pairs of each on as many threads as asked; the result does not depend on how many."""

    def __init__(self, cells: Cells, geometry: Geometry, plan: Plan, batch_size: int, n_pairs: int, n_jobs: int):
        self.cells, self.geometry, self.plan = cells, geometry, plan
        width, kind = cells.values.shape[1], cells.values.dtype
        self.threads = PairThreads(n_pairs, n_jobs)
        weighted = geometry.imputed_weight < 1
        self.workspaces = [make_workspace(batch_size, width, kind, weighted) for _ in range(self.threads.n_threads)]
        self.found = make_gradients(n_pairs, batch_size, width, kind)
        load(pair_gradient, cells, geometry, plan, self.workspaces[0], 0, self.found)
        load(apply_step, cells, self.found, 0, 0, 0.0)

    def take(self, first: int, rates: NDArray[np.float64], window_start: int) -> tuple[Any, Any]:
        losses, errors = np.empty(len(rates)), np.empty(len(rates))
        if len(self.workspaces) == 1:
            run_steps(
                self.cells, self.geometry, self.plan, self.workspaces[0], self.found,
                first, rates, window_start, losses, errors,
            )  # fmt: skip
            return losses, errors
        for k, rate in enumerate(rates):
            self.threads.each_pair(partial(self._pair, first + k))
            losses[k], errors[k] = apply_step(self.cells, self.found, first + k, window_start, rate)
        return losses, errors

    def _pair(self, step: int, thread: int, pair: int) -> None:
        draw_pair(self.plan, len(self.cells.values), step, pair, self.found.rows)
        pair_gradient(self.cells, self.geometry, self.plan, self.workspaces[thread], pair, self.found)

    def close(self) -> None:
        self.threads.close()


class _Windows:
    """The mean of every cell, window after window; what is recorded of each; the mean over those of the tail."""

    def __init__(self, cells: Cells, schedule: Schedule, score: Callable[[NDArray[np.floating]], tuple[float, float]] | None):
        self._cells, self._schedule, self._score = cells, schedule, score
        kind, n_cells = cells.values.dtype, len(cells.column)
        self._mean, self._previous = np.empty(n_cells, kind), np.zeros(n_cells, kind)
        self._tail, self._tail_steps = np.zeros(n_cells, kind), 0
        self._losses: list[NDArray[np.float64]] = []
        self._errors: list[NDArray[np.float64]] = []
        self.start = 0
        self.history = empty_history(score is not None)

    @property
    def end(self) -> int:
        """Where the present window ends; none straddles the start of the tail, so that the average begins exactly there."""
        edges = self.start + self._schedule.window, self._schedule.n_steps, self._schedule.tail_start
        return min(edge for edge in edges if edge > self.start)

    def add(self, losses: NDArray[np.float64], errors: NDArray[np.float64]) -> None:
        """Count the steps of a block."""
        self._losses.append(losses)
        self._errors.append(errors)

    def close(self, step: int) -> float:
        """End the window before this step; returns how far the means moved since the last one."""
        mean, previous, history = self._mean, self._previous, self.history
        close_window(self._cells, self.start, step, mean)
        movement = float(np.sqrt(np.mean(np.square(mean - previous)))) if history["step"] else float("nan")
        history["step"].append(step)
        history["learning_rate"].append(float(self._schedule.rates(step - 1, 1)[0]))
        history["loss"].append(float(np.mean(np.concatenate(self._losses))) if self._losses else float("nan"))
        history["marginal_error"].append(float(np.mean(np.concatenate(self._errors))) if self._errors else float("nan"))
        history["movement"].append(movement)
        if self._score is not None:
            mae, rmse = self._score(mean)
            history["validation_mae"].append(mae)
            history["validation_rmse"].append(rmse)
        if self.start >= self._schedule.tail_start:
            length = step - self.start
            self._tail_steps += length
            self._tail += (mean - self._tail) * mean.dtype.type(length / self._tail_steps)
        self._mean, self._previous = previous, mean
        self._losses, self._errors = [], []
        self.start = step
        return movement

    def result(self) -> NDArray[np.floating]:
        """The mean over the tail, or over the last window before it; without averaging, the cells as they are."""
        if self._tail_steps:
            return self._tail
        if self._schedule.tail_average == 0 or not self.history["step"]:
            read_cells(self._cells, self._previous)
        return self._previous

    def state(self) -> dict[str, Any]:
        """All that a continued fit needs of this."""
        return {
            "start": self.start,
            "history": self.history,
            "losses": np.concatenate([np.empty(0), *self._losses]),
            "errors": np.concatenate([np.empty(0), *self._errors]),
            "previous": self._previous,
            "tail": self._tail,
            "tail_steps": self._tail_steps,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a `state`."""
        self.start, self.history, self._tail_steps = state["start"], state["history"], state["tail_steps"]
        self._losses, self._errors = [state["losses"]], [state["errors"]]
        self._previous[:], self._tail[:] = state["previous"], state["tail"]


def descend(
    cells: Cells,
    geometry: Geometry,
    plan: Plan,
    schedule: Schedule,
    *,
    batch_size: int,
    n_pairs: int,
    n_jobs: int,
    score: Callable[[NDArray[np.floating]], tuple[float, float]] | None,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint,
) -> Outcome:
    """Move the cells down the batch Sinkhorn divergence until the schedule, the clock, a callback or Ctrl-C says stop."""
    stepper = _Stepper(cells, geometry, plan, batch_size, n_pairs, n_jobs)
    windows = _Windows(cells, schedule, score)
    # In a window too short to draw most rows, values stand still because nobody asked them: that is not settling.
    can_settle = schedule.tolerance > 0 and 2 * batch_size * n_pairs * schedule.window >= len(cells.values)
    begun = time.perf_counter()
    step, block = 0, 8
    reason, converged = "max_steps", False
    before = checkpoint.load()
    if before is not None:
        step, begun = before["step"], begun - before["seconds"]
        _restore_cells(cells, before["cells"])
        windows.restore(before["windows"])
    del before  # as large as the state itself

    def state() -> dict[str, Any]:
        seconds = time.perf_counter() - begun
        return {"step": step, "seconds": seconds, "cells": _state_of_cells(cells), "windows": windows.state()}

    try:
        with one_interrupt(waits=checkpoint.path is not None) as interrupt:
            while step < schedule.n_steps and reason == "max_steps":
                window_end = windows.end
                count = min(block, window_end - step)
                clock = time.perf_counter()
                found = stepper.take(step, schedule.rates(step, count), windows.start)
                step += count
                elapsed = time.perf_counter() - clock
                if count == block:
                    block = int(np.clip(block * _BLOCK_SECONDS / max(elapsed, 1e-6), block / 4 + 1, block * 4))
                windows.add(*found)
                if not np.isfinite(found[0]).all():
                    raise _diverged(step)
                if step == window_end:
                    converged = windows.close(step) <= schedule.tolerance and can_settle
                progress = FitProgress(step, schedule.n_steps, time.perf_counter() - begun, windows.history)
                answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
                if converged:
                    reason = "tol"
                    break
                if any(answers):
                    reason = "callback"
                elif interrupt.happened:
                    reason = "interrupted"
                elif step < schedule.n_steps and time.perf_counter() >= schedule.deadline:
                    reason = "max_seconds"
                checkpoint.offer(state, now=reason != "max_steps")
    finally:
        stepper.close()
    if interrupt.happened:
        reason = "interrupted"
        # The signal may come after a block was computed and before it was counted: the rows know which step was the last.
        step = max(step, int(cells.rows[:-1, LAST_STEP].max()) + 1)
    if step > windows.start:
        windows.close(step)
    result = windows.result()
    if not np.isfinite(result).all():
        raise _diverged(step)
    return Outcome(result, step, reason, converged, windows.history)


def _state_of_cells(cells: Cells) -> dict[str, Any]:
    """What steps change of the cells; the rest of the table is as it was before."""
    values = np.empty(len(cells.column), cells.values.dtype)
    read_cells(cells, values)
    return {
        "values": values,
        "moments": cells.moments,
        "potentials": cells.potentials,
        "last_step": cells.rows[:, LAST_STEP],
    }


def _restore_cells(cells: Cells, state: dict[str, Any]) -> None:
    write_cells(cells, state["values"])
    cells.moments[:], cells.potentials[:], cells.rows[:, LAST_STEP] = state["moments"], state["potentials"], state["last_step"]


def _diverged(step: int) -> DivergedError:
    return DivergedError(
        f"numbers became infinite or NaN at step {step}; raise epsilon, lower learning_rate, "
        "or leave scale=True so that columns of very different size are comparable"
    )
