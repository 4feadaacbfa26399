"""What all imputers share."""

from .base import BaseImputer
from .course import CURVES, history_of, how_it_ended, step_name
from .error_bars import bars_of, has_error_bars
from .hidden_cells import HiddenValues, hide_cells, mean_over_missing, score_cells
from .judgement import Comparison, Finding, Measure, Overall, Rating, judge, judge_column, rate
from .model_file import Fitted, Unfitted, read_model
from .notebook_bar import NotebookBar, in_notebook
from .progress import Callback, FitProgress, check_callbacks, progress_bar, warn_of_stop
from .realistic_hiding import Missingness, hide_like_missing
from .stop_reason import StopReason
from .training_rows import TrainingRows, column_means

__all__ = [
    "CURVES",
    "BaseImputer",
    "Callback",
    "Comparison",
    "Finding",
    "FitProgress",
    "Fitted",
    "HiddenValues",
    "Measure",
    "Missingness",
    "NotebookBar",
    "Overall",
    "Rating",
    "StopReason",
    "TrainingRows",
    "Unfitted",
    "bars_of",
    "check_callbacks",
    "column_means",
    "has_error_bars",
    "hide_cells",
    "hide_like_missing",
    "history_of",
    "how_it_ended",
    "in_notebook",
    "judge",
    "judge_column",
    "mean_over_missing",
    "progress_bar",
    "rate",
    "read_model",
    "score_cells",
    "step_name",
    "warn_of_stop",
]
