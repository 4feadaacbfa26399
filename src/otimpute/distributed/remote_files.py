"""Files that workers of an engine complete, several at a time: each has a thread here that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from .files import FileOutcome, FileTask


def outcomes(
    complete: Callable[[FileTask], FileOutcome], tasks: Sequence[FileTask], n_at_once: int, stop: Callable[[], object]
) -> Iterator[FileOutcome]:
    """What ``complete(task)``, which waits for a worker, says of each file, as soon as it is ready.

    Whoever stops iterating has the engine ``stop`` what it began.
    """
    with ThreadPoolExecutor(max(min(n_at_once, len(tasks)), 1)) as threads:
        waiting = [threads.submit(_tell, complete, task) for task in tasks]
        try:
            for ready in as_completed(waiting):
                yield ready.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            if not all(each.done() for each in waiting):
                stop()


def _tell(complete: Callable[[FileTask], FileOutcome], task: FileTask) -> FileOutcome:
    """The outcome, also where the engine gave the file up: it does so when worker after worker died of it."""
    try:
        return complete(task)
    except Exception as error:  # of the engine; what is wrong with a file comes as an outcome
        said = str(error).strip().partition("\n")[0]
        why = (
            f"{task.source}: the engine gave it up ({type(error).__name__}: {said}); if workers died of it, there may be too "
            "little memory for so many at a time"
        )
        return FileOutcome(task.source, task.target, error=why)
