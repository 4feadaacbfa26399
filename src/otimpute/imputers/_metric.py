"""In which units rows are compared, and what a Gaussian model of the table says about that and about the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..gaussian import GaussianModel, fit_gaussian

# Studied in docs/studies/defaults.md.
_SHRINKAGE = 0.2
_PRIOR_ROWS = 3.0
_MOST_ROWS = 20_000
_MOST_ITERATIONS = 50

# Above this many columns a d × d metric costs more than it brings; `metric="auto"` is Euclidean there.
MOST_COLUMNS = 300


def fit_model(values: NDArray[np.float32], missing: NDArray[np.bool_], rng: np.random.Generator) -> GaussianModel:
    """Gaussian model of a standardised table, from a sample of its rows when it is long."""
    if len(values) > _MOST_ROWS:
        rows = np.sort(rng.choice(len(values), _MOST_ROWS, replace=False))
        values, missing = values[rows], missing[rows]
    # Wide tables need a stronger prior: with more columns than rows nothing else keeps the covariance well conditioned.
    return fit_gaussian(
        values.astype(np.float64), missing, prior_rows=_PRIOR_ROWS, tolerance=1e-3, max_iterations=_MOST_ITERATIONS
    )


def metric_of(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Symmetric A with ``A² = S⁻¹``, S the covariance shrunk towards its diagonal: the cost is then ½‖(x − y)A‖².

    >>> metric_of(np.diag([4.0, 1.0])).round(6).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * np.diag(np.diag(covariance))
    eigenvalues, vectors = np.linalg.eigh(shrunk)
    metric: NDArray[np.float64] = (vectors / np.sqrt(np.maximum(eigenvalues, 1e-8))) @ vectors.T
    return metric
