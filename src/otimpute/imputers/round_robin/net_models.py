"""The built-in models of Algorithm 3, linear and MLP: where their parameters start, how they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._compile import load
from ..._stored import Array, stored
from ...gaussian import GaussianModel
from ..batches.divergence import column_gradient
from .nets import Nets, begin_update, finish_update, forward, gather_inputs, n_parameters, run_updates

if TYPE_CHECKING:
    from ..batches.pair_threads import Batches
    from .trained_columns import TrainedColumn

# With one input the MLP's second layer is a single unit. To pass a linear prediction it must stay positive: lifted by this.
_LIFT = 10.0
_MOST_BYTES = 8 * 2**30
_BLOCK = 4096  # rows predicted at a time


def layer_sizes(model: str, n_inputs: int) -> NDArray[np.int64]:
    """Layers of a built-in model: the paper's MLP is d − 1 → 2 (d − 1) → d − 1 → 1.

    >>> layer_sizes("linear", 4).tolist(), layer_sizes("mlp", 4).tolist()
    ([4, 1], [4, 8, 4, 1])
    """
    hidden = [2 * n_inputs, n_inputs] if model == "mlp" and n_inputs > 0 else []
    return np.array([n_inputs, *hidden, 1], dtype=np.int64)


def random_parameters(sizes: NDArray[np.int64], n_models: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Uniform within ± 1/√inputs, layer by layer: what a torch Linear layer starts with."""
    n_bytes = 3 * 4 * n_models * n_parameters(sizes)  # with the optimizer's state
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"networks for {n_models} columns need {n_bytes / 2**30:.0f} GiB, for they grow with the cube of the columns; "
            'use model="linear", or a function that returns smaller ones'
        )
    parameters = np.empty((n_models, n_parameters(sizes)), np.float32)
    begin = 0
    for n_in, n_out in pairwise(sizes):
        count = int((n_in + 1) * n_out)
        reach = 1 / np.sqrt(max(n_in, 1))
        parameters[:, begin : begin + count] = rng.uniform(-reach, reach, size=(n_models, count))
        begin += count
    return parameters


def gaussian_regressions(model: GaussianModel, groups: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights ``[d, d − 1]`` and biases ``[d]`` that give each column's conditional mean given those of other groups.

    >>> model = GaussianModel(np.array([1.0, 2.0]), np.array([[1.0, 0.5], [0.5, 1.0]]), 1, True)
    >>> weights, bias = gaussian_regressions(model, np.array([0, 1]))
    >>> weights.ravel().tolist(), bias.tolist()
    ([0.5, 0.5], [0.0, 1.5])
    """
    d = len(model.mean)
    precision = np.linalg.inv(model.covariance)
    full = -precision / np.diag(precision)[:, None]
    for group in np.unique(groups):
        siblings = np.flatnonzero(groups == group)
        if len(siblings) > 1:
            full[siblings] = -np.linalg.solve(precision[np.ix_(siblings, siblings)], precision[siblings])
    bias = -full @ model.mean  # among siblings full is the identity, negative
    return full[~np.eye(d, dtype=bool)].reshape(d, d - 1), bias


def linear_parameters(
    sizes: NDArray[np.int64], weights: NDArray[np.float64], bias: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Parameters with which a model of these ``sizes`` predicts ``weights · x + bias``.

    A linear model holds them as they are. In the MLP the first layer splits each input into its positive and negative part,
    two units of the second hold those of the prediction, and the others, random, wait behind output weights of 0.
    """
    if len(sizes) == 2:
        return np.column_stack([weights, bias]).astype(np.float32)
    k = weights.shape[1]
    parameters = random_parameters(sizes, len(weights), rng)
    ends = np.cumsum((sizes[:-1] + 1) * sizes[1:])
    first, second, last = np.split(parameters, ends[:-1], axis=1)
    first[:] = np.concatenate([np.eye(k).ravel(), -np.eye(k).ravel(), np.zeros(2 * k)])
    last[:] = 0
    lift = _LIFT if k == 1 else 0.0
    for unit, sign in enumerate((1, -1)[:k]):
        second[:, 2 * k * unit : 2 * k * (unit + 1)] = sign * np.hstack([weights, -weights])
        second[:, 2 * k * k + unit] = sign * bias + lift
        last[:, unit] = sign
    last[:, k] = -lift
    return parameters


@stored(sizes=Array("L", at_least=0), parameters="varying P", groups=Array("varying", at_least=0))
@dataclass(frozen=True)
class NetModels:
    """One built-in network per column."""

    sizes: NDArray[np.int64]  # the same for all
    parameters: NDArray[np.float32]  # [d, p]
    groups: NDArray[np.int64]  # [d]: columns that must not predict each other share theirs

    def __post_init__(self) -> None:
        d, p = self.parameters.shape
        sizes = [int(size) for size in self.sizes]
        fits = len(sizes) > 1 and sizes[0] == max(d - 1, 0) and min(sizes[1:]) > 0 and sizes[-1] == 1
        if not fits or sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes)) != p:
            raise ValueError(
                f"{p} parameters and layers of {sizes} units are no network of {max(d - 1, 0)} inputs and one output"
            )

    def nets(self) -> Nets:
        """The networks with a fresh optimizer; training changes their parameters in place."""
        d = len(self.parameters)
        moments = np.zeros((2, *self.parameters.shape), self.parameters.dtype)
        return Nets(self.sizes, self.parameters, moments, np.zeros(d, np.int64), self.groups)

    def predict(self, values: NDArray[np.float32], rows: NDArray[np.int64], column: int) -> NDArray[np.float32]:
        """Predictions of one column for some rows of a working copy."""
        predictions = np.empty(len(rows), np.float32)
        height = int(self.sizes.sum())
        for begin in range(0, len(rows), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            units = np.empty((height, len(block)), np.float32)
            gather_inputs(values, block, column, self.groups, units)
            forward(self.sizes, self.parameters[column], units)
            predictions[begin : begin + _BLOCK] = units[-1]
        return predictions

    def state(self) -> Any:
        """A copy of all parameters."""
        return self.parameters.copy()

    def restore(self, state: Any) -> None:
        """Return to a `state`."""
        self.parameters[:] = state

    def trainer(self, batches: Batches, trained_columns: Sequence[TrainedColumn]) -> NetTrainer:
        """What updates these networks."""
        return NetTrainer(self.nets(), batches, trained_columns)


class NetTrainer:
    """Update built-in networks: all in compiled code, and on one thread without Python in between."""

    def __init__(self, nets: Nets, batches: Batches, trained_columns: Sequence[TrainedColumn]):
        self.nets, self.batches = nets, batches
        n_pairs = batches.threads.n_pairs
        most = max((min(len(t.rows) + len(t.practice), 2 * n_pairs * t.batch_size) for t in trained_columns), default=0)
        self.listed = np.empty(most, np.int64)
        self.buffer = np.empty((2, int(nets.sizes.sum()) * most), np.float32)
        self.gradient = np.empty(nets.parameters.shape[1], np.float32)
        for trained_column in trained_columns[:1]:
            cells, geometry, plan, target = batches.cells, batches.geometry, trained_column.plan, trained_column.target
            workspaces, found = batches.workspaces_for(trained_column.batch_size, 1)
            load(begin_update, cells, plan, found, target, nets, 0, self.listed, self.buffer)
            load(column_gradient, cells, geometry, plan, workspaces[0], target.column, target.both_sides, 0, found)
            load(finish_update, cells, found, target, nets, 0, self.buffer, self.gradient, 0.0, 0.0)

    def update(self, trained_column: TrainedColumn, first: int, count: int, rate: float, l2: float) -> None:
        """Update one model ``count`` times, with the batches of the steps from ``first`` on."""
        cells, geometry, target = self.batches.cells, self.batches.geometry, trained_column.target
        workspaces, found = self.batches.workspaces_for(trained_column.batch_size, 1)
        if self.batches.in_compiled_code:
            run_updates(
                cells, geometry, trained_column.plan, workspaces[0], found, target, self.nets, first, count,
                self.listed, self.buffer, self.gradient, rate, l2,
            )  # fmt: skip
            return
        for step in range(first, first + count):
            n_listed = begin_update(cells, trained_column.plan, found, target, self.nets, step, self.listed, self.buffer)
            self.batches.column_gradients(trained_column)
            finish_update(cells, found, target, self.nets, n_listed, self.buffer, self.gradient, rate, l2)

    def state(self) -> Any:
        """All that a continued training needs but the parameters themselves."""
        return self.nets.moments, self.nets.n_updates, self.batches.cells.potentials

    def restore(self, state: Any) -> None:
        """Return to a `state`."""
        self.nets.moments[:], self.nets.n_updates[:], self.batches.cells.potentials[:] = state
