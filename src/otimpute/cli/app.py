"""All commands."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import benchmark

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fill the holes of tables by optimal transport.",
)
app.add_typer(benchmark.app, name="benchmark")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"otimpute {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None: ...
