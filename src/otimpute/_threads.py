"""How many threads: ours by request, BLAS's one while a fit runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_SHARING = 8
_lock = threading.Lock()
_n_inside = 0
_limits: threadpool_limits | None = None


def n_threads(n_jobs: int | None) -> int:
    """Threads meant by ``n_jobs``: one for None, all cores for -1.

    >>> n_threads(None), n_threads(3)
    (1, 3)
    """
    if n_jobs == -1:
        return os.cpu_count() or 1
    return n_jobs or 1


class Workers:
    """Threads, the caller's among them, for independent pieces of work.

    >>> with Workers(3) as workers:
    ...     workers.map(abs, [-1, 2, -3, 4])
    [1, 2, 3, 4]
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return ``task(item)`` for all items, in their order; the items are dealt out to the threads in turn."""
        items = list(items)
        n = min(self.n_threads, len(items))
        if self._pool is None or n < 2:
            return [task(item) for item in items]

        def some(first: int) -> list[Result]:
            return [task(item) for item in items[first::n]]

        others = [self._pool.submit(some, first) for first in range(1, n)]
        try:
            shares = [some(0)]
        finally:
            wait(others)
        shares += [other.result() for other in others]
        return [shares[place % n][place // n] for place in range(len(items))]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


ALONE = Workers(1)


def each_in_threads(task: Callable[[Item], None], items: Sequence[Item], n_threads: int) -> None:
    """Call ``task(item)`` for all items, on so many threads; no item may depend on another.

    Each thread has memory of its own, so eight must do.
    """
    with Workers(min(n_threads, _MOST_SHARING)) as workers:
        workers.map(task, items)


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: sums in another order would make results depend on the number of cores.

    The limit belongs to the process, so fits that overlap in threads share it: the first sets it, the last lifts it.
    """
    global _n_inside, _limits
    with _lock:
        if _n_inside == 0:
            _limits = threadpool_limits(1, user_api="blas")
        _n_inside += 1
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None
