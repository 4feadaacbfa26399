"""Figures of benchmark outcomes."""

from .bars import draw_bars, draw_out_of_sample_bars
from .draw import draw_figures
from .ranks_diagram import draw_ranks
from .run_times import draw_run_times
from .time_accuracy import draw_time_accuracy
from .win_matrix import draw_wins

__all__ = [
    "draw_bars",
    "draw_figures",
    "draw_out_of_sample_bars",
    "draw_ranks",
    "draw_run_times",
    "draw_time_accuracy",
    "draw_wins",
]
