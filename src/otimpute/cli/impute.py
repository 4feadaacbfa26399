"""``otimpute impute`` and ``otimpute fit``: learn from a table, and fill its holes or keep what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._text import count, duration, listed, number, share
from .asked import Asked, Knowledge
from .beside import Beside
from .learn import Fitted, filled_words, learn, tell_verdict
from .method import ColumnChoice, Constraints, MethodChoice
from .options import (
    InputFile,
    InputFiles,
    OutputFile,
    Reading,
    Replacing,
    Showing,
    Writing,
    check_apart,
    command,
    is_many,
    option,
)
from .page import check_report, make_report, tell_report
from .reading_notes import missing_as
from .show import (
    add_rows,
    bar,
    collected_notes,
    grid,
    tell,
    tell_json,
    tell_notes,
    tell_table,
    working,
)

if TYPE_CHECKING:
    from ..files import TableFile
    from ..reporting import Report

_MOST_CELLS = 3  # of the most uncertain ones


@command
def impute(
    context: typer.Context,
    source: InputFile,
    out: OutputFile,
    writing: Writing,
    showing: Showing,
    choice: ColumnChoice,
    constraints: Constraints,
    knowledge: Knowledge,
    method: MethodChoice,
    reading: Reading,
    beside: Beside,
    save_model: Annotated[
        Path | None, option("Output", "Save the model to a file, for otimpute apply.", metavar="MODEL")
    ] = None,
    report: Annotated[Path | None, option("Output", "Write an HTML report on the imputed values.", metavar="REPORT")] = None,
    multiple: Annotated[
        int | None,
        option("Multiple imputation", "Impute so many times, by random draws; a {} in OUT is a file each.", metavar="M"),
    ] = None,
    delta: Annotated[
        list[str] | None,
        option(
            "Multiple imputation",
            "Shift missing values: income=0.2, 'income=0.5 sd', 'income=1.1 x', odds smoker=yes:2; repeat for more.",
            metavar="COL=DELTA",
        ),
    ] = None,
) -> None:
    """Fill in the missing values of a table.

    Everything else stays the same: other fields byte for byte, rows and columns in their order.
    """
    if multiple is not None:
        from .multiple import impute_several

        for name, given in (("--save-model", save_model), ("--std", beside.std)):
            if given is not None:
                raise ValueError(f"{name} is not for --multiple; leave it out")
        asked = Asked.of(reading, choice, constraints, knowledge, method, default="chained")
        impute_several(source, out, multiple, delta or [], writing, showing, asked, beside, report)
        return
    if delta:
        raise ValueError("--delta needs --multiple, which imputes by random draws: pass --multiple 20, or leave out --delta")
    paths = {"--save-model": save_model, "--report": report, "--checkpoint": method.checkpoint, **beside.paths}
    check_apart({"IN": source, "--out": out, **paths})
    writing.check(out, source)
    asked = Asked.of(reading, choice, constraints, knowledge, method)
    beside.check(writing, asked.imputer(), f"--method {asked.method.name}")
    if report is not None:
        check_report(report, writing)
    if save_model is not None:
        writing.check_model(save_model)
    fitted = learn(source, asked, showing)
    with beside.open(fitted.table.frame.column_names, writing) as write_beside:
        write_beside(fitted.table.frame, fitted.completed, fitted.bars())
    writing.write(fitted.table, out, fitted.completed)
    if save_model is not None:
        fitted.imputer.save(save_model)
    made = None if report is None else _report(fitted, report, source, context.obj, showing)
    if showing.json:
        verdict = {} if made is None else {"report_verdict": made.as_dict()["verdict"]}
        where = {"output": out, "model": save_model, "report": report, "mask": beside.mask, "std": beside.std}
        tell_json(fitted.summary() | where | verdict, err=out == "-")
        return
    tell_notes(fitted.notes)
    if not showing.quiet:
        _show(fitted, "standard output" if out == "-" else out)
        for what, path in (("mask of imputed cells", beside.mask), ("error bars", beside.std)):
            if path is not None:
                tell(f"{what} in {path}")
        if save_model is not None:
            tell(f"model in {save_model}")
        if made is not None:
            tell_report(made, str(report))


def _report(fitted: Fitted, report: Path, source: str, command_line: str, showing: Showing) -> Report:
    X, X_imputed = fitted.table.frame.select(fitted.used), fitted.completed.select(fitted.used)
    with working("checking on hidden values …", shown=not showing.quiet), collected_notes():
        return make_report(fitted.imputer, X, X_imputed, report, source, command_line, not_used=fitted.not_used)


@command
def fit(
    source: InputFiles,
    model: Annotated[Path, typer.Option(metavar="MODEL", help="Model file to write.", show_default=False)],
    writing: Replacing,
    showing: Showing,
    choice: ColumnChoice,
    constraints: Constraints,
    knowledge: Knowledge,
    method: MethodChoice,
    reading: Reading,
) -> None:
    """Fit a model on a table, and save it to a file for [bold]otimpute apply[/].

    A folder of Parquet files, or a pattern in quotes, may be larger than memory: what is a sum over rows is summed over all of
    them, and everything else is learned from a sample.
    """
    if is_many(source):
        from .fit_files import fit_files

        fit_files(source, model, writing, showing, Asked.of(reading, choice, constraints, knowledge, method))
        return
    check_apart({"IN": source, "--model": model, "--checkpoint": method.checkpoint})
    writing.check_model(model)
    fitted = learn(source, Asked.of(reading, choice, constraints, knowledge, method), showing)
    fitted.imputer.save(model)
    if showing.json:
        tell_json(fitted.summary() | {"model": model}, err=False)
        return
    tell_notes(fitted.notes)
    if not showing.quiet:
        tell(f"{model}: {fitted.method} learned from {_size(fitted.table)} in {duration(fitted.seconds)}")
        gaps = {column["name"]: missing_as(column["missing_as"]) for column in fitted.filled() if column["missing_as"]}
        if gaps:
            tell("missing: " + listed([f"{name} {spelled}" for name, spelled in gaps.items()], 20))
        tell_verdict(fitted.imputer)
        tell(f"to impute other rows: otimpute apply {model} IN -o OUT", style="dim")


def _size(table: TableFile) -> str:
    return f"{count(table.frame.num_rows, 'row')} × {count(table.frame.num_columns, 'column')}"


def _show(fitted: Fitted, out: str) -> None:
    rows = [column for column in fitted.filled() if column["n_missing"]]
    n_filled = sum(column["n_filled"] for column in rows)
    tell(
        f"{out}: {_size(fitted.table)}, {count(n_filled, 'missing value')} filled by {fitted.method} "
        f"in {duration(fitted.seconds)}",
        style="bold",
    )
    if not rows:
        tell("nothing was missing in the columns that were used")
        return
    n_rows = fitted.table.frame.num_rows
    bars = {each.name: each.words for each in fitted.error_bars.columns} if fitted.error_bars else {}
    more = [("error bar", "right")] if bars else []
    table = grid("column", ("filled", "right"), "", ("missing", "right"), "missing as", *more)
    add_rows(
        table,
        [
            [
                listed([column["name"]]),
                filled_words(column["n_filled"], column["n_missing"]),
                bar(column["n_missing"], n_rows),
                share(column["n_missing"], n_rows),
                missing_as(column["missing_as"]),
                *([bars.get(column["name"], "–")] if bars else []),
            ]
            for column in rows
        ],
    )
    tell_table(table, err=True)
    if least := fitted.least_sure():
        cells = [
            f"row {each['row']:,}, {listed([each['column']])}: {each['value']} ({each['bar']})" for each in least[:_MOST_CELLS]
        ]
        tell(f"most uncertain: {'; '.join(cells)}")
    validation = fitted.validation()
    if validation:
        mae, rmse = (number(value) for value in validation.values())
        tell(f"errors on hidden values: MAE {mae}, RMSE {rmse} standard deviations")
    tell_verdict(fitted.imputer)
