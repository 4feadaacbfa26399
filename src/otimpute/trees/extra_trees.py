"""Extremely randomised trees (Geurts, Ernst & Wehenkel, 2006), grown in compiled code.

At a node some columns are tried, each at one random threshold between its smallest and its largest value there, and the split
that leaves the least squared error wins. Growing by the thousand is what a round robin over columns needs: this is several
times faster than a forest of scikit-learn's on tables of a few hundred rows, where most of the time goes into making trees.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._splitmix import GOLDEN, mix
from .forest import Forest

_NO_SPREAD = 1e-12  # squared error per row, in squared units of the targets, that no split need explain
_TO_UNIT = 1.0 / 2**53


def grow_extra_trees(
    table: NDArray[np.float64],
    columns: NDArray[np.int64],
    inputs: NDArray[np.int64],
    rows: NDArray[np.int64],
    *,
    n_trees: int,
    max_features: int,
    min_samples_leaf: int,
    rng: np.random.Generator,
    max_rows: int | None = None,
) -> Forest:
    """A forest that predicts ``columns`` of a table from its ``inputs``, grown on some ``rows``.

    ``max_features`` columns are tried at a split; of more than ``max_rows`` rows each tree sees other ones, drawn at random.

    >>> rng = np.random.default_rng(0)
    >>> table = rng.uniform(-1, 1, size=(300, 2))
    >>> table[:, 1] = table[:, 0] ** 2
    >>> forest = grow_extra_trees(
    ...     table, np.array([1]), np.array([0]), np.arange(300), n_trees=20, max_features=1, min_samples_leaf=1, rng=rng
    ... )
    >>> bool(abs(forest.predict(np.array([[0.5, 0.0]]))[0, 0] - 0.25) < 0.02)
    True
    """
    features = np.ascontiguousarray(table[np.ix_(rows, inputs)].T, dtype=np.float32)
    targets = np.ascontiguousarray(table[np.ix_(rows, columns)])
    per_tree = len(rows) if max_rows is None else min(len(rows), max_rows)
    most_nodes = n_trees * max(2 * per_tree - 1, 1)
    left, right, feature = (np.full(most_nodes, -1, dtype=np.int32) for _ in range(3))
    threshold, value = np.zeros(most_nodes), np.zeros((most_nodes, len(columns)))
    roots = np.zeros(n_trees, dtype=np.int32)
    state = rng.integers(2**63, size=1, dtype=np.uint64)
    tried = min(max(max_features, 1), len(inputs))
    n_nodes = _grow(
        features, targets, tried, min_samples_leaf, per_tree, state, roots, left, right, feature, threshold, value
    )  # fmt: skip
    left, right, feature = (each[:n_nodes].copy() for each in (left, right, feature))
    return Forest(columns, inputs, roots, left, right, feature, threshold[:n_nodes].copy(), value[:n_nodes].copy())


_mix = compiled(mix)


@compiled
def _draw(state):  # type: ignore[no-untyped-def]
    """The next 64 random bits."""
    state[0] += GOLDEN
    return _mix(state[0])


@compiled
def _grow(  # type: ignore[no-untyped-def]
    features, targets, tried, min_leaf, per_tree, state, roots, left, right, feature, threshold, value
):
    """Grow one tree after the other into the arrays of nodes; how many nodes there are in the end.

    ``features [M, n]`` in single precision, the precision in which rows go down a tree.
    """
    n_features, n = features.shape
    n_targets = targets.shape[1]
    order, candidates = np.arange(n).astype(np.int32), np.arange(n_features).astype(np.int32)
    # Nodes still to be split: where their rows begin and end in ``order``, and their number.
    waiting = np.empty((2 * per_tree + 2, 3), np.int64)
    total, total_left, best_left = np.empty(n_targets), np.empty(n_targets), 0
    n_nodes = 0
    for tree in range(roots.shape[0]):
        if per_tree < n:
            for i in range(per_tree):
                j = i + np.int64(_draw(state) % np.uint64(n - i))
                order[i], order[j] = order[j], order[i]
        roots[tree] = n_nodes
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, per_tree, n_nodes
        n_nodes += 1
        n_waiting = 1
        while n_waiting > 0:
            n_waiting -= 1
            begin, end, node = waiting[n_waiting]
            count = end - begin
            squares = 0.0
            total[:] = 0.0
            for i in range(begin, end):
                for k in range(n_targets):
                    y = targets[order[i], k]
                    total[k] += y
                    squares += y * y
            between = 0.0
            for k in range(n_targets):
                value[node, k] = total[k] / count
                between += total[k] * total[k] / count
            if count < 2 * min_leaf or squares - between <= _NO_SPREAD * count:
                continue
            best, best_feature, best_threshold = -1.0, -1, np.float32(0)
            n_tried, n_left = 0, n_features
            while n_left > 0 and n_tried < tried:
                place = np.int64(_draw(state) % np.uint64(n_left))
                column = candidates[place]
                n_left -= 1
                candidates[place], candidates[n_left] = candidates[n_left], column
                low = features[column, order[begin]]
                high = low
                for i in range(begin + 1, end):
                    x = features[column, order[i]]
                    low, high = min(low, x), max(high, x)
                if high <= low:
                    continue
                n_tried += 1
                cut = low + np.float32((_draw(state) >> np.uint64(11)) * _TO_UNIT) * (high - low)
                if cut >= high:
                    cut = low
                below = 0
                if n_targets == 1:
                    sum_below = 0.0
                    for i in range(begin, end):
                        goes = features[column, order[i]] <= cut
                        sum_below += targets[order[i], 0] if goes else 0.0
                        below += 1 if goes else 0
                    total_left[0] = sum_below
                else:
                    total_left[:] = 0.0
                    for i in range(begin, end):
                        if features[column, order[i]] <= cut:
                            below += 1
                            for k in range(n_targets):
                                total_left[k] += targets[order[i], k]
                if below < min_leaf or count - below < min_leaf:
                    continue
                gain = 0.0
                for k in range(n_targets):
                    gain += total_left[k] * total_left[k] / below
                    gain += (total[k] - total_left[k]) * (total[k] - total_left[k]) / (count - below)
                if best_feature < 0 or gain > best:
                    best, best_feature, best_threshold = gain, column, cut
            if best_feature < 0:
                continue
            best_left, last = begin, end - 1
            while best_left <= last:
                if features[best_feature, order[best_left]] <= best_threshold:
                    best_left += 1
                else:
                    order[best_left], order[last] = order[last], order[best_left]
                    last -= 1
            feature[node], threshold[node] = best_feature, best_threshold
            left[node], right[node] = n_nodes, n_nodes + 1
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = begin, best_left, n_nodes
            waiting[n_waiting + 1, 0], waiting[n_waiting + 1, 1], waiting[n_waiting + 1, 2] = best_left, end, n_nodes + 1
            n_waiting += 2
            n_nodes += 2
    return n_nodes
