"""Missing not at random: extreme values are missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_real
from .mechanism import Mechanism, draw_columns


@dataclass(frozen=True)
class QuantileMNAR(Mechanism):
    """Hide extreme values of some columns with probability ``rate``: missing not at random.

    Parameters
    ----------
    rate : float
        Probability of hiding a value in a tail, in [0, 1).
    quantile : float
        Fraction of the values in each tail; below ½ if there are two tails. Values equal to the quantile belong to the tail, so
        a tail of a column with few distinct values may be larger. A value that belongs to both tails is never hidden.
    column_fraction : float
        Fraction of the columns that get missing values: rounded down, but at least one. They are drawn at random.
    tails : {"both", "lower", "upper"}
        Which values count as extreme.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> X[QuantileMNAR(0.999, tails="upper").sample(X, 0)]
    array([6., 7.])
    """

    quantile: float = 0.25
    column_fraction: float = 0.3
    tails: str = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        both = check_choice("tails", self.tails, ["both", "lower", "upper"]) == "both"
        advice = "two tails of a half or more would cover every value" if both else ""
        check_real("quantile", self.quantile, above=0, below=0.5 if both else 1, advice=advice)
        check_real("column_fraction", self.column_fraction, above=0, at_most=1)

    def probabilities(self, X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        columns = draw_columns(X.shape[1], self.column_fraction, rng)
        extreme = np.zeros(X.shape, dtype=bool)
        if self.tails != "upper":
            extreme[:, columns] ^= self._lower_tail(X[:, columns])
        if self.tails != "lower":
            extreme[:, columns] ^= self._lower_tail(-X[:, columns])
        return self.rate * extreme

    def _lower_tail(self, columns: NDArray[np.float64]) -> NDArray[np.bool_]:
        # method="lower" bounds the same tail as interpolation, but cannot overflow.
        return np.asarray(columns <= np.quantile(columns, self.quantile, axis=0, method="lower"))
