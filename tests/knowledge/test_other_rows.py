"""What others say about a value, beside plain loops, and that it never says anything about itself."""

import numpy as np
import pytest

from otimpute.knowledge._other_rows import Rows, Strength
from otimpute.knowledge._runs import hide_in_company

BOTH = Strength(pooled=2.0, pooled_in_time=3.0, reach=2.0, share=0.8)
STRENGTHS = [
    Strength(pooled=1.0),
    Strength(pooled=0.5, pooled_in_time=4.0),
    Strength(pooled=1.0, reach=3.0, share=0.9, smooth=True),
    BOTH,
]


def panel(seed=0, n=40, n_groups=4, n_times=8):
    """Rows in any order, some of which share group and time."""
    rng = np.random.default_rng(seed)
    group, time = rng.integers(0, n_groups, n), rng.integers(0, n_times, n).astype(float)
    group[:n_groups] = np.arange(n_groups)
    return Rows(group, time), rng.normal(size=(n, 1)), rng.random((n, 1)) < 0.3


def by_loops(rows, z, observed, how):
    """The definition, one value at a time."""
    n = len(z)

    def mean_without(group, row):
        others = [z[k] for k in range(n) if rows.group[k] == group and observed[k] and k != row]
        return sum(others) / (len(others) + how.pooled)

    def movement(group, time):
        away = [
            z[k] - mean_without(rows.group[k], None)
            for k in range(n)
            if observed[k] and rows.group[k] != group and rows.time[k] == time
        ]
        return sum(away) / (len(away) + how.pooled_in_time)

    said = np.empty(n)
    for i in range(n):
        group, time = rows.group[i], rows.time[i]
        mean = mean_without(group, i)
        times = sorted({rows.time[k] for k in range(n) if rows.group[k] == group and observed[k]})
        near = [t for t in times if t < time][-2:] + [t for t in times if t > time][:2]
        left = np.array(
            [
                np.mean([z[k] for k in range(n) if rows.group[k] == group and rows.time[k] == t and observed[k]])
                - mean
                - movement(group, t)
                for t in near
            ]
        )
        together = how.correlation(np.subtract.outer(near, near)) if near else np.zeros((0, 0))
        np.fill_diagonal(together, 1.0)
        weights = np.linalg.solve(together, how.correlation(np.array(near) - time)) if near else np.zeros(0)
        said[i] = mean + movement(group, time) + weights @ left
    return said


@pytest.mark.parametrize("how", STRENGTHS)
def test_what_others_say_is_what_plain_loops_say(how):
    rows, z, missing = panel()
    said = rows.said_of(z, missing, [how])[:, 0]
    np.testing.assert_allclose(said, by_loops(rows, z[:, 0], ~missing[:, 0], how), atol=1e-12)


@pytest.mark.parametrize("how", STRENGTHS)
def test_a_value_says_nothing_about_itself(how):
    rows, z, missing = panel(1)
    before = rows.said_of(z, missing, [how])[:, 0]
    for row in range(len(z)):
        other, hidden = z.copy(), missing.copy()
        other[row] += 5.0
        assert rows.said_of(other, missing, [how])[row, 0] == pytest.approx(before[row], abs=1e-12)
        hidden[row] = True
        assert rows.said_of(z, hidden, [how])[row, 0] == pytest.approx(before[row], abs=1e-12)


def test_missing_values_are_not_looked_at():
    rows, z, missing = panel(2)
    said = rows.said_of(np.where(missing, np.nan, z), missing, [BOTH])
    np.testing.assert_array_equal(said, rows.said_of(z, missing, [BOTH]))


def test_without_times_only_the_mean_of_the_group_counts():
    rows, z, missing = panel(3)
    alone = Rows(rows.group, None)
    first = alone.said_of(z, missing, [BOTH])
    np.testing.assert_allclose(first, alone.said_of(z, missing, [Strength(pooled=BOTH.pooled)]))


def test_a_random_walk_is_interpolated():
    rng, n = np.random.default_rng(4), 300
    walk = np.cumsum(rng.normal(size=n))
    z = ((walk - walk.mean()) / walk.std())[:, None]
    rows, missing = Rows(np.zeros(n, int), np.arange(n, dtype=float)), rng.random((n, 1)) < 0.2
    said = rows.said_of(z, missing, rows.strengths(z, missing, rng))[:, 0]
    holes = missing[:, 0]
    straight = np.interp(np.flatnonzero(holes), np.flatnonzero(~holes), z[~holes, 0])
    errors = [np.sqrt(np.mean((each - z[holes, 0]) ** 2)) for each in (said[holes], straight)]
    assert errors[0] < 1.1 * errors[1]


def test_noise_tells_nothing():
    rng, n = np.random.default_rng(5), 600
    rows = Rows(np.repeat(np.arange(60), 10), np.tile(np.arange(10.0), 60))
    z, missing = rng.normal(size=(n, 1)), rng.random((n, 1)) < 0.2
    said = rows.said_of(z, missing, rows.strengths(z, missing, rng))
    assert np.sqrt(np.mean(said**2)) < 0.2


def test_a_group_without_a_value_gets_the_mean_of_the_population():
    rows, z, missing = panel(6)
    missing[rows.group == 2] = True
    assert (rows.said_of(z, missing, [Strength(pooled=1.0, reach=2.0, share=0.9)])[rows.group == 2] == 0).all()


def runs_of(rows, marked):
    """The lengths of runs of marked rows, groups one after the other in order of time."""
    order = np.lexsort((rows.time, rows.group))
    lengths, run = [], 0
    for mark, is_new in zip(marked[order], np.r_[True, np.diff(rows.group[order]) != 0], strict=True):
        if (is_new or not mark) and run:
            lengths.append(run)
            run = 0
        run += bool(mark)
    return [*lengths, run] if run else lengths


def regular(n_groups=60, n_times=12):
    return Rows(np.repeat(np.arange(n_groups), n_times), np.tile(np.arange(float(n_times)), n_groups))


def test_values_are_hidden_in_runs_where_they_are_missing_in_runs():
    rng, rows = np.random.default_rng(7), regular()
    missing = (rows.time >= 4) & (rows.time < 9) & (rows.group % 3 == 0)
    hidden = ~missing & (rng.random(len(missing)) < 0.15)
    found, counts = hide_in_company(rows, missing, hidden, hidden * 1.0, rng)
    assert np.mean(runs_of(rows, found)) > 2 * np.mean(runs_of(rows, hidden))
    assert not (found & missing).any()
    assert abs(found.sum() - hidden.sum()) <= 8
    assert counts[found].mean() == pytest.approx(1.0)
    assert not counts[~found].any()


def test_values_missing_here_and_there_are_hidden_here_and_there():
    rng, rows = np.random.default_rng(8), regular()
    missing = rng.random(len(rows.group)) < 0.25
    hidden = ~missing & (rng.random(len(missing)) < 0.15)
    found, counts = hide_in_company(rows, missing, hidden, hidden * 1.0, rng)
    assert (found == hidden).all()
    assert (counts == hidden).all()


def test_most_of_a_group_is_hidden_where_whole_groups_are_missing():
    rng = np.random.default_rng(9)
    rows = Rows(regular().group, None)
    missing = rows.group % 4 == 0
    hidden = ~missing & (rng.random(len(missing)) < 0.15)
    found, _ = hide_in_company(rows, missing, hidden, hidden * 1.0, rng)
    of_groups = np.bincount(rows.group, found) / 12
    assert np.mean(of_groups[of_groups > 0]) > 0.8
