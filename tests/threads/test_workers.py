"""Work shared among threads comes back whole and in order, and so do its errors."""

from __future__ import annotations

import threading
import time

import pytest

from otimpute._threads import Workers


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
@pytest.mark.parametrize("n_items", [0, 1, 2, 7])
def test_results_come_in_the_order_of_the_items(n_threads: int, n_items: int) -> None:
    with Workers(n_threads) as workers:
        for _ in range(2):
            assert workers.map(lambda item: item**2, range(n_items)) == [item**2 for item in range(n_items)]


def test_as_many_threads_work_as_there_are_the_caller_among_them() -> None:
    together = threading.Barrier(3, timeout=10)  # passes when three have come

    def task(_: int) -> int:
        together.wait()
        return threading.get_ident()

    with Workers(3) as workers:
        assert len(set(workers.map(task, range(3)))) == 3
        assert threading.get_ident() in workers.map(task, range(3))


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_any_item_is_raised(failing: int) -> None:
    def task(item: int) -> None:
        if item == failing:
            raise ValueError(f"item {item}")

    with Workers(2) as workers, pytest.raises(ValueError, match=f"item {failing}"):
        workers.map(task, range(4))


def test_after_an_error_no_further_item_is_begun() -> None:
    begun = []

    def task(item: int) -> None:
        begun.append(item)
        raise ValueError

    with Workers(2) as workers, pytest.raises(ValueError):
        workers.map(task, range(100))
    assert len(begun) <= 2


def test_workers_inside_of_others_are_the_same_threads() -> None:
    def inner(_: int) -> int:
        time.sleep(0.001)
        return threading.get_ident()

    def outer(_: int) -> list[int]:
        with Workers(5) as workers:
            return workers.map(inner, range(6))

    with Workers(3) as workers:
        found = workers.map(outer, range(7))
    assert all(len(each) == 6 for each in found)
    assert len({ident for each in found for ident in each}) <= 3


def test_a_thread_that_waits_for_an_item_helps_with_what_is_inside_of_it() -> None:
    together = threading.Barrier(2, timeout=10)  # passes when two threads have come

    def outer(is_long: bool) -> None:
        if is_long:
            with Workers(2) as workers:
                workers.map(lambda _: together.wait(), range(2))

    for items in ([False, True], [True, False]):
        with Workers(2) as workers:
            workers.map(outer, items)


def test_no_more_threads_work_on_a_job_than_were_asked_for() -> None:
    lock, at_work, most = threading.Lock(), 0, 0

    def task(_: int) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.002)
        with lock:
            at_work -= 1

    def outer(_: int) -> None:
        with Workers(2) as workers:
            workers.map(task, range(12))

    with Workers(4) as workers:
        workers.map(outer, [0])
        outer(0)
    assert most <= 2
