"""Whether draws that are made in rounds had settled, from how their mean and spread developed in every table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

_CHANCE = 0.01  # of a false alarm, over all columns of a table
_LEAST_DRIFT = 0.5  # standard errors: what is smaller raises no alarm


@dataclass(frozen=True, eq=False)
class Convergence:
    """Mean and spread of the draws of a column over the rounds of a chained imputation, and whether they had settled.

    Attributes
    ----------
    means, spreads : array [n_rounds, m]
        Mean and standard deviation of the draws, by round and table. Dates: seconds since the first one. Categories: the
        first coordinate of their encoding, which is in proportion to the share of the first category less that of the second.
    drift : float
        By how much the mean of the last two rounds differs from the two before (with less than four rounds: of the last from
        the one before), on average over tables, in standard errors of the mean of so many values in one table (their variance
        by chance, plus the variance between tables). Of mean and spread, the one for which it is clearer. NaN if there is one
        round only.
    p : float
        Probability of such a drift by chance: a t test over the tables, which are independent.
    r_hat : float
        Potential scale reduction (Gelman and Rubin, 1992) of the means over the rounds: 1 where rounds of a table differ as
        much as tables do. With five rounds it is rough, and where much is missing it is large even if nothing drifts; no alarm
        depends on it.
    has_drifted : bool
        Whether there is more drift than chance explains, corrected for the number of columns, and more than half a standard
        error. More rounds help.
    """

    means: Floats
    spreads: Floats
    drift: float
    p: float
    r_hat: float
    has_drifted: bool

    @classmethod
    def of(cls, means: Floats, spreads: Floats, *, n_missing: int, n_columns: int) -> Convergence:
        """Judge traces ``[n_rounds, m]`` of one of ``n_columns`` columns, of which ``n_missing`` values are drawn."""
        error = float(spreads[-1].mean()) / math.sqrt(n_missing)
        drift, p = min((_drift(means, error), _drift(spreads, error / math.sqrt(2))), key=lambda found: found[1])
        p = min(1.0, 2 * p)
        has_drifted = p * n_columns < _CHANCE and abs(drift) > _LEAST_DRIFT
        return cls(means, spreads, drift, p, _r_hat(means), has_drifted)


def _drift(trace: Floats, by_chance: float) -> tuple[float, float]:
    """How far a trace moved in the end, in standard errors, and the p value of that."""
    n_rounds, m = trace.shape
    if n_rounds < 2:
        return math.nan, 1.0
    width = 2 if n_rounds >= 4 else 1
    late = trace[-width:].mean(axis=0)
    moved = late - trace[-2 * width : -width].mean(axis=0)
    mean, error = float(moved.mean()), float(moved.std(ddof=1)) / math.sqrt(m)
    unit = math.hypot(float(late.std(ddof=1)), by_chance)
    if error <= 1e-12 * float(np.abs(trace).max()) or unit == 0:
        return 0.0, 1.0  # all alike
    return mean / unit, float(2 * stats.t.sf(abs(mean) / error, m - 1))


def _r_hat(trace: Floats) -> float:
    n_rounds = len(trace)
    if n_rounds < 2:
        return math.nan
    within = float(trace.var(axis=0, ddof=1).mean())
    between = float(trace.mean(axis=0).var(ddof=1))
    return math.sqrt((n_rounds - 1) / n_rounds + between / within) if within > 0 else math.nan
