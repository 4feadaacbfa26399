"""Algorithm 2 as a training: complete the rows of a few batches, ask how far the batches are apart, send the gradient back.

Divergence and gradient come from the compiled kernels; torch only computes the completer and its parameters' gradients.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._torch import torch_for
from ...fitting import Callback, StopReason
from ...fitting.checkpoint import Checkpoint
from ...fitting.training import Look, Process, Schedule, TrainingOutcome, train
from ..batches.divergence import BatchPlan, collect_rows, draw_pair, list_free_rows
from ..batches.pair_threads import Batches
from ..torch_modules import check_parameters
from .completer import Completer

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


def run_meta_steps(
    completer: Completer,
    guess: NDArray[np.float32],
    free: NDArray[np.bool_],
    batches: Batches,
    plan: BatchPlan,
    schedule: MetaSchedule,
    batch_size: int,
    score: Callable[[], tuple[float, float]] | None,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint,
) -> TrainingOutcome:
    """Train a completer; ``guess`` is the table with a first guess in the ``free`` entries, which it is shown.

    Every twentieth of the steps the whole table is completed, to see how far its values still move and, where some were
    hidden, how good they are; the best parameters by those are kept.
    """
    incomplete, d = np.asarray(free.any(axis=1)), free.shape[1]
    if d:
        some = np.flatnonzero(incomplete)[:_ROWS_TRIED] if incomplete.any() else np.arange(min(len(guess), _ROWS_TRIED))
        completer.check(guess[some], free[some] if incomplete.any() else np.ones((len(some), d), dtype=bool))
    if not incomplete.any():
        return TrainingOutcome(0, 0, StopReason.NOTHING_MISSING, _empty_history())
    window = min(schedule.n_steps, max(_SHORTEST_WINDOW, -(-schedule.n_steps // _N_WINDOWS)))
    process = _CompleterTraining(completer, guess, free, batches, plan, schedule, batch_size, score)
    return train(
        process, Schedule(schedule.n_steps, window, schedule.patience * window, schedule.deadline), callbacks, checkpoint
    )


def _empty_history() -> dict[str, list[float]]:
    return {name: [] for name in ("step", "learning_rate", "loss", "movement")}


class _CompleterTraining(Process):
    """A step draws rows, completes and compares them, and moves the parameters."""

    looks_at_start = True

    def __init__(
        self,
        completer: Completer,
        guess: NDArray[np.float32],
        free: NDArray[np.bool_],
        batches: Batches,
        plan: BatchPlan,
        schedule: MetaSchedule,
        batch_size: int,
        score: Callable[[], tuple[float, float]] | None,
    ):
        self._torch = torch_for("MetaSinkhornImputer")
        self._completer, self._guess, self._free = completer, guess, free
        self._incomplete = np.asarray(free.any(axis=1))
        self._batches, self._plan, self._schedule, self._batch_size = batches, plan, schedule, batch_size
        self._score = score
        self._optimizer = self._torch.optim.Adam(check_parameters(completer.module, "completer"), weight_decay=schedule.l2)
        _, self._found = batches.workspaces_for(batch_size, guess.shape[1])
        self._listed = np.empty(len(guess), np.int64)
        self.history = _empty_history()

    @property
    def _table(self) -> NDArray[np.float32]:
        table: NDArray[np.float32] = self._batches.cells.values[:, : self._free.shape[1]]
        return table

    def advance(self, first: int, count: int) -> int:  # noqa: ARG002
        with self._completer.modes.training(self._completer.module):
            self._update(first)
        return 1

    def _update(self, step: int) -> None:
        cells, found = self._batches.cells, self._found
        for pair in range(len(found.rows)):
            draw_pair(self._plan, len(self._guess), step, pair, found.rows)
        rows = self._listed[: list_free_rows(cells, found.rows, self._incomplete, step, self._listed)]
        if len(rows) == 0:
            return
        holes = self._free[rows]
        completed = self._completer(self._guess[rows], holes)
        filled = cells.values[rows]
        filled[:, : holes.shape[1]][holes] = self._completer.predictions(completed)[holes]
        cells.values[rows] = filled
        self._batches.pair_gradients(self._plan, self._batch_size)
        gradient = np.empty((len(rows), holes.shape[1]), np.float32)
        collect_rows(cells, found, self._incomplete, True, gradient)
        gradient[~holes] = 0
        for group in self._optimizer.param_groups:
            group["lr"] = self._schedule.rate(step)
        self._optimizer.zero_grad()
        self._completer.learn(completed, gradient)
        self._optimizer.step()

    def look(self, step: int, *, whole: bool) -> Look:  # noqa: ARG002
        history, before = self.history, self._table[self._free]
        completed = self._guess.copy()
        self._completer.fill(completed, self._free)
        now = completed[:, : self._free.shape[1]][self._free]
        self._table[self._free] = now
        movement = float(np.sqrt(np.mean(np.square(now - before)))) if history["step"] else float("nan")
        history["step"].append(step)
        history["learning_rate"].append(self._schedule.rate(step))
        history["loss"].append(self._batches.evaluate([(self._plan, self._batch_size)]))
        history["movement"].append(movement)
        rmse = None
        if self._score is not None:
            mae, rmse = self._score()
            history.setdefault("validation_mae", []).append(mae)
            history.setdefault("validation_rmse", []).append(rmse)
        return Look(movement <= self._schedule.tolerance, rmse)

    def keep(self) -> Any:
        return copy.deepcopy(self._completer.module.state_dict())

    def bring_back(self, kept: Any) -> None:
        self._completer.module.load_state_dict(kept)

    def state(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "cells": self._table[self._free],
            "potentials": self._batches.cells.potentials,
            "module": self._completer.module.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "random": self._torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.history, self._table[self._free] = state["history"], state["cells"]
        self._batches.cells.potentials[:] = state["potentials"]
        self._completer.module.load_state_dict(state["module"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._torch.set_rng_state(state["random"])
