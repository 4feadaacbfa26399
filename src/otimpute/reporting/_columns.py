"""Column by column: what was there, what was filled in, and whether promises were kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._words import count, number, share
from ..estimator import BaseImputer
from ..table import CategoryCode, ColumnCode, MomentCode, NumberCode
from ._check import MEAN, MOST_FREQUENT
from ._scale import nice_places
from ._seen import Cells, Seen, has_labels, labels_of
from .data import ColumnCheck, ColumnReport, Shape, Statistic, Violation

_N_BINS = 32
_FARTHEST = 0.005  # of the values on either side that bins leave out
_FEW = 25
_MOST_BARS = 14
_NO_BETTER = 0.97  # of the mean's error
_FEWEST_HIDDEN = 10
_MOSTLY_MISSING = 0.5

EMPTY, BELOW, ABOVE, NOT_WHOLE, UNKNOWN, CHANGED = (
    "left empty", "below the lower bound", "above the upper bound", "not whole numbers", "not one of the categories",
    "observed values changed",
)  # fmt: skip


def count_violations(imputer: BaseImputer, seen: Seen) -> dict[tuple[int, str], int]:
    """How many cells break which promise, by column and promise."""
    found: dict[tuple[int, str], int] = {}
    for k, code in enumerate(seen.codes):
        before, after, holes = seen.before[:, k], seen.after[:, k], seen.holes[:, k]
        filled = after[holes & ~np.isnan(after)]
        broken = {CHANGED: ~holes & (before != after) & ~(np.isnan(before) & np.isnan(after))}
        if isinstance(code, NumberCode):
            whole = code.whole or (code.kind in ("integer", "boolean") and imputer.integers == "round")
            broken |= {BELOW: filled < code.low, ABOVE: filled > code.high, NOT_WHOLE: (filled % 1 != 0) & whole}
        if code.width and imputer._kept[k]:
            broken[EMPTY] = holes & np.isnan(after)
        for what, where in broken.items():
            if where.any():
                found[k, what] = int(where.sum())
    return found


def describe_columns(
    seen: Seen,
    n_missing: NDArray[np.int64],
    n_rows: int,
    violations: Mapping[tuple[int, str], int],
    checks: Mapping[str, ColumnCheck],
    *,
    draws: bool,
) -> list[ColumnReport]:
    """A report of every column, those with holes first, then in the order of the table."""
    order = sorted(range(len(seen.names)), key=lambda k: n_missing[k] == 0)
    reports = []
    for k in order:
        name, code, holes = seen.names[k], seen.codes[k], seen.holes[:, k]
        observed = seen.before[~holes & ~np.isnan(seen.before[:, k]), k]
        imputed = seen.after[seen.filled[:, k], k]
        broken = [Violation(what, n) for (column, what), n in violations.items() if column == k]
        n_left = int(holes.sum()) - len(imputed)
        all_left = n_left == holes.sum()
        n_filled = int(n_missing[k]) if not n_left else 0 if all_left else int(n_missing[k]) - n_left
        light, words = _judge(code, int(n_missing[k]), n_rows, n_filled, broken, checks.get(name), draws=draws)
        reports.append(
            ColumnReport(
                name, code.kind, n_rows - int(n_missing[k]), int(n_missing[k]), n_filled, light, words,
                _shape(code, observed, imputed), _statistics(code, observed, imputed), broken,
            )
        )  # fmt: skip
    return reports


def _judge(
    code: ColumnCode,
    n_missing: int,
    n_rows: int,
    n_filled: int,
    broken: list[Violation],
    check: ColumnCheck | None,
    *,
    draws: bool,
) -> tuple[str, str]:
    """A light and the reason for it."""
    if broken:
        return "bad", "; ".join(f"{count(each.n_cells, 'value')} {each.what}" for each in broken) + "."
    if n_missing == 0:
        return "good", "Nothing was missing."
    missing = f"{share(n_missing / n_rows)} missing"
    if n_filled == 0:
        return "caution", f"{missing}, left as they were: the imputer does not fill this column."
    if check is None or check.n_hidden < _FEWEST_HIDDEN or check.against_mean is None:
        return "unknown", f"{missing}; too few observed values to check the imputed ones on."
    simplest = f"the {MOST_FREQUENT if has_labels(code) else MEAN}"
    if check.against_mean >= _NO_BETTER:
        if draws:
            return "caution", f"{missing}; draws keep the spread of the column, single ones were no nearer than {simplest}."
        return "caution", f"{missing}; on hidden values no better than {simplest}: other columns say little about this one."
    words = f"{missing}; on hidden values {_compared(check, simplest)}."
    if n_missing / n_rows > _MOSTLY_MISSING:
        return "caution", f"{words} More than half of it is imputed."
    return "good", words


def _compared(check: ColumnCheck, simplest: str) -> str:
    own, plain = check.scores[check.method], check.scores[MEAN]
    if check.measure == "wrong":
        return f"wrong in {share(own)}, {simplest} in {share(plain)}"
    unit = f" {check.unit}" if check.unit else ""
    return f"off by {number(own)}{unit} on average, {simplest} by {number(plain)}"


def _shape(code: ColumnCode, observed: Cells, imputed: Cells) -> Shape | None:
    together = np.concatenate([observed, imputed])
    if not code.width or len(together) == 0:
        return None
    distinct = np.unique(together)
    if isinstance(code, CategoryCode):
        return _bars(code, np.arange(len(code.categories), dtype=np.float64), observed, imputed)
    if isinstance(code, NumberCode) and len(distinct) <= _MOST_BARS and (distinct % 1 == 0).all():
        return _bars(code, distinct, observed, imputed)
    return _bins(code, observed, imputed)


def _shares(values: Cells, of: Cells) -> Cells:
    counts = np.array([(values == each).sum() for each in of], dtype=np.float64)
    return counts / max(len(values), 1)


def _bars(code: ColumnCode, values: Cells, observed: Cells, imputed: Cells) -> Shape:
    shares = np.stack([_shares(observed, values), _shares(imputed, values)])
    labels = labels_of(code, values)
    if len(values) > _MOST_BARS:
        first = np.argsort(-shares.sum(axis=0), kind="stable")[: _MOST_BARS - 1]
        rest = shares.sum(axis=1) - shares[:, first].sum(axis=1)
        labels = [*(labels[k] for k in first), f"{len(values) - len(first)} others"]
        shares = np.column_stack([shares[:, first], rest])
    return Shape("bars", labels, [], shares[0].tolist(), shares[1].tolist(), [], 0)


def _bins(code: ColumnCode, observed: Cells, imputed: Cells) -> Shape:
    each = [values for values in (observed, imputed) if len(values)]
    low = min(float(np.quantile(values, _FARTHEST, method="lower")) for values in each)
    high = max(float(np.quantile(values, 1 - _FARTHEST, method="higher")) for values in each)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _N_BINS + 1)
    inside = [(values >= low) & (values <= high) for values in (observed, imputed)]
    heights = [
        (np.histogram(values[these], edges)[0] / max(len(values), 1)).tolist()
        for values, these in zip((observed, imputed), inside, strict=True)
    ]
    places = nice_places(low, high) if isinstance(code, NumberCode) else np.linspace(low, high, 3)
    few = ((imputed - low) / (high - low)).clip(0, 1).tolist() if len(imputed) <= _FEW else []
    n_outside = sum(int((~these).sum()) for these in inside)
    at = ((places - low) / (high - low)).tolist()
    return Shape("bins", labels_of(code, places), at, heights[0], heights[1], few, n_outside)


def _statistics(code: ColumnCode, observed: Cells, imputed: Cells) -> list[Statistic]:
    if not code.width or has_labels(code) or len(observed) == 0 or len(imputed) == 0:
        return []
    if isinstance(code, (MomentCode, CategoryCode)):
        lines: dict[str, Callable[[Cells], Any]] = {"lowest": np.min, "median": _middle, "highest": np.max}
        return [
            Statistic(name, *(labels_of(code, np.array([of(values)]))[0] for values in (observed, imputed)))
            for name, of in lines.items()
        ]
    numbers: dict[str, Callable[[Cells], Any]] = {
        "mean": np.mean, "standard deviation": np.std, "median": np.median, "lowest": np.min, "highest": np.max,
    }  # fmt: skip
    return [Statistic(name, *(number(float(of(each))) for each in (observed, imputed))) for name, of in numbers.items()]


def _middle(values: Cells) -> float:
    return float(np.sort(values)[len(values) // 2])
