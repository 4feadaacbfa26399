"""The energy-I-score: how good an imputation method is on a table whose missing values nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_count, check_flag
from .._random import generator, seed_from
from .draws import crps_by_value

_LEAST_MISSING = 10  # a model of a column is fitted to the rows in which it is missing: fewer say nothing
_LARGEST_SEED = 2**31 - 1


def energy_i_score(
    X: ArrayLike,
    impute: Any,
    *,
    n_draws: int = 20,
    max_columns: int | None = None,
    fair: bool = True,
    scale: bool = False,
    random_state: Any = None,
) -> float:
    """Energy-I-score of an imputation method on an incomplete table; lower is better. The true values are not needed.

    The table is completed once. Then, for each column j with missing values, the method has to recover what is known:

    1. Test rows are those in which j is observed, and predictors are the other columns observed in all test rows. If there is
       none, the column most often observed together with j is made one: test rows are then those in which both are observed.
    2. The completed table is restricted to j and the predictors, and j is removed from the test rows. Its other values, which
       for the rows where j was missing are imputed ones, are what the method learns from.
    3. The method completes this table ``n_draws`` times. The score of the column is the `crps` of the values it draws for the
       test rows, averaged over them.

    The result is the mean over columns, weighted by (share of missing values) × (share of observed values). Columns with fewer
    than ten missing values, and those never observed together with another, are left out. A method that draws from the true
    distribution has the lowest expected score if a column, given its predictors, is distributed alike where it is missing and
    where it is observed.

    Parameters
    ----------
    X : array [n, d]
        Numbers, NaN where missing.
    impute : imputer or callable
        An imputer with ``fit_transform``, whose ``random_state`` is set for every draw if it has one; or a function
        ``(X_incomplete, seed)`` that returns the completed array. It is used 1 + ``n_draws`` × (number of scored columns)
        times, on tables of at least two columns. For a method that does not draw at random pass ``n_draws=1, fair=False``.
    n_draws : int, default=20
        Draws for every column.
    max_columns : int or None, default=None
        Score at most this many columns, those with the most missing values.
    fair : bool, default=True
        As in `crps`.
    scale : bool, default=False
        Divide the score of each column by the standard deviation of its observed values. Without it, columns should have
        similar units.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.

    Notes
    -----
    This is the score of Näf, Grzesiak and Scornet as implemented in ``energy_IScore`` of the R package Iscores, which has
    ``n_draws=50, fair=False``. Differences: weights add up to one over the columns that are scored (in the paper they do not,
    and in R columns left out count as zero); ``scale`` uses all observed values of the column; a method that fails raises its
    error, where R leaves out the column. The paper's sign is the opposite: higher is better.

    References
    ----------
    Näf, Grzesiak and Scornet (2025), How to rank imputation methods?, arXiv:2507.11297.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) + 0.5 * rng.normal(size=(200, 2))
    >>> X[:60, 0] = np.nan
    >>> def column_mean(X, seed):
    ...     return np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    >>> def random_value(X, seed):
    ...     observed = X[~np.isnan(X[:, 0]), 0]
    ...     drawn = np.random.default_rng(seed).choice(observed, size=len(X))
    ...     return np.column_stack([np.where(np.isnan(X[:, 0]), drawn, X[:, 0]), X[:, 1:]])
    >>> energy_i_score(X, random_value, random_state=0) < energy_i_score(X, column_mean, random_state=0)
    True
    """
    table = _check_table(X)
    check_flag("scale", scale)
    if check_flag("fair", fair):
        check_count("n_draws", n_draws, at_least=2, advice="pass fair=False to score a single draw")
    check_count("n_draws", n_draws)
    if max_columns is not None:
        check_count("max_columns", max_columns)
    complete = _completer(impute)
    seed = seed_from(random_state)
    missing = np.isnan(table)
    columns = _columns(missing)[:max_columns]
    X_imputed = complete(table, int(generator(seed, "complete").integers(_LARGEST_SEED)))
    scores, weights = [], []
    for j in columns:
        test, predictors = _test_rows(missing, j)
        masked = X_imputed[:, [j, *predictors]]
        masked[test, 0] = np.nan
        seeds = generator(seed, f"column {j}").integers(_LARGEST_SEED, size=n_draws)
        draws = np.stack([complete(masked, int(each))[test, 0] for each in seeds])
        observed = table[~missing[:, j], j]
        unit = observed.std() if scale and np.ptp(observed) > 0 else 1.0
        scores.append(crps_by_value(table[test, j], draws, fair).mean() / unit)
        weights.append(missing[:, j].mean() * (~missing[:, j]).mean())
    return float(np.average(scores, weights=weights))


def _check_table(X: ArrayLike) -> NDArray[np.float64]:
    try:
        table = np.array(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            "X must be an array of numbers with NaN where they are missing, got other values; encode or drop such columns"
        ) from None
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"X must be a table [n, d] of at least two columns, got shape {table.shape}")
    if np.isinf(table).any():
        raise ValueError("X must be finite or NaN, got infinite values")
    return table


def _columns(missing: NDArray[np.bool_]) -> list[int]:
    """Return the columns that can be scored, those with the most missing values first."""
    counts = missing.sum(axis=0)
    enough = [int(j) for j in np.argsort(-counts, kind="stable") if counts[j] >= _LEAST_MISSING]
    columns = [j for j in enough if _test_rows(missing, j)[0].any()]
    if not columns:
        raise ValueError(
            f"X must have a column with at least {_LEAST_MISSING} missing values that is observed in rows where another column "
            f"is observed too, got missing values by column {counts.tolist()} in {len(missing)} rows"
        )
    return columns


def _test_rows(missing: NDArray[np.bool_], j: int) -> tuple[NDArray[np.bool_], list[int]]:
    """Return the test rows [n] of a column, and its predictors."""
    others = [k for k in range(missing.shape[1]) if k != j]
    test = ~missing[:, j]
    n_missing = missing[test][:, others].sum(axis=0)
    if n_missing.all():
        test = test & ~missing[:, others[int(n_missing.argmin())]]
    return test, [k for k in others if not missing[test, k].any()]


def _completer(impute: Any) -> Callable[[NDArray[np.float64], int], NDArray[np.float64]]:
    """Return a function of a table and a seed that returns the completed table, or says what is wrong with it."""
    if not (hasattr(impute, "fit_transform") or callable(impute)):
        raise TypeError(f"impute must be an imputer with fit_transform or a function (X_incomplete, seed), got {impute!r}")

    def complete(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
        X_imputed = np.asarray(_impute(impute, X.copy(), seed), dtype=np.float64)
        if X_imputed.shape != X.shape:
            raise ValueError(f"impute must return a table of the shape that it gets, {X.shape}, got {X_imputed.shape}")
        if not np.isfinite(X_imputed).all():
            raise ValueError(f"impute must return finite numbers, got {(~np.isfinite(X_imputed)).sum()} NaN or infinite values")
        return X_imputed

    return complete


def _impute(impute: Any, X: NDArray[np.float64], seed: int) -> Any:
    if not hasattr(impute, "fit_transform"):
        return impute(X, seed)
    from sklearn.base import clone

    imputer = clone(impute)
    return (imputer.set_params(random_state=seed) if "random_state" in imputer.get_params() else imputer).fit_transform(X)
