"""``otimpute mask`` and ``otimpute score``: hide values that are known, and see how well they were found."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import count, listed, number, share
from ..catalogue import MECHANISMS, make_mechanism
from .method import ColumnChoice
from .options import InputFile, OutputFile, Reading, Showing, Writing, about, command
from .parse import named_as_set, parse_settings
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
    import numpy as np
    from numpy.typing import NDArray

    from ..metrics import ColumnScore, TableScore


def _complete_mechanism(incomplete: str) -> list[tuple[str, str]]:
    return [(name, mechanism.description) for name, mechanism in MECHANISMS.items() if name.startswith(incomplete)]


@command
def mask(
    source: InputFile,
    out: OutputFile,
    writing: Writing,
    showing: Showing,
    choice: ColumnChoice,
    reading: Reading,
    rate: Annotated[float, typer.Option(help="Fraction of the values to hide, in [0, 1).")] = 0.3,
    mechanism: Annotated[str, typer.Option(help=f"{', '.join(MECHANISMS)}.", autocompletion=_complete_mechanism)] = "mcar",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the mechanism; repeat for more.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed hides the same values.")] = 0,
) -> None:
    """Hide values of a table, to test with [bold]otimpute score[/] how well they are recovered."""
    writing.check(out, source)
    table = reading.read(source)
    with about(source), named_as_set(settings), collected_notes() as notes:
        names = choice.of(table.frame.column_names)
        hidden = _draw(table.frame, names, mechanism, rate, settings or [], seed)
    with about(out):
        table.write_without(out, hidden, force=writing.force, format=writing.out_format)
    counts = {name: int(hidden[:, k].sum()) for k, name in enumerate(table.frame.column_names) if name in names}
    if showing.json:
        summary = {"input": source, "output": out, "mechanism": mechanism, "rate": rate, "seed": seed}
        columns = [{"name": name, "n_hidden": n} for name, n in counts.items()]
        tell_json(summary | {"n_rows": table.frame.num_rows, "columns": columns, "notes": notes}, err=out == "-")
        return
    tell_notes(notes)
    if not showing.quiet:
        n_rows = table.frame.num_rows
        where = "standard output" if out == "-" else out
        total = sum(counts.values())
        tell(f"{where}: {count(total, 'value')} of {count(n_rows, 'row')} hidden ({mechanism}, seed {seed})", style="bold")
        shown = grid("column", ("hidden", "right"), "", ("share", "right"))
        add_rows(shown, [[name, f"{n:,}", bar(n, n_rows), share(n, n_rows)] for name, n in counts.items()])
        tell_table(shown, err=True)


@command
def score(
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="The table with the true values.", show_default=False)],
    imputed: Annotated[str, typer.Argument(metavar="IMPUTED", help="The imputed table.", show_default=False)],
    showing: Showing,
    choice: ColumnChoice,
    reading: Reading,
    holes: Annotated[
        str | None,
        typer.Option(
            metavar="INCOMPLETE", help="The table with missing values: only these are scored.", show_default="score all values"
        ),
    ] = None,
) -> None:
    """Score an imputed table against the true values."""
    from ..metrics import score_table

    true = reading.read(truth)
    with about(truth):
        names = choice.of(true.frame.column_names)
        right = true.frame.select(names)
    guess = _read_like(right, imputed, reading, true.gaps)
    missing = _holes(right, holes, reading, true.gaps)
    with about(imputed):
        scores = score_table(right, guess, missing)
    notes = [f"still missing: {each.n_unfilled} of {each.name}" for each in scores.columns if each.n_unfilled]
    if holes is None:
        notes.append("all values are scored, even if never missing; pass --holes INCOMPLETE to score only missing values")
    if showing.json:
        tell_json(asdict(scores) | {"truth": truth, "imputed": imputed, "holes": holes, "notes": notes}, err=False)
        return
    tell_notes(notes)
    _show(scores)


def _show(scores: TableScore) -> None:
    """Show the scores by column and overall."""
    from ..metrics import ScoreKind

    rows = [score for score in scores.columns if score.n_cells and score.kind != ScoreKind.OTHER]
    table = grid(
        "column", ("values", "right"), ("MAE", "right"), ("RMSE", "right"), ("RMSE / sd", "right"), ("right", "right"),
        ("mean or most frequent", "right"),
    )  # fmt: skip
    add_rows(table, [_row(score) for score in rows])
    tell_table(table)
    together = {
        "MAE": scores.mae, "RMSE": scores.rmse, "energy distance": scores.energy_distance, "squared W2": scores.wasserstein2,
    }  # fmt: skip
    known = [f"{name} {number(value)}" for name, value in together.items() if value is not None]
    if known:
        tell(f"numbers and dates, in standard deviations of the column: {', '.join(known)}", err=False)
    if scores.accuracy is not None:
        tell(f"categories: {_percent(scores.accuracy)} correct", err=False)
    if not rows:
        tell("nothing to score: no missing value has a known true value", err=False)


def _row(score: ColumnScore) -> list[str]:
    from ..metrics import ScoreKind

    if score.kind == ScoreKind.CATEGORIES:
        return [score.name, f"{score.n_cells:,}", "", "", "", _percent(score.accuracy), _percent(score.simplest)]
    unit = " d" if score.kind == ScoreKind.TIMES else ""
    simplest = None if score.simplest is None or not score.spread else score.simplest / score.spread
    if score.n_unfilled == score.n_cells:  # nothing to be judged
        errors = ["–", "–", "–"]
    else:
        errors = [number(score.mae) + unit, number(score.rmse) + unit, _ratio(score.scaled_rmse)]
    return [listed([score.name]), f"{score.n_cells:,}", *errors, "", _ratio(simplest)]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _draw(frame: Any, names: list[str], mechanism: str, rate: float, settings: list[str], seed: int) -> NDArray[np.bool_]:
    """Return which cells of the table to hide; missing cells cannot be hidden."""
    from dataclasses import fields

    import numpy as np

    from .._checks import check_choice
    from ..baselines import MeanImputer
    from ..missingness import hide

    kind: Any = MECHANISMS[check_choice("--mechanism", mechanism, MECHANISMS)].load()
    options = parse_settings(settings, [field.name for field in fields(kind)], {"rate": "--rate"}, mechanism)
    chosen, X = make_mechanism(mechanism, rate, options), frame.select(names)
    absent = np.column_stack([column.is_null(nan_is_null=True).to_numpy() for column in X.columns])
    if mechanism == "mcar":  # looks at no value
        drawn = chosen.sample(np.zeros(absent.shape), seed)
    else:
        _, drawn = hide(MeanImputer().fit_transform(X) if absent.any() else X, chosen, seed)
    hidden = np.zeros((frame.num_rows, frame.num_columns), dtype=bool)
    hidden[:, [frame.column_names.index(name) for name in names]] = drawn & ~absent
    return hidden


def _read_like(frame: Any, path: str, reading: Reading, known_gaps: Any) -> Any:
    """Read the same columns of another file, with the same types if it is text; integers may have become floats."""
    from .._optional import require

    pa = require("pyarrow", "reading tables", "cli")
    known = [field for field in frame.schema if not pa.types.is_null(field.type)]
    types = [(field.name, pa.float64() if pa.types.is_integer(field.type) else field.type) for field in known]
    with reading.open(path, pa.schema(types), known_gaps) as source:
        return _matching(frame, pa.concat_tables([chunk.frame for chunk in source.chunks()]))


def _holes(frame: Any, path: str | None, reading: Reading, known_gaps: Any) -> NDArray[np.bool_]:
    import numpy as np

    if path is None:
        return np.ones((frame.num_rows, frame.num_columns), dtype=bool)
    incomplete = reading.read(path, known_gaps).frame
    with about(path):
        return np.column_stack([column.is_null(nan_is_null=True).to_numpy() for column in _matching(frame, incomplete).columns])


def _matching(frame: Any, other: Any) -> Any:
    """Return the columns of ``frame`` in another table; raise if it lacks columns or has other rows."""
    absent = [name for name in frame.column_names if name not in other.column_names]
    if absent:
        raise ValueError(f"no column {listed(absent)}, which is in TRUTH; choose columns with --columns")
    if other.num_rows != frame.num_rows:
        raise ValueError(f"must have the same {frame.num_rows:,} rows as TRUTH, got {other.num_rows:,}")
    return other.select(frame.column_names)
