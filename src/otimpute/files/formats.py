"""Which format a file has, and files opened with care: nothing is overwritten by accident, nothing is left half written."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, cast
from zlib import error as ZlibError  # noqa: N812 (an exception that is named like a function)

from .._checks import check_choice
from .._files import appears_whole
from ..exceptions import InPython, Message, Term

STANDARD = "-"  # standard input or output
_OR_DECLARE_IT = Message(", or pass ", Term("format"), InPython("="))
FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
}
TEXT = ("csv", "tsv")


def format_of(path: str, declared: str | None = None, advice: str = _OR_DECLARE_IT) -> str:
    """The format of a file: ``declared``, or by the end of its name; ``advice`` is what else to do than to rename it.

    >>> format_of("table.csv.gz"), format_of("-"), format_of("table.dat", "csv")
    ('csv', 'csv', 'csv')
    """
    if declared is not None:
        return check_choice("format", declared, set(FORMATS.values()))
    if path == STANDARD:
        return "csv"
    name = Path(path)
    suffix = name.with_suffix("").suffix if _is_compressed(path) else name.suffix
    if suffix.lower() not in FORMATS:
        listed = ", ".join(FORMATS)
        raise ValueError(
            Message(
                f"the name of a table must end in {listed} (.csv.gz, ...), got {name.name!r}; rename it",
                advice,
            )
        )
    return FORMATS[suffix.lower()]


def open_input(path: str, *, keep: bool) -> BinaryIO:
    """The bytes of a file, from which one can read again and again; with ``keep`` they are in memory, safe from changes."""
    if path == STANDARD:
        return _copied(sys.stdin.buffer, keep)
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path!r}")
    if file.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder, not a file")
    with file.open("rb") as stream:
        if _is_compressed(path):
            try:
                return _copied(cast(BinaryIO, gzip.GzipFile(fileobj=stream)), keep)
            except (gzip.BadGzipFile, EOFError, ZlibError) as error:
                raise ValueError(f"{path!r} is not a complete gzip file: {error}") from None
        if keep or not stream.seekable():
            return _copied(stream, keep)
    return file.open("rb")


def check_output(path: str, source: str | None = None, *, force: bool = False) -> None:
    """Refuse to write to a folder or device, or, without ``force``, to a file that exists.

    >>> check_output("-")
    """
    if path == STANDARD:
        return
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder; give the name of a file in it")
    if file.exists() and not file.is_file():
        raise ValueError(f"{path!r} is not a regular file; write to '-' for standard output")
    folder = next(each for each in file.resolve().parents if each.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{path!r} cannot be created: {str(folder)!r} is a file, not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{path!r} cannot be created: no permission to write to the folder {str(folder)!r}; choose another one"
        )
    if not file.exists() or force:
        return
    if source is not None and source != STANDARD and Path(source).exists() and file.samefile(source):
        raise FileExistsError(Message(f"{path!r} is the input itself; give another name, or ", Term("force"), " to replace it"))
    raise FileExistsError(Message(f"{path!r} exists; give another name, or ", Term("force"), " to replace it"))


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """A stream to write a file to, which appears when all is written."""
    if path == STANDARD:
        if sys.stdout is None:
            raise OSError("standard output is closed; give the name of a file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with appears_whole(Path(path)) as part, part.open("wb") as stream:
        if _is_compressed(path):
            # No name and no time inside: the same table gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as compressed:
                yield cast(BinaryIO, compressed)
        else:
            yield stream


def _is_compressed(path: str) -> bool:
    return path.lower().endswith(".gz")


def _copied(stream: BinaryIO, keep: bool) -> BinaryIO:
    copy: BinaryIO = BytesIO() if keep else cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (closed by the caller)
    copyfileobj(stream, copy)
    copy.seek(0)
    return copy
