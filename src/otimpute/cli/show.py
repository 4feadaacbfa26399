"""Output: summaries on stderr, tables and JSON on stdout."""

from __future__ import annotations

import codecs
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from .spelling import in_options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_BAR = 5
_MOST_ROWS = 40
_NARROWEST, _BETWEEN = 8, 3  # characters that are left of words, and that lie between columns
_PLAIN = {"█": "#", "·": ".", "×": "x", "–": "-", "…": "..."}


def write_anywhere() -> None:
    """Replace characters that the encoding of the output does not have."""
    codecs.register_error("otimpute", _plainer)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="otimpute")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in unknown), error.end


def bar(part: int, whole: int) -> str:
    """Draw a fraction as a small bar; a positive one is never empty.

    >>> bar(1, 3)
    '██···'
    """
    filled = 0 if not part else max(1, round(_BAR * part / whole))
    return "█" * filled + "·" * (_BAR - filled)


def console(*, err: bool = False) -> Console:
    """Create a console, without colours unless the terminal supports them."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, soft_wrap=False)


def grid(*columns: str | tuple[str, str]) -> Table:
    """Create a table without lines; a column is a name, or a name and its alignment."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for column in columns:
        name, side = (column, "left") if isinstance(column, str) else column
        table.add_column(name, justify=side, no_wrap=name == "" or side == "right", overflow="fold")
    return table


def add_rows(table: Table, rows: Sequence[Sequence[str | Text]]) -> None:
    """Add rows of plain text, up to a limit; only names and words may be wrapped."""
    from rich.text import Text

    for row in rows[:_MOST_ROWS]:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    for k, column in enumerate(table.columns):
        longest = max(len(cell) for cell in [str(column.header), *(row[k] for row in rows[:_MOST_ROWS])])
        column.min_width = longest if column.no_wrap else min(longest, _NARROWEST)
    if len(rows) > _MOST_ROWS:
        table.add_row(f"… and {len(rows) - _MOST_ROWS} more")


def tell_table(table: Table, *, err: bool = False) -> None:
    """Print a table, wider than the terminal if it would be truncated otherwise."""
    screen = console(err=err)
    screen.width = max(screen.width, sum((column.min_width or 0) + _BETWEEN for column in table.columns))
    screen.print(table)


def tell(line: str, *, err: bool = True, style: str = "") -> None:
    """Print one line, without wrapping or markup."""
    console(err=err).print(line, markup=False, soft_wrap=True, style=style)


def tell_json(summary: dict[str, Any], *, err: bool) -> None:
    """Print a summary as JSON."""
    encoding = (sys.stderr if err else sys.stdout).encoding or ""
    unicode = encoding.lower().startswith("utf")
    typer.echo(json.dumps(_finite(summary), indent=2, ensure_ascii=not unicode, default=str), err=err)


def _finite(value: Any) -> Any:
    """Replace infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def working(what: str, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show the current activity on a terminal; yields a function that changes the text."""
    screen = console(err=True)
    if not (shown and screen.is_terminal):
        yield lambda _: None
        return
    from rich.text import Text

    with screen.status(Text(what)) as status:
        yield lambda other: status.update(Text(other))


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect warnings as lines, without repetitions."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield notes
    notes += dict.fromkeys(in_options(each.message) for each in caught)


def tell_notes(notes: Sequence[str], *, err: bool = True) -> None:
    """Print notes, usually on stderr."""
    for note in notes:
        tell(f"note: {note}", err=err, style="yellow")
