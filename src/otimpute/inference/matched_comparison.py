"""Compare imputed values with observed ones in rows that are alike.

Where values are missing rather in some rows than in others, imputed values differ from observed ones, and should. A logistic
regression on the other columns therefore estimates how likely a value is missing in each row (its propensity; Abayomi, Gelman
and Levy, 2008). An observed value counts by the chance that it might have been missing, an imputed one by the chance that it
might have been observed (overlap weights; Li, Morgan and Zaslavsky, 2018): rows of both kinds are then alike on average, and
rows to which none of the other kind is like hardly count. Residuals of a linear regression are compared rather than values, so
that the comparison is right if either of the two regressions is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression

Floats = NDArray[np.float64]

_MOST_INPUTS = 30  # coordinates of other columns, those that matter most
_N_FOLDS = 5
_FEWEST_VALUES = 20  # observed ones that count, and imputed ones: of fewer nothing is said
_FEWEST_IN_CLASS = 10
_CHANCE = 0.01  # of a false alarm, over all columns of a table, if the regressions are right
_LEAST_DIFFERENCE = 0.2  # standard deviations: what is smaller raises no alarm
_LEAST_DIFFERENCE_OF_SHARES = 0.1


@dataclass(frozen=True)
class MatchedComparison:
    """Imputed values compared with observed ones in rows that are alike.

    Attributes
    ----------
    name : str
        What differs most, in standard errors: ``"mean"`` or ``"spread"`` of a number, or the share of a class, by its name.
    difference : float
        How much larger it is among imputed values: in standard deviations of the observed values, or as a share.
    standard_error : float
        Standard error of ``difference``, of draws and matched values.
    p : float
        Probability of differences as large as the largest of this column by chance; not corrected for other columns.
    distance : float
        Largest difference of the two cumulative distributions (Kolmogorov and Smirnov), or for classes half the sum of
        differences of shares: from 0 to 1, the mean over tables. Chance alone makes it larger than 0.
    n_alike : float
        How many evenly weighted values would tell as much as the weighted ones do, of observed or imputed ones the fewer.
    is_clear : bool
        Whether the difference is clearly larger than chance explains: p below 0.01 divided by the number of columns, and a
        difference of more than 0.2 standard deviations, or 0.1 of a share.
    """

    name: str
    difference: float
    standard_error: float
    p: float
    distance: float
    n_alike: float
    is_clear: bool


def compare_matched(
    names: tuple[str, ...],
    values: Floats,
    completed: Floats,
    missing: NDArray[np.bool_],
    *,
    n_columns: int,
) -> MatchedComparison | None:
    """Compare the imputed values of one column with observed ones; None if too few can be compared.

    ``values [m, n]`` are those of the column in every table (positions among ``names`` if these are classes),
    ``completed [m, n, D]`` the coordinates of all other columns, ``missing [n]`` where it was imputed.
    """
    is_class = len(names) > 0
    if min(missing.sum(), (~missing).sum()) < _FEWEST_VALUES:
        return None
    if is_class:
        often = [k for k in range(len(names)) if (values[0, ~missing] == k).sum() >= _FEWEST_IN_CLASS]
        if len(often) < 2:
            return None
        targets = (values[:, :, None] == np.array(often)).astype(np.float64)
        called = [names[k] for k in often]
    else:
        spread = values[0, ~missing].std()
        if not spread > 0:
            return None
        targets = ((values - values[0, ~missing].mean()) / spread)[:, :, None]
        called = ["mean", "spread"]
    differences, variances, distances, n_alike = [], [], [], []
    for rows, target in zip(completed, targets, strict=True):
        z = _inputs(rows, target, missing)
        chance = _chance_of_missing(z, missing)
        ours, theirs = _adding_up_to_one(1 - chance[missing]), _adding_up_to_one(chance[~missing])
        residuals = _residuals(z, target, missing)
        if not is_class:
            residuals = np.column_stack([residuals, np.abs(residuals)])
        expected = theirs @ residuals[~missing]
        differences.append(ours @ residuals[missing] - expected)
        variances.append(theirs**2 @ (residuals[~missing] - expected) ** 2)
        n_alike.append(min(1 / (theirs**2).sum(), 1 / (ours**2).sum()))
        distances.append(_distance(target, missing, ours, theirs, is_class=is_class))
    effective = float(np.mean(n_alike))
    if effective < _FEWEST_VALUES:
        return None
    difference = np.mean(differences, axis=0)
    error = np.sqrt(np.mean(variances, axis=0) + np.var(differences, axis=0, ddof=1))
    p = 2 * stats.t.sf(np.abs(difference) / np.maximum(error, 1e-12), effective - 1)
    most = int(np.argmin(p))
    own = float(min(1.0, len(called) * p[most]))
    least = _LEAST_DIFFERENCE_OF_SHARES if is_class else _LEAST_DIFFERENCE
    is_clear = own * n_columns < _CHANCE and abs(float(difference[most])) > least
    return MatchedComparison(
        called[most], float(difference[most]), float(error[most]), own, float(np.mean(distances)), effective, is_clear
    )


def _inputs(rows: Floats, target: Floats, missing: NDArray[np.bool_]) -> Floats:
    """Standardised columns and their squares, those most related with the values or with where they are missing."""
    spread = rows.std(axis=0)
    z = np.clip((rows[:, spread > 0] - rows[:, spread > 0].mean(axis=0)) / spread[spread > 0], -5, 5)
    z = np.column_stack([z, z**2])
    z = z[:, z.std(axis=0) > 1e-9]
    z = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12)
    if z.shape[1] > _MOST_INPUTS:
        related = np.abs(z[~missing].T @ (target[~missing] - target[~missing].mean(axis=0))).max(axis=1) / (~missing).sum()
        related += np.abs(z.T @ (missing - missing.mean())) / len(missing)
        z = z[:, np.argsort(-related, kind="stable")[:_MOST_INPUTS]]
    return np.asarray(z)


def _chance_of_missing(z: Floats, missing: NDArray[np.bool_]) -> Floats:
    if z.shape[1] == 0:
        return np.full(len(missing), missing.mean())
    model = LogisticRegression(C=10, solver="newton-cholesky").fit(z, missing)
    return np.asarray(model.predict_proba(z)[:, 1])


def _adding_up_to_one(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())


def _residuals(z: Floats, target: Floats, missing: NDArray[np.bool_]) -> Floats:
    """What a linear model of observed values leaves, each observed value foretold by a model that has not seen it."""
    x = np.column_stack([z, np.ones(len(z))])
    folds = [np.flatnonzero(~missing)[each::_N_FOLDS] for each in range(_N_FOLDS)]
    squares = [x[rows].T @ x[rows] for rows in folds]
    products = [x[rows].T @ target[rows] for rows in folds]
    ridge = np.eye(x.shape[1])
    ridge[-1, -1] = 1e-6  # the mean itself is not shrunk
    predicted = np.zeros(target.shape)
    for rows, square, product in zip(folds, squares, products, strict=True):
        slopes = np.linalg.solve(sum(squares) - square + ridge, sum(products) - product)
        predicted[rows] = x[rows] @ slopes
        predicted[missing] += x[missing] @ slopes / _N_FOLDS
    return np.asarray(target - predicted)


def _distance(target: Floats, missing: NDArray[np.bool_], ours: Floats, theirs: Floats, *, is_class: bool) -> float:
    if is_class:
        return float(np.abs(ours @ target[missing] - theirs @ target[~missing]).sum() / 2)
    order = np.argsort(target[:, 0], kind="stable")
    steps = np.zeros(len(order))
    steps[missing], steps[~missing] = ours, -theirs
    running, sorted_values = np.cumsum(steps[order]), target[order, 0]
    is_last = np.append(sorted_values[1:] > sorted_values[:-1], True)  # of equal ones
    return float(np.abs(running[is_last]).max())
