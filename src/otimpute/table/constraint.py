"""What imputed values of a column must obey."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._checks import check_choice, check_flag

_KEYS = ("bounds", "integer", "non_negative", "categories", "ordered")


@dataclass(frozen=True)
class Constraint:
    """The wishes for one column, as they were given; the column's code checks that they suit it."""

    bounds: tuple[Any, Any] = (None, None)
    integer: bool = False
    non_negative: bool = False
    settles_range: bool = False  # whether anything was said about bounds, be it that there are none
    settles_whole: bool = False  # and about whole numbers
    categories: tuple[Any, ...] | None = None
    ordered: bool = False

    @property
    def limits_numbers(self) -> bool:
        """Whether anything concerns the size of values."""
        return self.bounds != (None, None) or self.integer or self.non_negative


NO_CONSTRAINT = Constraint()


def read_constraints(constraints: Any, names: Sequence[Any]) -> dict[Any, Constraint]:
    """Constraints by column, from the dictionary a user wrote; ``names`` are the columns there are.

    >>> read_constraints({"age": {"bounds": (0, None)}}, ["age", "size"])["age"].bounds
    (0, None)
    >>> read_constraints({"age": {"bound": (0, 9)}}, ["age"])
    Traceback (most recent call last):
    otimpute.exceptions.ParameterValueError: a constraint of column 'age' must be one of 'bounds', 'categories', 'integer', ...
    """
    if constraints is None:
        return {}
    if not isinstance(constraints, Mapping):
        raise TypeError(
            'constraints must be a dictionary such as {"age": {"bounds": (0, 120), "integer": True}}, '
            f"got {type(constraints).__name__}"
        )
    known = set(names)
    for name in constraints:
        if name not in known:
            check_choice("a column in constraints", name, [str(one) for one in names])
            raise ValueError(f"a column in constraints must be one of {list(names)[:20]}, got {name!r}")
    return {name: _read_one(name, wishes) for name, wishes in constraints.items()}


def _read_one(name: Any, wishes: Any) -> Constraint:
    if not isinstance(wishes, Mapping):
        raise TypeError(
            f'the constraints of column {name!r} must be a dictionary such as {{"bounds": (0, 120)}}, got {wishes!r}'
        )
    for key in wishes:
        check_choice(f"a constraint of column {name!r}", key, _KEYS)
    flags = {
        key: check_flag(f"{key} of column {name!r}", wishes.get(key, False)) for key in ("integer", "non_negative", "ordered")
    }
    bounds = wishes.get("bounds", (None, None))
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds of column {name!r} must be a pair (lowest, highest), None where open, got {bounds!r}")
    categories = wishes.get("categories")
    if categories is not None:
        if isinstance(categories, str) or not isinstance(categories, Iterable):
            raise TypeError(f"categories of column {name!r} must be a list of values, got {categories!r}")
        categories = tuple(categories)
        if not categories or len(set(categories)) < len(categories):
            raise ValueError(f"categories of column {name!r} must be at least one value, each once, got {list(categories)}")
    return Constraint(
        tuple(bounds),
        categories=categories,
        settles_range="bounds" in wishes or "non_negative" in wishes,
        settles_whole="integer" in wishes,
        **flags,
    )
