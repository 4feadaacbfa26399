"""A progress bar in a notebook: one output that is replaced as things go on, and a line of text in the end.

rich needs ipywidgets there: without it nothing is drawn and every refresh leaves a warning among the outputs of the cell, and
with it a saved notebook shows an empty line.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any, Self

from .._markup import element, to_html
from .._text import duration

_SECONDS_BETWEEN = 0.1  # updates; a browser has to draw them all


def in_notebook() -> bool:
    """Whether a kernel runs this code, rather than a terminal or a script."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return hasattr(get_shell(), "kernel")


class NotebookBar:
    """A bar that is drawn while its context lasts; it counts in ``unit``, each worth ``per_unit`` of what `show` is told."""

    def __init__(self, title: str, unit: str, per_unit: int = 1, *, at_first: str = "starting"):
        self._title, self._unit, self._per_unit, self._at_first = title, unit, per_unit, at_first
        self._done, self._note, self._ending = 0, "", ""

    def __enter__(self) -> Self:
        self._begun = self._shown = time.perf_counter()
        display = import_module("IPython.display").display
        self._output: Any = display(self._bar(self._at_first, None), raw=True, display_id=True)
        return self

    def show(self, done: int, total: int | None, note: str = "", time_left: str = "") -> None:
        """Move the bar, unless it has just moved; the last ``note`` stands in the line that is left in the end."""
        self._done, self._note = done, note and f", {note}"
        if time.perf_counter() - self._shown >= _SECONDS_BETWEEN:
            self._shown = time.perf_counter()
            of_total = "" if total is None else f" of {self._units(total)}"
            words = f"{self._units(done)}{of_total} {self._unit}{self._note}{time_left and f', {time_left}'}"
            self._output.update(self._bar(words, total), raw=True)

    def ended(self, how: str) -> None:
        """Begin the line that is left in the end with these words."""
        self._ending = f"{how} after "

    def __exit__(self, error: object, *_: object) -> None:
        how = "stopped by an error after " if error else self._ending
        taken = f"{how}{self._units(self._done)} {self._unit} in {duration(time.perf_counter() - self._begun)}"
        self._output.update({"text/plain": f"{self._title}: {taken}{self._note}"}, raw=True)

    def _units(self, amount: int) -> str:
        return f"{amount // self._per_unit:,}"

    def _bar(self, words: str, total: int | None) -> dict[str, str]:
        reached = {} if total is None else {"max": total, "value": self._done}
        bar = element("div", f"{self._title} ", element("progress", **reached), f" {words}")
        return {"text/plain": f"{self._title}: {words}", "text/html": to_html(bar)}
