"""Which experts may count in a column, where people say so: the parameter ``methods``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice
from ..catalogue import EXPERTS
from ..exceptions import DivergedError
from ..fitting import ColumnLayout
from ._left_out import LeftOut

ALIASES = {"trees": "extra_trees", "gaussian": "gaussian_em"}
_EXAMPLE = '{"job": "extra_trees", "age": ["gaussian_em", "knn"]}'


@dataclass(frozen=True)
class Choice:
    """The experts that may count in a column, each by its name."""

    column: Any
    experts: tuple[str, ...]

    def among(self, names: Sequence[str], left_out: Mapping[str, LeftOut]) -> NDArray[np.bool_]:
        """Which of the experts that are there they are; it is an error if none is, for no other stands in for them."""
        found = np.isin(names, self.experts)
        if not found.any():
            reasons = "; ".join(f"{name}: {left_out[name]}" for name in self.experts if name in left_out) or "it was left out"
            raise DivergedError(
                f"no expert that methods names for column {self.column!r} could be fitted ({reasons}); name another one than "
                f"{' or '.join(self.experts)}"
            )
        return found


def read_methods(methods: Any) -> dict[Any, tuple[str, ...]]:
    """By column, the names of the experts that may count there, in full.

    >>> read_methods({"job": "trees", "age": ["gaussian", "knn"]})
    {'job': ('extra_trees',), 'age': ('gaussian_em', 'knn')}
    """
    if methods is None:
        return {}
    if not isinstance(methods, Mapping):
        raise TypeError(f"methods must be a dictionary of experts by column, such as {_EXAMPLE}, got {methods!r}")
    found: dict[Any, tuple[str, ...]] = {}
    for column, given in methods.items():
        names: Any = [given] if isinstance(given, str) else given
        if not isinstance(names, (list, tuple)) or len(names) == 0 or not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"methods of column {column!r} must be an expert's name or a list of such, as in {_EXAMPLE}, got {given!r}"
            )
        found[column] = tuple(dict.fromkeys(str(ALIASES.get(name, name)) for name in names))
    return found


def names_to_add(methods: Any, known: Collection[str]) -> list[str]:
    """The experts that ``methods`` names, but for those that are ``known`` already."""
    wanted = dict.fromkeys(name for names in read_methods(methods).values() for name in names if name not in known)
    return [check_choice("an expert in methods", name, {*EXPERTS, *ALIASES, *known}) for name in wanted]


def choices_of(methods: Any, layout: ColumnLayout) -> dict[int, Choice]:
    """The choices by column, counted among those with values; columns without any have none."""
    with_values = np.unique(layout.groups).tolist()
    found = {}
    for column, experts in read_methods(methods).items():
        place = layout.place_of(column, "methods")
        if place in with_values:
            found[with_values.index(place)] = Choice(column, experts)
    return found


def named_in(choices: Mapping[int, Choice]) -> frozenset[str]:
    """All experts that are named."""
    return frozenset(name for choice in choices.values() for name in choice.experts)
