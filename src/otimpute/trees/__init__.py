"""Forests of regression trees as plain arrays."""

from .extra_trees import grow_extra_trees
from .forest import Forest, GrownForest, Trees

__all__ = ["Forest", "GrownForest", "Trees", "grow_extra_trees"]
