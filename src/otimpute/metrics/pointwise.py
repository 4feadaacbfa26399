"""Metrics that compare each imputed value with the true one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._row_weights import check_row_weights


def mae(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean absolute error over the missing entries; those of a row count as often as its ``sample_weight [n]`` says.

    >>> mae([[0.0, 1.0]], [[0.0, 4.0]], [[False, True]])
    3.0
    """
    errors, weight = _errors(X_true, X_imputed, missing, sample_weight)
    return float(np.average(np.abs(errors), weights=weight))


def rmse(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Root mean squared error over the missing entries; those of a row count as often as its ``sample_weight [n]`` says.

    >>> rmse([[0.0, 0.0]], [[3.0, 4.0]], [[True, True]])
    3.5355339059327378
    """
    errors, weight = _errors(X_true, X_imputed, missing, sample_weight)
    return float(np.sqrt(np.average(np.square(errors), weights=weight)))


def _errors(
    X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Errors of the missing entries, row by row, and how often each counts."""
    true, imputed, holes = check_tables(X_true, X_imputed, missing)
    weight = weights_of(holes, sample_weight)
    counts = None if weight is None else weight[np.nonzero(holes)[0]]
    return check_finite("X_imputed", imputed[holes]) - check_finite("X_true", true[holes]), counts


def weights_of(missing: NDArray[np.bool_], sample_weight: ArrayLike | None) -> NDArray[np.float64] | None:
    """How often each row ``[n]`` counts; None where all count alike."""
    if sample_weight is None:
        return None
    weight = check_row_weights(sample_weight, len(missing))
    if not weight[missing.any(axis=1)].any():
        raise ValueError("sample_weight is 0 in every row with a missing value: there is nothing to score")
    return weight


def check_finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values, or raise if any is not finite: a score of the others would hide that the imputation failed."""
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise ValueError(f"{name} must be finite where it is scored, got {bad} NaN or infinite values")
    return values


def check_tables(
    X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the three tables as arrays of the same shape, with at least one missing entry."""
    true, imputed = np.asarray(X_true, dtype=np.float64), np.asarray(X_imputed, dtype=np.float64)
    holes = np.asarray(missing)
    if holes.dtype != np.bool_:
        raise TypeError(f"missing must be boolean, True where a value was missing, got dtype {holes.dtype}")
    if not (true.ndim == 2 and true.shape == imputed.shape == holes.shape):
        raise ValueError(
            f"X_true, X_imputed and missing must be tables of the same shape, got {true.shape}, {imputed.shape}, {holes.shape}"
        )
    if not holes.any():
        raise ValueError("missing must be True for at least one entry: there is nothing to score")
    return true, imputed, holes
