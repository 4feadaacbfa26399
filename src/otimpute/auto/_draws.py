"""How random draws are made of best guesses, such that they vary as true values do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, stored

Cells = NDArray[np.float64]

_BORROWED = 50.0  # values' worth of doubt: so many say that guesses and the mixture's draws are right as they are
_SMALLEST = 1e-12


@stored(slope=Array("G", at_least=0), scale=Array("G", at_least=0))
@dataclass(frozen=True)
class DrawRule:
    """A draw is ``slope · guess + scale · residual``, in standard deviations, by column.

    Guesses that are means of experts, the column mean among them, lean towards the mean more than is best on average: the slope
    of true values on guesses makes up for that. What is left, true values differ from that line by as much as residuals do
    after scaling, up or down.
    """

    slope: Cells  # [G]
    scale: Cells  # [G]

    @classmethod
    def plain(cls, n_groups: int) -> DrawRule:
        """Guesses and residuals as they are."""
        return cls(np.ones(n_groups), np.ones(n_groups))

    @classmethod
    def fit(
        cls,
        guess: Cells,
        truth: Cells,
        stands_for: Cells,
        group: NDArray[np.int64],
        residual: Cells,
        residual_group: NDArray[np.int64],
        n_groups: int,
    ) -> DrawRule:
        """Learned from hidden values, and from residuals drawn for missing ones."""
        slope, scale = np.ones(n_groups), np.ones(n_groups)
        for g in range(len(slope)):
            hidden, drawn = group == g, residual_group == g
            n = float(stands_for[hidden].sum())
            if n == 0 or not drawn.any():
                continue
            x, y, counts = guess[hidden], truth[hidden], stands_for[hidden]
            power = float(counts @ x**2)
            lean = _BORROWED * power / n
            slope[g] = max((float(counts @ (x * y)) + lean) / max(power + lean, _SMALLEST), 0.0) if power > 0 else 1.0
            wrong, wild = float(counts @ (y - slope[g] * x) ** 2) / n, float((residual[drawn] ** 2).mean())
            trust = n / (n + _BORROWED)
            scale[g] = np.sqrt(np.exp(trust * np.log(max(wrong, _SMALLEST) / max(wild, _SMALLEST))))
        return cls(slope, scale)


def reflect(values: Cells, low: Cells, high: Cells) -> Cells:
    """Values brought between bounds by mirrors, so that none pile up there; bounds that are NaN are none.

    >>> reflect(np.array([-1.0, 0.5, 7.0]), np.zeros(3), np.array([np.nan, np.nan, 5.0])).tolist()
    [1.0, 0.5, 3.0]
    """
    values = np.where(values < low, 2 * low - values, values)
    values = np.where(values > high, 2 * high - values, values)
    return np.fmin(np.fmax(values, low), high)
