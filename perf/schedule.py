"""What the pieces of a fit allow: how long it would take on so many threads that never wait for memory or for Python's lock.

    python perf/schedule.py 20000x30 [--threads 1 2 4 8 16 32] [--longest 12]

A fit whose pieces are done one after the other notes how long each of them takes, and what comes between them. The rules by
which threads take pieces (`otimpute._threads`) are then played through for other numbers of threads. What is slower on real
ones is their hardware, or Python's lock. ``--longest`` shows the calls of `Workers.map` during which most threads were idle,
on the largest number of them.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from auto import compile_all, make, table  # isort: skip (it sets the threads of BLAS, before NumPy is loaded)

import numpy as np

SHARED_OUT_INSIDE = ("extra_trees.py:grow_extra_trees",)  # jobs whose items take pieces until none are left: the first all


@dataclass
class Job:
    """A call of `Workers.map`: what its items are made of, seconds of their own and jobs inside of them, in turn."""

    place: str
    path: tuple[int, ...]  # as `otimpute._threads` has it
    most_threads: float
    items: list[list[float | Job]] = field(default_factory=list)


def note_pieces(n: int, d: int, n_jobs: int) -> list[float | Job]:
    """The fit of an `AutoImputer` by several threads, as an item of a job; one of them does it all."""
    from otimpute._threads import Workers

    compile_all("auto")
    fit: list[float | Job] = []
    within, since, paths = [fit], [0.0], [()]
    map_plainly = Workers.map

    def pause() -> None:
        now = time.thread_time()
        within[-1].append(now - since[0])
        since[0] = now

    def map_and_note(workers: Workers, task: Any, items: Any, *, most_threads: int | None = None) -> list[Any]:
        caller = sys._getframe(1).f_code
        place = f"{caller.co_filename.rsplit('/', 1)[-1]}:{caller.co_name}"
        job = Job(place, paths[-1], min(workers.n_threads, most_threads or math.inf))
        pause()
        within[-1].append(job)
        found = []
        for number, item in enumerate(items):
            job.items.append([])
            within.append(job.items[-1])
            paths.append((*job.path, number))
            since[0] = time.thread_time()
            found.append(task(item))
            pause()
            within.pop()
            paths.pop()
        if place in SHARED_OUT_INSIDE:
            evenly = sum(step for item in job.items for step in item if isinstance(step, float)) / max(len(job.items), 1)
            job.items[:] = [[evenly] for _ in job.items]
        since[0] = time.thread_time()
        return found

    X, missing = table(n, d)
    incomplete = np.where(missing, np.nan, X)
    Workers.map = map_and_note
    try:
        since[0] = time.thread_time()
        make("auto", n_jobs=n_jobs).fit_transform(incomplete)
        pause()
    finally:
        Workers.map = map_plainly
    return fit


@dataclass
class Running:
    """A job under way."""

    job: Job
    next_item: int = 0
    n_running: int = 0

    @property
    def is_open(self) -> bool:
        return self.next_item < len(self.job.items) and self.n_running < self.job.most_threads

    @property
    def is_done(self) -> bool:
        return self.next_item == len(self.job.items) and self.n_running == 0


@dataclass
class Thread:
    """What a thread is in the middle of: items, and jobs that it waits for."""

    stack: list[Any] = field(default_factory=list)


def play(fit: list[float | Job], n_threads: int) -> tuple[float, dict[str, float]]:
    """Seconds that a fit takes, and by outermost job how many seconds threads were idle while it was the last one begun."""
    threads = [Thread([None]) for _ in range(n_threads)]
    threads[0].stack = [iter(fit)]
    jobs: list[Running] = []
    events: list[tuple[float, int, Thread]] = []
    ticket, now, idle_by = count(), 0.0, defaultdict(float)
    asleep: list[Thread] = []

    def proceed(thread: Thread) -> None:
        """Let a thread go on until it computes something, or has nothing to do."""
        while True:
            top = thread.stack[-1]
            if isinstance(top, Iterator):
                step = next(top, None)
                if step is None:
                    thread.stack.pop()
                    if not thread.stack:
                        return
                    thread.stack.pop().n_running -= 1
                elif isinstance(step, Job):
                    jobs.append(Running(step))
                    thread.stack.append(jobs[-1])
                else:
                    heapq.heappush(events, (now + step, next(ticket), thread))
                    return
                continue
            if isinstance(top, Running) and top.is_done:
                jobs.remove(top)
                thread.stack.pop()
                continue
            depth = -1 if top is None else len(top.job.path)
            others = [job for job in jobs if len(job.job.path) > depth and job.is_open]
            job = top if top is not None and top.is_open else min(others, key=lambda job: job.job.path, default=None)
            if job is None:
                asleep.append(thread)
                return
            item = job.job.items[job.next_item]
            job.next_item += 1
            job.n_running += 1
            thread.stack += [job, iter(item)]

    for thread in threads:
        proceed(thread)
    while events:
        then, _, thread = heapq.heappop(events)
        first = min((job for job in jobs if job.job.path[:1] in ((), (0,))), key=lambda job: -len(job.job.path), default=None)
        where = first.job.place if first else "between"
        idle_by[where] += (then - now) * len(asleep)
        now = then
        proceed(thread)
        sleeping, asleep[:] = list(asleep), []
        for each in sleeping:
            proceed(each)
    return now, dict(idle_by)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="+", help="such as 20000x30")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--longest", type=int, default=12)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for size in asked.sizes:
        fit = note_pieces(*map(int, size.split("x")), max(asked.threads))
        alone, _ = play(fit, 1)
        print(f"{size}: one thread {alone:.2f} s")
        for n_threads in asked.threads:
            seconds, idle = play(fit, n_threads)
            print(f"  {n_threads} threads: {seconds:.2f} s, {alone / seconds:.2f} times as fast")
        for place, idly in sorted(idle.items(), key=lambda each: -each[1])[: asked.longest]:
            print(f"    {idly / asked.threads[-1]:.3f} s idle per thread: {place}")


if __name__ == "__main__":
    main()
