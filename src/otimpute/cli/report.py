"""``otimpute report``: a page on a table and the model that fills its holes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._optional import require
from .apply import as_model_reads, columns_for, gaps_of, load_model, schema_of
from .options import InputFile, Reading, Replacing, Showing, about, check_apart, command, option
from .page import check_report, make_report, tell_report
from .show import collected_notes, tell_json, tell_notes, working

if TYPE_CHECKING:
    from ..estimator import BaseImputer


@command
def report(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by otimpute fit.", show_default=False)],
    source: InputFile,
    writing: Replacing,
    showing: Showing,
    reading: Reading,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="REPORT", help="An HTML file.", show_default=False)] = None,
    check: Annotated[bool, option("Report", "Hide values to estimate the model's errors.", "--check/--no-check")] = True,
    max_rows: Annotated[int, option("Report", "Size of the random sample of rows to show.", default=True, min=10)] = 10_000,
    seed: Annotated[int, option("Report", "Seed of the sample and the hidden values.", default=True, min=0)] = 0,
) -> None:
    """Write a report on the missing values of a table, the imputed values, and how far to trust them.

    The report is a single self-contained HTML file; [bold]--json[/] prints its content as JSON.
    """
    if out is None and not showing.json:
        raise ValueError("nothing to write: pass -o REPORT.html, or --json")
    check_apart({"MODEL": model, "IN": source, "-o": out})
    if out is not None:
        check_report(out, writing)
    imputer = load_model(model)
    with collected_notes() as notes, working(f"reading {source} …", shown=not showing.quiet) as say:
        X, not_used = _read_for(imputer, source, reading)
        say("checking on hidden values …" if check else "drawing …")
        with about(source):
            made = make_report(
                imputer, X, None, out, source, context.obj, check=check, max_rows=max_rows, seed=seed, not_used=not_used
            )  # fmt: skip
    if showing.json:
        tell_json(made.as_dict(), err=False)
        return
    tell_notes(notes)
    if not showing.quiet:
        tell_report(made, str(out))


def _read_for(imputer: BaseImputer, source: str, reading: Reading) -> tuple[Any, list[str]]:
    """Return the columns of a file that a model uses, and the names of the others."""
    pa = require("pyarrow", "reading tables", "cli")
    with reading.open(source, schema_of(imputer), gaps_of(imputer)) as table:
        names = columns_for(imputer, table.schema.names)
        X = pa.concat_tables([as_model_reads(chunk.frame.select(names), imputer) for chunk in table.chunks()])
        return X, [name for name in table.schema.names if name not in names]
