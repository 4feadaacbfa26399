"""Find places for the labels of points, so that they hide as little as possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Where a label may lie, as its centre seen from the point: sides first, in the order in which people prefer them.
_DIRECTIONS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)], dtype=float)
_ROUNDS = 4


def place_labels(
    points: ArrayLike, sizes: ArrayLike, bounds: ArrayLike, obstacles: ArrayLike, gap: float
) -> NDArray[np.float64]:
    """Lower left corners of labels beside their points.

    Each label in turn, several times over, takes the place that costs least: the area by which it covers other labels
    and the ``obstacles``, and most of all what lies outside ``bounds``. Boxes are (left, bottom, right, top).

    >>> place_labels([[0.0, 0.0]], [[10.0, 2.0]], bounds=[-50, -50, 50, 50], obstacles=[[3, -1, 9, 1]], gap=1)
    array([[-11.,  -1.]])
    """
    points, sizes = np.asarray(points, dtype=float), np.asarray(sizes, dtype=float)
    obstacles = np.asarray(obstacles, dtype=float).reshape(-1, 4)
    centres = points[:, None] + _DIRECTIONS * (sizes[:, None] / 2 + gap)  # [label, direction, 2]
    places = np.concatenate([centres - sizes[:, None] / 2, centres + sizes[:, None] / 2], axis=2)  # [label, direction, 4]
    area = sizes.prod(axis=1)[:, None]
    outside = area - _covered(places, np.asarray(bounds, dtype=float).reshape(1, 4))
    preference = 0.02 * area * np.arange(len(_DIRECTIONS))
    fixed = 10 * outside + preference + 40 * _covered(places, obstacles)  # [label, direction]
    chosen = np.argmin(fixed, axis=1)
    every = np.arange(len(points))
    for _ in range(_ROUNDS):
        for i in every:
            others = places[every != i, chosen[every != i]]
            chosen[i] = np.argmin(fixed[i] + 4 * _covered(places[i], others))
    return places[every, chosen, :2]


def _covered(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The area of each box that lies under ``others``, summed over them."""
    low = np.maximum(boxes[..., None, :2], others[:, :2])
    high = np.minimum(boxes[..., None, 2:], others[:, 2:])
    covered: NDArray[np.float64] = np.maximum(high - low, 0).prod(axis=-1).sum(axis=-1)
    return covered
