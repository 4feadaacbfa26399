"""Missing completely at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .mechanism import Mechanism


@dataclass(frozen=True)
class MCAR(Mechanism):
    """Hide every entry with probability ``rate``, independent of all values: missing completely at random.

    >>> MCAR(0.5).sample([[1.0, 2.0, 3.0]], 0)
    array([[ True, False,  True]])
    """

    def probabilities(self, X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:  # noqa: ARG002
        return np.full(X.shape, self.rate)
