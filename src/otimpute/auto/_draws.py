"""How random draws are made of best guesses, such that they vary as true values do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, stored

Cells = NDArray[np.float64]

_BORROWED = 50.0  # values' worth of doubt: so many say that guesses and the mixture's draws are right as they are
_PROBABILITIES = np.array([0, 0.005, 0.01, 0.025, *np.linspace(0.05, 0.95, 37), 0.975, 0.99, 0.995, 1])
_SMALLEST = 1e-12


@stored(slope=Array("G", at_least=0), drawn="G P", wanted="G P")
@dataclass(frozen=True)
class DrawRule:
    """A draw is ``slope · guess`` plus a residual of the mixture, mapped to what residuals really are; by column.

    Guesses that are means of experts, the column mean among them, lean towards the mean more than is best on average: the slope
    of true values on guesses makes up for that. A mixture's residuals go together within a row as true ones do, but have tails,
    a skew and a spread of their own: quantiles of those drawn become quantiles of those seen on hidden values.
    """

    slope: Cells  # [G]
    drawn: Cells  # [G, P]: quantiles of the mixture's residuals
    wanted: Cells  # [G, P]: what they become

    def __post_init__(self) -> None:
        if not (np.diff(self.drawn, axis=1) >= 0).all() or not (np.diff(self.wanted, axis=1) >= 0).all():
            raise ValueError("quantiles must not fall")

    @classmethod
    def plain(cls, n_groups: int) -> DrawRule:
        """Guesses and residuals as they are, up to what no residual exceeds."""
        ends = np.tile(np.array([-1e3, 1e3]), (n_groups, 1))
        return cls(np.ones(n_groups), ends, ends)

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
        slope = np.ones(n_groups)
        drawn = wanted = np.tile(np.linspace(-1e3, 1e3, len(_PROBABILITIES)), (n_groups, 1))
        drawn, wanted = drawn.copy(), wanted.copy()
        for g in range(n_groups):
            hidden, own = group == g, residual[residual_group == g]
            counts = stands_for[hidden]
            n = float(counts.sum())
            if n == 0 or len(own) < 2:
                continue
            x, y = guess[hidden], truth[hidden]
            power = float(counts @ x**2)
            lean = _BORROWED * power / n
            slope[g] = max((float(counts @ (x * y)) + lean) / max(power + lean, _SMALLEST), 0.0) if power > 0 else 1.0
            trust = n / (n + _BORROWED)
            drawn[g] = np.quantile(own, _PROBABILITIES)
            wanted[g] = trust * _quantiles(y - slope[g] * x, counts) + (1 - trust) * drawn[g]
        return cls(slope, drawn, wanted)

    def apply(self, guess: Cells, residual: Cells, group: NDArray[np.int64]) -> Cells:
        """Draws, in standard deviations."""
        result = self.slope[group] * guess
        for g in np.unique(group):
            mine = group == g
            result[mine] += np.interp(residual[mine], self.drawn[g], self.wanted[g])
        return np.asarray(result)


def _quantiles(values: Cells, counts: Cells) -> Cells:
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(counts[order]) - counts[order] / 2
    return np.asarray(np.interp(_PROBABILITIES, middle / counts.sum(), values[order]))


def reflect(values: Cells, low: Cells, high: Cells) -> Cells:
    """Values brought between bounds by mirrors, so that none pile up there; bounds that are NaN are none.

    >>> reflect(np.array([-1.0, 0.5, 7.0]), np.zeros(3), np.array([np.nan, np.nan, 5.0])).tolist()
    [1.0, 0.5, 3.0]
    """
    values = np.where(values < low, 2 * low - values, values)
    values = np.where(values > high, 2 * high - values, values)
    return np.fmin(np.fmax(values, low), high)
