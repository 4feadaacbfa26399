"""The models of all columns, whoever computes them: made for a fit, kept after it, in and out of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._stored import Kind, ListOf, Maybe, NamedArrays, Record
from .._torch import torch_session
from ..exceptions import StoredFileError
from ..gaussian import GaussianModel
from ._cycles import ColumnModels
from ._metric import plain_model
from ._modules import ModuleModels, check_model
from ._net_models import NetModels, gaussian_regressions, layer_sizes, linear_parameters, random_parameters
from ._nets import Target
from ._working_copy import WorkingColumns


def make_models(
    model: Any,
    initial_weights: str,
    groups: NDArray[np.int64],
    gaussian: GaussianModel | None,
    table: NDArray[np.float32],
    seed: int,
) -> ColumnModels:
    """Models before their first update; regressions come from the ``gaussian`` model, or that of the ``table`` as it is."""
    d = len(groups)
    if callable(model) and d > 1:
        return ModuleModels(model, groups)
    sizes = layer_sizes("linear" if callable(model) else model, max(d - 1, 0))
    rng = generator(seed, "weights")
    if initial_weights == "random" or d == 0:
        return NetModels(sizes, random_parameters(sizes, d, rng), groups)
    gaussian = gaussian or plain_model(table, generator(seed, "model"))
    return NetModels(sizes, linear_parameters(sizes, *gaussian_regressions(gaussian, groups), rng), groups)


@dataclass(frozen=True)
class FittedModels:
    """What new rows, a warm start and a file need."""

    made_of: Any  # the parameter model
    empty: NDArray[np.bool_]
    columns: WorkingColumns
    models: ColumnModels
    targets: Sequence[Target]  # in the order in which they are predicted

    STORED: ClassVar[Mapping[str, Kind]] = {
        "targets": ListOf(Record((Target,))),
        "nets": Maybe(Record((NetModels,))),
        "modules": Maybe(ListOf(NamedArrays())),
    }

    def parts(self) -> dict[str, Any]:
        """What goes into a file, by the names in `STORED`."""
        nets, modules = (None, self.models.weights()) if isinstance(self.models, ModuleModels) else (self.models, None)
        return {"targets": self.targets, "nets": nets, "modules": modules}

    @classmethod
    def from_parts(cls, parts: dict[str, Any], made_of: Any, empty: NDArray[np.bool_], columns: WorkingColumns) -> FittedModels:
        """From what a file holds; weights of a user's modules are put into new ones."""
        check_model(made_of)
        d, targets, models, weights = len(columns), parts["targets"], parts["nets"], parts["modules"]
        predicted = [target.column for target in targets]
        if len(set(predicted)) < len(predicted) or not set(predicted) <= set(range(d)):
            raise StoredFileError(f"targets must be different ones of {d} columns, got {predicted}; save the imputer again")
        if (weights is not None, models is not None) != ((True, False) if callable(made_of) and d > 1 else (False, True)):
            raise StoredFileError("there must be networks, or weights of your modules; save the imputer again")
        if weights is not None:
            with torch_session(0):
                models = ModuleModels(made_of, columns.groups)
            models.take_weights(weights)
        return cls(made_of, empty, columns, models, targets)
