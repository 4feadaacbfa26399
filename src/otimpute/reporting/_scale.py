"""Round numbers for the labels of an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_LARGE = 1e7
_MOST_DECIMALS = 6


def nice_places(low: float, high: float) -> NDArray[np.float64]:
    """Return about five round numbers from ``low`` to ``high > low``.

    >>> nice_places(0.3, 9.2)
    array([2., 4., 6., 8.])
    """
    raw = high / 4 - low / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda nice: abs(nice - raw / power))
    first = np.ceil(low / step)
    places = np.arange(first, np.floor(high / step) + 1) * step
    return places if len(places) else np.array([low, high])


def nice_labels(places: Sequence[float] | NDArray[np.float64]) -> list[str]:
    """Format round numbers with the same number of decimals; very large and very small ones with an exponent.

    >>> nice_labels([1.5, 2.0, 2.5]), nice_labels([0.0, 20.0]), nice_labels([1e-7, 2e-7])
    (['1.5', '2.0', '2.5'], ['0', '20'], ['1e-07', '2e-07'])
    """
    largest = max(abs(float(place)) for place in places)
    if largest >= _LARGE:
        return [f"{place:.6g}" for place in places]
    near = 1e-9 * largest
    decimals = next((k for k in range(_MOST_DECIMALS) if np.allclose(np.round(places, k), places, rtol=0, atol=near)), None)
    return [f"{place:.6g}" if decimals is None else f"{round(float(place), decimals) + 0.0:.{decimals}f}" for place in places]
