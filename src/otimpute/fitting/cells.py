"""What a fit to an array of numbers returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .summary import FitSummary

Cells = NDArray[np.float64]  # [N]: entries of an array, row by row


def columns_of(cells: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The columns of marked cells ``[n, d]``, row by row; a flat look is several times faster than ``np.nonzero``.

    >>> columns_of(np.array([[True, False], [True, True]])).tolist()
    [0, 0, 1]
    """
    return np.asarray(np.flatnonzero(cells) % max(cells.shape[1], 1))


class CellModel(Protocol):
    """Imputes the missing entries of rows, each row alone; nothing changes in it when it does."""

    def impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], start: Any = None) -> Cells:
        """The missing entries, row by row.

        Parameters
        ----------
        values : array [n, D]
            Rows with the columns of the fit; what stands in missing entries is ignored.
        missing : array of bool [n, D]
            Where entries are missing.
        start : array [N] or None
            A first guess at the missing entries, for models that were fitted with one.
        """
        ...


class DrawingModel(CellModel, Protocol):
    """A model that can also draw missing entries at random, as they may be."""

    def draw_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries, row by row; a row's follow from its observed values and its key ``[n]``."""
        ...


@dataclass(frozen=True)
class CellFit:
    """The outcome of ``fit_cells``."""

    cells: Cells  # [N]: the imputed entries, row by row
    model: CellModel
    summary: FitSummary = field(default_factory=FitSummary)
