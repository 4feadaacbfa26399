"""Algorithm 1's loop: windows of compiled steps, and between them everything a person may want to know or stop.

A *window* is a twentieth of the planned steps, but at least 50. Its mean of every imputed value is compared with the window
before (has it settled?), and the last windows are averaged into the result: single iterates are noisy, their mean is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimator import Callback, FitProgress
from ..exceptions import DivergedError
from ._steps import (
    LAST_STEP,
    PLACE,
    Cells,
    Geometry,
    Gradients,
    Plan,
    Workspace,
    apply_step,
    close_window,
    index_cells,
    pair_gradient,
    read_cells,
    run_steps,
)

N_WINDOWS = 20
_SHORTEST_WINDOW = 50
_SECOND_INTERRUPT = 2.0  # seconds within which another Ctrl-C is meant for the whole program
_BLOCK_SECONDS = 0.1  # how long compiled code runs before Python may see Ctrl-C, a callback or the clock


# When a fit was last interrupted. One Ctrl-C ends a fit; a second right after it ends the loop the fit is in.
_interrupts: list[float] = []


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


def make_geometry(metric: NDArray[np.float64], epsilon: float, imputed_weight: float, n_columns: int, width: int) -> Geometry:
    """The cost for a working copy of ``width`` padded columns; ``metric`` is A, or [0, 0] for the identity."""
    d = len(metric)
    padded, precision = (np.zeros((width, width) if d else (0, 0), np.float32) for _ in range(2))
    padded[:d, :d] = metric
    precision[:d, :d] = metric @ metric
    return Geometry(padded, precision, 1 / epsilon, imputed_weight, n_columns)


def _make_workspace(batch_size: int, width: int, kind: Any, weighted: bool) -> Workspace:
    def empty(*shape: int) -> NDArray[np.floating]:
        return np.zeros(shape, kind)

    m, extra = batch_size, 2 if weighted else 0
    return Workspace(
        x=empty(m, width), y=empty(m, width), zx=empty(width, m), zy=empty(width, m),
        similarity=empty(m, m), plan=empty(m, m), weighted=empty(m, width), projected=empty(m, width),
        weights=np.full(m, 1 / m, kind), vectors=empty(8, m),
        importance=empty(extra, m, width), left=empty(extra, m, 3 * width), right=empty(extra, m, 3 * width),
    )  # fmt: skip


def _make_gradients(n_pairs: int, batch_size: int, width: int, kind: Any) -> Gradients:
    def empty(*shape: int) -> NDArray[np.floating]:
        return np.zeros((n_pairs, 2, batch_size, *shape), kind)

    rows = np.zeros((n_pairs, 2, batch_size), np.int64)
    return Gradients(rows, empty(width), empty(), empty(), np.zeros(n_pairs), np.zeros(n_pairs))


class _Stepper:
    """Take steps, the pairs of each on as many threads as asked; the result does not depend on how many."""

    def __init__(self, cells: Cells, geometry: Geometry, plan: Plan, batch_size: int, n_pairs: int, n_jobs: int):
        self.cells, self.geometry, self.plan = cells, geometry, plan
        width, kind = cells.values.shape[1], cells.values.dtype
        self.n_threads = min(n_jobs, n_pairs)
        self.workspaces = [_make_workspace(batch_size, width, kind, geometry.imputed_weight < 1) for _ in range(self.n_threads)]
        self.found = _make_gradients(n_pairs, batch_size, width, kind)
        self.pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def take(self, first: int, rates: NDArray[np.float64], window_start: int) -> tuple[Any, Any]:
        losses, errors = np.empty(len(rates)), np.empty(len(rates))
        if self.pool is None:
            run_steps(
                self.cells, self.geometry, self.plan, self.workspaces[0], self.found,
                first, rates, window_start, losses, errors,
            )  # fmt: skip
            return losses, errors
        for k, rate in enumerate(rates):
            others = [self.pool.submit(self._pairs_of, thread, first + k) for thread in range(1, self.n_threads)]
            self._pairs_of(0, first + k)
            for other in others:
                other.result()
            losses[k], errors[k] = apply_step(self.cells, self.found, first + k, window_start, rate)
        return losses, errors

    def _pairs_of(self, thread: int, step: int) -> None:
        for pair in range(thread, len(self.found.rows), self.n_threads):
            pair_gradient(self.cells, self.geometry, self.plan, self.workspaces[thread], step, pair, self.found)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()


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
    except KeyboardInterrupt:
        if _interrupts and time.perf_counter() - _interrupts[-1] < _SECOND_INTERRUPT:
            raise
        _interrupts[:] = [time.perf_counter()]
        reason = "interrupted"
        # The signal may come after a block was computed and before it was counted: the rows know which step was the last.
        step = max(step, int(cells.rows[:-1, LAST_STEP].max()) + 1)
    finally:
        stepper.close()
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
