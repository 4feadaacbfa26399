"""What the guesses of all experts have in common: units, ranges, and which coordinates belong together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from ..fitting import ColumnLayout, columns_of
from ..table import FARTHEST, ColumnKind, Standardiser, few_values

_FARTHEST = 10.0  # spreads from the mean, both without the outermost values, that an observed value may seem to lie
_BEYOND = 1.0  # standard deviations that a guess may lie outside of what was observed

Cells = NDArray[np.float64]


@stored(group="columns", low="columns", high="columns", farthest="columns")
@dataclass(frozen=True)
class Columns:
    """What the experts' guesses have in common: units, and which coordinates belong together."""

    scaler: Standardiser
    group: NDArray[np.int64]  # [D]: column of the table, counted among those with values
    low: Cells  # [D]: range of the observed values, in standard deviations
    high: Cells
    farthest: Cells  # [D]: how far from the mean an observed value may seem to lie, in standard deviations

    @classmethod
    def of(
        cls,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        row_weight: Cells | None = None,
    ) -> Columns:
        """Learned from the observed values; those of labels, and of columns with few different ones, are never outliers."""
        if row_weight is not None:
            counts = row_weight > 0
            values, missing, row_weight = values[counts], missing[counts], row_weight[counts]
        scaler = Standardiser.fit(values, missing, scaled=layout.scaled, row_weight=row_weight)
        codes = layout.code_of_each
        never = np.array([code.has_labels or code.kind == ColumnKind.ORDERED for code in codes], dtype=bool)
        few = [len(few_values(values[~missing[:, k], k])) > 0 for k in range(len(layout))]
        farthest = np.where(never | few, FARTHEST, _FARTHEST)
        z = scaler.apply(np.where(missing, 0, values)).clip(-farthest, farthest)
        low, high = np.where(missing, np.inf, z).min(axis=0), np.where(missing, -np.inf, z).max(axis=0)
        return cls(scaler, np.unique(layout.groups, return_inverse=True)[1], low, high, farthest)

    def clip_outliers(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """A copy with observed values that are absurdly far away brought nearer.

        One mistyped number must not decide what the mean is, nor whom to trust.
        """
        clipped = np.array(values, dtype=np.float64)
        z = self.scaler.apply(np.where(missing, 0, values))
        far = (np.abs(z) > self.farthest) & ~missing
        column = columns_of(far)
        clipped[far] = self.scaler.restore(np.sign(z[far]) * self.farthest[column], column)
        return clipped

    def only(self, columns: NDArray[np.int64]) -> Columns:
        """Those of some coordinates."""
        scaler = self.scaler.only(columns)
        group = np.unique(self.group[columns], return_inverse=True)[1]
        return Columns(scaler, group, self.low[columns], self.high[columns], self.farthest[columns])

    @property
    def width(self) -> NDArray[np.int64]:
        """How many coordinates each column of the table has."""
        return np.bincount(self.group)

    def is_first(self, column: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some coordinates are the first of their column: values are counted by these."""
        return np.asarray(np.r_[True, np.diff(self.group) > 0][column])

    @property
    def n_groups(self) -> int:
        """How many columns of the table there are."""
        return int(self.group.max()) + 1 if len(self.group) else 0

    def standardise(self, cells: Cells, column: NDArray[np.int64]) -> Cells:
        """An expert's guesses in standard deviations, brought back to where values were observed."""
        z = self.scaler.apply_entries(cells, column)
        return np.clip(z, self.low[column] - _BEYOND, self.high[column] + _BEYOND)

    def values_of(self, g: int, z: Cells) -> Cells:
        """Coordinates ``[n, width]`` of the g-th column of the table, from standardised ones in a row."""
        own = np.flatnonzero(self.group == g)
        return self.scaler.restore(z, np.tile(own, len(z) // len(own))).reshape(-1, len(own))

    def restore(self, guess: Cells, missing: NDArray[np.bool_]) -> Cells:
        """Standardised guesses at missing entries in the columns' units."""
        return self.scaler.restore(guess, columns_of(missing))
