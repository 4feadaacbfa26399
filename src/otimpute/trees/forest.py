"""A random forest as plain arrays: what a file can hold, and what predicts without scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._stored import Array, stored

_TOGETHER = 256  # rows


@stored(
    columns=Array("K", index_of="varying"),
    inputs=Array("M", index_of="varying"),
    roots="T",
    child="N",
    feature="N",
    threshold="N",
    value="L K",
)
@dataclass(frozen=True)
class Forest:
    """The trees that predict some ``columns`` of a table from others, one after the other in arrays of nodes."""

    columns: NDArray[np.int64]  # [K]
    inputs: NDArray[np.int64]  # [M]
    roots: NDArray[np.int32]  # [T]
    child: NDArray[np.int32]  # [N]: where rows at or below the threshold go, the others go to the next; -1 - l in leaf l
    feature: NDArray[np.int16]  # [N]: a place among the inputs
    threshold: NDArray[np.float32]  # [N]
    value: NDArray[np.float32]  # [L, K]: of the leaves

    def __post_init__(self) -> None:
        """Every walk ends: it begins at a node, and goes to later ones only, until a leaf."""
        n_nodes, inner = len(self.child), np.flatnonzero(self.child >= 0)
        children, leaves = self.child[inner], -1 - self.child[self.child < 0]
        walks = (self.roots >= 0).all() and (self.roots < n_nodes).all() and (leaves < len(self.value)).all()
        walks &= (children > inner).all() and (children + 1 < n_nodes).all()
        if not walks or not ((self.feature >= 0) & (self.feature < len(self.inputs))).all():
            raise ValueError("a tree goes back, or outside of its nodes, leaves or inputs")
        if min(len(self.roots), len(self.columns)) == 0:
            raise ValueError("a forest needs trees, and something to predict")

    @classmethod
    def of(cls, fitted: Any, columns: NDArray[np.int64], inputs: NDArray[np.int64]) -> Forest:
        """From a fitted forest of scikit-learn's."""
        return GrownForest(columns, inputs, [_trees_of(estimator.tree_) for estimator in fitted.estimators_]).whole()

    @property
    def trees(self) -> Trees:
        """The arrays that describe them."""
        return Trees(self.roots, self.child, self.feature, self.threshold, self.value)

    def predict(self, table: NDArray[np.floating], rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Predictions ``[n, K]`` for the rows of a table, or some of them: the mean over the trees.

        A row's do not depend on the other rows. Tables in single precision are not copied.
        """
        rows = np.arange(len(table)) if rows is None else rows
        return self.trees.add_up(np.asarray(table, np.float32, order="C"), rows, self.inputs) / len(self.roots)


class Trees(NamedTuple):
    """Some trees, as a `Forest` describes them."""

    roots: NDArray[np.int32]
    child: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    value: NDArray[np.float32]

    def add_up(self, table: NDArray[np.float32], rows: NDArray[np.int64], inputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of their predictions ``[n, K]`` for some rows of a table."""
        total = np.zeros((len(rows), self.value.shape[1]))
        add_trees(table, rows, inputs, *self, total)
        return total

    def leaves_of(self, inputs: NDArray[np.float32], tree: NDArray[np.int64]) -> NDArray[np.int64]:
        """The leaf that each row ``[n]`` falls into in a tree of its own."""
        leaves = np.empty(len(inputs), dtype=np.int64)
        _find_leaves(inputs, self.roots[tree], self.child, self.feature, self.threshold, leaves)
        return leaves


@dataclass(frozen=True)
class GrownForest:
    """A forest in parts, as its trees were grown."""

    columns: NDArray[np.int64]
    inputs: NDArray[np.int64]
    parts: list[Trees]

    def whole(self) -> Forest:
        """All trees in one set of arrays."""
        nodes = np.cumsum([0, *(len(each.child) for each in self.parts)])[:-1]
        leaves = np.cumsum([0, *(len(each.value) for each in self.parts)])[:-1]
        moved = list(zip(self.parts, nodes, leaves, strict=True))
        children = [np.where(each.child < 0, each.child - leaf, each.child + node) for each, node, leaf in moved]
        return Forest(
            self.columns,
            self.inputs,
            np.concatenate([each.roots + node for each, node, _ in moved]).astype(np.int32),
            np.concatenate(children).astype(np.int32),
            np.concatenate([each.feature for each in self.parts]),
            np.concatenate([each.threshold for each in self.parts]),
            np.concatenate([each.value for each in self.parts]),
        )


def _trees_of(tree: Any) -> Trees:
    """A tree of scikit-learn's, its nodes renumbered so that siblings are neighbours."""
    left, right = tree.children_left, tree.children_right
    order, n_placed = np.zeros(tree.node_count, dtype=np.int64), 1
    child = np.full(tree.node_count, -1, dtype=np.int32)
    for place in range(tree.node_count):  # level by level
        node = order[place]
        if left[node] >= 0:
            child[place] = n_placed
            order[n_placed : n_placed + 2] = left[node], right[node]
            n_placed += 2
    is_leaf = child < 0
    child = np.where(is_leaf, -np.cumsum(is_leaf, dtype=np.int32), child)
    # Rows in single precision are at or below a threshold exactly where they are at or below the next single number under it.
    threshold = tree.threshold[order].astype(np.float32)
    threshold = np.where(threshold > tree.threshold[order], np.nextafter(threshold, np.float32(-np.inf)), threshold)
    feature = np.maximum(tree.feature[order], 0).astype(np.int16)
    value = tree.value[order[is_leaf], :, 0].astype(np.float32)
    return Trees(np.zeros(1, dtype=np.int32), child, feature, threshold, value)


@compiled
def add_trees(table, rows, inputs, roots, child, feature, threshold, value, total):  # type: ignore[no-untyped-def]
    """Add the values of the leaves that rows fall into, tree after tree: the order of a sum decides its last bits.

    Some rows go down a tree together, a step each before any goes on: a step waits for memory, but not for the other rows'.
    """
    n, n_targets = total.shape
    # Unsigned numbers are used as they are; of others numba would ask each time whether they count from the end.
    node, walking = np.empty(_TOGETHER, np.uint32), np.empty(_TOGETHER, np.uint32)
    some = np.empty((min(_TOGETHER, n), inputs.shape[0]), np.float32)
    for begin in range(0, n, _TOGETHER):
        n_rows = min(_TOGETHER, n - begin)
        for i in range(n_rows):
            for j in range(inputs.shape[0]):
                some[i, j] = table[rows[begin + i], inputs[j]]
        for t in range(roots.shape[0]):
            n_walking = np.uint64(n_rows if child[roots[t]] >= 0 else 0)
            for i in range(n_rows):
                node[i], walking[i] = roots[t], i
            while n_walking > 0:
                n_left = np.uint64(0)
                for w in range(n_walking):
                    i = walking[w]
                    at = node[i]
                    at = np.uint32(child[at]) + np.uint32(some[i, np.uint32(feature[at])] > threshold[at])
                    node[i], walking[n_left] = at, i
                    n_left += np.uint64(child[at] >= 0)
                n_walking = n_left
            for i in range(n_rows):
                leaf = -1 - child[node[i]]
                for k in range(n_targets):
                    total[begin + i, k] += value[leaf, k]


@compiled
def _find_leaves(inputs, roots, child, feature, threshold, leaves):  # type: ignore[no-untyped-def]
    """The leaf that each row falls into, from a root of its own."""
    for i in range(inputs.shape[0]):
        at = np.uint32(roots[i])
        while child[at] >= 0:
            at = np.uint32(child[at]) + np.uint32(inputs[i, np.uint32(feature[at])] > threshold[at])
        leaves[i] = -1 - child[at]
