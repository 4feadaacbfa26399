"""Missing values: how many, in which patterns, and whether other columns predict them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm, rankdata

from .._text import count, listed, number, share
from ..gaussian import fit_gaussian
from ..table import CategoryCode, ColumnCode, ColumnKind, MomentCode, NumberCode
from ._before_after import BeforeAfter, Cells, is_nominal, standardised
from .data import Association, ColumnHoles, Matrix, McarTest, MissingnessFacts, Pattern, Patterns, Predictors

_MOST_PATTERN_COLUMNS = 16
_MOST_PATTERNS = 14
_MOST_BLOCKS = 60
_MOST_MATRIX_COLUMNS = 120
_MOST_PREDICTED = 16
_MOST_PREDICTORS = 24
_MOST_STRONGEST = 8
_FEWEST = 5  # rows on either side of a comparison
_FEWEST_EXPECTED = 1  # of a category
_SIGNIFICANT = 0.01
_HINT = 0.05
_MOST_ALIKE = 0.85  # of a column's values
_MOST_TESTED_COLUMNS = 40
_MOST_TESTED_ROWS = 5000

_CAVEAT = (
    "Little's test compares column means between patterns of missing values under a normal model: it can find evidence against "
    "missing completely at random, never for it, and it is unreliable for few rows or strongly non-normal columns. No test can "
    "tell whether values are missing because of the values themselves."
)


def describe_missingness(
    names: list[str], codes: tuple[ColumnCode, ...], holes: NDArray[np.bool_], seen: BeforeAfter
) -> MissingnessFacts:
    """Count missing values and patterns in all rows, and find predictors of missing values in the ``seen`` rows."""
    n_rows = len(holes)
    n_missing = holes.sum(axis=0)
    columns = [
        ColumnHoles(name, code.kind, int(n), float(n / n_rows)) for name, code, n in zip(names, codes, n_missing, strict=True)
    ]
    return MissingnessFacts(columns, _patterns(names, holes), _matrix(names, holes), _predictors(seen), little_test(seen))


def _most_missing(holes: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
    """Return incomplete columns, those with the most missing values first."""
    order = np.argsort(-holes.sum(axis=0), kind="stable")
    return order[holes[:, order].any(axis=0)][:most]


def _patterns(names: list[str], holes: NDArray[np.bool_]) -> Patterns:
    shown = _most_missing(holes, _MOST_PATTERN_COLUMNS)
    # Packed bits sort much faster than rows of booleans.
    packed, n_rows = np.unique(np.packbits(holes[:, shown], axis=1), axis=0, return_counts=True)
    order = np.argsort(-n_rows, kind="stable")[:_MOST_PATTERNS]
    bits = np.unpackbits(packed[order], axis=1, count=len(shown)).astype(bool)
    rows = [
        Pattern(np.flatnonzero(each).tolist(), int(n_rows[k]), float(n_rows[k] / len(holes)))
        for each, k in zip(bits, order, strict=True)
    ]
    n_left_out = int(holes.any(axis=0).sum()) - len(shown)
    return Patterns([names[k] for k in shown], rows, len(packed), n_left_out)


def _matrix(names: list[str], holes: NDArray[np.bool_]) -> Matrix:
    shown = np.arange(holes.shape[1])
    if len(shown) > _MOST_MATRIX_COLUMNS:
        shown = np.sort(
            np.r_[_most_missing(holes, _MOST_MATRIX_COLUMNS), np.flatnonzero(~holes.any(axis=0))][:_MOST_MATRIX_COLUMNS]
        )
    edges = np.unique(np.linspace(0, len(holes), min(_MOST_BLOCKS, len(holes)) + 1).astype(np.int64))
    shares = [np.round(holes[begin:end, shown].mean(axis=0), 3).tolist() for begin, end in pairwise(edges)]
    n_left_out = holes.shape[1] - len(shown)
    return Matrix([names[k] for k in shown], (edges[:-1] + 1).tolist(), len(holes), shares, n_left_out)


def _predictors(seen: BeforeAfter) -> Predictors:
    """Compare each column's values between rows where another column is missing and rows where it is observed."""
    predicted = _most_missing(seen.holes, seen.holes.shape[1])
    able = [k for k, code in enumerate(seen.codes) if code.width]
    absent = seen.holes[:, predicted].astype(np.float64)
    strength, p_value, sign = (np.full((len(predicted), seen.holes.shape[1]), np.nan) for _ in range(3))
    for k in able:
        known = ~np.isnan(seen.before[:, k])
        compare = _compare_categories if is_nominal(seen.codes[k]) else _compare_numbers
        strength[:, k], p_value[:, k], sign[:, k] = compare(seen.before[known, k], absent[known])
    for t in np.flatnonzero(seen.left_empty[:, predicted].any(axis=0)):  # where nothing can be missing, nothing is compared
        for k in able:
            rows = ~np.isnan(seen.before[:, k]) & ~seen.left_empty[:, predicted[t]]
            compare = _compare_categories if is_nominal(seen.codes[k]) else _compare_numbers
            found = compare(seen.before[rows, k], absent[rows][:, [t]])
            strength[t, k], p_value[t, k], sign[t, k] = (float(each[0]) for each in found)
    strength[np.arange(len(predicted)), predicted] = np.nan
    tested = np.argwhere(np.isfinite(strength))
    order = tested[np.argsort([p_value[t, k] for t, k in tested], kind="stable")]
    adjusted, worst = np.full(strength.shape, np.nan), 0.0
    for rank, (t, k) in enumerate(order):  # Holm: multiply the smallest of m by m, the next by m − 1, ...
        worst = max(worst, min(1.0, p_value[t, k] * (len(order) - rank)))
        adjusted[t, k] = worst
    telling = [(t, k) for t, k in order.tolist() if adjusted[t, k] < _SIGNIFICANT]
    telling.sort(key=lambda pair: -strength[pair])
    strongest = [
        Association(
            seen.names[predicted[t]], seen.names[k], float(strength[t, k]), float(adjusted[t, k]),
            _in_words(seen, int(predicted[t]), k, sign[t, k]),
        )
        for t, k in telling[:_MOST_STRONGEST]
    ]  # fmt: skip
    shown = np.arange(min(len(predicted), _MOST_PREDICTED))
    by_strength = sorted(able, key=lambda k: -float(np.nanmax(strength[shown, k], initial=0.0)))[:_MOST_PREDICTORS]
    across = sorted(by_strength)
    cells = [[None if np.isnan(strength[t, k]) else round(float(strength[t, k]), 3) for k in across] for t in shown]
    return Predictors([seen.names[predicted[t]] for t in shown], [seen.names[k] for k in across], cells, strongest, len(tested))


def _compare_numbers(values: Cells, absent: Cells) -> tuple[Cells, Cells, Cells]:
    """Mann–Whitney's test of ``values [n]`` for each column of ``absent [n, t]``: |2 AUC − 1|, p-value, direction."""
    n, n_absent = len(values), absent.sum(axis=0)
    enough = (n_absent >= _FEWEST) & (n - n_absent >= _FEWEST)
    ranks = rankdata(values)
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = n_absent * (n - n_absent)
        u = ranks @ absent - n_absent * (n_absent + 1) / 2
        effect = 2 * u / pairs - 1
        variance = pairs / 12 * (n + 1 - (ties**3 - ties).sum() / (n * (n - 1)))
        z = (u - pairs / 2) / np.sqrt(variance)
    enough &= np.isfinite(z)
    return tuple(np.where(enough, each, np.nan) for each in (np.abs(effect), 2 * norm.sf(np.abs(z)), effect))  # type: ignore[return-value]


def _compare_categories(values: Cells, absent: Cells) -> tuple[Cells, Cells, Cells]:
    """Pearson's test of independence for each column of ``absent``: Cramér's V, p-value, the category most often missing."""
    n, n_absent = len(values), absent.sum(axis=0)
    categories, place = np.unique(values, return_inverse=True)
    enough = (n_absent >= _FEWEST) & (n - n_absent >= _FEWEST) & (len(categories) > 1)
    member = np.eye(len(categories))[place]  # [n, k]
    found, size = member.T @ absent, member.sum(axis=0)[:, None]  # [k, t], [k, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = size * n_absent / n
        # Pool categories with small expected counts, for which χ² is too often significant.
        rare = np.minimum(expected, size - expected) < _FEWEST_EXPECTED
        pooled = [np.where(rare, each, 0).sum(axis=0) for each in (found, expected, size - expected)]
        parts = np.where(rare, 0, (found - expected) ** 2 * (1 / expected + 1 / (size - expected)))
        rest = (pooled[0] - pooled[1]) ** 2 * (1 / pooled[1] + 1 / pooled[2])
        statistic = parts.sum(axis=0) + np.where(rare.any(axis=0), rest, 0)
        freedom = (~rare).sum(axis=0) + rare.any(axis=0) - 1
        enough &= freedom > 0
        strength = np.sqrt(statistic / n)  # of a table of two columns: min(2, k) − 1 is 1
        p_value = chi2.sf(statistic, np.maximum(freedom, 1))
        most = categories[np.argmax(np.where(size >= _FEWEST, found / size, 0), axis=0)] if len(categories) else n_absent
    enough &= np.isfinite(strength)
    return tuple(np.where(enough, each, np.nan) for each in (strength, p_value, most))  # type: ignore[return-value]


def _in_words(seen: BeforeAfter, target: int, k: int, sign: float) -> str:
    code, name = seen.codes[k], seen.names[k]
    known = ~np.isnan(seen.before[:, k]) & ~seen.left_empty[:, target]
    values, absent = seen.before[known, k], seen.holes[known, target]
    if isinstance(code, CategoryCode) and not code.ordered:
        here = values == sign
        rates = share(absent[here].mean()), share(absent[~here].mean())
        return f"missing in {rates[0]} of the rows where {name} is {code.labels[int(sign)]}, in {rates[1]} of the others"
    low, high = ("early", "late") if isinstance(code, MomentCode) else ("low", "high")
    if isinstance(code, NumberCode) and code.kind == ColumnKind.BOOLEAN:
        low, high = "false", "true"
    middle = float(np.median(values))
    side = values > middle if sign > 0 else values < middle
    if not 0 < side.sum() < len(side):
        side = values >= middle if sign > 0 else values <= middle
    here, elsewhere = (float(absent[rows].mean()) for rows in (side, ~side))
    words = f"missing more often where {name} is {high if sign > 0 else low}"
    if here <= elsewhere:  # the test found a difference, but the halves do not show it
        return words
    return f"{words}: in {share(here)} of those rows, in {share(elsewhere)} of the others"


def little_test(seen: BeforeAfter) -> McarTest:
    """Little's χ² test on the columns of numbers, dates and ordered categories.

    R. J. A. Little, A test of missing completely at random for multivariate data with missing values, JASA 83, 1988.
    """
    varies = [
        k for k, code in enumerate(seen.codes)
        if code.width and not is_nominal(code) and not seen.left_empty[:, k].any()
        and _varies(seen.before[~np.isnan(seen.before[:, k]), k])
    ]  # fmt: skip
    by_holes = sorted(varies, key=lambda k: -int(seen.holes[:, k].sum()))[:_MOST_TESTED_COLUMNS]
    rows = np.linspace(0, len(seen.before) - 1, min(len(seen.before), _MOST_TESTED_ROWS)).astype(np.int64)
    values = seen.before[np.ix_(rows, np.array(sorted(by_holes), dtype=np.int64))]
    values = values[~np.isnan(values).all(axis=1)]
    missing = np.isnan(values)
    patterns, which = np.unique(missing, axis=0, return_inverse=True)

    def untested(why: str) -> McarTest:
        return McarTest(None, None, None, len(values), values.shape[1], len(patterns), f"Not tested: {why}.", _CAVEAT)

    if not seen.holes[:, by_holes].any():
        return untested("no column of varying numbers, dates or ordered categories has missing values")
    if values.shape[1] < 2:
        return untested("the test needs two columns of numbers, dates or ordered categories that vary")
    if len(values) <= 2 * values.shape[1]:
        return untested(f"too few rows ({len(values):,}) for {count(values.shape[1], 'column')}")
    z = standardised(values)
    model = fit_gaussian(np.where(missing, 0.0, z), missing, prior_rows=1e-3, tolerance=1e-6, max_iterations=1000)
    statistic, freedom = 0.0, -values.shape[1]
    for k, pattern in enumerate(patterns):
        there, mine = ~pattern, z[which.ravel() == k]
        off = mine[:, there].mean(axis=0) - model.mean[there]
        statistic += len(mine) * float(off @ np.linalg.solve(model.covariance[np.ix_(there, there)], off))
        freedom += int(there.sum())
    if freedom <= 0:
        return untested("all rows have the same pattern")
    p_value = float(chi2.sf(statistic, freedom))
    finds = "finds evidence" if p_value < _SIGNIFICANT else "finds weak evidence" if p_value < _HINT else "finds no evidence"
    words = (
        f"Little's test {finds} against values missing completely at random: χ² = {statistic:.1f}, {freedom:,} degrees of "
        f"freedom, p {_p(p_value)}."
    )
    if len(patterns) > len(values) / 2:
        words += " Most rows have a unique pattern, so the test has little power."
    return McarTest(statistic, freedom, p_value, len(values), values.shape[1], len(patterns), words, _CAVEAT)


def _varies(values: Cells) -> bool:
    """Whether values vary enough for a normal model; a few that differ from an otherwise constant column would not."""
    counts = np.unique(values, return_counts=True)[1]
    return len(counts) > 1 and counts.max() <= _MOST_ALIKE * len(values)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {number(round(value, 3))}"


def speaks_against_chance(found: MissingnessFacts) -> str:
    """Return the evidence against values missing completely at random, in words; empty if there is none."""
    reasons = []
    if found.predictors.strongest:
        pairs = [f"{each.missing} by {each.column}" for each in found.predictors.strongest[:3]]
        reasons.append(f"other columns predict where values are missing ({listed(pairs)})")
    if found.mcar.p_value is not None and found.mcar.p_value < _SIGNIFICANT:
        reasons.append(f"Little's test finds evidence against it (p {_p(found.mcar.p_value)})")
    return ", and ".join(reasons)
