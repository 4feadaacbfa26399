"""``otimpute inspect``: what a table lacks and what would be done about it; what a model is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import count, duration, listed, share
from .apply import load_model
from .asked import Asked, Knowledge
from .draft import check_draft, write_draft
from .learn import n_missing, set_aside, tell_verdict, trial_of
from .method import ColumnChoice, Constraints, MethodChoice
from .options import Reading, Replacing, Showing, about, command, option
from .plan import toml_line
from .reading_notes import USE_IDENTIFIERS, missing_as, reading_notes
from .show import (
    add_rows,
    bar,
    collected_notes,
    grid,
    tell,
    tell_json,
    tell_notes,
    tell_table,
)

if TYPE_CHECKING:
    from ..files import TableFile

_MOST_PATTERNS = 5
# Seconds per value on one core: the default method tests its experts on some rows, usually three times, then fits on many.
_PER_VALUE, _TRIALS, _ROWS_TRIED, _ROWS_FITTED = 2.2e-4, 3, 4000, 50_000


@command
def inspect(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A table or a model; - is standard input.", show_default=False)],
    showing: Showing,
    choice: ColumnChoice,
    constraints: Constraints,
    knowledge: Knowledge,
    reading: Reading,
    writing: Replacing,
    max_categories: Annotated[int | None, typer.Option(min=1, help="As for impute.", show_default="50")] = None,
    write_plan: Annotated[
        Path | None,
        option("What you know of your table", "Draft a .toml file for --plan from what is seen here.", metavar="PLAN"),
    ] = None,
) -> None:
    """Show the missing values of a table and what impute would do, or describe a model."""
    if _is_model(file):
        _inspect_model(Path(file), showing)
        return
    from ..table import ColumnKind, describe_columns

    if write_plan is not None:
        check_draft(write_plan, writing)
    asked = Asked.of(reading, choice, constraints, knowledge, MethodChoice(max_categories=max_categories))
    asked.imputer()  # says what is wrong with the settings of a plan
    table = asked.read(file)
    with about(file), asked.naming(table.columns), collected_notes() as notes:
        plan = asked.plan(table.columns)
        used = plan.used(table.frame.column_names)
        finite, infinite = _without_infinity(table.frame.select(used))
        aside = set_aside(finite, plan)
        idle = {used.index(name): ColumnKind.IDENTIFIER for name in aside}
        described = describe_columns(finite, plan.constraints, asked.method.max_categories, idle)
    spelled = {column.name: column.missing_as for column in table.columns}
    columns = [_describe(table.frame, column) | {"missing_as": spelled[column.name]} for column in described]
    notes += [*asked.notes(), *reading_notes(table, [name for name in used if name not in aside])]
    if aside:
        notes.append(f"set aside what looks like an identifier: {listed(aside, 20)}; {USE_IDENTIFIERS}")
    if infinite:
        notes.append(f"impute rejects infinite values, as in {listed(infinite)}: replace them, or --exclude these columns")
    patterns = _patterns(table.frame.select(used))
    words = _command(ctx, table.path, write_plan)
    if write_plan is not None:
        write_draft(write_plan, table, described, aside, plan, shlex.join(words))
    if showing.json:
        found = {"used": columns, "patterns": patterns, "plan": plan.as_dict(), "notes": notes}
        tell_json(table.describe() | found | ({} if write_plan is None else {"plan_file": write_plan}), err=False)
        return
    _show_table(table, columns, patterns)
    if known := plan.as_dict():
        tell("known:", err=False)
        for key, value in known.items():
            tell(f"  {toml_line(key, value)}", err=False)
    tell_notes(notes, err=False)
    if write_plan is not None:
        tell(f"plan in {write_plan}: edit it, and pass it as --plan", err=False, style="bold")
    if any(column["n_missing"] for column in columns):
        seconds = _seconds(columns, table.frame.num_rows)
        tell(f"\n{shlex.join(words)}    # about {duration(seconds)} on one core", err=False)


def _is_model(file: str) -> bool:
    from .._archive import is_archive

    return is_archive(Path(file))


def _inspect_model(path: Path, showing: Showing) -> None:
    imputer = load_model(path)
    parameters = imputer.get_params(deep=False)
    usual = type(imputer)().get_params(deep=False)
    own = {name: value for name, value in parameters.items() if repr(value) != repr(usual.get(name))}
    kinds = dict(imputer.column_kinds_)
    size = path.stat().st_size
    if showing.json:
        told = {"path": path, "class": type(imputer).__name__, "parameters": own, "columns": kinds, "bytes": size}
        tell_json(told | trial_of(imputer), err=False)
        return
    tell(f"{path}: a model of {type(imputer).__name__}, {size / 1000:,.0f} kB", err=False, style="bold")
    if own:
        tell("parameters: " + ", ".join(f"{name}={value!r}" for name, value in own.items()), err=False)
    table = grid("column", "kind")
    add_rows(table, list(kinds.items()))
    tell_table(table)
    tell_verdict(imputer, err=False)
    tell(f"to impute these columns of other tables: otimpute apply {path} IN -o OUT", err=False, style="dim")


def _describe(frame: Any, column: Any) -> dict[str, Any]:
    cells = frame.column(column.name)
    n_holes = n_missing(cells)
    try:
        n_distinct = len(cells.drop_null().unique())
    except NotImplementedError:  # for example lists
        n_distinct = None
    return {
        "name": column.name,
        "kind": column.kind,
        "n_missing": n_holes,
        "n_distinct": n_distinct,
        "treatment": column.treatment,
    }


def _without_infinity(frame: Any) -> tuple[Any, list[str]]:
    """Return the table with infinite values as missing, and the columns that have some."""
    from .._optional import require

    pa, pc = (require(module, "reading tables", "cli") for module in ("pyarrow", "pyarrow.compute"))
    infinite = []
    for place, (field, cells) in enumerate(zip(frame.schema, frame.columns, strict=True)):
        if pa.types.is_floating(field.type) and pc.any(pc.is_inf(cells)).as_py():
            infinite.append(field.name)
            frame = frame.set_column(place, field, pc.if_else(pc.is_inf(cells), pa.scalar(None, field.type), cells))
    return frame, infinite


def _patterns(frame: Any) -> list[dict[str, Any]]:
    """Return the patterns of missing columns, the most frequent first; complete rows are one of them."""
    import numpy as np

    missing = np.column_stack([column.is_null(nan_is_null=True).to_numpy() for column in frame.columns])
    packed = np.packbits(missing, axis=1)
    _, first, counts = np.unique(
        packed.view([("", packed.dtype, packed.shape[1])]).ravel(), return_index=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    names = np.array(frame.column_names, dtype=object)
    return [{"missing": names[missing[first[k]]].tolist(), "n_rows": int(counts[k])} for k in order]


def _show_table(table: TableFile, columns: Sequence[dict[str, Any]], patterns: Sequence[dict[str, Any]]) -> None:
    n_rows = table.frame.num_rows
    holes = sum(column["n_missing"] for column in columns)
    size = f"{count(n_rows, 'row')} × {count(table.frame.num_columns, 'column')}"
    missing = f"{count(holes, 'missing value')} ({share(holes, n_rows * len(columns))})"
    tell(f"{table.path}: {size}, {missing}", err=False, style="bold")
    tell(_origin(table), err=False, style="dim")
    shown = grid(
        "column", "kind", ("distinct", "right"), ("missing", "right"), "", ("share", "right"), "missing as", "filled with"
    )
    add_rows(
        shown,
        [
            [
                listed([column["name"]]), column["kind"], _count(column["n_distinct"]), f"{column['n_missing']:,}",
                bar(column["n_missing"], n_rows), share(column["n_missing"], n_rows), missing_as(column["missing_as"]),
                column["treatment"],
            ]
            for column in columns
        ],
    )  # fmt: skip
    tell_table(shown)
    if not holes:
        tell("nothing is missing", err=False)
        return
    complete = sum(pattern["n_rows"] for pattern in patterns if not pattern["missing"])
    lack = "lacks" if complete == 1 else "lack"
    tell(f"{count(complete, 'row')} of {n_rows:,} {lack} nothing ({share(complete, n_rows)}); most others lack", err=False)
    for pattern in [pattern for pattern in patterns if pattern["missing"]][:_MOST_PATTERNS]:
        tell(f"  {pattern['n_rows']:>7,} ×  {listed(pattern['missing'])}", err=False)


def _command(ctx: typer.Context, path: str, plan: Path | None) -> list[str]:
    """Return the impute command, with the options of this command, or with a plan that has those it can have."""
    planned = {each.name for group in (ColumnChoice, Constraints, Knowledge) for each in fields(group)} | {"na", "keep"}
    left_out = {"file", "json", "quiet", "force", "write_plan", *({*planned, "max_categories"} if plan else ())}
    words = ["otimpute", "impute", path, "-o", "-" if path == "-" else Path(path).with_suffix("").stem + "-imputed.csv"]
    for each in ctx.command.params:
        source, value = ctx.get_parameter_source(each.name or ""), ctx.params.get(each.name or "")
        if source is None or source.name != "COMMANDLINE" or each.name in left_out:
            continue
        if isinstance(value, bool):
            words.append(max(each.opts if value else each.secondary_opts, key=len))
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                words += [max(each.opts, key=len), str(one)]
    return [*words, *(["--plan", str(plan)] if plan else [])]


def _count(n: int | None) -> str:
    return "–" if n is None else f"{n:,}"


def _origin(table: TableFile) -> str:
    """Describe format and dialect in words."""
    told = table.describe()
    parts = [told["format"]]
    if "dialect" in told:
        dialect = told["dialect"]
        delimiter = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}.get(
            dialect["delimiter"], repr(dialect["delimiter"])
        )
        if len(told["columns"]) > 1:
            parts.append(f"separated by {delimiter}")
        parts += [dialect["encoding"], f"decimal {'comma' if dialect['decimal'] == ',' else 'point'}"]
        if not dialect["header"]:
            parts.append("no header")
    if "sheet" in told:
        parts.append(f"sheet {told['sheet']!r}")
    return ", ".join(parts)


def _seconds(columns: Sequence[dict[str, Any]], n_rows: int) -> float:
    """Estimate the time of the default method; a category counts as many columns as it has values."""
    from ..table import ColumnKind

    used = [column for column in columns if column["kind"] != ColumnKind.TEXT]
    width = sum(column["n_distinct"] if column["kind"] == ColumnKind.CATEGORY else 1 for column in used)
    return 1 + _PER_VALUE * width * (_TRIALS * min(n_rows, _ROWS_TRIED) + min(n_rows, _ROWS_FITTED))
