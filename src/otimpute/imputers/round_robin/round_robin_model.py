"""The models of all columns, whoever computes them: made for a fit, kept after it, in and out of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..._random import generator
from ..._stored import ListOf, Maybe, NamedArrays, Place, stored
from ..._torch import torch_session
from ...exceptions import StoredFileError
from ...fitting import ColumnLayout
from ...gaussian import GaussianModel
from ..preparation.metric import plain_model
from ..preparation.working_copy import WorkingColumns
from ..transport_imputer import Chosen, TransportModel
from .cycles import ColumnModels, settle_rows
from .module_models import ModuleModels, check_model
from .named_models import ColumnwiseModels, NamedModels
from .net_models import NetModels, gaussian_regressions, layer_sizes, linear_parameters, random_parameters
from .nets import Target


def make_models(
    model: Any,
    methods: Mapping[Any, str] | None,
    initial_weights: str,
    layout: ColumnLayout,
    varying: NDArray[np.int64],
    gaussian: GaussianModel | None,
    table: NDArray[np.float32],
    seed: int,
) -> ColumnModels:
    """Models before their first update: a ``model`` for each of the ``varying`` columns, or what ``methods`` says.

    Regressions come from the ``gaussian`` model, or that of the ``table`` as it is.
    """
    groups = layout.groups[varying]

    def make(name: str) -> NetModels:
        return cast("NetModels", make_usual_models(name, initial_weights, groups, gaussian, table, seed))

    usual = make_usual_models(model, initial_weights, groups, gaussian, table, seed)
    named = NamedModels.make(methods or {}, layout, varying, make)
    return usual if named is None else ColumnwiseModels(usual, named)


def make_usual_models(
    model: Any,
    initial_weights: str,
    groups: NDArray[np.int64],
    gaussian: GaussianModel | None,
    table: NDArray[np.float32],
    seed: int,
) -> ColumnModels:
    """Models of one kind for all columns."""
    d = len(groups)
    if callable(model) and d > 1:
        return ModuleModels(model, groups)
    sizes = layer_sizes("linear" if callable(model) else model, max(d - 1, 0))
    rng = generator(seed, "weights")
    if initial_weights == "random" or d == 0:
        return NetModels(sizes, random_parameters(sizes, d, rng), groups)
    gaussian = gaussian or plain_model(table, generator(seed, "model"))
    return NetModels(sizes, linear_parameters(sizes, *gaussian_regressions(gaussian, groups), rng), groups)


class _ModuleWeights(ListOf):
    """`ModuleModels`, of which the weights are stored."""

    def pack(self, value: Any, place: Place) -> Any:
        return super().pack(value.weights(), place)


@stored(modules=Maybe(_ModuleWeights(NamedArrays())))
@dataclass(frozen=True)
class RoundRobinModel(TransportModel):
    """Predicts the missing values of new rows column after column, until they stand still."""

    targets: list[Target]  # in the order in which they are predicted
    nets: NetModels | None
    modules: Any  # ModuleModels, or None; as it comes out of a file, their weights
    named: NamedModels | None = None  # of columns that have another one

    @classmethod
    def of(cls, columns: WorkingColumns, chosen: Chosen, targets: list[Target], models: ColumnModels) -> RoundRobinModel:
        """With the models that were trained."""
        named = models.named if isinstance(models, ColumnwiseModels) else None
        usual = models.usual if isinstance(models, ColumnwiseModels) else models
        nets, modules = (usual, None) if isinstance(usual, NetModels) else (None, usual)
        return cls(columns, chosen, targets, nets, modules, named)

    def __post_init__(self) -> None:
        d, predicted = len(self.columns), [target.column for target in self.targets]
        if len(set(predicted)) < len(predicted) or not set(predicted) <= set(range(d)):
            raise ValueError(f"targets must be different ones of {d} columns, got {predicted}")
        if (self.nets is None) == (self.modules is None):
            raise ValueError("there must be networks, or weights of your modules")

    @property
    def needs_code(self) -> bool:
        """Whether the models are modules of a user's."""
        return self.modules is not None

    @property
    def models(self) -> ColumnModels:
        """One per column."""
        models: ColumnModels = self.modules if self.nets is None else self.nets
        return models if self.named is None else ColumnwiseModels(models, self.named)

    def without_model(self, missing: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The columns with missing entries that no model was trained for."""
        incomplete = np.flatnonzero(self.columns.holes(missing).any(axis=0))
        trained = np.array([target.column for target in self.targets], np.int64)
        without: NDArray[np.int64] = self.columns.varying[np.setdiff1d(incomplete, trained)]
        return without

    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        settle_rows(work, holes, self.targets, self.models)


def load_modules(model: RoundRobinModel, made_of: Any) -> RoundRobinModel:
    """A model out of a file; weights of a user's modules are put into new ones."""
    check_model(made_of)
    if (model.modules is not None) != (callable(made_of) and len(model.columns) > 1):
        raise StoredFileError("there must be networks, or weights of your modules; save the imputer again")
    if model.modules is None:
        return model
    with torch_session(0):
        modules = ModuleModels(made_of, model.columns.groups)
    modules.take_weights(model.modules)
    return replace(model, modules=modules)
