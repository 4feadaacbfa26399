"""What all imputers share."""

from .base import BaseImputer, FitTask
from .error_bars import bars_of, has_error_bars
from .hidden_cells import HiddenValues, hide_cells, mean_over_missing, score_cells
from .judgement import Comparison, Finding, Measure, Overall, Rating, judge, judge_column, rate
from .model_file import Fitted, Storable, Unfitted, model_of_bytes, read_model
from .realistic_hiding import Missingness, hide_like_missing
from .scan_fit import ScanSummary
from .table_parameters import TableParameters
from .training_rows import TrainingRows, column_means
from .training_table import TrainingTable

__all__ = [
    "BaseImputer",
    "Comparison",
    "Finding",
    "FitTask",
    "Fitted",
    "HiddenValues",
    "Measure",
    "Missingness",
    "Overall",
    "Rating",
    "ScanSummary",
    "Storable",
    "TableParameters",
    "TrainingRows",
    "TrainingTable",
    "Unfitted",
    "bars_of",
    "column_means",
    "has_error_bars",
    "hide_cells",
    "hide_like_missing",
    "judge",
    "judge_column",
    "mean_over_missing",
    "model_of_bytes",
    "rate",
    "read_model",
    "score_cells",
]
