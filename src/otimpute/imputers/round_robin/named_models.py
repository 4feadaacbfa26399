"""Columns whose model is another one than that of the others: the parameter ``methods``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice
from ..._stored import Array, stored
from ...fitting import ColumnLayout
from .cycles import ColumnModels, Trainer
from .net_models import NetModels

if TYPE_CHECKING:
    from ..batches.pair_threads import Batches
    from .trained_columns import TrainedColumn

_NAMES = ("linear", "mlp")
_EXAMPLE = '{"age": "mlp"}'


def check_methods(methods: Any) -> None:
    """The parameter ``methods`` of `RoundRobinImputer`: names of models by column."""
    if methods is None:
        return
    if not isinstance(methods, Mapping):
        raise TypeError(f"methods must be a dictionary of models by column, such as {_EXAMPLE}, got {methods!r}")
    for column, name in methods.items():
        if not isinstance(name, str):
            raise TypeError(
                f'methods of column {column!r} must be "linear" or "mlp", as in {_EXAMPLE}, got {name!r}; a function that '
                "makes torch modules can only be the model of all columns that are not named: pass it as model"
            )
        check_choice(f"methods of column {column!r}", name, _NAMES)


@stored(which=Array("varying", at_least=-1))
@dataclass(frozen=True)
class NamedModels:
    """The models of columns that are named; the nets have a place for every column, which others leave at 0."""

    nets: list[NetModels]
    which: NDArray[np.int64]  # [d]: which of them is a column's; -1 where it is the usual model

    def __post_init__(self) -> None:
        if not self.nets or self.which.max(initial=-1) >= len(self.nets):
            raise ValueError("a column's model is none of those named")

    @classmethod
    def make(
        cls, methods: Mapping[Any, str], layout: ColumnLayout, varying: NDArray[np.int64], make: Callable[[str], NetModels]
    ) -> NamedModels | None:
        """Models of the ``varying`` columns of an array, before their first update; None if none of them is named."""
        by_place = {layout.place_of(column, "methods"): name for column, name in methods.items()}
        of_column = [by_place.get(place, "") for place in layout.groups[varying].tolist()]
        names = sorted(set(of_column) - {""})
        which = np.array([names.index(name) if name else -1 for name in of_column], dtype=np.int64)
        nets = [make(name) for name in names]
        for place, each in enumerate(nets):
            each.parameters[which != place] = 0
        return cls(nets, which) if nets else None


class ColumnwiseModels:
    """One model per column, of several kinds."""

    def __init__(self, usual: ColumnModels, named: NamedModels):
        self.usual, self.named = usual, named
        self._kinds: list[ColumnModels] = [*named.nets, usual]  # the last one is at -1

    def predict(self, values: NDArray[np.float32], rows: NDArray[np.int64], column: int) -> NDArray[np.float32]:
        """Predictions of one column for some rows of a working copy."""
        return self._kinds[int(self.named.which[column])].predict(values, rows, column)

    def state(self) -> Any:
        """A copy of all parameters."""
        return [each.state() for each in self._kinds]

    def restore(self, state: Any) -> None:
        """Return to a `state`."""
        for each, one in zip(self._kinds, state, strict=True):
            each.restore(one)

    def trainer(self, batches: Batches, trained_columns: Sequence[TrainedColumn]) -> ColumnwiseTrainer:
        """What updates these models."""
        which = self.named.which
        of_kinds = [
            [each for each in trained_columns if self._kinds[which[each.target.column]] is kind] for kind in self._kinds
        ]
        return ColumnwiseTrainer([kind.trainer(batches, own) for kind, own in zip(self._kinds, of_kinds, strict=True)], which)


class ColumnwiseTrainer:
    """Update models of several kinds, each as its kind is updated."""

    def __init__(self, trainers: list[Trainer], which: NDArray[np.int64]):
        self._trainers, self._which = trainers, which

    def update(self, trained_column: TrainedColumn, first: int, count: int, rate: float, l2: float) -> None:
        """Update one model ``count`` times, with the batches of the steps from ``first`` on."""
        self._trainers[self._which[trained_column.target.column]].update(trained_column, first, count, rate, l2)

    def state(self) -> Any:
        """All that a continued training needs but the parameters themselves."""
        return [each.state() for each in self._trainers]

    def restore(self, state: Any) -> None:
        """Return to a `state`."""
        for each, one in zip(self._trainers, state, strict=True):
            each.restore(one)
