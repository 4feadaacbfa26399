"""Error bars of imputers that have them."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..table import as_frame
from .base import BaseImputer


def has_error_bars(imputer: BaseImputer) -> bool:
    """Whether ``transform`` can say how far off values may be."""
    return "return_std" in signature(imputer.transform).parameters


def bars_of(imputer: BaseImputer, bars: Any) -> NDArray[np.float64]:
    """Error bars as they come from an imputer, as an array with all columns of the table; NaN in those that were dropped."""
    frame = as_frame(bars)
    array = np.asarray(bars if frame is None else frame.to_numpy(), dtype=np.float64)
    if array.shape[1] == len(imputer.training_table_.kept):
        return array
    whole = np.full((len(array), len(imputer.training_table_.kept)), np.nan)
    whole[:, imputer.training_table_.kept] = array[:, : np.count_nonzero(imputer.training_table_.kept)]
    return whole
