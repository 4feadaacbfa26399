"""In which units rows are compared, and what a Gaussian model of the table says about that and about the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...gaussian import GaussianModel, fit_gaussian

# Studied in docs/studies/defaults.md.
_POWER_OF_CORRELATIONS = 0.5
_PRIOR_ROWS = 6.0  # times columns over rows: the more rows there are, the fewer imaginary ones they need
_MOST_PRIOR_ROWS = 3.0
_SHRINKAGE = 0.2  # of a model that is not fitted by EM
_SPREAD_OF_CATEGORIES = 0.5  # docs/studies/mixed.md
_MOST_ROWS = 20_000
_MOST_ITERATIONS = 50
_MOST_OPERATIONS = 3e9  # a few seconds

# Above this many columns a d × d metric costs more than it brings; `metric="auto"` is Euclidean there.
MOST_COLUMNS = 300


def fit_model(
    values: NDArray[np.float32], missing: NDArray[np.bool_], rng: np.random.Generator, deadline: float
) -> GaussianModel:
    """Gaussian model of a standardised table, from a sample of its rows when it is long.

    An iteration costs about holes³ a row. Where that adds up, fewer rows (but two per column) and fewer iterations are taken.
    """
    row_cost = max(1.0, float(missing.sum(axis=1).mean()) ** 3)
    most_rows = int(np.clip(_MOST_OPERATIONS / (_MOST_ITERATIONS * row_cost), 2 * values.shape[1], _MOST_ROWS))
    if len(values) > most_rows:
        rows = np.sort(rng.choice(len(values), most_rows, replace=False))
        values, missing = values[rows], missing[rows]
    max_iterations = int(np.clip(_MOST_OPERATIONS / (len(values) * row_cost), 10, _MOST_ITERATIONS))
    return fit_gaussian(
        values.astype(np.float64),
        missing,
        prior_rows=min(_MOST_PRIOR_ROWS, _PRIOR_ROWS * values.shape[1] / len(values)),
        tolerance=1e-3,
        max_iterations=max_iterations,
        deadline=deadline,
    )


def plain_model(table: NDArray[np.float32], rng: np.random.Generator) -> GaussianModel:
    """Gaussian model of a completed table as it stands, for tables of more columns than EM is worth."""
    rows = rng.permutation(len(table))[:_MOST_ROWS]
    covariance = np.atleast_2d(np.cov(table[rows].astype(np.float64), rowvar=False, ddof=0))
    shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * np.diag(np.diag(covariance))
    return GaussianModel(np.zeros(table.shape[1]), shrunk, 0, False)


def metric_of(covariance: NDArray[np.float64], is_category: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Symmetric A with ``A² = S⁻¹``, so that the cost is ½‖(x − y)A‖²; ``S = D √R D`` with deviations D, correlations R.

    The root shrinks correlations in proportion. A share of the identity mixed into R would do so too, but it would drown the
    combinations of nearly collinear columns that hardly vary, and it is these that tell what a missing value is.
    In coordinates of categories the variance counts as larger than it is, or rare categories would be outliers.

    >>> metric_of(np.diag([4.0, 1.0]), np.array([False, False])).round(6).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    softened = covariance + np.diag(np.where(is_category, _SPREAD_OF_CATEGORIES, 0.0))
    scales = np.sqrt(np.outer(np.diag(softened), np.diag(softened)))
    return _power(_power(softened / scales, _POWER_OF_CORRELATIONS) * scales, -0.5)


def _power(matrix: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """A power of a symmetric matrix, whose eigenvalues are positive but for rounding."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    powered: NDArray[np.float64] = (vectors * np.maximum(eigenvalues, 1e-8) ** exponent) @ vectors.T
    return powered
