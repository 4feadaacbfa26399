"""Forests of regression trees as plain arrays."""

from .extra_trees import grow_extra_trees
from .forest import Forest

__all__ = ["Forest", "grow_extra_trees"]
