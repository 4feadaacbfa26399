"""Reports on single columns: observed and imputed values, and violated constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from .._text import count, number, number_beside, share
from ..estimator import BaseImputer, Finding, Measure, Rating
from ..table import CategoryCode, ColumnCode, ColumnKind, Family, MomentCode, NumberCode, labels_of
from ._before_after import BeforeAfter, Cells, centre_and_spread, is_pooled
from ._check import MOST_FREQUENT
from ._scale import nice_labels, nice_places
from ._trial import MEAN
from .data import ColumnCheck, ColumnReport, Shape, ShapeKind, Statistic, Violation

_N_BINS = 32
_FARTHEST = 0.005  # fraction of the values on either side that bins may leave out
_FAR = 0.5  # if they are farther out than this fraction of the range of the others
_FEW = 25
_MOST_BARS = 14
_TOO_FEW = "too few observed values for a check"

EMPTY, BELOW, ABOVE, NOT_WHOLE, UNKNOWN, CHANGED = (
    "still missing", "below the lower bound", "above the upper bound", "not an integer", "not among the categories",
    "observed but changed",
)  # fmt: skip


def count_violations(imputer: BaseImputer, seen: BeforeAfter) -> dict[tuple[int, str], int]:
    """Count the cells that violate a constraint, by column and kind of violation."""
    found: dict[tuple[int, str], int] = {}
    for k, code in enumerate(seen.codes):
        holes, still_holes = seen.holes[:, k], seen.still_holes[:, k]
        filled = seen.after[seen.filled[:, k], k]
        broken = {CHANGED: seen.changed[:, k]}
        if isinstance(code, NumberCode):
            whole = code.whole or (code.kind in (ColumnKind.INTEGER, ColumnKind.BOOLEAN) and imputer.integers == "round")
            broken |= {BELOW: filled < code.low, ABOVE: filled > code.high, NOT_WHOLE: (filled % 1 != 0) & whole}
        if isinstance(code, CategoryCode):
            unknown = np.isnan(seen.after[:, k]) | is_pooled(code, seen.after[:, k])
            broken[UNKNOWN] = holes & ~still_holes & unknown
        if code.family != Family.ANY and imputer.training_table_.kept[k]:
            broken[EMPTY] = holes & still_holes
        for what, where in broken.items():
            if where.any():
                found[k, what] = int(where.sum())
    return found


def describe_columns(
    seen: BeforeAfter,
    n_missing: NDArray[np.int64],
    n_rows: int,
    violations: Mapping[tuple[int, str], int],
    checks: Mapping[str, ColumnCheck] | None,
    *,
    draws: bool,
) -> list[ColumnReport]:
    """Return a report on every column, incomplete columns first, then in the order of the table."""
    order = sorted(range(len(seen.names)), key=lambda k: n_missing[k] == 0)
    reports = []
    for k in order:
        name, code, holes = seen.names[k], seen.codes[k], seen.holes[:, k]
        observed = seen.before[~holes & ~np.isnan(seen.before[:, k]), k]
        imputed = seen.after[seen.filled[:, k], k]
        broken = [Violation(what, n) for (column, what), n in violations.items() if column == k]
        computed = code.kind == ColumnKind.DERIVED
        n_left = int((holes & seen.still_holes[:, k]).sum()) if computed else int(holes.sum()) - len(imputed)
        none_filled = (code.family == Family.ANY and not computed) or 0 < n_left == holes.sum()
        n_filled = 0 if none_filled else int(n_missing[k]) - n_left
        check = "not checked on hidden values" if checks is None else checks.get(name, _TOO_FEW)
        light, words = _light(code, int(n_missing[k]), n_rows, n_filled, broken, check, draws=draws)
        reports.append(
            ColumnReport(
                name, seen.kinds[k], n_rows - int(n_missing[k]), int(n_missing[k]), n_filled, light, words,
                shape_of(code, observed, imputed), _statistics(code, observed, imputed), broken,
            )
        )  # fmt: skip
    return reports


def _light(
    code: ColumnCode,
    n_missing: int,
    n_rows: int,
    n_filled: int,
    broken: list[Violation],
    check: ColumnCheck | str,
    *,
    draws: bool,
) -> tuple[Rating, str]:
    """Return a rating and the reason for it; a string ``check`` is the reason why there was no check."""
    if broken:
        return Rating.BAD, "; ".join(f"{count(each.n_cells, 'value')} {each.what}" for each in broken) + "."
    if n_missing == 0:
        return Rating.GOOD, "Nothing was missing."
    missing = f"{share(n_missing / n_rows)} missing"
    if n_filled == 0:
        return Rating.CAUTION, f"{missing}, not imputed: the imputer does not support this column."
    if code.kind == ColumnKind.DERIVED:
        rating = Rating.GOOD if n_filled == n_missing else Rating.CAUTION
        return rating, f"{missing}; computed from other columns, where these are known."
    if code.width == 0:
        return Rating.GOOD, f"{missing}; imputed by the only category."
    if isinstance(check, str):
        return Rating.UNKNOWN, f"{missing}; {check}."
    return check.finding.rating, f"{missing}; {_found(check, f'the {MOST_FREQUENT if code.has_labels else MEAN}', draws=draws)}"


def _found(check: ColumnCheck, simplest: str, *, draws: bool) -> str:
    """Describe the result on hidden values."""
    match check.finding:
        case Finding.TOO_FEW:
            return f"{_TOO_FEW}."
        case Finding.EXACT:
            return f"hidden values were imputed exactly, as by {simplest}."
        case Finding.NO_BETTER if draws:
            return f"draws preserve the spread of the column, but single draws were not closer than {simplest}."
        case Finding.NO_BETTER:
            return f"on hidden values no better than {simplest}: other columns hardly predict this one."
    words = f"on hidden values {_compared(check, simplest)}"
    match check.finding:
        case Finding.MAY_BE_CHANCE:
            return f"{words}: with {count(check.n_hidden, 'value')} this may be chance."
        case Finding.MOSTLY_WRONG:
            return f"{words}. Imputed values are more often wrong than right."
        case Finding.MOSTLY_IMPUTED:
            return f"{words}. More than half of the column is imputed."
    return f"{words}."


def _compared(check: ColumnCheck, simplest: str) -> str:
    own, plain = check.scores[check.method], check.scores[MEAN]
    if check.measure is Measure.WRONG:
        return f"wrong in {share(own)}, {simplest} in {share(plain)}"
    unit = f" {check.unit}" if check.unit else ""
    return f"off by {number(own)}{unit} on average, {simplest} by {number(plain)}"


def shape_of(code: ColumnCode, observed: Cells, imputed: Cells, tables: Sequence[Cells] = ()) -> Shape | None:
    """Return how observed and imputed values are distributed; also those of each of several ``tables``."""
    together = np.concatenate([observed, imputed])
    if not code.width or len(together) == 0:
        return None
    distinct = np.unique(together)
    if isinstance(code, CategoryCode):
        return _bars(code, np.arange(len(code.labels), dtype=np.float64), observed, imputed, tables)
    if isinstance(code, NumberCode) and len(distinct) <= _MOST_BARS and (distinct % 1 == 0).all():
        return _bars(code, distinct, observed, imputed, tables)
    return _bins(code, observed, imputed, tables)


def _shares(values: Cells, of: Cells) -> Cells:
    counts = np.array([(values == each).sum() for each in of], dtype=np.float64)
    return counts / max(len(values), 1)


def _bars(code: ColumnCode, values: Cells, observed: Cells, imputed: Cells, tables: Sequence[Cells]) -> Shape:
    shares = np.stack([_shares(each, values) for each in (observed, imputed, *tables)])
    labels = labels_of(code, values)
    if len(values) > _MOST_BARS:
        first = np.argsort(-shares[:2].sum(axis=0), kind="stable")[: _MOST_BARS - 1]
        rest = shares.sum(axis=1) - shares[:, first].sum(axis=1)
        labels = [*(labels[k] for k in first), f"{len(values) - len(first)} others"]
        shares = np.column_stack([shares[:, first], rest])
    return Shape(ShapeKind.BARS, labels, [], shares[0].tolist(), shares[1].tolist(), [], 0, shares[2:].tolist())


def _bins(code: ColumnCode, observed: Cells, imputed: Cells, tables: Sequence[Cells]) -> Shape:
    each = [values for values in (observed, imputed) if len(values)]
    low = min(float(np.quantile(values, _FARTHEST, method="lower")) for values in each)
    high = max(float(np.quantile(values, 1 - _FARTHEST, method="higher")) for values in each)
    halves = np.concatenate(each) / 2  # halved, because a difference of huge numbers may overflow
    near = halves[(halves >= low / 2 - (edge := _FAR * (high / 2 - low / 2))) & (halves <= high / 2 + edge)]
    low, high = 2 * float(near.min()), 2 * float(near.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5

    def along(values: Cells) -> Cells:  # from 0 to 1, without overflow
        return (values / 2 - low / 2) / (high / 2 - low / 2)

    counts = [np.histogram(along(values), _N_BINS, (0, 1))[0] / max(len(values), 1) for values in (observed, imputed, *tables)]
    heights = [_smooth(each, along(np.concatenate(tables)), len(tables[0])) if tables else each.tolist() for each in counts]
    n_outside = sum(int(((values < low) | (values > high)).sum()) for values in (observed, imputed))
    few = along(imputed).clip(0, 1).tolist() if len(imputed) <= _FEW and not tables else []
    if isinstance(code, NumberCode):
        places = nice_places(low, high)
        labels = nice_labels(places)
    else:
        places = np.linspace(low, high, 3)
        labels = labels_of(code, places)
    return Shape(ShapeKind.BINS, labels, along(places).tolist(), heights[0], heights[1], few, n_outside, heights[2:])


def _smooth(heights: Cells, along: Cells, n_values: int) -> list[float]:
    """Smooth a histogram as much as that of ``n_values`` values needs it (Silverman's rule), so that lines can be compared."""
    low, high = np.quantile(along, (0.25, 0.75))
    spread = min(float(along.std()), float(high - low) / 1.34) or float(along.std())
    return gaussian_filter1d(heights, max(0.9 * spread * n_values**-0.2 * len(heights), 0.5), mode="reflect").tolist()  # type: ignore[no-any-return]


def _statistics(code: ColumnCode, observed: Cells, imputed: Cells) -> list[Statistic]:
    if not code.width or code.has_labels or len(observed) == 0 or len(imputed) == 0:
        return []
    if isinstance(code, (MomentCode, CategoryCode)):
        lines: dict[str, Callable[[Cells], Any]] = {"lowest": np.min, "median": _middle, "highest": np.max}
        return [
            Statistic(name, *(labels_of(code, np.array([of(values)]))[0] for values in (observed, imputed)))
            for name, of in lines.items()
        ]
    spread = float(centre_and_spread(observed[:, None])[1][0])
    sides = [_summary(each, spread) for each in (observed, imputed)]
    return [Statistic(name, *(side[name] for side in sides)) for name in sides[0]]


def _summary(values: Cells, spread: float) -> dict[str, str]:
    """Return statistics, rounded to digits that suit the spread of the observed values."""
    mean, deviation = (float(each[0]) for each in centre_and_spread(values[:, None]))
    places: dict[str, Callable[[Cells], Any]] = {"median": np.median, "lowest": np.min, "highest": np.max}
    return {"mean": number_beside(mean, spread), "standard deviation": number(deviation)} | {
        name: number_beside(float(of(values)), spread) for name, of in places.items()
    }


def _middle(values: Cells) -> float:
    return float(np.sort(values)[len(values) // 2])
