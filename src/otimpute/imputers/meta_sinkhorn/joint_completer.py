"""The completer `MetaSinkhornImputer` uses when it is given none. Imported only when asked for: it needs torch."""

from __future__ import annotations

import torch


class JointCompleter(torch.nn.Module):
    """Correct the first guess in all holes of a row at once, from all its values and from which of them are guesses.

    A network with two hidden layers sees the values and a 0/1 indicator per column. Its last layer starts at 0, so training
    begins at the first guess.
    """

    def __init__(self, n_columns: int, width: int | None = None):
        super().__init__()
        width = width or min(256, max(32, 2 * n_columns))
        last = torch.nn.Linear(width, n_columns)
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(2 * n_columns, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            last,
        )

    def forward(self, values: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
        """Rows ``[n, d]`` with their holes filled."""
        correction = self.network(torch.cat([values, missing.to(values.dtype)], dim=1))
        return torch.where(missing, values + correction, values)
