"""A user's torch modules as models of Algorithm 3, one per column."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice
from ..._torch import take_weights, torch_for, weights_of
from ...exceptions import StoredFileError
from ..batches.divergence import collect_rows, draw_pair, list_free_rows
from ..torch_modules import Modes, check_parameters
from .nets import gather_inputs, write_predictions

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from ..batches.pair_threads import Batches
    from .trained_columns import TrainedColumn

_BLOCK = 16_384  # rows predicted at a time


def check_model(model: Any) -> None:
    """The parameter ``model`` of `RoundRobinImputer`: a name, or a function that makes modules."""
    if hasattr(model, "state_dict") and not isinstance(model, type):
        raise TypeError(
            "model must make a module per column: pass a function such as lambda d_in: torch.nn.Linear(d_in, 1), "
            f"got the module {model!r} itself"
        )
    if not callable(model):
        if not isinstance(model, str):
            raise TypeError(
                f'model must be "linear", "mlp" or a function that takes a number of inputs and returns a torch module, '
                f"got {model!r}"
            )
        check_choice("model", model, ["linear", "mlp"])


class ModuleModels:
    """One torch module per column, made by the user's factory."""

    def __init__(self, factory: Callable[[int], Any], groups: NDArray[np.int64]):
        n_columns = len(groups)
        self.groups = groups
        self.what = "the module that model(d_in) returns"
        self.n_columns = n_columns
        self.modules: list[Module] = [self._make(factory) for _ in range(n_columns)]
        if len({id(module) for module in self.modules}) < n_columns:
            raise ValueError("model(d_in) returned the same module twice; it must make a new one at each call")
        self.modes = [Modes(module) for module in self.modules]
        for column in range(n_columns):
            self._check_output(column)

    def _make(self, factory: Callable[[int], Any]) -> Any:
        try:
            module = factory(self.n_columns - 1)
        except TypeError as error:
            raise TypeError(f"model({self.n_columns - 1}), called with a number of inputs, failed: {error}") from error
        check_parameters(module, self.what)
        return module

    def _check_output(self, column: int) -> None:
        """Try a module on a few rows, so that mistakes come to light before the training."""
        torch = torch_for("training torch modules")
        inputs = np.random.default_rng(0).standard_normal((self.n_columns - 1, 5), dtype=np.float32)
        try:
            predictions = self(inputs, column)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{self.what} failed on a tensor of shape (5, {self.n_columns - 1}): {error}") from error
        if not predictions.requires_grad:
            raise ValueError(f"the output of {self.what} is not differentiable; compute it from parameters, without detach()")
        if not torch.isfinite(predictions).all():
            raise ValueError(f"{self.what} returns NaN or infinity for standard normal inputs")

    def __call__(self, inputs: NDArray[np.float32], column: int) -> Tensor:
        """Predictions ``[R]`` from ``inputs [d − 1, R]``."""
        torch = torch_for("training torch modules")
        module = self.modules[column]
        kind = next(module.parameters()).dtype
        output = module(torch.from_numpy(np.ascontiguousarray(inputs.T)).to(kind))
        n_rows = inputs.shape[1]
        if not isinstance(output, torch.Tensor) or tuple(output.shape) not in ((n_rows,), (n_rows, 1)):
            got = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
            raise ValueError(
                f"{self.what} must map [rows, d_in] to one number a row, a tensor of shape ({n_rows},) or ({n_rows}, 1) "
                f"for {n_rows} rows, got {got}"
            )
        flat: Tensor = output.reshape(n_rows)
        return flat

    def predict(self, values: NDArray[np.float32], rows: NDArray[np.int64], column: int) -> NDArray[np.float32]:
        """Predictions of one column for some rows of a working copy."""
        torch = torch_for("predicting by torch modules")
        predictions = np.empty(len(rows), np.float32)
        with torch.no_grad():
            for begin in range(0, len(rows), _BLOCK):
                block = rows[begin : begin + _BLOCK]
                inputs = np.empty((self.n_columns - 1, len(block)), np.float32)
                gather_inputs(values, block, column, self.groups, inputs)
                predictions[begin : begin + _BLOCK] = self(inputs, column).numpy()
        return predictions

    def weights(self) -> list[dict[str, NDArray[Any]]]:
        """The state of every module, to be stored."""
        return [weights_of(module, self.what) for module in self.modules]

    def take_weights(self, stored: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        """Put stored weights into modules just made."""
        if len(stored) != self.n_columns:
            raise StoredFileError(f"there are weights of {len(stored)} modules for {self.n_columns} columns")
        for module, weights in zip(self.modules, stored, strict=True):
            take_weights(module, weights, self.what)

    def state(self) -> Any:
        """A copy of all parameters."""
        return copy.deepcopy([module.state_dict() for module in self.modules])

    def restore(self, state: Any) -> None:
        """Return to a `state`."""
        try:
            for module, one in zip(self.modules, state, strict=True):
                module.load_state_dict(one)
        except RuntimeError as error:
            raise StoredFileError(f"{self.what} is not the one the checkpoint was written with: {error}") from error

    def trainer(self, batches: Batches, trained_columns: Sequence[TrainedColumn]) -> ModuleTrainer:  # noqa: ARG002
        """What updates these modules."""
        return ModuleTrainer(self, batches)


class ModuleTrainer:
    """Update torch modules: predictions and their parameters' gradients by torch, the divergence's by our kernels."""

    def __init__(self, models: ModuleModels, batches: Batches):
        torch = torch_for("training torch modules")
        self.models, self.batches = models, batches
        self.optimizers = [torch.optim.Adam(check_parameters(module, models.what)) for module in models.modules]
        self.listed = np.empty(len(batches.cells.values), np.int64)

    def update(self, trained_column: TrainedColumn, first: int, count: int, rate: float, l2: float) -> None:
        """Update one model ``count`` times, with the batches of the steps from ``first`` on."""
        torch = torch_for("training torch modules")
        cells, target, models = self.batches.cells, trained_column.target, self.models
        _, found = self.batches.workspaces_for(trained_column.batch_size, 1)
        optimizer = self.optimizers[target.column]
        for group in optimizer.param_groups:
            group["lr"], group["weight_decay"] = rate, l2
        with models.modes[target.column].training(models.modules[target.column]):
            for step in range(first, first + count):
                for pair in range(len(found.rows)):
                    draw_pair(trained_column.plan, len(cells.values), step, pair, found.rows)
                n_listed = list_free_rows(cells, found.rows, target.free, step, self.listed)
                if n_listed == 0:
                    continue
                rows = self.listed[:n_listed]
                inputs = np.empty((models.n_columns - 1, n_listed), np.float32)
                gather_inputs(cells.values, rows, target.column, models.groups, inputs)
                predictions = models(inputs, target.column)
                write_predictions(cells.values, rows, target, predictions.detach().numpy().astype(np.float32))
                self.batches.column_gradients(trained_column)
                gradient = np.empty((n_listed, 1), np.float32)
                collect_rows(cells, found, target.free, target.both_sides, gradient)
                optimizer.zero_grad()
                torch.autograd.backward(predictions, torch.from_numpy(gradient[:, 0]).to(predictions.dtype))
                optimizer.step()

    def state(self) -> Any:
        """All that a continued training needs but the modules themselves."""
        torch = torch_for("training torch modules")
        optimizers = [optimizer.state_dict() for optimizer in self.optimizers]
        return optimizers, self.batches.cells.potentials, torch.get_rng_state()

    def restore(self, state: Any) -> None:
        """Return to a `state`."""
        torch = torch_for("training torch modules")
        for optimizer, one in zip(self.optimizers, state[0], strict=True):
            optimizer.load_state_dict(one)
        self.batches.cells.potentials[:] = state[1]
        torch.set_rng_state(state[2])
