"""The table as a whole: correlations, and a projection of the rows."""

from __future__ import annotations

import numpy as np

from .._text import signed
from ._before_after import BeforeAfter, Cells, is_nominal, standardised
from .data import Correlations, Joint, Projection

_MOST_COLUMNS = 24
_FEWEST_PAIRS = 10
_MOST_POINTS = 1000
_FARTHEST = 6.0  # standard deviations
_MOST_CHANGES = 5
_WORTH_SAYING = 0.1


def describe_joint(seen: BeforeAfter, rng: np.random.Generator) -> Joint:
    """Return correlations before and after imputation, and a projection of the rows."""
    return Joint(_correlations(seen), _projection(seen, rng))


def _correlations(seen: BeforeAfter) -> Correlations | None:
    able = [
        k
        for k, code in enumerate(seen.codes)
        if code.width and not is_nominal(code) and np.nan_to_num(standardised(seen.before[:, [k]])).any()
    ]
    if len(able) < 2:
        return None
    shown = sorted(sorted(able, key=lambda k: -int(seen.holes[:, k].sum()))[:_MOST_COLUMNS])
    before, after = _pairwise(seen.before[:, shown]), _pairwise(seen.after[:, shown])
    if np.isnan(after).all():
        return None
    change = np.triu(np.nan_to_num(after - before), 1)
    words = []
    for place in np.argsort(-np.abs(change), axis=None, kind="stable")[:_MOST_CHANGES]:
        a, b = divmod(int(place), len(shown))
        if abs(change[a, b]) >= _WORTH_SAYING:
            pair = f"{seen.names[shown[a]]} and {seen.names[shown[b]]}"
            words.append(f"{pair}: {signed(before[a, b])} before, {signed(after[a, b])} after")
    return Correlations([seen.names[k] for k in shown], _cells(before), _cells(after), words, len(able) - len(shown))


def _pairwise(values: Cells) -> Cells:
    """Return Pearson's correlations ``[d, d]`` over rows with both values; NaN if there are too few."""
    there = ~np.isnan(values)
    z, known = np.where(there, standardised(values), 0.0), there.astype(np.float64)
    n = known.T @ known
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, squares = z.T @ known, (z**2).T @ known  # of column a over rows with both a and b
        variance = squares - sums**2 / n
        correlation = (z.T @ z - sums * sums.T / n) / np.sqrt(variance * variance.T)
    flat = variance <= 1e-12 * n
    return np.where((n < _FEWEST_PAIRS) | flat | flat.T, np.nan, np.clip(correlation, -1, 1))


def _cells(matrix: Cells) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 3) for value in row] for row in matrix]


def _projection(seen: BeforeAfter, rng: np.random.Generator) -> Projection | None:
    """Project the completed, standardised table on its first two principal components."""
    z = np.nan_to_num(standardised(seen.coordinates))
    z = np.clip(z[:, z.any(axis=0)], -_FARTHEST, _FARTHEST)  # a single outlier must not dominate the projection
    if z.shape[1] < 2 or len(z) < 3:
        return None
    z -= z.mean(axis=0)
    _, sizes, axes = np.linalg.svd(z, full_matrices=False)
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]  # make the signs deterministic
    rows = np.sort(rng.choice(len(z), min(len(z), _MOST_POINTS), replace=False))
    x, y = (z[rows] @ axes[:2].T).T
    n_imputed = seen.filled[rows].sum(axis=1)
    points = [[round(float(a), 3), round(float(b), 3), int(n)] for a, b, n in zip(x, y, n_imputed, strict=True)]
    explained = (sizes**2 / (sizes**2).sum())[:2]
    return Projection(points, [round(float(each), 4) for each in explained], len(rows))
