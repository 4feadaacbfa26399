"""The ground cost ``c(x, y) = ½‖x − y‖²``: the only home of the ½.

Two spellings of the same cost. `half_squared_distances` is the definition. `half_squared_norms` serves kernels that
expand the square, ``c(x, y) = ½‖x‖² + ½‖y‖² − x·y``, so that one matrix product does the work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist


def half_squared_distances(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost between all points of two clouds ``[..., N, D]`` and ``[..., M, D]``, as ``[..., N, M]``.

    >>> half_squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[12.5]])
    """
    difference = x[..., :, None, :] - y[..., None, :, :]
    squares: NDArray[np.float64] = np.einsum("...d,...d->...", difference, difference)
    return 0.5 * squares


def half_squared_pair_distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost between the pairs i < j of one cloud ``[N, D]``, as ``[N (N − 1) / 2]``.

    >>> half_squared_pair_distances(np.array([[0.0], [1.0], [3.0]]))
    array([0.5, 4.5, 2. ])
    """
    squares: NDArray[np.float64] = pdist(points, "sqeuclidean") if len(points) > 1 else np.empty(0)
    return 0.5 * squares


def half_squared_norms(coordinates, out):  # type: ignore[no-untyped-def]  # compiled by the kernels, hence loops
    """Write ½‖p‖² of every point into ``out [N]``, the points given coordinate by coordinate, ``[D, N]``."""
    for i in range(out.shape[0]):
        out[i] = 0
    for k in range(coordinates.shape[0]):
        for i in range(out.shape[0]):
            out[i] += coordinates[k, i] * coordinates[k, i] / 2
