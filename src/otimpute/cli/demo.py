"""``otimpute demo``: hide values of a table, fill them in, and see how good that was, by commands that anyone can type."""

from __future__ import annotations

import csv
import shlex
import tempfile
from contextlib import chdir
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .show import add_rows, console, grid, tell, tell_table

if TYPE_CHECKING:
    from numpy.random import Generator

_N_ROWS = 500
_RENT_PER_M2 = {"fields": 9.0, "harbour": 13.0, "hills": 16.0, "old town": 19.0}
_NAMES = ["flat", "district", "floor", "m2", "rooms", "built", "lift", "rent"]


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of the files.", show_default="a temporary folder"),
    ] = None,
) -> None:
    """Show a demo: hide values of a table of flats, impute them, and compare with the true values."""
    from numpy.random import default_rng

    folder = Path(tempfile.mkdtemp(prefix="otimpute-demo-")) if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        with Path("flats.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([_NAMES, *(_flat(k, default_rng([0, k])) for k in range(_N_ROWS))])
        tell(f"A table of {_N_ROWS} flats, {folder / 'flats.csv'}, loses a quarter of its values:", err=False)
        _run("mask", "flats.csv", "-o", "holes.csv", "--rate", "0.25", "--exclude", "flat", "--quiet")
        tell("Impute the missing values, learning from the others:", err=False)
        _run("impute", "holes.csv", "-o", "filled.csv", "--non-negative", "floor,rent", "--report", "report.html")
        _show_beginning()
        tell(
            "How good is that? Above, errors were estimated on values hidden from the method; here the true values are known. "
            "Both are mean absolute errors (MAE) in standard deviations of the column, over all missing values. The last "
            "column shows the score of the mean or the most frequent value:",
            err=False,
        )
        _run("score", "flats.csv", "filled.csv", "--holes", "holes.csv")
    tell(f"Open {folder / 'report.html'} in a browser to see the report.", err=False)
    tell("For your own table, start with otimpute inspect FILE", err=False, style="bold")


def _flat(k: int, rng: Generator) -> list[Any]:
    """Draw a row of correlated values."""
    district = str(rng.choice(sorted(_RENT_PER_M2)))
    m2 = float(rng.gamma(9, 8)) + 18
    rooms = max(1, round(m2 / 26 + rng.normal(0, 0.4)))
    age = rng.gamma(3, 30 if district == "old town" else 9)
    built = date(2024, 6, 1) - timedelta(days=int(365 * min(age, 170)))
    floor = int(rng.integers(0, 3 if built.year < 1930 else 9))
    lift = floor > 3 or rng.random() < (0.1 if built.year < 1970 else 0.5)
    rent = m2 * _RENT_PER_M2[district] * (1.1 if lift else 1.0) * (1 + 0.002 * (built.year - 1990)) * rng.normal(1, 0.05)
    return [f"F-{k + 1:04}", district, floor, f"{m2:.1f}", rooms, built, "yes" if lift else "no", f"{rent:.2f}"]


def _run(*arguments: str) -> None:
    from .app import app

    tell(f"\n$ otimpute {shlex.join(arguments)}", err=False, style="cyan")
    if code := app(list(arguments), standalone_mode=False):
        raise typer.Exit(code)  # the command has printed the error
    tell("", err=False)


def _show_beginning(n_rows: int = 6) -> None:
    """Show the first rows, with imputed values marked."""
    from rich.text import Text

    tables = []
    for name in ("holes.csv", "filled.csv"):
        with Path(name).open(newline="", encoding="utf-8") as file:
            tables.append(list(csv.reader(file))[1 : n_rows + 1])
    colours = console().color_system is not None and not console().no_color
    tell(f"The first rows; imputed values {'are green' if colours else 'have an asterisk'}:", err=False)
    table = grid(*_NAMES)
    add_rows(
        table,
        [
            [
                Text(new) if old else Text(new if colours else f"{new}*", style="bold green")
                for old, new in zip(before, after, strict=True)
            ]
            for before, after in zip(*tables, strict=True)
        ],
    )
    tell_table(table)
    tell("", err=False)
