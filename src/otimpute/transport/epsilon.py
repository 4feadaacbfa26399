"""Choose the entropic strength ε from the data. ε multiplies KL(P ‖ a⊗b) and has the unit of the cost ½‖x − y‖²."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cost import half_squared_pair_distances

# How much of the median cost; "auto" is ours, chosen in docs/studies/defaults.md, the others are the paper's readings.
_SHARE = {"auto": 0.01, "cost": 0.05, "authors": 0.05, "distance": 0.05}
EPSILON_RULES = tuple(_SHARE)

_MOST_POINTS = 1000


def epsilon_from_rule(points: NDArray[np.floating], rule: str, rng: np.random.Generator) -> float:
    """ε for a cloud ``[n, d]`` by one of the named rules; m is the median over pairs of different rows.

    ``"auto"`` .01·m(½‖x−y‖²) · ``"cost"`` .05·m(½‖x−y‖²) · ``"distance"`` .05·m(‖x−y‖) · ``"authors"`` the square of
    ``"cost"``, which is what the published code computes.

    >>> points = np.array([[0.0], [2.0], [4.0]])
    >>> epsilon_from_rule(points, "cost", np.random.default_rng(0))
    0.1
    >>> epsilon_from_rule(points, "distance", np.random.default_rng(0))
    0.1
    """
    if rule not in _SHARE:
        raise ValueError(f"epsilon must be a number > 0 or one of {', '.join(map(repr, EPSILON_RULES))}, got {rule!r}")
    if len(points) > _MOST_POINTS:
        points = points[rng.choice(len(points), _MOST_POINTS, replace=False)]
    spacing = half_squared_pair_distances(np.asarray(points, dtype=np.float64))
    if rule == "distance":
        spacing = np.sqrt(2 * spacing)
    typical = float(np.median(spacing)) if spacing.size else 0.0
    if typical <= 0 and spacing.size:  # most rows are copies of one another: what is left of the spread
        typical = float(spacing.mean())
    if typical <= 0:  # all rows are equal: any ε gives the same, namely no movement
        return 1.0
    epsilon = _SHARE[rule] * typical
    return epsilon**2 if rule == "authors" else epsilon
