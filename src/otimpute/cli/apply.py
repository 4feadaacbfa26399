"""``otimpute apply``: fill the holes of other rows with a model, some at a time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._optional import require
from .._text import count, duration, listed
from .beside import Beside
from .impute import n_missing, put_back
from .options import InputFiles, OutputFile, Reading, Showing, Writing, about, check_apart, command, is_many, option
from .show import collected_notes, tell, tell_json, tell_notes, working

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..estimator import BaseImputer


@command
def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by otimpute fit.", show_default=False)],
    source: InputFiles,
    out: OutputFile,
    writing: Writing,
    showing: Showing,
    reading: Reading,
    beside: Beside,
    engine: Annotated[
        str | None,
        option("Many files", "What runs the workers: local, ray, spark or dask.", metavar="ENGINE", default="local"),
    ] = None,
    workers: Annotated[
        int | None, option("Many files", "How many files at a time.", metavar="N", default="one per core")
    ] = None,
) -> None:
    """Fill in the missing values of new rows with a model.

    The model is not changed and each row is treated separately, so files of any length can be processed.

    Columns are matched by name; those that the model does not know stay as they are.

    Of a folder of Parquet files, or a pattern in quotes, each becomes a file in the folder OUT. Finished files are not done
    again, so that a command that was stopped goes on where it was.
    """
    if is_many(source) or engine is not None or workers is not None:
        from .apply_files import apply_files

        if beside.mask is not None or beside.std is not None:
            raise ValueError("--mask and --std are for a single table; leave them out, or apply the model to each file alone")
        apply_files(model, source, out, showing, engine or "local", workers)
        return
    check_apart({"MODEL": model, "--out": out, **beside.paths})
    check_apart({"IN": source, **beside.paths})
    writing.check(out, source)
    imputer = load_model(model)
    beside.check(writing, imputer, f"the model {str(model)!r}")
    begun, n_rows, n_filled = time.perf_counter(), 0, 0
    with (
        collected_notes() as notes,
        reading.open(source, schema_of(imputer), gaps_of(imputer)) as table,
        writing.open(out, table) as writer,
        beside.open(table.schema.names, writing) as write_beside,
        working(f"reading {source} …", shown=not showing.quiet) as say,
    ):
        names = columns_for(imputer, table.schema.names)
        for chunk in table.chunks():
            X = chunk.frame.select(names)
            filled, bars = _fill(imputer, as_model_reads(X, imputer), with_bars=beside.std is not None)
            filled = filled.select(names)
            completed = put_back(chunk.frame, filled)
            writer.write(chunk, completed)
            write_beside(chunk.frame, completed, bars)
            n_rows += X.num_rows
            n_filled += sum(n_missing(column) for column in X.columns) - sum(n_missing(column) for column in filled.columns)
            say(f"{count(n_rows, 'row')} …")
    seconds = time.perf_counter() - begun
    summary = {
        "model": model, "input": source, "output": out, "mask": beside.mask, "std": beside.std, "n_rows": n_rows,
        "n_filled": n_filled,
    }  # fmt: skip
    if showing.json:
        tell_json(summary | {"seconds": round(seconds, 3), "notes": notes}, err=out == "-")
        return
    tell_notes(notes)
    if not showing.quiet:
        where = "standard output" if out == "-" else out
        tell(f"{where}: {count(n_rows, 'row')}, {count(n_filled, 'missing value')} filled in {duration(seconds)}", style="bold")


def _fill(imputer: Any, X: Any, *, with_bars: bool) -> tuple[Any, dict[str, NDArray[Any]] | None]:
    """Return the completed rows, and their error bars by column if requested."""
    if not with_bars:
        return imputer.transform(X), None
    from ..estimator import bars_of

    filled, bars = imputer.transform(X, return_std=True)
    return filled, dict(zip(imputer.column_kinds_, bars_of(imputer, bars).T, strict=True))


def load_model(path: Path) -> BaseImputer:
    """Load the imputer of a model file, and check that it can be applied to files."""
    import otimpute

    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    imputer: BaseImputer = otimpute.load(path)
    if not hasattr(imputer, "feature_names_in_"):
        with about(str(path)):
            raise ValueError("the model was fitted on columns without names; fit it on a file or a data frame")
    return imputer


def columns_for(imputer: BaseImputer, names: list[str]) -> list[str]:
    """Return the columns of the model that are in the file; columns that the model does not use may be absent."""
    kinds = imputer.training_table_.encoding.kinds
    absent = [name for name in kinds if name not in names and not kinds[name].is_idle]
    if absent:
        raise ValueError(f"no column {listed(absent)}, which the model needs; there are {listed(names, 20)}")
    return [name for name in kinds if name in names]


def as_model_reads(X: Any, imputer: BaseImputer) -> Any:
    """Return the columns in the order of the model; absent columns that it does not use are empty."""
    for name in imputer.column_kinds_:
        if name not in X.column_names:
            X = X.append_column(name, [require("pyarrow", "reading tables", "cli").nulls(X.num_rows)])
    return X.select(list(imputer.column_kinds_))


def schema_of(imputer: BaseImputer) -> Any:
    """Return the types that columns of text files must have for this model; date formats are detected."""
    from ..table import ColumnKind

    pa = require("pyarrow", "reading tables", "cli")
    types = {
        ColumnKind.NUMBER: pa.float64(),
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.BOOLEAN: pa.bool_(),
        ColumnKind.CATEGORY: pa.string(),
        ColumnKind.ORDERED: pa.string(),
    }
    fields = []
    for name, kind in imputer.training_table_.encoding.kinds.items():
        labels = (imputer.constraints or {}).get(name, {}).get("categories", [])
        if kind in types:
            fields.append((name, pa.array(labels).type if labels else types[kind]))
    return pa.schema(fields)


def gaps_of(imputer: BaseImputer) -> dict[str, list[str]]:
    """Return which texts mean a missing value in the columns of a model: as in the file it was fitted on.

    A model fitted on a data frame has no such texts, but its categories never count as missing values.
    """
    from ..files import NA_VALUES
    from ..table import ColumnKind

    gaps: list[list[str]] | None = getattr(imputer, "file_gaps_", None)
    if gaps is not None:
        return dict(zip(imputer.column_kinds_, gaps, strict=True))
    kinds = imputer.training_table_.encoding.kinds
    of_text = {name: labels for name, labels in imputer.categories_.items() if kinds[name] != ColumnKind.BOOLEAN}
    return {name: sorted(NA_VALUES - set(labels)) for name, labels in of_text.items()}
