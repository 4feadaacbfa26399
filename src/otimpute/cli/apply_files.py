"""``otimpute apply`` on many Parquet files: one output file per input file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .._text import count, duration
from .show import tell, tell_json, working

if TYPE_CHECKING:
    from ..distributed import FileOutcome
    from .options import Showing


def apply_files(model: Path, source: str, out: str, showing: Showing, engine: str, workers: int | None) -> None:
    """Complete files into a folder, and say what became of them."""
    from ..distributed import FilesFailedError, impute_files
    from .apply import load_model

    if out == "-":
        raise ValueError("many files need a folder to write to, not standard output")
    data = load_model(model).to_bytes()
    stopped = "finished files stay; run the same command to continue"
    with working(f"reading {source} …", shown=not showing.quiet) as say:

        def progress(outcome: FileOutcome, n_left: int) -> None:
            say(f"{outcome.target}: {count(outcome.n_rows, 'row')}; {count(n_left, 'file')} left …")

        failure = None
        try:
            summary = impute_files(data, source, out, engine=engine, n_workers=workers, progress=progress)
        except FilesFailedError as error:
            failure, summary = error, error.summary
        except KeyboardInterrupt:
            raise KeyboardInterrupt(stopped) from None
    n_rows, n_filled = (sum(getattr(each, name) for each in summary.done) for name in ("n_rows", "n_filled"))
    if showing.json:
        told = {
            "model": model, "input": source, "output": out, "engine": engine, "n_files": len(summary.done),
            "n_skipped": summary.n_skipped, "n_rows": n_rows, "n_filled": n_filled, "seconds": round(summary.seconds, 3),
            "failed": [{"input": each.source, "error": each.error} for each in summary.failed],
        }  # fmt: skip
        tell_json(told, err=False)
    elif not showing.quiet and (summary.done or failure is None):
        skipped = f", {count(summary.n_skipped, 'file')} finished before" if summary.n_skipped else ""
        tell(
            f"{out}: {count(len(summary.done), 'file')}, {count(n_rows, 'row')}, {count(n_filled, 'missing value')} filled in "
            f"{duration(summary.seconds)}{skipped}",
            style="bold",
        )
    if failure is not None:
        for outcome in summary.failed[1:]:
            tell(f"failed: {outcome.error}", style="yellow")
        raise failure
