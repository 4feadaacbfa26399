"""The compiled steps against a dense, slow Algorithm 1 written from the paper."""

from __future__ import annotations

import numpy as np
import pytest

from otimpute.fitting.checkpoint import Checkpoint
from otimpute.imputers.batches.divergence import BatchPlan, Geometry, make_cells
from otimpute.imputers.batches.pairs import draw_rows
from otimpute.imputers.preparation.working_copy import padded_width
from otimpute.imputers.sinkhorn.cpu_steps import CpuSteps
from otimpute.imputers.sinkhorn.descent import DescentSchedule, descend
from otimpute.transport import sinkhorn_divergence

NOTHING = np.zeros((0, 0), np.float32)
ALL_ROWS = np.empty(0, np.int64)


def table(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.random((n, d)) < 0.3


def batch(seed: int, step: int, pair: int, side: int, n: int, m: int) -> np.ndarray:
    rows = np.empty(m, np.int64)
    draw_rows(seed, step, pair, side, n, rows)
    return rows


def dense_algorithm_1(values, missing, A, epsilon, n_steps, m, n_pairs, rate, seed, pools=(None, None)):
    """RMSprop over all missing values at every step, converged reference divergences, no warm starts; all iterates."""
    values, square, iterates = values.copy(), np.zeros_like(values), []
    for step in range(n_steps):
        gradient = np.zeros_like(values)
        for pair in range(n_pairs):
            rows = []
            for side, pool in enumerate(pools):
                drawn = batch(seed, step, pair, side, len(values) if pool is None else len(pool), m)
                rows.append(drawn if pool is None else pool[drawn])
            found = sinkhorn_divergence(values[rows[0]] @ A, values[rows[1]] @ A, epsilon=epsilon, tol=1e-7, kernel="reference")
            np.add.at(gradient, rows[0], found.gradient_x @ A.T / n_pairs)
            np.add.at(gradient, rows[1], found.gradient_y @ A.T / n_pairs)
        gradient[~missing] = 0
        square = 0.99 * square + 0.01 * gradient**2
        values = np.where(missing, values - rate * gradient / (np.sqrt(square) + 1e-8), values)
        iterates.append(values[missing])
    return np.array(iterates)


def compiled(values, missing, A, epsilon, n_steps, m, n_pairs, rate, seed, *, tail=0.0, pools=(ALL_ROWS, ALL_ROWS), n_jobs=1):
    n, d = values.shape
    width = padded_width(d)
    work = np.zeros((n, width), np.float32)
    work[:, :d], work[:, d] = values, 1
    metric, precision = NOTHING, NOTHING
    if not np.array_equal(A, np.eye(d)):
        metric, precision = np.zeros((width, width), np.float32), np.zeros((width, width), np.float32)
        metric[:d, :d], precision[:d, :d] = A, A @ A
    geometry = Geometry(metric, precision, 1 / epsilon, d)
    steps = CpuSteps(make_cells(work, missing), geometry, BatchPlan(seed, *pools, 400, 60), m, n_pairs, n_jobs)
    schedule = DescentSchedule(n_steps, rate, 1.0, tail, 0.0, np.inf)
    (outcome,) = descend(steps, schedule, [None], [], Checkpoint(None, {}, seed))
    return outcome


class Scripted:
    """Two fits: the first stands still and then breaks, the second moves on."""

    n_fits, n_rows, rows_per_step = 2, 10, 10

    def take(self, first: int, rates: np.ndarray, window_start: int) -> tuple[np.ndarray, np.ndarray]:
        losses = np.ones((len(rates), 2))
        if first >= 100:
            losses[:, 0] = np.nan
        return losses, losses

    def window_means(self, window_start: int, step: int) -> list[np.ndarray]:
        return [np.ones(3), np.full(3, float(step))]

    def on_host(self, cells: np.ndarray) -> np.ndarray:
        return cells

    def close(self) -> None:
        pass


def test_a_fit_that_settled_keeps_its_result_while_others_go_on() -> None:
    schedule = DescentSchedule(200, 0.1, 1.0, 0.25, 0.5, np.inf)
    first, second = descend(Scripted(), schedule, [None, None], [], Checkpoint(None, {}, 0))  # type: ignore[arg-type]
    assert (first.outcome.stop_reason, first.outcome.n_steps, first.outcome.history["step"]) == ("tol", 100, [50, 100])
    np.testing.assert_array_equal(first.cells, 1)
    assert (second.outcome.stop_reason, second.outcome.n_steps) == ("max_steps", 200)
    assert second.outcome.history["step"] == [50, 100, 150, 200]


@pytest.mark.parametrize("n_pairs", [1, 3])
@pytest.mark.parametrize("metric", ["euclidean", "covariance"])
def test_lazy_steps_equal_dense_rmsprop(metric: str, n_pairs: int) -> None:
    values, missing = table(40, 3)
    A = np.eye(3) if metric == "euclidean" else np.array([[1.2, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.0]])
    arguments = (values, missing, A, 0.5, 25, 8, n_pairs, 0.02, 11)
    expected = dense_algorithm_1(*arguments)
    np.testing.assert_allclose(compiled(*arguments).cells, expected[-1], atol=2e-4)
    # Most rows were not drawn in most steps, so a tail average that forgot them would be far off.
    np.testing.assert_allclose(compiled(*arguments, tail=0.4).cells, expected[15:].mean(axis=0), atol=2e-4)


def test_one_sided_steps_draw_from_their_pools() -> None:
    values, missing = table(40, 3)
    missing[:15] = False
    pools = np.arange(15), np.arange(15, 40)
    arguments = (values, missing, np.eye(3), 0.5, 20, 8, 1, 0.02, 5)
    expected = dense_algorithm_1(*arguments, pools=pools)
    np.testing.assert_allclose(compiled(*arguments, pools=pools).cells, expected[-1], atol=2e-4)


def test_the_number_of_threads_does_not_change_a_bit() -> None:
    values, missing = table(60, 4)
    arguments = (values, missing, np.eye(4), 0.1, 30, 16, 5, 0.02, 3)
    alone = compiled(*arguments, n_jobs=1)
    for n_jobs in (2, 3, 8):
        together = compiled(*arguments, n_jobs=n_jobs)
        np.testing.assert_array_equal(together.cells, alone.cells)
        np.testing.assert_equal(together.outcome.history, alone.outcome.history)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (3, 2), (10, 4), (150, 64), (257, 257), (1000, 128)])
def test_batches_are_drawn_without_replacement_and_evenly(n: int, m: int) -> None:
    n_draws = 4000
    counts = np.zeros(n)
    together = np.zeros((min(n, 20), min(n, 20)))
    for step in range(n_draws):
        rows = batch(7, step, 0, 0, n, m)
        assert len(np.unique(rows)) == m
        assert rows.min() >= 0
        assert rows.max() < n
        counts[rows] += 1
        few = rows[rows < 20]
        together[np.ix_(few, few)] += 1
    share = m / n
    if share < 1:
        assert np.abs(counts - n_draws * share).max() < 6 * np.sqrt(n_draws * share * (1 - share))
        if n > 2:
            pairs = together[np.triu_indices(len(together), 1)]
            both = share * (m - 1) / (n - 1)
            assert np.abs(pairs - n_draws * both).max() <= 6 * np.sqrt(n_draws * both * (1 - both)) + 1e-9


def test_batches_differ_between_steps_pairs_and_sides() -> None:
    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]
    drawn = {tuple(batch(3, *key, 10_000, 32)) for key in keys}
    assert len(drawn) == len(keys)
