"""Two-dimensional data sets on which good imputations are easy to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count
from .._random import generator_from

Points = NDArray[np.float64]  # [n, 2]


def list_toys() -> list[str]:
    """Return the names accepted by `make_toy`.

    >>> list_toys()
    ['circles', 'half_moon', 's_curve', 'two_moons']
    """
    return sorted(_SHAPES)


def make_toy(name: str, n: int, random_state: Any = None) -> Points:
    """Draw ``n`` points near a curve in the plane.

    Parameters
    ----------
    name : str
        One of `list_toys()`.
    n : int
        Number of points.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. Pass an int for reproducible points.

    >>> make_toy("circles", 500, random_state=0).shape
    (500, 2)
    """
    shape, noise = _SHAPES[check_choice("name", name, _SHAPES)]
    n, rng = check_count("n", n), generator_from(random_state, "toy")
    return shape(n, rng) + noise * rng.standard_normal((n, 2))


def _s_curve(n: int, rng: np.random.Generator) -> Points:
    angle = rng.uniform(-1.5 * np.pi, 1.5 * np.pi, n)
    return np.column_stack((np.sin(angle), np.sign(angle) * (np.cos(angle) - 1)))


def _half_moon(n: int, rng: np.random.Generator) -> Points:
    angle = rng.uniform(0, np.pi, n)
    return np.column_stack((np.cos(angle), np.sin(angle)))


def _two_moons(n: int, rng: np.random.Generator) -> Points:
    moon = _half_moon(n, rng)
    return np.where(_half(n, rng)[:, None], [1.0, 0.5] - moon, moon)


def _circles(n: int, rng: np.random.Generator) -> Points:
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.where(_half(n, rng), 0.5, 1.0)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


def _half(n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return True for half of the points, in random order."""
    return np.asarray(rng.permutation(n) < n // 2)


_SHAPES: dict[str, tuple[Callable[[int, np.random.Generator], Points], float]] = {
    "s_curve": (_s_curve, 0.05),
    "half_moon": (_half_moon, 0.05),
    "two_moons": (_two_moons, 0.05),
    "circles": (_circles, 0.03),
}
