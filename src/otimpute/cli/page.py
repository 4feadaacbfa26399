"""A report as a file: checked before the work, written after it, its verdict told in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._optional import require
from .options import Replacing
from .show import tell

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..reporting import Report

_LIGHTS = {"good": ("✓", "green"), "caution": ("!", "yellow"), "bad": ("✗", "red"), "unknown": ("?", "dim")}


def check_report(path: Path, writing: Replacing) -> None:
    """Refuse now what could not be written after a long fit."""
    require("jinja2", "a report", "report")
    if str(path) == "-":
        raise ValueError("a report goes to a file of its own, not to standard output: pass a name like report.html")
    writing.check_model(path)


def make_report(
    imputer: BaseImputer,
    X: Any,
    X_imputed: Any,
    out: Path | None,
    source: str,
    command_line: str,
    *,
    check: bool = True,
    max_rows: int = 10_000,
    seed: int = 0,
    not_used: Sequence[str] = (),
) -> Report:
    """A report on a table that was read from a file, written to another one."""
    from ..reporting import Report, collect

    name = None if source == "-" else Path(source).name
    data = collect(
        imputer, X, X_imputed, check=check, max_rows=max_rows, random_state=seed, source=name, command=command_line,
        not_used=not_used,
    )  # fmt: skip
    made = Report(data)
    if out is not None:
        made.save(out)
    return made


def tell_report(made: Report, out: str) -> None:
    """Where the page is, and its verdict."""
    tell(f"report in {out}", style="bold")
    for each in made.data.verdict:
        sign, style = _LIGHTS[each.light]
        tell(f"{sign} {each.question} {each.answer}", style=style)
