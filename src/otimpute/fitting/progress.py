"""Let people watch a long fit: callbacks, and a progress bar that is one of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._text import count, duration
from .notebook_bar import NotebookBar, in_notebook
from .stop_reason import StopReason

_STOPPED: Mapping[str, str] = {
    StopReason.INTERRUPTED: "stopped by hand",
    StopReason.MAX_SECONDS: "stopped by max_seconds",
    StopReason.CALLBACK: "stopped by a callback",
}
_AT_FIRST = "starting (compiles once on a new machine, 20–40 s)"


@dataclass(frozen=True)
class FitProgress:
    """Where a fit stands; what callbacks receive."""

    step: int
    max_steps: int
    seconds: float
    history: dict[str, list[float]]


Callback = Callable[[FitProgress], Any]


def check_callbacks(callbacks: Any) -> list[Callback]:
    """The callbacks as a list, or an error that says what was passed instead."""
    if callbacks is None:
        return []
    if callable(callbacks):
        return [callbacks]
    listed = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for callback in listed:
        if not callable(callback):
            raise TypeError(f"callbacks must be functions of one FitProgress, got {callback!r}")
    return listed


class Bar(list[Callback]):
    """What shows progress: a list of one callback, or of none; ``ended`` takes why the fit came to its end."""

    ending = "finished"

    def ended(self, reason: str) -> None:
        """Have the last line say so if a fit was stopped before its end."""
        self.ending = _STOPPED.get(reason, self.ending)


@contextmanager
def progress_bar(title: str, verbose: int) -> Iterator[Bar]:
    """A progress bar as a list of one callback, empty if not ``verbose``.

    It is an output of the cell in a notebook, and goes to the error stream elsewhere: as lines of text without rich.
    """
    if not verbose:
        yield Bar()
        return
    left = _TimeLeft()
    if in_notebook():
        with NotebookBar(title, "steps", at_first=_AT_FIRST) as output:
            shown = Bar([lambda at: output.show(at.step, at.max_steps, _latest(at), left(at))])
            yield shown
            output.ended(shown.ending)
        return
    try:
        from rich import console
        from rich import progress as rich
    except ModuleNotFoundError:
        lines = Bar([_plain_lines(title, left)])
        yield lines
        sys.stderr.write(f"{title}: {lines.ending} {left.summary()}\n")
        return
    with rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[note]}"),
        console=console.Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=None, note=_AT_FIRST)

        def show(progress: FitProgress) -> None:
            note = _joined(_latest(progress), left(progress))
            bar.update(task, completed=progress.step, total=progress.max_steps, note=note)

        drawn = Bar([show])
        yield drawn
        bar.update(task, total=bar.tasks[task].completed, note=f"{drawn.ending} {left.summary()}")


class _TimeLeft:
    """Tells from what it has been shown how long a fit will take to its last step; many end before that."""

    def __init__(self) -> None:
        self._first: FitProgress | None = None  # what came before it may have been compiling
        self._latest: FitProgress | None = None

    def __call__(self, progress: FitProgress) -> str:
        self._first, self._latest = self._first or progress, progress
        n_steps, to_go = progress.step - self._first.step, progress.max_steps - progress.step
        if n_steps < 1 or to_go < 1:
            return ""
        return f"at most about {duration((progress.seconds - self._first.seconds) / n_steps * to_go)} left"

    def summary(self) -> str:
        return "before the first step" if self._latest is None else f"after {count(self._latest.step, 'step')}"


def _joined(*words: str) -> str:
    return ", ".join(each for each in words if each)


def _latest(progress: FitProgress) -> str:
    """What a fit minimises, as it was when last looked at: our imputers a divergence, networks a loss of their own."""
    name = "divergence" if "loss" in progress.history else "loss"
    values = progress.history["loss" if "loss" in progress.history else "training_loss"]
    return f"{name} {values[-1]:.4g}" if values else ""


def _plain_lines(title: str, left: _TimeLeft) -> Callback:
    """What to show where rich is not installed: a line per entry of the history."""
    n_shown = 0

    def show(progress: FitProgress) -> None:
        nonlocal n_shown
        n_entries, to_go = len(next(iter(progress.history.values()))), left(progress)
        if n_entries > n_shown:
            n_shown = n_entries
            where = f"step {progress.step} of {progress.max_steps}"
            sys.stderr.write(f"{title}: {_joined(where, _latest(progress), to_go)}\n")

    return show
