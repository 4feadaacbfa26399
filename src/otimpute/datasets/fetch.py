"""Download a data set from the first source that has the right values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from .card import Card
from .download import Patience, Report, download
from .folders import VARIABLE, cache_folder
from .source import Source


class DatasetUnavailableError(OSError):
    """A data set is not on this machine and was not downloaded; the message says how to get it manually."""


def fetch(card: Card, sources: Iterable[Source], patience: Patience, progress: bool = False) -> NDArray[np.float64]:
    """Try each source in turn until the downloaded values match the card."""
    failures = []
    for source in sources:
        try:
            with _bar(card.name, progress) as report:
                values = source.read(download(source.url, patience, report), card.d)
            card.check(values)
            return values
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"\n- {source.url}: {error or type(error).__name__}")
    raise unavailable(card, "could not be downloaded:" + "".join(failures) + "\n")


def unavailable(card: Card, reason: str) -> DatasetUnavailableError:
    """Return the error that says why a data set is unavailable, and what to do."""
    return DatasetUnavailableError(
        f"the data set {card.name!r} is not on this machine and {reason}"
        f"To get it manually, see {card.source}, and save {card.name}.csv in {cache_folder()}, "
        f"or in a folder given by data_home (--data on the command line) or the environment variable {VARIABLE}. "
        f"Its header must be {','.join(card.columns)}"
    )


@contextmanager
def _bar(title: str, progress: bool) -> Iterator[Report]:
    """Show a progress bar in a notebook or on stderr; nothing without ``progress`` or if rich is not installed."""
    if not progress:
        yield lambda *_: None
        return
    from ..fitting import NotebookBar, in_notebook

    if in_notebook():
        with NotebookBar(title, "kB", per_unit=1000) as output:
            yield output.show
        return
    if find_spec("rich") is None:
        yield lambda *_: None
        return
    from rich import console
    from rich import progress as rich

    with rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        console=console.Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda received, announced: bar.update(task, completed=received, total=announced)
