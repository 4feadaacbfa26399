"""Work shared among threads comes back whole and in order, and so do its errors."""

from __future__ import annotations

import threading

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
