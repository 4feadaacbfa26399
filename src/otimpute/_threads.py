"""How many threads: ours by request, BLAS's one while a fit runs."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 4  # threads, the most that short calls of NumPy can keep at work: others only wait for Python's lock, all over the fit
_MOST_SHARING = 8
_lock = threading.Lock()
_n_inside = 0
_limits: threadpool_limits | None = None
_here = threading.local()  # .workers: those in use in this thread; .path: to the item it is doing; .memory: by name
_Bell: TypeAlias = "threading.Lock"


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

    Workers that are asked for while others are in use, such as those of an expert among several, are the same threads: there
    are never more at work than the outermost have.

    >>> with Workers(3) as workers:
    ...     workers.map(abs, [-1, 2, -3, 4])
    [1, 2, 3, 4]
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._outer: Workers | None = getattr(_here, "workers", None)
        self._crew = self._outer._crew if self._outer else None
        self._has_own_crew = self._crew is None and n_threads > 1
        if self._has_own_crew:
            self._crew = _Crew(n_threads - 1, self)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item], *, most_threads: int | None = None) -> list[Result]:
        """Return ``task(item)`` for all items, in their order; a thread that is done with one takes the next.

        Not more than ``most_threads`` do so: see `FEW`.
        """
        items = list(items)
        n_threads = self.n_threads if most_threads is None else min(self.n_threads, most_threads)
        if self._crew is None or min(n_threads, len(items)) < 2:
            return [task(item) for item in items]
        job = _Job(task, items, n_threads, getattr(_here, "path", ()))
        self._crew.do(job)
        if job.error is not None:
            raise job.error
        return job.results

    def __enter__(self) -> Workers:
        _here.workers = self
        if self._outer is None:
            _here.memory = {}
        return self

    def __exit__(self, *_: object) -> None:
        _here.workers = self._outer
        if self._outer is None:
            _here.memory = None
        if self._has_own_crew and self._crew is not None:
            self._crew.end()


def own_memory(name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of the calling thread's, with anything in it, and the same memory again for who asks for the ``name`` again.

    Memory that is new has to be cleared by the system first, and threads of a process wait for each other there. It is kept
    until the workers in use are done.

    >>> with Workers(1):
    ...     own_memory("sums", (2, 3), float).base is own_memory("sums", (4,), float).base
    True
    """
    size, key = math.prod(shape), (name, np.dtype(dtype))
    memory: dict[Any, NDArray[Any]] | None = getattr(_here, "memory", None)
    if memory is None:
        return np.empty(shape, dtype)
    if key not in memory or len(memory[key]) < size:
        memory[key] = np.empty(size, dtype)
    return memory[key][:size].reshape(shape)


class _Job:
    """The items of one `map`."""

    def __init__(self, task: Callable[[Any], Any], items: list[Any], n_threads: int, path: tuple[int, ...]):
        self.task, self.items, self.n_threads = task, items, n_threads
        self.path = path  # places of the items that it is inside of, the outermost first
        self.results: list[Any] = [None] * len(items)
        self.error: BaseException | None = None
        self.waiting = deque(range(len(items)))
        self.n_running = 0

    @property
    def depth(self) -> int:
        """How many jobs it is a part of."""
        return len(self.path)

    @property
    def is_open(self) -> bool:
        """Whether there is an item to take."""
        return bool(self.waiting) and self.n_running < self.n_threads

    @property
    def is_done(self) -> bool:
        return not self.waiting and self.n_running == 0

    def take(self) -> int:
        """The place of the next item, which is the taker's from now on."""
        self.n_running += 1
        return self.waiting.popleft()


class _Crew:
    """Threads that take items of whatever job is there, those inside of first items first, of these the outermost.

    A thread that began a job works on it, and then, until others have finished their last items, on jobs inside of such items,
    but on no others: these might keep it for long.
    """

    def __init__(self, n_threads: int, workers: Workers):
        self._lock = threading.Lock()
        self._jobs: list[_Job] = []
        self._asleep: list[tuple[_Job | None, _Bell]] = []  # with the jobs that threads wait for
        self._is_over = False
        self._threads = [threading.Thread(target=self._work, args=(workers,), daemon=True) for _ in range(n_threads)]
        for thread in self._threads:
            thread.start()

    def do(self, job: _Job) -> None:
        """Have a job done, its first item by the caller, the others by who is free."""
        with self._lock:
            self._jobs.append(job)
            first = job.take()
            bells = self._bells(min(len(job.items), job.n_threads) - 1, lambda other: other is None or other.depth < job.depth)
        _ring(bells)
        try:
            self._run(job, first)
            self._work_until_done(job)
        finally:
            with self._lock:
                self._jobs.remove(job)

    def end(self) -> None:
        """Let the threads go."""
        with self._lock:
            self._is_over = True
            bells = self._bells(len(self._asleep), lambda _: True)
        _ring(bells)
        for thread in self._threads:
            thread.join()

    def _work(self, workers: Workers) -> None:
        _here.workers, _here.memory = workers, {}
        self._work_until_done(None)

    def _work_until_done(self, own: _Job | None) -> None:
        """Take items until none of the thread's own job are left, or, of a thread without one, until the end."""
        depth = -1 if own is None else own.depth
        while True:
            with self._lock:
                if self._is_over if own is None else own.is_done:
                    return
                others = [job for job in self._jobs if job.depth > depth and job.is_open]
                job = own if own is not None and own.is_open else min(others, key=lambda job: job.path, default=None)
                if job is None:
                    bell = threading.Lock()  # waits less long for Python's lock than an event does
                    bell.acquire()
                    self._asleep.append((own, bell))
                else:
                    place = job.take()
            if job is None:
                bell.acquire()
            else:
                self._run(job, place)

    def _run(self, job: _Job, place: int) -> None:
        before, _here.path = getattr(_here, "path", ()), (*job.path, place)
        try:
            job.results[place] = job.task(job.items[place])
        except BaseException as error:  # raised again where the job began
            job.error = job.error or error
            job.waiting.clear()
        _here.path = before
        with self._lock:
            job.n_running -= 1
            bells = self._bells(1, lambda other: other is job) if job.is_done else []
        _ring(bells)

    def _bells(self, n_threads: int, which: Callable[[_Job | None], bool]) -> list[_Bell]:
        """What wakes so many of the threads that wait for certain jobs, once the lock is free that they need then."""
        sleepers = [each for each in self._asleep if which(each[0])][:n_threads]
        for sleeper in sleepers:
            self._asleep.remove(sleeper)
        return [bell for _, bell in sleepers]


def _ring(bells: list[_Bell]) -> None:
    for bell in bells:
        bell.release()


ALONE = Workers(1)


def workers_in_use() -> Workers:
    """Those of the fit that this thread is working on, or it alone."""
    return getattr(_here, "workers", None) or ALONE


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
