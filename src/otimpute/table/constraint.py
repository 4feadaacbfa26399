"""Constraints that imputed values of a column satisfy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._checks import check_choice, check_flag

_KEYS = ("bounds", "integer", "non_negative", "categories", "ordered")


@dataclass(frozen=True)
class Constraint:
    """The constraints of one column, as given; the column's code checks that they apply to it."""

    bounds: tuple[Any, Any] = (None, None)
    integer: bool = False
    non_negative: bool = False
    sets_range: bool = False  # whether bounds were given, even open ones
    sets_integer: bool = False  # and whether integer was
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
    return {name: _read_one(name, given) for name, given in constraints.items()}


def _read_one(name: Any, given: Any) -> Constraint:
    if not isinstance(given, Mapping):
        raise TypeError(
            f'the constraints of column {name!r} must be a dictionary such as {{"bounds": (0, 120)}}, got {given!r}'
        )
    for key in given:
        check_choice(f"a constraint of column {name!r}", key, _KEYS)
    flags = {
        key: check_flag(f"{key} of column {name!r}", given.get(key, False)) for key in ("integer", "non_negative", "ordered")
    }
    bounds = given.get("bounds", (None, None))
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds of column {name!r} must be a pair (lowest, highest), None where open, got {bounds!r}")
    categories = given.get("categories")
    if categories is not None:
        if isinstance(categories, str) or not isinstance(categories, Iterable):
            raise TypeError(f"categories of column {name!r} must be a list of values, got {categories!r}")
        categories = tuple(categories)
        if not categories or len(set(categories)) < len(categories):
            raise ValueError(f"categories of column {name!r} must be at least one value, each once, got {list(categories)}")
    return Constraint(
        tuple(bounds),
        categories=categories,
        sets_range="bounds" in given or "non_negative" in given,
        sets_integer="integer" in given,
        **flags,
    )
