"""How many times each row counts: ``sample_weight`` as people pass it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ACCEPTED = "one finite number >= 0 per row, such as [1, 1, 2.5]"


def check_row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Weights ``[n_rows]``, the largest of which is 1: only ratios matter.

    >>> check_row_weights([3, 0, 6], 3).tolist()
    [0.5, 0.0, 1.0]
    """
    try:
        weight = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"sample_weight must be {_ACCEPTED}, got {type(sample_weight).__name__} of other values") from None
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must be {_ACCEPTED}, got an array of shape {weight.shape} for {n_rows} rows")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(f"sample_weight must be {_ACCEPTED}, got {weight[bad[0]]} in row {bad[0]}; give it 0 to leave it out")
    if not weight.any():
        raise ValueError(f"sample_weight must be {_ACCEPTED}, got zero in every row; there is nothing left")
    return np.asarray(weight / weight.max())
