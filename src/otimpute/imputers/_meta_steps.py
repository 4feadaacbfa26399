"""Algorithm 2's loop: complete the rows of a few batches, ask how far the batches are apart, send the gradient back.

Divergence and gradient come from the compiled kernels; torch only computes the completer and its parameters' gradients.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._interrupt import one_interrupt
from .._torch import torch_for
from ..fitting import Callback, FitProgress
from ._batches import Plan, collect_rows, draw_pair, list_free_rows
from ._checkpoint import Checkpoint
from ._completer import Completer
from ._modules import check_parameters
from ._pair_threads import Batches

_N_WINDOWS = 20
_SHORTEST_WINDOW = 10
_ROWS_TRIED = 256  # on which a completer is checked before the training


@dataclass(frozen=True)
class MetaSchedule:
    """How long and how fast to train, and when to stop."""

    n_steps: int
    learning_rate: float
    step_decay: float
    l2: float
    tolerance: float
    patience: int
    deadline: float

    def rate(self, step: int) -> float:
        """Step sizes fall geometrically to ``step_decay`` of the first one."""
        return float(self.learning_rate * self.step_decay ** (step / self.n_steps))


@dataclass
class MetaOutcome:
    """How a training ended."""

    n_steps: int
    best_step: int
    stop_reason: str
    converged: bool
    history: dict[str, list[float]]


def run_meta_steps(
    completer: Completer,
    guess: NDArray[np.float32],
    free: NDArray[np.bool_],
    batches: Batches,
    plan: Plan,
    schedule: MetaSchedule,
    batch_size: int,
    evaluate: Callable[[], float],
    score: Callable[[], tuple[float, float]] | None,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint,
) -> MetaOutcome:
    """Train a completer; ``guess`` is the table with a first guess in the ``free`` entries, which it is shown.

    Every twentieth of the steps the whole table is completed, to see how far its values still move and, where some were
    hidden, how good they are; the best parameters by those are kept.
    """
    torch = torch_for("MetaSinkhornImputer")
    table, d = batches.cells.values, free.shape[1]
    incomplete = np.asarray(free.any(axis=1))
    history: dict[str, list[float]] = {name: [] for name in ("step", "learning_rate", "loss", "movement")}
    if d == 0:
        return MetaOutcome(0, 0, "nothing missing", True, history)
    some = np.flatnonzero(incomplete)[:_ROWS_TRIED] if incomplete.any() else np.arange(min(len(guess), _ROWS_TRIED))
    completer.check(guess[some], free[some] if incomplete.any() else np.ones((len(some), d), dtype=bool))
    if not incomplete.any():
        return MetaOutcome(0, 0, "nothing missing", True, history)
    optimizer = torch.optim.Adam(check_parameters(completer.module, "completer"))
    for group in optimizer.param_groups:
        group["weight_decay"] = schedule.l2
    window = min(schedule.n_steps, max(_SHORTEST_WINDOW, -(-schedule.n_steps // _N_WINDOWS)))
    begun = time.perf_counter()
    best_score, best_step, best = np.inf, 0, None
    step, reason, converged = 0, "max_steps", False
    update = _Update(completer, guess, free, incomplete, batches, plan, batch_size, optimizer)
    found = checkpoint.load()
    if found is not None:
        step, begun, history = found["step"], begun - found["seconds"], found["history"]
        best_score, best_step, best = found["best"]
        table[:, :d][free], batches.cells.potentials[:] = found["cells"], found["potentials"]
        completer.module.load_state_dict(found["module"])
        optimizer.load_state_dict(found["optimizer"])
        torch.set_rng_state(found["random"])
    del found  # as large as the state itself

    def state() -> dict[str, Any]:
        return {
            "step": step,
            "seconds": time.perf_counter() - begun,
            "history": history,
            "best": (best_score, best_step, best),
            "cells": table[:, :d][free],
            "potentials": batches.cells.potentials,
            "module": completer.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }

    def finish_window() -> float:
        nonlocal best_score, best_step, best
        before = table[:, :d][free]
        completed = guess.copy()
        completer.fill(completed, free)
        now = completed[:, :d][free]
        table[:, :d][free] = now
        movement = float(np.sqrt(np.mean(np.square(now - before)))) if history["step"] else float("nan")
        history["step"].append(step)
        history["learning_rate"].append(schedule.rate(step))
        history["loss"].append(evaluate())
        history["movement"].append(movement)
        if score is not None:
            mae, rmse = score()
            history.setdefault("validation_mae", []).append(mae)
            history.setdefault("validation_rmse", []).append(rmse)
            if rmse < best_score:
                best_score, best_step = rmse, step
                best = copy.deepcopy(completer.module.state_dict())
        return movement

    with one_interrupt(waits=checkpoint.path is not None) as interrupt:
        if not history["step"]:
            finish_window()
        while step < schedule.n_steps and reason == "max_steps":
            with completer.modes.training(completer.module):
                update(step, schedule.rate(step))
            step += 1
            if step % window == 0 or step == schedule.n_steps:
                converged = finish_window() <= schedule.tolerance
            progress = FitProgress(step, schedule.n_steps, time.perf_counter() - begun, history)
            answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
            if converged:
                reason = "tol"
                break
            if best is not None and step - best_step >= schedule.patience * window:
                reason = "validation"
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
    if best is not None:
        completer.module.load_state_dict(best)
    return MetaOutcome(step, best_step if best is not None else step, reason, converged, history)


class _Update:
    """One step: rows drawn, completed, compared; parameters moved."""

    def __init__(
        self,
        completer: Completer,
        guess: NDArray[np.float32],
        free: NDArray[np.bool_],
        incomplete: NDArray[np.bool_],
        batches: Batches,
        plan: Plan,
        batch_size: int,
        optimizer: Any,
    ):
        self.completer, self.guess, self.free, self.incomplete = completer, guess, free, incomplete
        self.batches, self.plan, self.optimizer = batches, plan, optimizer
        self.batch_size = batch_size
        _, self.found = batches.room(batch_size, guess.shape[1])
        self.listed = np.empty(len(guess), np.int64)

    def __call__(self, step: int, rate: float) -> None:
        cells, found = self.batches.cells, self.found
        for pair in range(len(found.rows)):
            draw_pair(self.plan, len(self.guess), step, pair, found.rows)
        rows = self.listed[: list_free_rows(cells, found.rows, self.incomplete, step, self.listed)]
        if len(rows) == 0:
            return
        holes = self.free[rows]
        completed = self.completer(self.guess[rows], holes)
        filled = cells.values[rows]
        filled[:, : holes.shape[1]][holes] = self.completer.predictions(completed)[holes]
        cells.values[rows] = filled
        self.batches.pair_gradients(self.plan, self.batch_size)
        gradient = np.empty((len(rows), holes.shape[1]), np.float32)
        collect_rows(cells, found, self.incomplete, True, gradient)
        gradient[~holes] = 0
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        self.completer.learn(completed, gradient)
        self.optimizer.step()
