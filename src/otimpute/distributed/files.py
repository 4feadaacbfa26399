"""Complete many Parquet files: one output file per input file, whole or not there, and none done twice.

An output file says in its footer which model and which input it was made of. What is finished is thereby known without a
list beside the files, however a job ended and whoever copied the files since.
"""

from __future__ import annotations

import glob
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from errno import EDQUOT, EFBIG, ENOSPC
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from .._checks import check_choice, check_count
from .._files import appears_whole, remove_parts
from .._optional import require
from .._text import count
from .contract import impute_batches

ENGINES = ("local", "ray", "spark", "dask")
_MADE_FROM = b"otimpute:made_from"
_ROWS_AT_A_TIME = 1 << 17
_WIDTHS = {"FLOAT": 4, "INT32": 4, "DOUBLE": 8, "INT64": 8}  # in bytes, by Parquet's names
_NO_SHORTER = 0.8  # of the room that plain numbers take
_FULL = (ENOSPC, EDQUOT, EFBIG)


@dataclass(frozen=True)
class FileTask:
    """A file to complete; paths that all workers can reach."""

    source: str
    target: str


@dataclass(frozen=True)
class FileOutcome:
    """What became of a file: ``error`` is empty if it was completed."""

    source: str
    target: str
    n_rows: int = 0
    n_filled: int = 0
    error: str = ""  # begins with the name of the file
    is_full: bool = False  # whether there is no room for further files either

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class JobSummary:
    """What became of the files of a job, in the order of their names."""

    done: list[FileOutcome]
    n_skipped: int  # that were finished before
    seconds: float
    failed: list[FileOutcome] = field(default_factory=list)


class FilesFailedError(ValueError):
    """Some files could not be completed; those that could are finished.

    Attributes
    ----------
    summary : JobSummary
        Which files were completed, and which failed and why.
    """

    def __init__(self, summary: JobSummary) -> None:
        super().__init__(summary)
        self.summary = summary

    def __str__(self) -> str:
        failed, n_done = self.summary.failed, len(self.summary.done) + self.summary.n_skipped
        others = f" (and {count(len(failed) - 1, 'other file')} failed)" if len(failed) > 1 else ""
        return f"{failed[0].error}{others}; {count(n_done, 'file')} finished, which the same command will not do again"


def impute_files(
    model: bytes,
    sources: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    engine: str = "local",
    n_workers: int | None = None,
    progress: Callable[[FileOutcome, int], None] | None = None,
) -> JobSummary:
    """Complete Parquet files into a folder, under the names that they have.

    Each appears under its name when it is whole. Files that are there already, made by this model of this input, are left as
    they are, so that a job that was stopped goes on where it was.

    Parameters
    ----------
    model : bytes
        A fitted imputer: ``imputer.to_bytes()``.
    sources : str or path
        A Parquet file, a folder of them, or a pattern such as ``"data/*.parquet"``.
    out : str or path
        The folder to write to.
    engine : {"local", "ray", "spark", "dask"}, default="local"
        What runs the workers: processes of this machine, or an engine that must be installed. The files are the same.
    n_workers : int or None, default=None
        How many files are completed at a time; None is one per core.
    progress : function, default=None
        Called with the outcome of a file and how many files are left.

    Returns
    -------
    summary : JobSummary

    Raises
    ------
    FilesFailedError
        When some files could not be completed; the others are.
    """
    begun = time.perf_counter()
    check_choice("engine", engine, ENGINES)
    if n_workers is not None:
        check_count("n_workers", n_workers, advice="pass None for one per core")
    files = list_files(sources)
    tasks = tasks_of(files, Path(out))
    todo = [task for task in tasks if not is_done(model, task)]
    run: Callable[..., Iterator[FileOutcome]] = import_module(f".{engine}", __package__).run_files
    done: list[FileOutcome] = []
    failed: list[FileOutcome] = []
    targets = [Path(task.target) for task in todo]
    remove_parts(*targets)  # of earlier jobs
    outcomes = run(todo, model, n_workers) if todo else iter(())
    try:
        for outcome in outcomes:
            (failed if outcome.error else done).append(outcome)
            if progress is not None:
                progress(outcome, len(todo) - len(done) - len(failed))
            if outcome.is_full:
                break
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
        remove_parts(*targets)  # of workers that died
    by_name = partial(sorted, key=lambda outcome: outcome.source)
    summary = JobSummary(by_name(done), len(tasks) - len(todo), time.perf_counter() - begun, by_name(failed))
    if failed:
        raise FilesFailedError(summary)
    return summary


def list_files(sources: str | os.PathLike[str]) -> list[Path]:
    """The Parquet files that a path stands for: a file, a folder, or a pattern; hidden ones are passed over."""
    text = os.fspath(sources)
    path = Path(text)
    if path.is_file():
        return [path]
    pattern = str(path / "**" / "*.parquet") if path.is_dir() else text
    found = [Path(each) for each in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207 (a pattern may be absolute)
    if path.is_dir():
        inside = [(each, each.relative_to(path).parts) for each in found]
        found = [each for each, parts in inside if not any(part.startswith(("_", ".")) for part in parts)]
    files = [each for each in found if each.is_file()]
    if not files:
        raise FileNotFoundError(
            f"there is no file {text!r}" if not path.is_dir() else f"the folder {text!r} has no .parquet file"
        )
    foreign = [each for each in files if each.suffix != ".parquet"]
    if foreign:
        raise ValueError(f"{str(foreign[0])!r} is no Parquet file by its name; many files at a time must end in .parquet")
    return files


def tasks_of(files: Sequence[Path], out: Path) -> list[FileTask]:
    """Where each file goes: the same place, in another folder, as it has in the deepest one that holds them all."""
    absolute = [Path(os.path.abspath(file)) for file in files]  # noqa: PTH100 (links keep their own names: two may lead to one)
    root = Path(os.path.commonpath([file.parent for file in absolute]))
    tasks = [FileTask(str(file), str(out.resolve() / file.relative_to(root))) for file in absolute]
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{str(out)!r} is a file; many files at a time need a folder to write to")
    if any(Path(task.source).resolve() == Path(task.target).resolve() for task in tasks):
        raise ValueError(f"{str(out)!r} is the folder of the input; give another one")
    return tasks


def is_done(model: bytes, task: FileTask) -> bool:
    """Whether the output is there, whole, and was made by this model of this input."""
    if not Path(task.target).is_file():
        return False
    pq = require("pyarrow.parquet", "Parquet files", "cli")
    try:
        made_from = (pq.read_metadata(task.target).metadata or {}).get(_MADE_FROM)
        return bool(made_from == _fingerprint(model, Path(task.source)))
    except (ValueError, OSError):  # damaged: made anew
        return False


def impute_file(model: bytes, task: FileTask) -> FileOutcome:
    """Complete a file: what every engine runs on its workers; errors are told in the outcome.

    Nothing is written if it was done before, so that a task may be run again.
    """
    try:
        return _impute_file(model, task)
    except _Blamed as blamed:
        return FileOutcome(task.source, task.target, error=str(blamed), is_full=blamed.is_full)


class _Blamed(Exception):  # noqa: N818 (carries an error that has a name)
    """An error of a file."""

    def __init__(self, path: str, error: BaseException) -> None:
        self.is_full = isinstance(error, OSError) and error.errno in _FULL
        said = str(getattr(error, "strerror", "") or error).partition("\n")[0] or type(error).__name__
        if isinstance(error, OSError) and error.errno is not None:
            said = os.strerror(error.errno).lower()
        super().__init__(f"{path}: {said}")


def _impute_file(model: bytes, task: FileTask) -> FileOutcome:
    pq = require("pyarrow.parquet", "Parquet files", "cli")
    source, target = Path(task.source), Path(task.target)
    rows = _Rows()
    try:
        fingerprint = _fingerprint(model, source)
        if is_done(model, task):
            return FileOutcome(task.source, task.target, pq.read_metadata(target).num_rows)
        file = pq.ParquetFile(source, page_checksum_verification=True)
    except (ValueError, OSError) as error:
        _blame(task.source, error)
    with file:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with appears_whole(target) as part, _writer(part, file) as writer:
                for batch in impute_batches(model, rows.counted(_read(file, task.source))):
                    rows.n_filled -= _n_missing(batch)
                    writer.write_batch(batch)
                writer.add_key_value_metadata({_MADE_FROM: fingerprint})
        except OSError as error:
            _blame(task.target, error)
        except _Blamed:
            raise
        except Exception as error:  # of the rows
            _blame(task.source, error)
    return FileOutcome(task.source, task.target, rows.n, rows.n_filled)


def _read(file: Any, source: str) -> Iterator[Any]:
    """The batches of a file; what is wrong with it is told as such, not as a failure to write."""
    batches = file.iter_batches(batch_size=_ROWS_AT_A_TIME, use_threads=False)  # workers are as many as there are cores
    while True:
        try:
            batch = next(batches, None)
        except (ValueError, OSError) as error:
            _blame(source, error)
        if batch is None:
            return
        yield batch


@dataclass
class _Rows:
    """Counts rows and missing values."""

    n: int = 0
    n_filled: int = 0

    def counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self.n += batch.num_rows
            self.n_filled += _n_missing(batch)
            yield batch


def _n_missing(batch: Any) -> int:
    return sum(int(column.is_null(nan_is_null=True).sum().as_py() or 0) for column in batch.columns)


def _blame(path: str, error: BaseException) -> NoReturn:
    raise _Blamed(path, error) from error


def _writer(part: Path, file: Any) -> Any:
    """Writes rows as they are in another file, with checksums: damage is noticed by who reads them."""
    pq = require("pyarrow.parquet", "Parquet files", "cli")
    return pq.ParquetWriter(
        part, file.schema_arrow, compression=_codec(file), use_dictionary=_with_dictionary(file), write_page_checksum=True
    )


def _with_dictionary(file: Any) -> list[str]:
    """The columns that the source is smaller for having a dictionary of; to look for one elsewhere takes most of the time."""
    groups = file.metadata
    columns = [groups.row_group(0).column(k) for k in range(groups.num_columns)] if groups.num_row_groups else []
    return [column.path_in_schema for column in columns if column.has_dictionary_page and not _is_as_long_as_plain(column)]


def _is_as_long_as_plain(column: Any) -> bool:
    """Whether numbers of a part of a file take the room of numbers that are written one after the other."""
    width, statistics = _WIDTHS.get(column.physical_type), column.statistics
    n_null = statistics.null_count if statistics is not None and statistics.has_null_count else 0
    return width is not None and column.total_uncompressed_size >= _NO_SHORTER * width * (column.num_values - n_null)


def _codec(file: Any) -> str:
    """How the source is compressed, as far as the writer can do so."""
    groups = file.metadata
    name = groups.row_group(0).column(0).compression.lower() if groups.num_row_groups and groups.num_columns else "snappy"
    return str(name) if name in ("snappy", "gzip", "brotli", "lz4", "zstd") else "none" if name == "uncompressed" else "snappy"


def _fingerprint(model: bytes, source: Path) -> bytes:
    """Of a model and an input file: its size, when it was written, and its footer, which has the extent of all columns."""
    digest = hashlib.sha256(hashlib.sha256(model).digest())
    with source.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        tail = file.read(8)
        length = min(int.from_bytes(tail[:4], "little") + 8, size)
        file.seek(size - length)
        digest.update(f"{size} {source.stat().st_mtime_ns} ".encode() + file.read(length))
    return digest.hexdigest().encode()
