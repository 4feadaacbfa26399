"""The one training loop: what every algorithm that learns step by step shares.

A `Process` is an algorithm's own mathematics. Around it `train` minds everything else: callbacks, the clock, Ctrl-C, looking at
how far things have come after every *window* of steps, the best state so far, and checkpoints.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._interrupt import one_interrupt
from .checkpoint import NO_CHECKPOINT, Checkpoint
from .progress import Callback, FitProgress
from .stop_reason import StopReason
from .summary import FitSummary

_SETTLED = (StopReason.TOL, StopReason.NOTHING_MISSING, StopReason.NOTHING_TO_TRAIN)
_BLOCK_SECONDS = 0.1  # how long compiled code runs before Python may see Ctrl-C, a callback or the clock


@dataclass(frozen=True)
class Schedule:
    """How long to train, and when to stop."""

    n_steps: int
    window: int  # steps from one look to the next
    patience: float = math.inf  # steps without a better score before the training stops
    deadline: float = math.inf  # in terms of time.perf_counter()
    edge: int = 0  # a step that no window straddles

    def window_end(self, start: int) -> int:
        """Where the window ends that begins at a step.

        >>> Schedule(100, 40, edge=70).window_end(40)
        70
        """
        return min(end for end in (start + self.window, self.n_steps, self.edge) if end > start)


class Look(NamedTuple):
    """What is seen after a window."""

    settled: bool  # nothing moves any more
    score: float | None = None  # the lower the better; None where nothing is scored


@dataclass(frozen=True)
class TrainingOutcome:
    """How a training ended."""

    n_steps: int
    best_step: int  # with scores that of the best, otherwise the last
    stop_reason: str
    history: dict[str, list[float]]

    def summary(self, counted: str = "step", settled: Sequence[str] = _SETTLED) -> FitSummary:
        """The same as it is kept with a fit; ``settled`` are the reasons to stop that mean success."""
        converged = self.stop_reason in settled
        return FitSummary(counted, self.n_steps, converged, self.stop_reason, self.history, self.best_step)


class Process(ABC):
    """Something that is trained step by step."""

    in_blocks = False  # whether `advance` takes many steps as quickly as one
    looks_at_start = False  # before the first step
    looks_at_end = False  # even in the middle of a window

    history: dict[str, list[float]]  # an entry per look, of lists of equal length

    @abstractmethod
    def advance(self, first: int, count: int) -> int:
        """Take at most ``count`` steps, of which ``first`` is the number of the first; returns how many were taken."""

    @abstractmethod
    def look(self, step: int, *, whole: bool) -> Look:
        """Add to the history where things stand after so many steps; the window is ``whole``, or was cut short."""

    def keep(self) -> Any:
        """A copy of what the best score so far belongs to."""
        raise NotImplementedError

    def bring_back(self, kept: Any) -> None:
        """Return to what was kept."""
        raise NotImplementedError

    def finish(self) -> None:  # noqa: B027 - most have nothing to do
        """Leave everything in order when no step follows."""

    def steps_taken(self, counted: int) -> int:
        """How many steps were taken; Ctrl-C may come after a step was taken and before it was counted."""
        return counted

    def state(self) -> dict[str, Any]:
        """All that a continued training needs, for a checkpoint."""
        raise NotImplementedError

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a `state`."""
        raise NotImplementedError


def train(
    process: Process, schedule: Schedule, callbacks: Sequence[Callback] = (), checkpoint: Checkpoint = NO_CHECKPOINT
) -> TrainingOutcome:
    """Train until nothing moves, scores no longer fall, the schedule, the clock, a callback or Ctrl-C says stop.

    With scores the process returns to what it was at the best of them.
    """
    begun = time.perf_counter()
    step, start, block, reason = 0, 0, 1, ""
    best_score, best_step, best = math.inf, 0, None
    found = checkpoint.load()
    is_new = found is None
    if found is not None:
        step, start, begun = found["step"], found["start"], begun - found["seconds"]
        best_score, best_step, best = found["best"]
        process.restore(found["process"])
    del found  # as large as the state itself

    def state() -> dict[str, Any]:
        seconds = time.perf_counter() - begun
        best_so_far = (best_score, best_step, best)
        return {"step": step, "start": start, "seconds": seconds, "best": best_so_far, "process": process.state()}

    def look(*, whole: bool) -> bool:
        nonlocal best_score, best_step, best
        settled, score = process.look(step, whole=whole)
        if score is not None and score < best_score:
            best_score, best_step, best = score, step, process.keep()
        return settled

    with one_interrupt(waits=checkpoint.path is not None) as interrupt:
        if is_new and process.looks_at_start:
            look(whole=True)
        while step < schedule.n_steps and not reason:
            end = schedule.window_end(start)
            clock = time.perf_counter()
            taken = process.advance(step, min(block, end - step))
            step += taken
            if process.in_blocks and taken == block:
                elapsed = max(time.perf_counter() - clock, 1e-6)
                block = int(np.clip(block * _BLOCK_SECONDS / elapsed, 1, block * 4))
            settled = False
            if step == end:
                settled, start = look(whole=True), step
            progress = FitProgress(step, schedule.n_steps, time.perf_counter() - begun, process.history)
            answers = [callback(progress) for callback in callbacks]  # all are asked, even when the first says stop
            if settled:
                reason = StopReason.TOL
                break
            if best is not None and step - best_step >= schedule.patience:
                reason = StopReason.VALIDATION
                break
            if any(answers):
                reason = StopReason.CALLBACK
            elif interrupt.happened:
                reason = StopReason.INTERRUPTED
            elif step < schedule.n_steps and time.perf_counter() >= schedule.deadline:
                reason = StopReason.MAX_SECONDS
            checkpoint.offer(state, now=bool(reason))
    if interrupt.happened:
        reason, step = StopReason.INTERRUPTED, process.steps_taken(step)
    if process.looks_at_end and step > start:
        look(whole=False)
    if best is not None:
        process.bring_back(best)
    process.finish()
    return TrainingOutcome(step, step if best is None else best_step, reason or StopReason.MAX_STEPS, process.history)
