"""Forests of regression trees as plain arrays."""

from .extra_trees import grow_extra_trees
from .forest import Forest, GrownForest

__all__ = ["Forest", "GrownForest", "grow_extra_trees"]
