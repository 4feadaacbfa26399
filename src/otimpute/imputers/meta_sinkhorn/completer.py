"""A torch module as the completer of Algorithm 2: what it is shown, and whether it answers as it should."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._torch import torch_for
from ...exceptions import DivergedError
from ..torch_modules import Modes, check_parameters

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = 16_384  # rows completed at a time
_WHAT = "completer"


class Completer:
    """A trained copy of a user's module.

    The module sees the columns of the user's table, all of them, so that its sizes are those of the table: columns of the
    working copy at their places, 0 in columns that do not vary, and columns without values as missing.
    """

    def __init__(self, module: Any, used: NDArray[np.bool_], varying: NDArray[np.int64]):
        check_parameters(module, _WHAT)
        self.module = copy.deepcopy(module)
        self.modes = Modes(self.module)
        self.n_columns, self.places, self.empty = len(used), np.flatnonzero(used)[varying], ~used

    @classmethod
    def make(cls, made_of: Any, used: NDArray[np.bool_], varying: NDArray[np.int64]) -> Completer:
        """From the parameter ``completer``; ``used`` are the columns of the table that had a value, ``varying`` of those."""
        torch = torch_for("MetaSinkhornImputer")
        module, n_columns = made_of, len(used)
        if module is None:
            from .joint_completer import JointCompleter

            # In float64, or a row would be filled a little otherwise in other company (products round by their shape).
            module = JointCompleter(n_columns).double()
        elif callable(module) and not isinstance(module, torch.nn.Module):
            try:
                module = module(n_columns)
            except TypeError as error:
                raise TypeError(
                    f"completer must be a torch.nn.Module or make one from a number of columns, but completer({n_columns}) "
                    f"failed: {error}"
                ) from error
        return cls(module, used, varying)

    def _show(self, rows: NDArray[np.float32], holes: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """Values and missing, as the module sees them."""
        torch = torch_for("MetaSinkhornImputer")
        shown = np.zeros((len(rows), self.n_columns), np.float32)
        shown[:, self.places] = rows[:, : len(self.places)]
        where = np.zeros(shown.shape, dtype=bool)
        where[:, self.places] = holes
        where[:, self.empty] = True
        return torch.from_numpy(shown).to(next(self.module.parameters()).dtype), torch.from_numpy(where)

    def __call__(self, rows: NDArray[np.float32], holes: NDArray[np.bool_]) -> Tensor:
        """What the module makes of rows of the working copy: all columns of the user's table."""
        torch = torch_for("MetaSinkhornImputer")
        completed = self.module(*self._show(rows, holes))
        expected = len(rows), self.n_columns
        if not isinstance(completed, torch.Tensor) or tuple(completed.shape) != expected:
            got = tuple(completed.shape) if isinstance(completed, torch.Tensor) else type(completed).__name__
            raise ValueError(
                f"{_WHAT}(values, missing) must return completed rows, a tensor of the shape of values {expected}, got {got}"
            )
        table: Tensor = completed
        return table

    def check(self, rows: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        """Try the module on a few rows, so that mistakes come to light before the training."""
        torch = torch_for("MetaSinkhornImputer")
        values, missing = self._show(rows, holes)
        try:
            completed = self(rows, holes)
            in_holes = (completed * torch.linspace(1, 2, completed.numel()).reshape(completed.shape))[missing].sum()
            parameters = check_parameters(self.module, _WHAT)
            found = torch.autograd.grad(in_holes, parameters, allow_unused=True) if completed.requires_grad else []
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"{_WHAT}(values, missing) failed on tensors of shape {tuple(values.shape)}: {error}; it must take rows of "
                f"the table's {self.n_columns} columns and not change them in place"
            ) from error
        if not torch.isfinite(completed).all():
            raise ValueError(f"{_WHAT}(values, missing) returned NaN or infinity, although all it was shown is finite")
        changed = (completed.detach() - values).abs()[~missing]
        if changed.numel() and float(changed.max()) > 0:
            raise ValueError(
                f"{_WHAT}(values, missing) changed observed values, by up to {float(changed.max()):.3g}; "
                "return torch.where(missing, prediction, values)"
            )
        if not any(gradient is not None and gradient.any() for gradient in found):
            raise ValueError(
                f"what {_WHAT}(values, missing) put into the holes is not differentiable with respect to its parameters, or "
                "does not depend on them; compute it from them, without detach(), numpy or no_grad()"
            )

    def fill(self, rows: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        """Write the module's predictions into the holes of a working copy, a block of rows at a time."""
        torch = torch_for("MetaSinkhornImputer")
        with torch.no_grad():
            for begin in range(0, len(rows), _BLOCK):
                block, where = rows[begin : begin + _BLOCK], holes[begin : begin + _BLOCK]
                predictions = self.predictions(self(block, where))[where]
                if not np.isfinite(predictions).all():
                    raise DivergedError(
                        f"the {_WHAT} returns infinite values or NaN; lower learning_rate or raise epsilon; "
                        "a module of your own must be finite wherever its inputs are"
                    )
                block[:, : where.shape[1]][where] = predictions

    def predictions(self, completed: Tensor) -> NDArray[np.float32]:
        """The columns of the working copy among those of a completed tensor."""
        table: NDArray[np.float32] = completed.detach().numpy()[:, self.places].astype(np.float32)
        return table

    def learn(self, completed: Tensor, gradient: NDArray[np.float32]) -> None:
        """Send the divergence's gradient ``[R, d]`` with respect to the completed rows back to the parameters."""
        torch = torch_for("MetaSinkhornImputer")
        full = np.zeros(tuple(completed.shape), np.float32)
        full[:, self.places] = gradient
        torch.autograd.backward(completed, torch.from_numpy(full).to(completed.dtype))
