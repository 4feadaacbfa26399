"""Rubin's rules: results of the same analysis in m tables become one, with the uncertainty of what was imputed.

Arrays only. Notation of the literature: Q are estimates, U their covariances within a table, B the covariance between tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_LAMBDA = 1e-4  # mice's floor: the degrees of freedom stay finite where all tables agree
COEFFICIENT_OF_VARIATION = 0.05  # von Hippel's


@dataclass(frozen=True, eq=False)
class RubinMoments:
    """Means and covariances over m tables; what is said per parameter uses their diagonals only."""

    m: int
    estimate: Floats  # [K]
    within: Floats  # [K, K], Ū
    between: Floats  # [K, K], B

    @property
    def total(self) -> Floats:
        """Variances within and between tables, and the error of a mean over m tables."""
        return self.within.diagonal() + (1 + 1 / self.m) * self.between.diagonal()

    @property
    def riv(self) -> Floats:
        """Relative increase in variance due to missing values."""
        return np.asarray((1 + 1 / self.m) * self.between.diagonal() / self.within.diagonal())

    @property
    def lambda_(self) -> Floats:
        """Share of the total variance that is due to missing values."""
        return np.asarray((1 + 1 / self.m) * self.between.diagonal() / self.total)


def rubin_moments(estimates: Floats, covariances: Floats) -> RubinMoments:
    """Moments of estimates [m, K] and covariances [m, K, K]."""
    m = len(estimates)
    deviations = estimates - estimates.mean(axis=0)
    return RubinMoments(m, estimates.mean(axis=0), covariances.mean(axis=0), deviations.T @ deviations / (m - 1))


def degrees_of_freedom(lambda_: Floats, m: int, df_complete: float) -> Floats:
    """Degrees of freedom of the pooled t statistic (Barnard and Rubin, 1999).

    >>> degrees_of_freedom(np.array([0.5]), 5, np.inf), degrees_of_freedom(np.array([0.5]), 5, 20.0)
    (array([16.]), array([5.81314879]))
    """
    lambda_ = np.maximum(lambda_, LEAST_LAMBDA)
    without_limit = (m - 1) / lambda_**2
    if math.isinf(df_complete):
        return without_limit
    observed = _df_of_variance(df_complete) * (1 - lambda_)
    return np.asarray(without_limit * observed / (without_limit + observed))


def fraction_missing(riv: Floats, df: Floats) -> Floats:
    """Fraction of missing information (Rubin, 1987, p. 77; as in mice)."""
    return np.asarray((riv + 2 / (df + 3)) / (riv + 1))


def tables_needed(fmi: Floats, cv: float = COEFFICIENT_OF_VARIATION) -> NDArray[np.int64]:
    """How many tables make standard errors reproducible (von Hippel, 2020): 1 + (fmi / cv)² / 2, at least 2.

    >>> tables_needed(np.array([0.0, 0.1, 0.3, 0.5]))
    array([ 2,  3, 19, 51])
    """
    needed = np.ceil(1 + 0.5 * (fmi / cv) ** 2 - 1e-9)  # .3 / .05 is not quite 6
    return np.maximum(needed, 2).astype(np.int64)


def joint_statistic(moments: RubinMoments, df_complete: float) -> tuple[float, float]:
    """D1 (Li, Raghunathan and Rubin, 1991) that all parameters are 0, and its second degrees of freedom.

    The first are the number of parameters K. The second are those of Reiter (2007), or of Li et al. if ``df_complete`` is
    infinite. Reiter's do not exist for K (m - 1) <= 4, nor where few rows meet many missing values; there, Li's are limited the
    way Barnard and Rubin limit those of one parameter, and equal theirs if K = 1 and m <= 5.
    """
    k, m = len(moments.estimate), moments.m
    within_inverse = np.linalg.inv(moments.within)
    r = float((1 + 1 / m) * np.trace(moments.between @ within_inverse) / k)
    statistic = float(moments.estimate @ within_inverse @ moments.estimate / (k * (1 + r)))
    t = k * (m - 1)
    if math.isinf(df_complete):
        return statistic, _df_without_limit(r, k, t)
    complete, a = _df_of_variance(df_complete), r * t / (t - 2) if t > 2 else math.inf
    if t > 4 and complete > 4 * (1 + a):
        return statistic, _df_reiter(a, t, complete)
    unlimited, observed = _df_without_limit(r, k, t), complete / (1 + r)
    return statistic, observed if math.isinf(unlimited) else unlimited * observed / (unlimited + observed)


def _df_of_variance(df_complete: float) -> float:
    """Degrees of freedom that are left if nothing is missing."""
    return (df_complete + 1) / (df_complete + 3) * df_complete


def _df_without_limit(r: float, k: int, t: int) -> float:
    if r == 0:
        return math.inf
    return 4 + (t - 4) * (1 + (1 - 2 / t) / r) ** 2 if t > 4 else t * (1 + 1 / k) * (1 + 1 / r) ** 2 / 2


def _df_reiter(a: float, t: int, complete: float) -> float:
    """Reiter (2007), equation 6: the F distribution whose first two moments are those of D1."""
    one, two = complete - 2 * (1 + a), complete - 4 * (1 + a)
    correction = (
        one / ((1 + a) ** 2 * two)
        + 8 * one / ((1 + a) * two**2)
        + 4 / ((1 + a) * two)
        + 4 / (two * one)
        + 16 * one / two**3
        + 8 / two**2
    )
    return 4 + 1 / (1 / two + a**2 * correction / (t - 4))
