"""How many threads: ours by request, BLAS's one while a fit runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")

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


def each_in_threads(task: Callable[[Item], None], items: Sequence[Item], n_threads: int) -> None:
    """Call ``task(item)`` for all items, on so many threads; no item may depend on another.

    Each thread has memory of its own, so eight must do.
    """
    n_threads = min(n_threads, _MOST_SHARING)
    if n_threads == 1 or len(items) < 2:
        for item in items:
            task(item)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(task, items))


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
