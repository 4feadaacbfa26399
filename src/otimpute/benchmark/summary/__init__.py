"""Summaries of benchmark outcomes: means over seeds, tables, average ranks with their significance, wins."""

from .blocks import Blocks, relative_scores, shared_blocks
from .cells import Cell, aggregate
from .ranks import Ranks, average_ranks
from .tables import render_table
from .wins import Wins, wins

__all__ = [
    "Blocks",
    "Cell",
    "Ranks",
    "Wins",
    "aggregate",
    "average_ranks",
    "relative_scores",
    "render_table",
    "shared_blocks",
    "wins",
]
