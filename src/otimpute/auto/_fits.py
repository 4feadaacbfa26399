"""What an `AutoImputer` learns from arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fitting import CellFit, Cells, ColumnLayout
from ._model import AutoModel
from ._report import Findings

if TYPE_CHECKING:
    from .auto_imputer import AutoImputer


@dataclass(frozen=True)
class AutoFit(CellFit):
    """What was learned, with error bars and what there is to say about it."""

    model: AutoModel
    bars: Cells = field(kw_only=True)  # [N]
    findings: Findings = field(kw_only=True)

    @property
    def weights(self) -> dict[Any, dict[str, float]]:
        """By column, the weight of each expert."""
        panel = self.model.panel
        rows = zip(self.findings.names, panel.weights, self.findings.imputed, strict=False)  # the last are those of helpers
        return {name: dict(zip(panel.names, row.tolist(), strict=True)) for name, row, is_imputed in rows if is_imputed}


@dataclass(frozen=True)
class CompleteTable:
    """Stands for a model that nobody needed yet: experts are tried when there is something to impute, which may be never."""

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]  # of which nothing is to be imputed
    layout: ColumnLayout
    seed: int
    imputer: AutoImputer
    row_weight: NDArray[np.float64] | None

    def learn(self) -> AutoFit:
        """What the experts make of the table."""
        nothing = np.zeros(self.missing.shape, dtype=bool)
        return self.imputer._learn(self.values, self.missing, nothing, self.layout, self.seed, row_weight=self.row_weight)

    def impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], start: Cells | None = None) -> Cells:  # noqa: ARG002
        """Learn, then impute."""
        return self.learn().model.impute_cells(values, missing) if missing.any() else np.empty(0)
