"""Which code suits a column, from what it holds and its constraints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from .._warn import warn_user
from ..exceptions import Message, OtimputeWarning, Term
from .categories import CategoryCode, count_labels, plain_label
from .codes import ColumnCode, IdleCode, MomentCode, NumberCode, fit_into
from .constraint import Constraint
from .extent import Extent, extent_of
from .kinds import ColumnKind, Family
from .moments import moment_kind, read_bound, read_moments
from .native import declared_labels, family_of, has_no_value, is_ordered, numpy_type, python_types

# Text of which hardly any value occurs twice names rows (people, comments); fewer values than this may be categories.
_FEW_LABELS = 10
# Where so many categories make up less than this share, the column names things that come up again and again (customers,
# articles): a guess among the frequent ones would nearly always be wrong.
_N_FREQUENT, _SHARE_OF_FREQUENT = 50, 0.1
_CATEGORIES = Term('{"categories": [...]}')
_LIMITS = Term("bounds"), ", ", Term("integer"), " and ", Term("non_negative")
HOLDS = {
    Family.NUMBER: "numbers",
    Family.LABEL: "text or categories",
    Family.MOMENT: "dates or times",
    Family.NOTHING: "no value",
    Family.OTHER: "values of another kind",
}


def choose_code(
    column: nw.Series[Any],
    constraint: Constraint,
    max_categories: int | None,
    marker: Any,
    counts: Counter[Any] | None = None,
) -> ColumnCode:
    """The code of one column; ``counts`` of its labels are those of more rows than the column has, if there are more."""
    family, name = family_of(column), column.name
    is_category = constraint.categories is not None or constraint.ordered
    if is_category and constraint.limits_numbers:
        raise ValueError(Message(f"column {name!r} has categories or an order, so ", *_LIMITS, " do not apply"))
    if constraint.limits_numbers and family in (Family.LABEL, Family.OTHER):
        raise ValueError(Message(f"column {name!r} holds {HOLDS[family]}: ", *_LIMITS, " are for numbers; use ", _CATEGORIES))
    if is_category and (family in (Family.MOMENT, Family.OTHER) or column.dtype == nw.Decimal):
        raise ValueError(f"column {name!r} of type {column.dtype} takes no categories and no order; convert it to text")
    if family == Family.NUMBER and not is_category:
        return _number_code(column, constraint, marker)
    if has_no_value(column) and not counts:
        return IdleCode(ColumnKind.EMPTY)
    if family == Family.MOMENT:
        return _moment_code(column, constraint)
    if family == Family.OTHER:
        return IdleCode(ColumnKind.OTHER)
    return _category_code(column, count_labels(column, marker) if counts is None else counts, constraint, max_categories)


def _category_code(
    column: nw.Series[Any], counts: Counter[Any], constraint: Constraint, max_categories: int | None
) -> ColumnCode:
    observed = set(counts)
    declared = declared_labels(column)
    if constraint.ordered and declared is None and constraint.categories is None:
        raise ValueError(f'column {column.name!r} has no order of its own; add its "categories" in their order')
    ordered = constraint.ordered or is_ordered(column)
    if constraint.categories is not None:
        allowed = [_as_in(column, label) for label in constraint.categories]
        strange = sorted(map(str, observed - set(allowed)))
        if not observed & set(allowed):
            raise ValueError(
                f"categories of column {column.name!r} must occur in it, got {allowed[:10]}, it has {strange[:10]}"
            )
        if strange:
            warn_user(
                f"column {column.name!r} has observed values that are not among its categories ({', '.join(strange[:5])}); "
                "they are kept, and never imputed",
                OtimputeWarning,
            )
    elif not observed:
        return IdleCode(ColumnKind.EMPTY)  # nothing but marks of missing values
    else:
        allowed = sorted(observed, key=_sort_key) if declared is None else list(dict.fromkeys(map(plain_label, declared)))
        if max_categories is not None:
            if declared is None and len(observed) > max(_FEW_LABELS, counts.total() / 2):
                return IdleCode(ColumnKind.TEXT)
            if len(observed) > max_categories and not ordered:
                return _most_frequent(counts, allowed, max_categories)
    # What never occurred cannot be told apart; with an order it still has a place between its neighbours.
    return CategoryCode(tuple(label for label in allowed if ordered or label in observed), ordered)


def _most_frequent(counts: Counter[Any], allowed: Sequence[Any], max_categories: int) -> ColumnCode:
    """A code of the most frequent categories that pools the others, unless hardly any value is of a frequent one."""
    by_count = sorted(counts, key=lambda label: (-counts[label], _sort_key(label)))
    frequent = by_count[: max(max_categories, _N_FREQUENT)]
    if sum(counts[label] for label in frequent) < _SHARE_OF_FREQUENT * counts.total():
        return IdleCode(ColumnKind.TEXT)
    kept = set(by_count[: max(1, max_categories - 1)])
    return CategoryCode(tuple(label for label in allowed if label in kept), ordered=False, pools_rest=max_categories > 1)


def _as_in(column: nw.Series[Any], label: Any) -> Any:
    """A label as the column holds it: 0.1 is another number in single precision."""
    return float(np.float32(label)) if column.dtype == nw.Float32 else plain_label(label)


def _number_kind(column: nw.Series[Any]) -> ColumnKind:
    if column.dtype == nw.Object:
        kinds = python_types(column)
        is_boolean, is_integer = kinds == {bool}, kinds == {int}
    else:
        is_boolean, is_integer = column.dtype == nw.Boolean, column.dtype.is_integer()
    return ColumnKind.BOOLEAN if is_boolean else ColumnKind.INTEGER if is_integer else ColumnKind.NUMBER


def number_code(
    name: Any, kind: ColumnKind, constraint: Constraint, extent: Extent, dtype: np.dtype[Any] | None = None
) -> NumberCode | IdleCode:
    """The code of a column of numbers, whose ``dtype`` must be able to hold what it is to obey."""
    if kind == ColumnKind.BOOLEAN and constraint.limits_numbers:
        raise ValueError(Message(f"column {name!r} holds booleans, to which ", *_LIMITS, " do not apply"))
    low, high = (
        _as_number(name, bound, open_end) for bound, open_end in zip(constraint.bounds, (-math.inf, math.inf), strict=True)
    )
    if constraint.non_negative:
        low = max(low, 0.0)
    if not constraint.sets_range and kind != ColumnKind.BOOLEAN:
        low, high = extent.natural_range()
    if constraint.integer or kind == ColumnKind.INTEGER:
        low, high = (_whole(low, math.ceil), _whole(high, math.floor))
    lowest = float(fit_into(np.array([low]), dtype or np.dtype(float), low, high)[0]) if low <= high else math.nan
    if not (low <= lowest <= high and math.isfinite(lowest)):
        as_what = "" if dtype is None else f" as {dtype}"
        raise ValueError(
            f"column {name!r} has no possible value: its constraints leave nothing{as_what} between {low:g} and {high:g}"
        )
    if extent.n == 0:
        return IdleCode(ColumnKind.EMPTY)
    fits = _whole(low, math.ceil) <= _whole(high, math.floor)
    counts = kind == ColumnKind.NUMBER and not constraint.sets_integer and extent.are_counts() and fits
    return NumberCode(kind, low, high, constraint.integer or counts)


def _number_code(column: nw.Series[Any], constraint: Constraint, marker: Any) -> ColumnCode:
    kind, dtype = _number_kind(column), column.dtype
    values, _, holes = NumberCode(kind).read(column, marker)
    observed = values[~holes, 0]
    fits_numpy = dtype.is_integer() or dtype.is_float()
    code = number_code(column.name, kind, constraint, extent_of(observed), numpy_type(column) if fits_numpy else None)
    if isinstance(code, NumberCode):
        n_outside = int(np.count_nonzero((observed < code.low) | (observed > code.high)))
        _warn_of_outside(column.name, n_outside, f"{code.low:g} to {code.high:g}")
    return code


def _as_number(name: Any, bound: Any, open_end: float) -> float:
    if bound is None:
        return open_end
    try:
        number = math.nan if isinstance(bound, (bool, str)) else float(bound)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise TypeError(f"bounds of column {name!r} must be numbers, or None where open, got {bound!r}")
    return number


def _whole(bound: float, rounding: Any) -> float:
    return float(rounding(bound)) if math.isfinite(bound) else bound


def _moment_code(column: nw.Series[Any], constraint: Constraint) -> MomentCode:
    if constraint.integer or constraint.non_negative:
        raise ValueError(Message(f"column {column.name!r} holds dates or times, to which ", *_LIMITS[2:], " do not apply"))
    try:
        low, high = (read_bound(bound, column, is_lower=place == 0) for place, bound in enumerate(constraint.bounds))
    except ValueError as error:
        raise TypeError(
            f"bounds of column {column.name!r} must be {error}, or None where open, got {list(constraint.bounds)}"
        ) from error
    if low is not None and high is not None and low > high:
        raise ValueError(
            f"column {column.name!r} has no possible value between {constraint.bounds[0]} and {constraint.bounds[1]}"
        )
    moments = read_moments(column, moment_kind(column)[1])[~column.is_null().to_numpy()]
    outside = (moments < low if low is not None else False) | (moments > high if high is not None else False)
    _warn_of_outside(column.name, int(np.sum(outside)), f"{constraint.bounds[0]} to {constraint.bounds[1]}")
    return MomentCode.fit(column, low, high)


def _warn_of_outside(name: Any, n_outside: int, bounds: str) -> None:
    if n_outside:
        warn_user(
            f"column {name!r} has {n_outside} observed values outside its bounds ({bounds}); "
            "they are kept, only imputed values are bounded",
            OtimputeWarning,
        )


def _sort_key(label: Any) -> tuple[str, Any]:
    return ("", label) if isinstance(label, (bool, int, float)) else ("text", label)
