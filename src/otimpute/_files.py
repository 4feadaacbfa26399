"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copymode
from uuid import uuid4

_PART = re.compile(r"\.(?P<stem>.*)-[0-9a-f]{32}(\.[^.]*)?")


@contextmanager
def appears_whole(path: Path) -> Iterator[Path]:
    """A path in the same folder to write to; it takes the name ``path`` at the end, or vanishes if something fails.

    Folders are made as needed. A link stays one: the file it leads to is written. A file that is replaced leaves its
    permissions to the new one. The name of the path begins with a dot: what a killed process left behind is easy to pass over.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new" / "table.csv"
    >>> with appears_whole(path) as part:
    ...     _ = part.write_text("a,b")
    >>> path.read_text()
    'a,b'
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(_part_name(path, uuid4().hex))
    try:
        if path.exists():
            part.touch(mode=0o600)  # what the old file hides from others is hidden while it is written, too
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())  # the content before the name, even if the machine stops
        if path.exists():
            copymode(path, part)
        part.replace(path)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)  # the one that people know
        raise
    finally:
        part.unlink(missing_ok=True)


def remove_parts(*paths: Path) -> None:
    """Remove what killed processes left behind of files that should have become these; nobody may be writing them now."""
    meant = set(paths)
    for folder in {path.parent for path in meant}:
        for part in folder.iterdir() if folder.is_dir() else ():
            of = _PART.fullmatch(part.name)
            if of and folder / (of["stem"] + part.suffix) in meant:
                part.unlink(missing_ok=True)


def _part_name(path: Path, mark: str) -> str:
    return f".{path.stem}-{mark}{path.suffix}"  # its suffix tells savers of pictures the format
