"""Scores of several draws of the imputed values: they reward draws that are close to the truth and as spread out as it is."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .pointwise import check_finite, check_tables, weights_of


def crps(
    X_true: ArrayLike, draws: ArrayLike, missing: ArrayLike, *, fair: bool = True, sample_weight: ArrayLike | None = None
) -> float:
    """Continuous ranked probability score (CRPS) of draws, averaged over the missing entries.

    For draws x₁ … xₘ of a value y it is ``mean |xₖ − y| − ½ mean |xₖ − xₗ|``. Its expectation is lowest if the draws come from
    the distribution of y given what is known. It has the unit of the values; if all draws are equal it is their `mae`.

    Parameters
    ----------
    X_true : array [n, d]
        The true values.
    draws : array [m, n, d]
        ``m`` imputed tables.
    missing : bool array [n, d]
        True where a value was missing.
    fair : bool, default=True
        Average ``|xₖ − xₗ|`` over the m(m − 1) pairs of different draws, which needs at least two. The score then estimates,
        without bias, that of infinitely many draws, so that imputations with different numbers of draws can be compared; it may
        be negative. False: over all m² pairs, that is the score of the m draws as a distribution of their own, as in R's
        ``scoringRules``. It is higher for fewer draws, and favours draws that vary too little; for a single draw it is `mae`.
    sample_weight : array [n], default=None
        How often the entries of each row count.

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation. Ferro (2014), Fair scores for
    ensemble forecasts.

    Examples
    --------
    >>> X_true, missing = [[0.0, 1.0]], [[False, True]]
    >>> draws = [[[0.0, 3.0]], [[0.0, 0.0]]]
    >>> crps(X_true, draws, missing), crps(X_true, draws, missing, fair=False)
    (0.0, 0.75)
    """
    true, sample, holes = _check_draws(X_true, draws, missing, fair)
    weight = weights_of(holes, sample_weight)
    counts = None if weight is None else weight[np.nonzero(holes)[0]]
    return float(np.average(crps_by_value(true[holes], sample[:, holes], fair), weights=counts))


def crps_by_value(truth: NDArray[np.float64], draws: NDArray[np.float64], fair: bool) -> NDArray[np.float64]:
    """Return the score of each true value [n] and its draws [m, n]."""
    m = len(draws)
    gaps = np.sort(draws - truth, axis=0)
    # In sorted order the k-th draw is subtracted from those after it and those before are subtracted from it, so the sum over
    # pairs takes no loop over pairs.
    between = (2 * np.arange(m) - (m - 1)) @ gaps
    scores: NDArray[np.float64] = np.abs(gaps).mean(axis=0) - between / _n_pairs(m, fair)
    return scores


def energy_score(
    X_true: ArrayLike, draws: ArrayLike, missing: ArrayLike, *, fair: bool = True, sample_weight: ArrayLike | None = None
) -> float:
    """Energy score of draws, averaged over the rows with a missing value: the CRPS of several values at once.

    ``mean ‖xₖ − y‖ − ½ mean ‖xₖ − xₗ‖``, where y are the missing values of a row and xₖ their draws. Unlike `crps`, it notices
    whether values drawn for the same row go together. It equals `crps` if no row misses more than one value. Norms add
    columns up, so columns should have similar units; rows with more missing values have larger scores.

    Parameters
    ----------
    X_true : array [n, d]
        The true values.
    draws : array [m, n, d]
        ``m`` imputed tables.
    missing : bool array [n, d]
        True where a value was missing.
    fair : bool, default=True
        As in `crps`.
    sample_weight : array [n], default=None
        How often each row counts.

    Examples
    --------
    >>> energy_score([[0.0, 0.0]], [[[3.0, 4.0]], [[0.0, 0.0]]], [[True, True]])
    0.0
    """
    true, sample, holes = _check_draws(X_true, draws, missing, fair)
    m, rows = len(sample), holes.any(axis=1)
    gaps = np.where(holes[rows], sample[:, rows] - true[rows], 0.0)
    far = np.linalg.norm(gaps, axis=2).mean(axis=0)
    between = sum(np.linalg.norm(one - other, axis=1) for one, other in combinations(gaps, 2))
    weight = weights_of(holes, sample_weight)
    score = float(np.average(far - between / _n_pairs(m, fair), weights=None if weight is None else weight[rows]))
    return score if math.isfinite(score) else math.inf  # squares that overflow give infinity − infinity


def _n_pairs(m: int, fair: bool) -> int:
    """Return how many ordered pairs of draws there are; a sum over unordered pairs divided by it has the factor ½."""
    return m * (m - 1) if fair else m * m


def _check_draws(
    X_true: ArrayLike, draws: ArrayLike, missing: ArrayLike, fair: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the true table, the draws and ``missing`` as arrays of matching shapes, finite where they are scored."""
    sample = np.asarray(draws, dtype=np.float64)
    if sample.ndim != 3 or not len(sample):
        raise ValueError(f"draws must be tables [m, n, d], got shape {sample.shape}; pass [X_imputed] for one table")
    if fair and len(sample) == 1:
        raise ValueError("the fair score needs at least 2 draws, got 1; pass fair=False for the score of a single table")
    true, _, holes = check_tables(X_true, sample[0], missing)
    check_finite("X_true", true[holes])
    check_finite("draws", sample[:, holes])
    return true, sample, holes
