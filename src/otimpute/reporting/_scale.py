"""Round numbers to label an axis with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nice_places(low: float, high: float) -> NDArray[np.float64]:
    """About five round numbers from ``low`` to ``high > low``.

    >>> nice_places(0.3, 9.2)
    array([2., 4., 6., 8.])
    """
    raw = high / 4 - low / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda nice: abs(nice - raw / power))
    first = np.ceil(low / step)
    places = np.arange(first, np.floor(high / step) + 1) * step
    return places if len(places) else np.array([low, high])
