"""``otimpute impute --multiple``: several completed tables, in one long file or a file each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._checks import check_count
from .._text import count, duration, listed, share
from ..catalogue import METHODS
from .asked import Asked
from .beside import Beside
from .learn import Chosen, filled_words, n_missing, put_back
from .options import Showing, Writing, about, check_apart
from .page import check_report, tell_report
from .parse import parse_delta, parse_value
from .reading_notes import missing_as
from .show import add_rows, bar, collected_notes, console, grid, tell, tell_json, tell_notes, tell_table, working

if TYPE_CHECKING:
    from ..files import Column, TableFile
    from ..inference import MultipleImputer

_EACH = "{}"  # in the name of the output: the number of a table


@dataclass(frozen=True)
class Outputs:
    """Where the tables go: one long file, or a file each."""

    out: str
    m: int
    writing: Writing

    @property
    def is_long(self) -> bool:
        """Whether there is one file."""
        return _EACH not in self.out

    @property
    def paths(self) -> list[str]:
        """Of all files."""
        return [self.out] if self.is_long else [self.out.replace(_EACH, str(k)) for k in range(1, self.m + 1)]

    def check(self, source: str) -> None:
        """Raise before a long fit if a file could not be written."""
        for path in self.paths:
            self.writing.check(path, source)

    def write(self, table: TableFile, completed: Iterator[Any]) -> None:
        """Write all tables; files appear when all of them are complete."""
        from ..files import open_writer, write_long

        how: dict[str, Any] = {"force": self.writing.force, "format": self.writing.out_format}
        with about(self.out):
            if self.is_long:
                write_long(table, self.out, completed, **how)
                return
            with ExitStack() as stack:
                writers = [stack.enter_context(open_writer(path, table, **how)) for path in self.paths]
                for writer, one in zip(writers, completed, strict=True):
                    first = 0
                    for chunk in table.reader.chunks_of(table.frame):
                        writer.write(chunk, one.slice(first, chunk.frame.num_rows))
                        first += chunk.frame.num_rows


def impute_several(
    source: str,
    out: str,
    m: int,
    deltas: Sequence[str],
    writing: Writing,
    showing: Showing,
    asked: Asked,
    beside: Beside,
    report: Path | None,
) -> None:
    """Impute a table ``m`` times and write the completed tables."""
    from ..files import check_long
    from ..inference import MultipleImputer

    check_count("--multiple", m, at_least=2, advice="one table cannot show how much results vary; 20 is a good number")
    outputs = Outputs(out, m, writing)
    paths = {f"table {k} of --out": path for k, path in enumerate(outputs.paths, start=1)}
    check_apart({"IN": source, **({"--out": out} if outputs.is_long else paths), "--report": report, **beside.paths})
    outputs.check(source)
    method = asked.method
    base = _drawing(asked, with_delta=bool(deltas))
    beside.check(writing, base, f"--method {method.name}")
    if report is not None:
        check_report(report, writing)
    chosen = Chosen.read(source, asked, showing)
    if chosen.plan.weights is not None:
        raise ValueError("--weights is not for --multiple, whose draws count all rows alike; leave it out")
    table, used, plan, X = chosen.table, chosen.used, chosen.plan, chosen.X
    shown = not (showing.quiet or showing.json) and console(err=True).is_terminal
    with about(source), asked.naming(table.columns), collected_notes() as notes:
        if outputs.is_long:
            check_long(table)
        base.set_params(constraints=plan.constraints, **plan.parameters_for(base, method.name))
        delta = _read_deltas(deltas, [column for column in table.columns if column.name in used]) or None
        imputer = MultipleImputer(base, m, delta=delta, n_jobs=method.jobs, random_state=method.seed, verbose=int(shown))
        begun = time.perf_counter()
        imputer.fit(X)
        seconds = time.perf_counter() - begun
    notes += chosen.notes
    first = put_back(table.frame, imputer.tables_[0])
    with beside.open(table.frame.column_names, writing) as write_beside:
        write_beside(table.frame, first, None)
    with working(f"writing {out} …", shown=not showing.quiet):
        outputs.write(table, (put_back(table.frame, each) for each in imputer.tables_))
    made = None if report is None else _report(imputer, X, report)
    columns = [
        {
            "name": column.name,
            "n_missing": n,
            "n_filled": n - n_missing(first.column(column.name)),
            "missing_as": dict(column.missing_as),
        }
        for column in table.columns
        if column.name in used and (n := n_missing(table.frame.column(column.name)))
    ]
    if showing.json:
        summary = {
            "input": table.path, "output": outputs.paths[0] if outputs.is_long else outputs.paths, "method": method.name,
            "seed": method.seed, "m": m, "delta": list(deltas), "n_rows": table.frame.num_rows,
            "n_columns": table.frame.num_columns, "seconds": round(seconds, 3), "columns": columns,
            "not_used": [name for name in table.frame.column_names if name not in used],
            "plan": plan.as_dict(), "mask": beside.mask, "report": report, "notes": notes,
        }  # fmt: skip
        tell_json(summary, err=out == "-")
        return
    tell_notes(notes)
    if not showing.quiet:
        _show(outputs, table, columns, method.name, seconds)
        if beside.mask is not None:
            tell(f"mask of imputed cells in {beside.mask}")
        if made is not None:
            tell_report(made, str(report))


def _drawing(asked: Asked, *, with_delta: bool) -> Any:
    """The imputer behind the draws."""
    from ..inference.draws import DRAWING

    method = asked.method
    classes = {cls.__name__ for cls in DRAWING}
    able = [name for name, entry in METHODS.items() if entry.location.rpartition(":")[2] in classes]
    if method.name in METHODS and method.name not in able:
        raise ValueError(f"--multiple needs random draws, which --method {method.name} does not make; pass {listed(able, 20)}")
    for option, given in (("--max-seconds", method.max_seconds), ("--checkpoint", method.checkpoint)):
        if given is not None:
            raise ValueError(f"{option} is not for --multiple; leave it out")
    if with_delta and METHODS[method.name].location.rpartition(":")[2] != "ChainedImputer":
        raise ValueError(f"--delta needs --method chained, the default of --multiple, got --method {method.name}")
    return replace(method, jobs=None).imputer(asked.file)


def _read_deltas(texts: Sequence[str], columns: Sequence[Column]) -> dict[str, Any]:
    """By column, as `ChainedImputer` takes it; odds of several categories come one by one."""
    known = {column.name: column for column in columns}
    found: dict[str, Any] = {}
    for text in texts:
        name, said, odds = parse_delta(text, list(known))
        if odds is None and name not in found:
            found[name] = said
        elif odds is not None and isinstance(found.setdefault(name, {}), dict):
            found[name][_label(said, known[name])] = odds
        else:
            raise ValueError(f"--delta is given twice for column {name!r}; give it once")
    return found


def _label(text: str, column: Column) -> Any:
    """A category as the table holds it: of yes and no, or true and false, a boolean."""
    from ..files import FieldKind

    if column.kind == FieldKind.BOOLEAN:
        from .._optional import require

        pair = require("pyarrow", "reading tables", "cli").array([False, True])
        spelled = [str(each).lower() for each in column.texts(pair)]
        return bool(spelled.index(text.lower())) if text.lower() in spelled else text
    return parse_value(text) if column.kind in (FieldKind.INTEGER, FieldKind.NUMBER) else text


def _report(imputer: MultipleImputer, X: Any, path: Path) -> Any:
    import otimpute

    return otimpute.report(imputer, X, path)


def _show(outputs: Outputs, table: TableFile, columns: Sequence[dict[str, Any]], method: str, seconds: float) -> None:
    n_rows, paths = table.frame.num_rows, outputs.paths
    where = "standard output" if outputs.out == "-" else paths[0] if outputs.is_long else f"{paths[0]} to {paths[-1]}"
    size = f"{count(n_rows, 'row')} × {count(table.frame.num_columns, 'column')}"
    n_drawn = sum(column["n_filled"] for column in columns)
    tell(
        f"{where}: {count(outputs.m, 'table')} of {size}, {count(n_drawn, 'missing value')} of each drawn by {method}, "
        f"in {duration(seconds)}",
        style="bold",
    )
    shown = grid("column", ("drawn", "right"), "", ("missing", "right"), "missing as")
    add_rows(
        shown,
        [
            [
                listed([column["name"]]),
                filled_words(column["n_filled"], column["n_missing"]),
                bar(column["n_missing"], n_rows),
                share(column["n_missing"], n_rows),
                missing_as(column["missing_as"]),
            ]
            for column in columns
        ],
    )
    tell_table(shown, err=True)
    tell("analyse every table and pool the results: otimpute.pool in Python", style="dim")
    if outputs.is_long:
        tell("in R: mice::as.mids of this file (.imp 0 is the table as it was), with() and pool()", style="dim")
