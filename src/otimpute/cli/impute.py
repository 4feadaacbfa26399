"""``otimpute impute`` and ``otimpute fit``: learn from a table, and fill its holes or keep what was learned."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import count, duration, listed, number, share
from .beside import Beside
from .method import ColumnChoice, Constraints, MethodChoice
from .options import (
    InputFile,
    InputFiles,
    OutputFile,
    Reading,
    Replacing,
    Showing,
    Writing,
    about,
    check_apart,
    command,
    is_many,
    option,
)
from .page import check_report, make_report, tell_report
from .parse import named_as_set
from .reading_notes import missing_as, reading_notes
from .show import (
    add_rows,
    bar,
    collected_notes,
    console,
    grid,
    tell,
    tell_json,
    tell_notes,
    tell_table,
    working,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..estimator import BaseImputer
    from ..files import TableFile
    from ..reporting import Report
    from ..reporting.data import ErrorBarSummary

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
        by_default = str(context.get_parameter_source("method")).endswith("DEFAULT")
        chosen = replace(method, method="chained") if by_default else method
        impute_several(
            source, out, multiple, delta or [], writing, showing, choice, constraints, chosen, reading, beside, report
        )
        return
    if delta:
        raise ValueError("--delta needs --multiple, which imputes by random draws: pass --multiple 20, or leave out --delta")
    paths = {"--save-model": save_model, "--report": report, "--checkpoint": method.checkpoint, **beside.paths}
    check_apart({"IN": source, "--out": out, **paths})
    writing.check(out, source)
    beside.check(writing, method.imputer(), f"--method {method.method}")
    if report is not None:
        check_report(report, writing)
    if save_model is not None:
        writing.check_model(save_model)
    fitted = learn(source, reading, choice, constraints, method, showing)
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
    method: MethodChoice,
    reading: Reading,
) -> None:
    """Fit a model on a table, and save it to a file for [bold]otimpute apply[/].

    A folder of Parquet files, or a pattern in quotes, may be larger than memory: what is a sum over rows is summed over all of
    them, and everything else is learned from a sample.
    """
    if is_many(source):
        from .fit_files import fit_files

        fit_files(source, model, writing, showing, choice, constraints, method)
        return
    check_apart({"IN": source, "--model": model, "--checkpoint": method.checkpoint})
    writing.check_model(model)
    fitted = learn(source, reading, choice, constraints, method, showing)
    fitted.imputer.save(model)
    if showing.json:
        tell_json(fitted.summary() | {"model": model}, err=False)
        return
    tell_notes(fitted.notes)
    if not showing.quiet:
        tell(f"{model}: {method.method} learned from {_size(fitted.table)} in {duration(fitted.seconds)}")
        gaps = {column["name"]: missing_as(column["missing_as"]) for column in fitted.filled() if column["missing_as"]}
        if gaps:
            tell("missing: " + listed([f"{name} {spelled}" for name, spelled in gaps.items()], 20))
        tell_verdict(fitted.imputer)
        tell(f"to impute other rows: otimpute apply {model} IN -o OUT", style="dim")


@dataclass(frozen=True)
class Fitted:
    """An imputed table and the imputer."""

    table: TableFile
    imputer: BaseImputer
    method: str
    seed: int
    used: list[str]
    completed: Any  # a pyarrow table like that of ``table``
    notes: list[str]
    seconds: float

    def filled(self) -> list[dict[str, Any]]:
        """Numbers of missing and of imputed values by column."""
        columns, spelled = [], {column.name: column.missing_as for column in self.table.columns}
        typical = {each.name: each for each in self.error_bars.columns} if self.error_bars else {}
        for name in self.used:
            before = n_missing(self.table.frame.column(name))
            after = n_missing(self.completed.column(name))
            bar = {"typical_error_bar": typical[name].typical} if name in typical else {}
            found = {"name": name, "n_missing": before, "n_filled": before - after, "missing_as": dict(spelled[name])}
            columns.append({**found, **bar})
        return columns

    def bars(self) -> dict[str, NDArray[Any]] | None:
        """Error bars by column; None if the method has none."""
        from ..estimator import bars_of, has_error_bars

        if not has_error_bars(self.imputer):
            return None
        return dict(zip(self.used, bars_of(self.imputer, self.imputer.imputation_std_).T, strict=True))

    @cached_property
    def error_bars(self) -> ErrorBarSummary | None:
        """Summary of the error bars by column, and of the most uncertain cells."""
        from ..reporting import error_bars

        return error_bars(self.imputer, self.table.frame.select(self.used), self.completed.select(self.used))

    @property
    def not_used(self) -> list[str]:
        """Columns of the file that were not used."""
        return [name for name in self.table.frame.column_names if name not in self.used]

    def validation(self) -> dict[str, float]:
        """Errors on values hidden from the fit, if ``validation_fraction`` is set."""
        history = getattr(self.imputer, "history_", {})
        return {name: history[name][-1] for name in ("validation_mae", "validation_rmse") if history.get(name)}

    def least_sure(self) -> list[dict[str, Any]]:
        """The cells with the largest error bars, numbers before categories."""
        found = self.error_bars
        return [asdict(cell) for cell in (*found.numbers, *found.categories)] if found else []

    def summary(self) -> dict[str, Any]:
        """Return the summary as JSON data."""
        frame = self.table.frame
        return {
            "input": self.table.path,
            "method": self.method,
            "seed": self.seed,
            "n_rows": frame.num_rows,
            "n_columns": frame.num_columns,
            "seconds": round(self.seconds, 3),
            "columns": self.filled(),
            "not_used": self.not_used,
            "notes": self.notes,
            **self.validation(),
            **({"least_sure": self.least_sure()} if self.error_bars else {}),
            **trial_of(self.imputer),
        }


@dataclass(frozen=True)
class Chosen:
    """A table that was read, and what of it is used."""

    table: TableFile
    used: list[str]
    constraints: dict[str, dict[str, Any]] | None
    notes: list[str]

    @classmethod
    def read(cls, source: str, reading: Reading, choice: ColumnChoice, constraints: Constraints, showing: Showing) -> Chosen:
        """Read a file and choose its columns; those without any value are left alone."""
        with working(f"reading {source} …", shown=not showing.quiet):
            table = reading.read(source)
        frame = table.frame
        with about(source):
            chosen = choice.of(frame.column_names)
            used = [name for name in chosen if n_missing(frame.column(name)) < frame.num_rows]
            if not used:
                raise ValueError(f"all values of {listed(chosen)} are missing, so there is nothing to learn from")
            wishes = constraints.of([column for column in table.columns if column.name in chosen]) or {}
        wishes = {name: wish for name, wish in wishes.items() if name in used}
        notes = [*_never_filled(frame, wishes), *reading_notes(table, used)]
        empty = [name for name in chosen if name not in used]
        if empty:
            notes.append(f"all values of {listed(empty)} are missing: left empty")
        return cls(table, used, wishes or None, notes)


def learn(
    source: str, reading: Reading, choice: ColumnChoice, constraints: Constraints, method: MethodChoice, showing: Showing
) -> Fitted:
    """Fit an imputer on the chosen columns of a file."""
    imputer = method.imputer()  # first, to report wrong options before reading a long file
    chosen = Chosen.read(source, reading, choice, constraints, showing)
    table, used = chosen.table, chosen.used
    with about(source), named_as_set(method.settings), collected_notes() as notes:
        imputer.set_params(constraints=chosen.constraints)
        begun = time.perf_counter()
        filled = _fit(imputer, table.frame.select(used), method, shown=not (showing.quiet or showing.json))
        seconds = time.perf_counter() - begun
    imputer.file_gaps_ = [sorted(table.gaps.get(name, ())) for name in used]
    notes += chosen.notes
    return Fitted(table, imputer, method.method, method.seed, used, put_back(table.frame, filled), notes, seconds)


def _never_filled(frame: Any, wishes: dict[str, dict[str, Any]]) -> list[str]:
    """Return notes on declared categories that never occur and so cannot be imputed; ordered ones can."""
    notes = []
    for name, wish in wishes.items():
        if "categories" in wish and not wish.get("ordered"):
            observed = set(frame.column(name).unique().to_pylist())
            absent = [str(label) for label in wish["categories"] if label not in observed]
            if absent:
                notes.append(f"{name}: {listed(absent)} never occurs, so it is never imputed")
    return notes


def put_back(frame: Any, filled: Any) -> Any:
    """Return the table with some columns replaced."""
    for name in filled.column_names:
        place = frame.column_names.index(name)
        frame = frame.set_column(place, frame.schema.field(place).with_type(filled.column(name).type), filled.column(name))
    return frame


def trial_of(imputer: BaseImputer) -> dict[str, Any]:
    """Return the findings of an imputer that tested its experts on hidden values; None for others."""
    if not hasattr(imputer, "verdict_"):
        return {}
    found = getattr(imputer, "judgement_", None)  # absent in files of older versions
    judgement = {} if found is None else {"judgement": asdict(found)}
    return {name: getattr(imputer, f"{name}_") for name in ("verdict", "weights", "scores")} | judgement


def tell_verdict(imputer: BaseImputer, *, err: bool = True) -> None:
    """Describe these findings in words."""
    if trial := trial_of(imputer):
        tell(trial["verdict"], err=err)


def n_missing(column: Any) -> int:
    """Return which values are null or NaN."""
    return int(column.is_null(nan_is_null=True).to_numpy().sum())


def _fit(imputer: BaseImputer, X: Any, method: MethodChoice, *, shown: bool) -> Any:
    from ..fitting import StopReason

    own_bar = "verbose" in imputer.get_params(deep=False)
    shown = shown and console(err=True).is_terminal
    if own_bar:
        imputer.set_params(verbose=int(shown))
    with working(f"{method.method} …", shown=shown and not own_bar):
        filled = imputer.fit_transform(X)
    if own_bar:
        imputer.set_params(verbose=0)  # no progress bar when the saved model is applied
    if getattr(imputer, "stop_reason_", "") == StopReason.INTERRUPTED:
        # The library keeps a partial result, but the command must not write one.
        saved = method.checkpoint is not None and method.checkpoint.exists()
        raise KeyboardInterrupt(f"run the same command to continue from {method.checkpoint}" if saved else "")
    return filled


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
                f"{column['n_filled']:,}" if column["n_filled"] == column["n_missing"] else "left alone",
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
