"""Write a report to a file, and show its verdict in the terminal."""

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
    """Raise before a long fit if the report could not be written."""
    require("jinja2", "a report", "report")
    if str(path) == "-":
        raise ValueError("a report must be written to a file, not to standard output: pass a name like report.html")
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
    """Write a report on a table that was read from a file."""
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
    """Show the path of the report and its verdict."""
    tell(f"report in {out}", style="bold")
    for each in made.data.verdict:
        sign, style = _LIGHTS[each.light]
        tell(f"{sign} {each.question} {each.answer}", style=style)
