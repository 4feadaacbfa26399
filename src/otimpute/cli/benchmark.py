"""``otimpute benchmark``: run suites, see how far they are, read and draw their results."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._text import count, duration
from ..catalogue import COSTS, METRICS

if TYPE_CHECKING:
    from ..benchmark import Outcome, Record, RunProgress, RunReport

app = typer.Typer(no_args_is_help=True, help="Compare methods on data with known true values; rerun the paper's experiments.")

_SECONDS_BETWEEN_LINES = 30
_SCORES = [*METRICS, *COSTS]

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder passed to run as --out.", show_default=False)]
Names = Annotated[str, typer.Option(metavar="NAME,...", help="Only these; separate names by commas.", show_default=False)]


@app.command()
def run(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="smoke, paper, oos, runtime, or a YAML file.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the records.", show_default=False)],
    jobs: Annotated[int, typer.Option(help="Number of tasks to run in parallel, each on one thread.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, or cuda to run methods that support it on a GPU.")] = "cpu",
    shard: Annotated[
        str, typer.Option(metavar="i/n", help="Run the i-th of n parts, to distribute a suite over machines.")
    ] = "1/1",
    methods: Names = "",
    datasets: Names = "",
    settings: Names = "",
    seeds: Annotated[
        str, typer.Option(metavar="SEEDS", help="How many seeds (5), or which (0-4 or 0,3,7).", show_default=False)
    ] = "",
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder of data sets as CSV files.", show_default="OTIMPUTE_DATA")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop a task after this time.", show_default="never")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat tasks that failed or timed out.")] = False,
) -> None:
    """Run a suite. It can be stopped at any time; the same command continues it."""
    from ..benchmark import load_suite, run_suite

    part = load_suite(suite).only(
        datasets=_names(datasets), settings=_names(settings), methods=_names(methods), seeds=_seeds(seeds)
    )
    try:
        with _progress(part.name) as show:
            report = run_suite(
                part, out, jobs=jobs, shard=_shard(shard), device=device, data_home=data, max_seconds=max_seconds,
                retry_failed=retry_failed, on_progress=show,
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"stopped; finished tasks are kept in {out}: run the same command to continue", err=True)
        raise typer.Exit(130) from None
    _tell(report, out)


@app.command()
def status(folder: Folder) -> None:
    """Show the progress of a benchmark, and what failed and why."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..benchmark import Store

    contents = Store(folder).read()
    counts: Counter[tuple[str, str]] = Counter()
    for key, task in contents.planned.items():
        record = contents.records.get(key)
        counts[task.method, record.status if record else "missing"] += 1
        if record and record.flags:
            counts[task.method, "flagged"] += 1
    columns = ["ok", "failed", "timeout", "missing", "flagged"]
    table = Table("method", *columns)
    for method in sorted({method for method, _ in counts}):
        table.add_row(Text(method), *(str(counts[method, column]) for column in columns))
    table.add_section()
    table.add_row("all", *(str(sum(n for (_, each), n in counts.items() if each == column)) for column in columns))
    console = Console()
    console.print(table)
    for record in (contents.records[key] for key in contents.planned if key in contents.records):
        if not record.is_good or record.flags:
            what = record.error.strip().splitlines()[-1].strip() if record.error else "; ".join(record.flags)
            console.print(f"{record.status}: {_name(record)}: {what}", markup=False, soft_wrap=True)
    missing = Counter(task.dataset for key, task in contents.planned.items() if key not in contents.records)
    if missing:
        listed = ", ".join(f"{dataset} ({n})" for dataset, n in missing.items())
        console.print(f"missing, by data set: {listed}", markup=False, soft_wrap=True)
    for path, reason in contents.foreign.items():
        console.print(f"ignored, not a valid record: {path.name}: {reason}", markup=False, soft_wrap=True)
    versions = sorted({record.versions.get("otimpute", "unknown") for record in contents.records.values()})
    if len(versions) > 1:
        console.print(f"records of different versions of otimpute: {', '.join(versions)}", markup=False, soft_wrap=True)


@app.command()
def table(
    folder: Folder,
    score: Annotated[str, typer.Option(help=f"{', '.join(_SCORES[:-1])} or {_SCORES[-1]}.")] = "rmse",
    part: Annotated[str, typer.Option(help="train: rows the method was fitted on; test: rows it only transformed.")] = "train",
    format: Annotated[str, typer.Option(help="text, markdown or csv.")] = "text",  # noqa: A002
    methods: Names = "",
) -> None:
    """Show scores as tables, data sets by methods, one table per setting."""
    from .._checks import check_choice
    from ..benchmark import render_table

    check_choice("--score", score, _SCORES)
    check_choice("--part", part, ["train", "test"])
    check_choice("--format", format, ["text", "markdown", "csv"])
    outcomes = _outcomes(folder, methods)
    text = render_table(outcomes, score, part, format)
    if format == "text" and sys.stdout.isatty() and _width(text) > shutil.get_terminal_size().columns:
        text = render_table(outcomes, score, part, format, spread=False)
    typer.echo(text.rstrip("\n"))


@app.command()
def figures(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the figures.", show_default="DIR/figures")] = None,
    methods: Names = "",
) -> None:
    """Draw figures: bars, ranks, wins, run times, time against accuracy (SVG and PNG)."""
    from ..benchmark import draw_figures

    outcomes = _outcomes(folder, methods)
    typer.echo("drawing ...", err=True)
    for path in draw_figures(outcomes, out or folder / "figures"):
        typer.echo(path)


def _outcomes(folder: Path, methods: str) -> list[Outcome]:
    """Read the records of these methods; print a note if some are missing."""
    from ..benchmark import Store

    contents = Store(folder).read().only(_names(methods))
    n_missing = len(set(contents.planned) - set(contents.records))
    if n_missing:
        typer.echo(f"unfinished: {n_missing} of {count(len(contents.planned), 'task')} not done yet", err=True)
    return contents.outcomes()


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))


def _name(record: Record) -> str:
    task = record.task
    return f"{task.method} on {task.dataset}, {task.setting}, seed {task.seed}"


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if text and not names:  # an empty list would mean no restriction
        raise typer.BadParameter(f"expected names separated by commas, got {text!r}")
    return names


def _seeds(text: str) -> list[int]:
    if not text:
        return []
    try:
        first, dash, last = text.partition("-")
        if text.isdecimal():
            seeds = list(range(int(text)))
        else:
            seeds = list(range(int(first), int(last) + 1)) if dash else [int(seed) for seed in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds:
        raise typer.BadParameter(f"--seeds takes how many (5) or which (0-4, or 0,3,7, or 7-7 for one), got {text!r}")
    return seeds


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal()):
        raise typer.BadParameter(f"--shard takes i/n, such as 1/4, got {text!r}")
    return int(part), int(parts)


@contextmanager
def _progress(title: str) -> Iterator[Callable[[RunProgress], None]]:
    """Show a progress bar on a terminal, occasional lines elsewhere."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(lambda line: console.print(line, markup=False, soft_wrap=True))
        return
    with rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(20),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.fields[note]}", markup=False),
        console=console,
    ) as bar:
        shown = bar.add_task(title, total=None, note="starting")

        def show(now: RunProgress) -> None:
            bar.update(shown, completed=now.n_done, total=now.n_tasks, note=_note(now))

        yield show


def _lines(write: Callable[[str], None]) -> Callable[[RunProgress], None]:
    last = time.monotonic() - _SECONDS_BETWEEN_LINES

    def show(now: RunProgress) -> None:
        nonlocal last
        if (now.record and now.n_done == now.n_tasks) or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            write(f"{now.n_done} of {count(now.n_tasks, 'task')} {_note(now)}")

    return show


def _note(now: RunProgress) -> str:
    if now.activity:
        return now.activity
    left = "" if now.seconds_left is None else f"about {duration(now.seconds_left)} left"
    latest = f", {now.record.task.method} {now.record.status}" if now.record else ""  # short: a bar has one line
    return left + latest


def _tell(report: RunReport, out: Path) -> None:
    """Print a summary; exit with status 1 if there were problems."""
    bad = [record for record in report.done if not record.is_good] + report.failed_before
    flagged = [record for record in report.done if record.flags and record.is_good]
    done = count(len(report.done), "task")
    typer.echo(f"{done} done, {report.n_already_done} before, of {report.n_tasks}; records in {out}")
    for path, reason in report.foreign.items():
        typer.echo(f"ignored, not a valid record: {path.name}: {reason}")
    if report.n_elsewhere:
        typer.echo(f"{count(report.n_elsewhere, 'task')} done, or being done, by another process")
    for record in flagged:
        typer.echo(f"suspicious: {_name(record)}: {'; '.join(record.flags)}")
    if bad:
        again = ", or --retry-failed" if report.failed_before else ""
        typer.echo(f"{count(len(bad), 'task')} failed; see: otimpute benchmark status {out}{again}")
    for reason in report.unavailable.values():
        typer.echo(reason)
    if bad or report.unavailable:
        raise typer.Exit(1)
