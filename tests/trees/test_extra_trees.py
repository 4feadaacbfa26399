"""Extremely randomised trees: what a walk down them shows, and scikit-learn's as a rival."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from otimpute._threads import Workers
from otimpute.trees import Forest, grow_extra_trees


def grow(table, columns, inputs, rows=None, *, n_trees=5, max_features=1.0, min_samples_leaf=1, max_rows=None, seed=0):
    ((forest, _),) = grow_extra_trees(
        table,
        [np.asarray(columns)],
        [np.asarray(inputs)],
        [np.arange(len(table)) if rows is None else rows],
        [np.arange(0)],
        n_trees=n_trees,
        max_features=max_features,
        min_samples_leaf=min_samples_leaf,
        max_rows=max_rows,
        rng=np.random.default_rng(seed),
    )
    return forest.whole()


def leaves(forest: Forest, rows: np.ndarray) -> np.ndarray:
    """The leaf each row ends in, by tree ``[T, n]``, walked in plain Python."""
    inputs = rows[:, forest.inputs].astype(np.float32)
    ends = np.empty((len(forest.roots), len(rows)), dtype=int)
    for t, root in enumerate(forest.roots):
        for i, row in enumerate(inputs):
            node = root
            while forest.child[node] >= 0:
                below = row[forest.feature[node]] <= forest.threshold[node]
                node = forest.child[node] + (0 if below else 1)
            ends[t, i] = -1 - forest.child[node]
    return ends


def friedman(n: int, seed: int) -> np.ndarray:
    """Five inputs, two more that say nothing, and the target."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 7))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4] + rng.normal(size=n)
    return np.column_stack([x, y / 5])


@pytest.mark.parametrize("max_features", [0.3, 0.7, 1.0])
def test_rows_of_different_inputs_are_learned_by_heart(max_features):
    table = np.random.default_rng(0).normal(size=(80, 5))
    forest = grow(table, [1, 4], [0, 2, 3], max_features=max_features)
    np.testing.assert_allclose(forest.predict(table), table[:, [1, 4]], rtol=1e-7)


def test_predictions_are_the_mean_of_the_leaves_that_a_walk_ends_in():
    table = np.random.default_rng(1).normal(size=(60, 4))
    forest = grow(table, [3, 0], [1, 2], min_samples_leaf=4)
    others = np.random.default_rng(2).normal(size=(30, 4)) * 2
    expected = forest.value[leaves(forest, others)].astype(float).mean(axis=0)
    np.testing.assert_allclose(forest.predict(others), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("smallest", [1, 2, 7, 25, 41])
def test_leaves_hold_the_mean_of_at_least_so_many_rows(smallest):
    table = np.random.default_rng(3).normal(size=(80, 4))
    table[:, 1] = np.round(table[:, 1])  # with ties
    forest = grow(table, [0], [1, 2, 3], min_samples_leaf=smallest)
    for ends in leaves(forest, table):
        for leaf in np.unique(ends):
            members = table[ends == leaf, 0]
            assert len(members) >= smallest
            np.testing.assert_allclose(forest.value[leaf, 0], members.mean(), rtol=1e-7, atol=1e-7)
    assert (len(forest.child) == len(forest.roots)) == (smallest == 41)


def test_every_leaf_is_reached_and_trees_are_as_large_as_they_can_be():
    table = np.random.default_rng(4).normal(size=(50, 3))
    forest = grow(table, [0], [1, 2], n_trees=4)
    assert set(leaves(forest, table).ravel().tolist()) == set(range(len(forest.value)))
    assert len(forest.child) == 4 * (2 * 50 - 1)


@pytest.mark.parametrize("what", ["targets", "inputs", "nearly the targets", "one row"])
def test_where_nothing_is_to_be_learned_a_tree_is_one_node(what):
    table = np.random.default_rng(5).normal(size=(40, 3))
    if what == "targets":
        table[:, 0] = 0.7
    elif what == "inputs":
        table[:, 1:] = [3.0, -2.0]
    elif what == "nearly the targets":
        table[:, 0] = 0.7 + 1e-9 * table[:, 0]
    else:
        table = table[:1]
    forest = grow(table, [0], [1, 2])
    assert (forest.child < 0).all()
    assert len(forest.child) == 5
    np.testing.assert_allclose(forest.predict(table), np.full((len(table), 1), table[:, 0].mean()), rtol=1e-7, atol=1e-7)


def test_inputs_that_single_precision_cannot_tell_apart_are_not_split():
    table = np.column_stack([np.arange(8.0), 1.0 + 1e-12 * np.arange(8.0)])
    assert len(grow(table, [0], [1]).child) == 5


def test_neighbouring_numbers_of_single_precision_are_split():
    table = np.column_stack([[0.0, 1.0], np.array([1.0, np.nextafter(np.float32(1), np.float32(2))])])
    np.testing.assert_array_equal(grow(table, [0], [1]).predict(table)[:, 0], [0, 1])


def test_the_one_input_that_varies_is_found_though_one_of_many_is_tried():
    table = np.ones((40, 20))
    table[:, 13], table[:, 0] = np.arange(40), np.sin(np.arange(40))
    forest = grow(table, [0], range(1, 20), max_features=0.05)
    np.testing.assert_allclose(forest.predict(table)[:, 0], table[:, 0], rtol=1e-7)


def test_a_second_target_without_news_changes_no_split():
    table = np.random.default_rng(6).normal(size=(60, 4))
    table[:, 1], table[:, 2] = 5.0, table[:, 0]
    alone, with_constant, twice = (grow(table, columns, [3]) for columns in ([0], [0, 1], [0, 2]))
    np.testing.assert_array_equal(alone.threshold, with_constant.threshold)
    np.testing.assert_allclose(with_constant.predict(table), alone.predict(table) * [1, 0] + [0, 5], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(twice.predict(table), np.repeat(alone.predict(table), 2, axis=1), rtol=1e-6, atol=1e-6)


def test_only_the_given_rows_are_learned_from():
    table = np.random.default_rng(7).normal(size=(60, 3))
    rows = np.arange(0, 60, 3)
    spoiled = np.where(np.isin(np.arange(60), rows)[:, None], table, np.nan)
    np.testing.assert_array_equal(grow(spoiled, [0], [1, 2], rows).value, grow(table, [0], [1, 2], rows).value)


def test_of_many_rows_each_tree_sees_other_ones():
    table = np.random.default_rng(8).normal(size=(300, 2))
    forest = grow(table, [0], [1], n_trees=40, max_rows=30)
    by_tree = np.split(forest.child, forest.roots[1:])
    seen = [set(forest.value[-1 - nodes[nodes < 0], 0].tolist()) for nodes in by_tree]
    assert all(len(values) == 30 and values <= set(table[:, 0].astype(np.float32).tolist()) for values in seen)
    assert len(set.union(*seen)) > 270  # chance leaves out 1.5 % of 300
    assert seen[0] != seen[1]


@pytest.mark.parametrize("max_rows", [60, 61])
def test_a_limit_that_is_not_reached_changes_nothing(max_rows):
    table = np.random.default_rng(9).normal(size=(60, 3))
    np.testing.assert_array_equal(grow(table, [0], [1, 2], max_rows=max_rows).value, grow(table, [0], [1, 2]).value)


def test_same_generator_same_forest_and_another_another():
    table = np.random.default_rng(10).normal(size=(60, 3))
    first, again, other = (grow(table, [0], [1, 2], max_rows=40, seed=seed) for seed in (1, 1, 2))
    for field in ("roots", "child", "feature", "threshold", "value"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))
    assert first.threshold[0] != other.threshold[0]


@pytest.mark.parametrize(("max_features", "min_samples_leaf"), [(1.0, 1), (0.43, 3)])
def test_predictions_are_as_good_as_those_of_scikit_learn(max_features, min_samples_leaf):
    ours, theirs = [], []
    for seed in range(6):
        train, test = friedman(250, seed), friedman(500, 1000 + seed)
        forest = grow(train, [7], range(7), n_trees=60, max_features=max_features, min_samples_leaf=min_samples_leaf, seed=seed)
        rival = ExtraTreesRegressor(60, max_features=max_features, min_samples_leaf=min_samples_leaf, random_state=seed)
        rival.fit(train[:, :7], train[:, 7])
        ours.append(((forest.predict(test)[:, 0] - test[:, 7]) ** 2).mean())
        theirs.append(((rival.predict(test[:, :7]) - test[:, 7]) ** 2).mean())
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)
    assert np.mean(ours) < 0.4 * np.var(friedman(5000, 5)[:, 7])


@pytest.mark.parametrize("n_threads", [2, 3, 50])
def test_the_number_of_workers_changes_no_tree(n_threads):
    table = np.random.default_rng(11).normal(size=(90, 4))
    columns, inputs, rows = [np.array([0]), np.array([2, 3])], [np.arange(1, 4), np.arange(2)], [np.arange(90), np.arange(60)]
    asked = {"n_trees": 7, "max_features": 0.75, "min_samples_leaf": 1, "max_rows": 50}
    found = []
    for n in (1, n_threads):
        with Workers(n) as workers:
            grown = grow_extra_trees(table, columns, inputs, rows, rows, rng=np.random.default_rng(0), workers=workers, **asked)
        found.append([forest.whole() for forest, _ in grown])
    for alone, together in zip(*found, strict=True):
        for field in ("roots", "child", "feature", "threshold", "value"):
            np.testing.assert_array_equal(getattr(alone, field), getattr(together, field))


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_predictions_that_come_with_forests_are_their_own(n_threads, weighed):
    table = np.random.default_rng(13).normal(size=(90, 5))
    columns, inputs = [np.array([0, 3]), np.array([1]), np.array([2])], [np.array([1, 2, 4]), np.array([0]), np.array([3, 4])]
    rows, others = [np.arange(60), np.arange(90), np.arange(20, 90)], [np.arange(60, 90), np.arange(0), np.arange(20)]
    asked = {"n_trees": 13, "max_features": 0.75, "min_samples_leaf": 2}
    asked["row_weight"] = np.random.default_rng(14).uniform(0.5, 3, 90) if weighed else None
    found = []
    with Workers(n_threads) as workers:  # in memory of theirs, which is used again where trees are not kept
        for with_trees in (True, False):
            grown = grow_extra_trees(
                table, columns, inputs, rows, others,
                rng=np.random.default_rng(0), workers=workers, with_trees=with_trees, **asked,
            )  # fmt: skip
            found.append(grown)
    for (forest, predicted), (without_trees, again), its_rows in zip(*found, others, strict=True):
        assert len(forest.parts) > 1
        assert without_trees.parts == []
        np.testing.assert_allclose(predicted, forest.whole().predict(table[its_rows]), rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(again, predicted)


def test_all_of_many_inputs_are_used():
    rng = np.random.default_rng(12)
    table = rng.normal(size=(400, 40))
    table[:, 0] = table[:, 3] + table[:, 18] + table[:, 39]  # in three blocks of inputs
    forest = grow(table, [0], range(1, 40), n_trees=30)
    inner = forest.child >= 0
    used = np.bincount(forest.feature[inner], minlength=39)
    assert set(np.argsort(used)[-3:].tolist()) == {2, 17, 38}
    assert (used > 0).all()
