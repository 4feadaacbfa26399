"""How an imputer is fitted to an array of numbers, whatever table they come from.

``imputer.fit_cells(values, missing, layout, seed=...)`` returns a `CellFit`: the imputed entries, a `CellModel` that imputes
other rows, and a `FitSummary`. Imputers that use others (`AutoImputer`, reports) know nothing else about them.
"""

from .._deadline import OutOfTime
from .cells import CellFit, CellModel, Cells, DrawingModel, columns_of
from .layout import ColumnLayout, Helpers
from .notebook_bar import NotebookBar, in_notebook
from .progress import Callback, FitProgress, check_callbacks, progress_bar
from .stop_reason import StopReason
from .stored_models import ModelOf
from .summary import CURVES, STOPPED_EARLY, FitSummary
from .within_predictors import (
    Block,
    BlockModel,
    ask_model,
    blocks_of,
    centre_of,
    fit_within_predictors,
    is_made_of,
    join_fits,
)

__all__ = [
    "CURVES",
    "STOPPED_EARLY",
    "Block",
    "BlockModel",
    "Callback",
    "CellFit",
    "CellModel",
    "Cells",
    "ColumnLayout",
    "DrawingModel",
    "FitProgress",
    "FitSummary",
    "Helpers",
    "ModelOf",
    "NotebookBar",
    "OutOfTime",
    "StopReason",
    "ask_model",
    "blocks_of",
    "centre_of",
    "check_callbacks",
    "columns_of",
    "fit_within_predictors",
    "in_notebook",
    "is_made_of",
    "join_fits",
    "progress_bar",
]
