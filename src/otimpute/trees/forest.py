"""A random forest as plain arrays: what a file can hold, and what predicts without scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._stored import Array, stored

_LEAF = -1


@stored(
    columns=Array("K", index_of="varying"),
    inputs=Array("M", index_of="varying"),
    roots="T",
    left="N",
    right="N",
    feature="N",
    threshold="N",
    value="N K",
)
@dataclass(frozen=True)
class Forest:
    """The trees that predict some ``columns`` of a table from others, one after the other in arrays of nodes."""

    columns: NDArray[np.int64]  # [K]
    inputs: NDArray[np.int64]  # [M]
    roots: NDArray[np.int32]  # [T]
    left: NDArray[np.int32]  # [N]: where rows at or below the threshold go, or -1 in a leaf
    right: NDArray[np.int32]  # [N]
    feature: NDArray[np.int32]  # [N]: a place among the inputs
    threshold: NDArray[np.float64]  # [N]
    value: NDArray[np.float64]  # [N, K]

    def __post_init__(self) -> None:
        """Every walk ends: it begins at a node, and goes to later ones only."""
        n_nodes, inner = len(self.left), np.flatnonzero(self.left != _LEAF)
        children = np.concatenate([self.left[inner], self.right[inner]])
        walks = (self.roots >= 0).all() and (self.roots < n_nodes).all()
        walks &= (children > np.tile(inner, 2)).all() and (children < n_nodes).all()
        if not walks or not ((self.feature[inner] >= 0) & (self.feature[inner] < len(self.inputs))).all():
            raise ValueError("a tree goes back, or outside of its nodes or inputs")
        if min(len(self.roots), len(self.columns)) == 0:
            raise ValueError("a forest needs trees, and something to predict")

    @classmethod
    def of(cls, fitted: Any, columns: NDArray[np.int64], inputs: NDArray[np.int64]) -> Forest:
        """From a fitted forest of scikit-learn's."""
        trees = [estimator.tree_ for estimator in fitted.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])

        def joined(name: str) -> NDArray[np.int32]:
            children = [getattr(tree, name) for tree in trees]
            return np.concatenate(
                [np.where(each < 0, _LEAF, each + root) for each, root in zip(children, roots, strict=True)]
            ).astype(np.int32)

        return cls(
            columns,
            inputs,
            roots.astype(np.int32),
            joined("children_left"),
            joined("children_right"),
            np.concatenate([tree.feature for tree in trees]).astype(np.int32),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate([tree.value[:, :, 0] for tree in trees]),
        )

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions ``[n, K]``, to the bit those of scikit-learn on one thread: single precision decides at the nodes."""
        inputs = rows[:, self.inputs].astype(np.float32)
        total = np.zeros((len(rows), len(self.columns)))
        _add_trees(inputs, self.roots, self.left, self.right, self.feature, self.threshold, self.value, total)
        return total / len(self.roots)  # not in compiled code, which may multiply by the inverse instead


@compiled
def _add_trees(inputs, roots, left, right, feature, threshold, value, total):  # type: ignore[no-untyped-def]
    """Add the values of the leaves that rows fall into, tree after tree: the order of a sum decides its last bits."""
    for t in range(roots.shape[0]):
        for i in range(inputs.shape[0]):
            node = roots[t]
            while left[node] != -1:
                node = left[node] if inputs[i, feature[node]] <= threshold[node] else right[node]
            for k in range(total.shape[1]):
                total[i, k] += value[node, k]
