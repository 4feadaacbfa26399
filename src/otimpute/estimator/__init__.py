"""What all imputers share."""

from .base import BaseImputer
from .hidden_cells import hide_cells, score_cells
from .model_file import Fitted, Unfitted, read_model
from .progress import Callback, FitProgress, check_callbacks, progress_bar, warn_of_stop

__all__ = [
    "BaseImputer",
    "Callback",
    "FitProgress",
    "Fitted",
    "Unfitted",
    "check_callbacks",
    "hide_cells",
    "progress_bar",
    "read_model",
    "score_cells",
    "warn_of_stop",
]
