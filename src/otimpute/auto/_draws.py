"""How random draws are made of best guesses, such that they vary as true values do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, stored

Cells = NDArray[np.float64]

_BORROWED = 50.0  # values' worth of doubt: so many say that guesses and the mixture's draws are right as they are
_PROBABILITIES = np.array([0, 0.005, 0.01, 0.025, *np.linspace(0.05, 0.95, 37), 0.975, 0.99, 0.995, 1])
_MOST_LEVELS, _VALUES_PER_LEVEL = 3, 100  # more levels narrow the tails, which few values show
_BEYOND_ALL = 1e3  # standard deviations
_SMALLEST = 1e-12


@stored(slope=Array("G", at_least=0), edges="G L", drawn="G M P", wanted="G M P")
@dataclass(frozen=True)
class DrawRule:
    """A draw is ``slope · guess`` plus a residual of the mixture, mapped to what residuals really are; by column.

    Guesses that are means of experts, the column mean among them, lean towards the mean more than is best on average: the slope
    of true values on guesses makes up for that. A mixture's residuals go together within a row as true ones do, but have tails,
    a skew and a spread of their own: quantiles of those drawn become quantiles of those seen on hidden values. Low guesses and
    high ones have residuals of their own: amounts that are hardly ever zero vary more, and none falls below zero.
    """

    slope: Cells  # [G]
    edges: Cells  # [G, L - 1]: between levels of the guess; beyond all guesses where there are fewer
    drawn: Cells  # [G, L, P]: quantiles of the mixture's residuals
    wanted: Cells  # [G, L, P]: what they become

    def __post_init__(self) -> None:
        if not all((np.diff(each, axis=-1) >= 0).all() for each in (self.edges, self.drawn, self.wanted)):
            raise ValueError("quantiles must not fall")
        if self.edges.shape[1] + 1 != self.drawn.shape[1]:
            raise ValueError("every level of the guess needs its quantiles")

    @classmethod
    def plain(cls, n_groups: int) -> DrawRule:
        """Guesses and residuals as they are, up to what no residual exceeds."""
        ends = np.tile(np.array([-_BEYOND_ALL, _BEYOND_ALL]), (n_groups, 1, 1))
        return cls(np.ones(n_groups), np.empty((n_groups, 0)), ends, ends)

    @classmethod
    def fit(
        cls,
        guess: Cells,
        truth: Cells,
        stands_for: Cells,
        group: NDArray[np.int64],
        missing_guess: Cells,
        residual: Cells,
        residual_group: NDArray[np.int64],
        n_groups: int,
    ) -> DrawRule:
        """Learned from hidden values, and from guesses and residuals drawn for missing ones."""
        slope = np.ones(n_groups)
        edges = np.full((n_groups, _MOST_LEVELS - 1), _BEYOND_ALL)
        drawn = np.tile(np.linspace(-_BEYOND_ALL, _BEYOND_ALL, len(_PROBABILITIES)), (n_groups, _MOST_LEVELS, 1))
        wanted = drawn.copy()
        for g in range(n_groups):
            hidden, own = group == g, residual_group == g
            counts, residuals = stands_for[hidden], residual[own]
            n = float(counts.sum())
            if n == 0 or len(residuals) < 2:
                continue
            x, y = guess[hidden], truth[hidden]
            power = float(counts @ x**2)
            lean = _BORROWED * power / n
            slope[g] = max((float(counts @ (x * y)) + lean) / max(power + lean, _SMALLEST), 0.0) if power > 0 else 1.0
            x, z = slope[g] * x, slope[g] * missing_guess[own]
            whole = np.quantile(residuals, _PROBABILITIES)
            whole_wanted = _between(_quantiles(y - x, counts), whole, n)
            cuts = _level_edges(x, counts, n)
            edges[g, : len(cuts)] = cuts
            level, missing_level = (np.searchsorted(cuts, each, side="right") for each in (x, z))
            for m in range(_MOST_LEVELS):
                drawn[g, m], wanted[g, m] = whole, whole_wanted
                mine, there = level == m, residuals[missing_level == m]
                if len(there) > 1 and counts[mine].any():
                    drawn[g, m] = np.quantile(there, _PROBABILITIES)
                    usual = np.interp(drawn[g, m], whole, whole_wanted)
                    wanted[g, m] = _between(_quantiles((y - x)[mine], counts[mine]), usual, float(counts[mine].sum()))
        return cls(slope, edges, drawn, wanted)

    def apply(self, guess: Cells, residual: Cells, group: NDArray[np.int64]) -> Cells:
        """Draws, in standard deviations."""
        result = self.slope[group] * guess
        for g in np.unique(group):
            mine = np.flatnonzero(group == g)
            level = np.searchsorted(self.edges[g], result[mine], side="right")
            for m in np.unique(level):
                those = mine[level == m]
                result[those] += np.interp(residual[those], self.drawn[g, m], self.wanted[g, m])
        return np.asarray(result)


def _between(seen: Cells, usual: Cells, n: float) -> Cells:
    """What ``n`` values say, leaning on what is usual."""
    trust = n / (n + _BORROWED)
    return np.asarray(trust * seen + (1 - trust) * usual)


def _level_edges(guess: Cells, counts: Cells, n: float) -> Cells:
    """Between levels of the guess with about as many values each."""
    n_levels = int(np.clip(n // _VALUES_PER_LEVEL, 1, _MOST_LEVELS))
    order = np.argsort(guess, kind="stable")
    middle = np.cumsum(counts[order]) - counts[order] / 2
    cuts = np.interp(np.arange(1, n_levels) / n_levels * n, middle, guess[order])
    return np.unique(cuts)


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
