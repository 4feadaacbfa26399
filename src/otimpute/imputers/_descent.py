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
from ..estimator import Callback, FitProgress
from ..exceptions import DivergedError
from ._batches import LAST_STEP, PLACE, Cells, Geometry, Plan, draw_pair, make_gradients, make_workspace, pair_gradient
from ._interrupt import one_interrupt
from ._pair_threads import PairThreads
from ._steps import apply_step, close_window, index_cells, read_cells, run_steps

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
) -> Outcome:
    """Move the cells down the batch Sinkhorn divergence until the schedule, the clock, a callback or Ctrl-C says stop."""
    stepper = _Stepper(cells, geometry, plan, batch_size, n_pairs, n_jobs)
    kind, n_cells = cells.values.dtype, len(cells.column)
    window_mean, previous = np.empty(n_cells, kind), np.empty(n_cells, kind)
    tail, tail_steps = np.zeros(n_cells, kind), 0
    history = empty_history(score is not None)
    # In a window too short to draw most rows, values stand still because nobody asked them: that is not settling.
    can_settle = schedule.tolerance > 0 and 2 * batch_size * n_pairs * schedule.window >= len(cells.values)
    begun = time.perf_counter()
    step, window_start, block = 0, 0, 8
    reason, converged = "max_steps", False
    losses: list[Any] = []
    errors: list[Any] = []

    def finish_window() -> float:
        nonlocal window_start, tail_steps, window_mean, previous
        close_window(cells, window_start, step, window_mean)
        first = not history["step"]
        movement = float("nan") if first else float(np.sqrt(np.mean(np.square(window_mean - previous))))
        history["step"].append(step)
        history["learning_rate"].append(float(schedule.rates(step - 1, 1)[0]))
        history["loss"].append(float(np.mean(np.concatenate(losses))) if losses else float("nan"))
        history["marginal_error"].append(float(np.mean(np.concatenate(errors))) if errors else float("nan"))
        history["movement"].append(movement)
        if score is not None:
            mae, rmse = score(window_mean)
            history["validation_mae"].append(mae)
            history["validation_rmse"].append(rmse)
        if window_start >= schedule.tail_start:
            length = step - window_start
            tail_steps += length
            np.add(tail, (window_mean - tail) * kind.type(length / tail_steps), out=tail)
        window_mean, previous = previous, window_mean
        losses.clear()
        errors.clear()
        window_start = step
        return movement

    try:
        with one_interrupt() as interrupt:
            while step < schedule.n_steps:
                # A window never straddles the start of the tail, so that the average begins exactly there.
                edges = [window_start + schedule.window, schedule.n_steps]
                window_end = min(edge for edge in [*edges, schedule.tail_start] if edge > window_start)
                count = min(block, window_end - step)
                clock = time.perf_counter()
                found = stepper.take(step, schedule.rates(step, count), window_start)
                step += count
                elapsed = time.perf_counter() - clock
                if count == block:
                    block = int(np.clip(block * _BLOCK_SECONDS / max(elapsed, 1e-6), block / 4 + 1, block * 4))
                losses.append(found[0])
                errors.append(found[1])
                if not np.isfinite(found[0]).all():
                    raise _diverged(step)
                if step == window_end:
                    converged = finish_window() <= schedule.tolerance and can_settle
                progress = FitProgress(step, schedule.n_steps, time.perf_counter() - begun, history)
                answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
                if converged:
                    reason = "tol"
                    break
                if any(answers):
                    reason = "callback"
                    break
                if step < schedule.n_steps and time.perf_counter() >= schedule.deadline:
                    reason = "max_seconds"
                    break
    finally:
        stepper.close()
    if interrupt.happened:
        reason = "interrupted"
        # The signal may come after a block was computed and before it was counted: the rows know which step was the last.
        step = max(step, int(cells.rows[:-1, LAST_STEP].max()) + 1)
    if step > window_start:
        finish_window()
    if tail_steps:
        result = tail
    elif schedule.tail_average > 0 and history["step"]:
        result = previous  # stopped before the tail began: the last window's mean
    else:
        result = window_mean
        read_cells(cells, result)
    if not np.isfinite(result).all():
        raise _diverged(step)
    return Outcome(result, step, reason, converged, history)


def _diverged(step: int) -> DivergedError:
    return DivergedError(
        f"numbers became infinite or NaN at step {step}; raise epsilon, lower learning_rate, "
        "or leave scale=True so that columns of very different size are comparable"
    )
