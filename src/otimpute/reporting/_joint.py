"""The table as a whole: how columns go together, and where rows with imputed values lie."""

from __future__ import annotations

import numpy as np

from .._text import signed
from ._seen import Cells, Seen, is_nominal, standardised
from .data import Correlations, Joint, Projection

_MOST_COLUMNS = 24
_FEWEST_PAIRS = 10
_MOST_POINTS = 1000
_FARTHEST = 6.0  # standard deviations
_MOST_CHANGES = 5
_WORTH_SAYING = 0.1


def describe_joint(seen: Seen, rng: np.random.Generator) -> Joint:
    """Correlations before and after, and the rows in the plane."""
    return Joint(_correlations(seen), _projection(seen, rng))


def _correlations(seen: Seen) -> Correlations | None:
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
    """Pearson's correlation of each pair of columns ``[d, d]``, over rows that have both; NaN for too few of these."""
    there = ~np.isnan(values)
    z, known = np.where(there, standardised(values), 0.0), there.astype(np.float64)
    n = known.T @ known
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, squares = z.T @ known, (z**2).T @ known  # of column a over rows that have b too
        variance = squares - sums**2 / n
        correlation = (z.T @ z - sums * sums.T / n) / np.sqrt(variance * variance.T)
    flat = variance <= 1e-12 * n
    return np.where((n < _FEWEST_PAIRS) | flat | flat.T, np.nan, np.clip(correlation, -1, 1))


def _cells(matrix: Cells) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 3) for value in row] for row in matrix]


def _projection(seen: Seen, rng: np.random.Generator) -> Projection | None:
    """The two principal components of the completed, standardised table."""
    z = np.nan_to_num(standardised(seen.coordinates))
    z = np.clip(z[:, z.any(axis=0)], -_FARTHEST, _FARTHEST)  # one mistyped number must not be the whole picture
    if z.shape[1] < 2 or len(z) < 3:
        return None
    z -= z.mean(axis=0)
    _, sizes, axes = np.linalg.svd(z, full_matrices=False)
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]  # or signs would be arbitrary
    rows = np.sort(rng.choice(len(z), min(len(z), _MOST_POINTS), replace=False))
    x, y = (z[rows] @ axes[:2].T).T
    n_imputed = seen.filled[rows].sum(axis=1)
    points = [[round(float(a), 3), round(float(b), 3), int(n)] for a, b, n in zip(x, y, n_imputed, strict=True)]
    explained = (sizes**2 / (sizes**2).sum())[:2]
    return Projection(points, [round(float(each), 4) for each in explained], len(rows))
