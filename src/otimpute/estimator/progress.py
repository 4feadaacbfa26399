"""Let people watch a long fit: callbacks, and a progress bar that is one of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._warn import warn_user
from ..exceptions import FitStoppedWarning
from .notebook_bar import NotebookBar, in_notebook

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


def warn_of_stop(reason: str, reached: str, goes_on: str = "") -> None:
    """Say of a fit that was stopped by the clock or by hand that it can be used all the same."""
    if reason in ("interrupted", "max_seconds"):
        cause = "max_seconds" if reason == "max_seconds" else "Ctrl-C (press it again to stop the program)"
        warn_user(
            f"stopped by {cause} after {reached}; the imputer holds what was reached and can be used{goes_on}",
            FitStoppedWarning,
        )


@contextmanager
def progress_bar(title: str, verbose: int) -> Iterator[list[Callback]]:
    """A progress bar as a list of one callback, empty if not ``verbose``.

    It is an output of the cell in a notebook, and goes to the error stream elsewhere: as lines of text without rich.
    """
    if not verbose:
        yield []
        return
    if in_notebook():
        with NotebookBar(title, "steps", at_first=_AT_FIRST) as output:
            yield [lambda progress: output.show(progress.step, progress.max_steps, _latest(progress))]
        return
    try:
        from rich import console
        from rich import progress as rich
    except ModuleNotFoundError:
        yield [_plain_lines(title)]
        return
    with rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[note]}"),
        console=console.Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=None, note=_AT_FIRST)

        def show(progress: FitProgress) -> None:
            bar.update(task, completed=progress.step, total=progress.max_steps, note=_latest(progress))

        yield [show]
        completed = bar.tasks[task].completed
        bar.update(task, total=completed, note=f"stopped after {completed:.0f} steps")


def _latest(progress: FitProgress) -> str:
    """What a fit minimises, as it was when last looked at: our imputers a divergence, networks a loss of their own."""
    name = "divergence" if "loss" in progress.history else "loss"
    values = progress.history["loss" if "loss" in progress.history else "training_loss"]
    return f"{name} {values[-1]:.4g}" if values else ""


def _plain_lines(title: str) -> Callback:
    """What to show where rich is not installed: a line per entry of the history."""
    n_shown = 0

    def show(progress: FitProgress) -> None:
        nonlocal n_shown
        n_entries = len(next(iter(progress.history.values())))
        if n_entries > n_shown:
            n_shown = n_entries
            sys.stderr.write(f"{title}: step {progress.step} of {progress.max_steps}, {_latest(progress)}\n")

    return show
