"""Rows like a given one, found by random trees: donors of values or residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._stored import Array, stored
from ...trees import Trees, grow_extra_trees

_MAX_FEATURES = 0.75  # share of the inputs tried at a split


@stored(roots="T", child="N", feature="N", threshold="N", begin="B", donor=Array("M", at_least=0))
@dataclass(frozen=True)
class DonorTrees:
    """Trees whose leaves list the training rows that fell into them."""

    roots: NDArray[np.int32]  # [T]
    child: NDArray[np.int32]  # [N], as in `Forest`
    feature: NDArray[np.int16]  # [N]
    threshold: NDArray[np.float32]  # [N]
    begin: NDArray[np.int64]  # [leaves + 1]: where the rows of a leaf begin in ``donor``
    donor: NDArray[np.int32]  # [T · rows]

    def __post_init__(self) -> None:
        inner = np.flatnonzero(self.child >= 0)
        leaves = -1 - self.child[self.child < 0]
        walks = len(self.roots) > 0 and bool((self.roots >= 0).all()) and bool((self.roots < len(self.child)).all())
        walks &= bool((self.child[inner] > inner).all() and (self.child[inner] + 1 < len(self.child)).all())
        walks &= len(self.begin) > 1 and bool((leaves < len(self.begin) - 1).all()) and bool((self.feature >= 0).all())
        if not walks or self.begin[0] != 0 or self.begin[-1] != len(self.donor) or not (np.diff(self.begin) > 0).all():
            raise ValueError("a tree goes back, outside of its nodes, or to a leaf without rows")

    @classmethod
    def any_row(cls, n_rows: int) -> DonorTrees:
        """One tree without a split: every row is a donor for all."""
        return cls(
            np.zeros(1, np.int32), np.full(1, -1, np.int32), np.zeros(1, np.int16), np.zeros(1, np.float32),
            np.array([0, n_rows]), np.arange(n_rows, dtype=np.int32),
        )  # fmt: skip

    @classmethod
    def grow(
        cls, inputs: NDArray[np.float32], targets: NDArray[np.float64], *, n_trees: int, leaf: int, rng: np.random.Generator
    ) -> DonorTrees:
        """Trees that tell rows with other ``targets [n, k]`` apart, with at least ``leaf`` rows in a leaf."""
        (n, p), k = inputs.shape, targets.shape[1]
        table = np.column_stack([inputs, targets])
        every = np.arange(n)
        ((forest, _),) = grow_extra_trees(
            table, [p + np.arange(k)], [np.arange(p)], [every], [every[:0]],
            n_trees=n_trees, max_features=_MAX_FEATURES, min_samples_leaf=leaf, rng=rng,
        )  # fmt: skip
        trees = forest.whole().trees
        leaves = np.concatenate([trees.leaves_of(inputs, np.full(n, tree)) for tree in range(n_trees)])
        order = np.argsort(leaves, kind="stable")
        begin = np.concatenate([[0], np.cumsum(np.bincount(leaves, minlength=len(trees.value)))])
        return cls(trees.roots, trees.child, trees.feature, trees.threshold, begin, (order % n).astype(np.int32))

    def choose(
        self,
        inputs: NDArray[np.float32],
        which_tree: NDArray[np.float64],
        which_donor: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """A donor for each row, by two random numbers between 0 and 1: a tree, then a row in its leaf.

        ``weights`` of the training rows make some of them more likely than others, among the donors in the leaves of all trees:
        a leaf of few rows often holds one category only, whose odds no weights would change.
        """
        trees = Trees(self.roots, self.child, self.feature, self.threshold, np.empty((0, 0), np.float32))
        n, n_trees = len(inputs), len(self.roots)
        if weights is None:
            leaf = trees.leaves_of(inputs, (which_tree * n_trees).astype(np.int64))
            first, last = self.begin[leaf], self.begin[leaf + 1]
            return np.asarray(self.donor[first + (which_donor * (last - first)).astype(np.int64)], dtype=np.int64)
        below = np.concatenate([[0.0], np.cumsum(weights[self.donor])])
        leaves = np.column_stack([trees.leaves_of(inputs, np.full(n, tree)) for tree in range(n_trees)])
        first, last = self.begin[leaves], self.begin[leaves + 1]
        shares = np.cumsum((below[last] - below[first]) / (last - first), axis=1)  # mean weights, summed over trees
        tree = np.minimum((shares <= which_tree[:, None] * shares[:, -1:]).sum(axis=1), n_trees - 1)
        first, last = first[np.arange(n), tree], last[np.arange(n), tree]
        place = np.searchsorted(below, below[first] + which_donor * (below[last] - below[first]), side="right") - 1
        return np.asarray(self.donor[np.clip(place, first, last - 1)], dtype=np.int64)
