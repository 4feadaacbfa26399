"""The commands and their error handling: one line, or a traceback with ``--debug``."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..exceptions import DivergedError, NotInstalledError
from . import apply, benchmark, demo, experiment, impute, inspect_file, report
from .show import write_anywhere
from .spelling import in_options

_EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError, NotImplementedError, MemoryError, DivergedError)


class _Commands(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``--debug`` may stand anywhere."""
        write_anywhere()
        ctx.obj = shlex.join(["otimpute", *args])  # reports show the command
        return super().parse_args(ctx, sorted(args, key=lambda argument: argument != "--debug"))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output, such as head, closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python would print an error at exit
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"otimpute: stopped; {str(stop) or 'nothing was written'}", err=True)
            raise typer.Exit(130) from None
        except _EXPECTED as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"otimpute: {_line(error)}", err=True)
            raise typer.Exit(1) from None


def _line(error: BaseException) -> str:
    """Format an error as one line in terms of the command line, preceded by the file it concerns."""
    said = in_options(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:  # an error of the operating system
        about = [str(error.filename)] if error.filename else []
        return ": ".join([*about, error.strerror.lower()])
    if isinstance(error, ModuleNotFoundError) and not isinstance(error, NotInstalledError):
        said = f'the command line needs the package {error.name!r}: pip install "otimpute[cli]"'
    about = [name for name in getattr(error, "__notes__", []) if repr(name) not in said and not said.startswith(name)]
    return ": ".join([*about[:1], said])


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Fill in the missing values of tables: CSV, Parquet, Arrow and Excel files.",
    epilog="Start with [bold]otimpute inspect FILE[/], or try [bold]otimpute demo[/].",
)
for _command in (
    impute.impute, impute.fit, apply.apply, report.report, inspect_file.inspect, experiment.mask, experiment.score, demo.demo,
):  # fmt: skip
    app.command()(_command)
app.add_typer(benchmark.app, name="benchmark")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"otimpute {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; also accepted after the command.")
    ] = False,
) -> None: ...
