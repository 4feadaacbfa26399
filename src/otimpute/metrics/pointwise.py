"""Metrics that compare each imputed value with the true one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mae(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike) -> float:
    """Mean absolute error over the missing entries.

    >>> mae([[0.0, 1.0]], [[0.0, 4.0]], [[False, True]])
    3.0
    """
    return float(np.abs(_errors(X_true, X_imputed, missing)).mean())


def rmse(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike) -> float:
    """Root mean squared error over the missing entries.

    >>> rmse([[0.0, 0.0]], [[3.0, 4.0]], [[True, True]])
    3.5355339059327378
    """
    return float(np.sqrt(np.square(_errors(X_true, X_imputed, missing)).mean()))


def _errors(X_true: ArrayLike, X_imputed: ArrayLike, missing: ArrayLike) -> NDArray[np.float64]:
    true, imputed, holes = check_tables(X_true, X_imputed, missing)
    return check_finite("X_imputed", imputed[holes]) - check_finite("X_true", true[holes])


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
