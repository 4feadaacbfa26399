"""Sums over all rows of a table that is read in batches, for the experts that can make use of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..baselines.gaussian_em import GaussianEMModel, GaussianSums
from ..baselines.mean import MeanModel, MeanSums
from ._model import AutoModel


class AutoSums:
    """The sums of each expert that has any, by its place."""

    def __init__(self, model: AutoModel) -> None:
        self.model = model
        self.by_place: dict[int, GaussianSums | MeanSums] = {}
        for place, expert in enumerate(model.panel.models):
            if isinstance(expert, GaussianEMModel):
                self.by_place[place] = GaussianSums(expert)
            elif isinstance(expert, MeanModel):
                self.by_place[place] = MeanSums(expert)

    def add(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        """Add rows, in which outliers count as they do where experts learn."""
        clipped = self.model.columns.clip_outliers(values, missing)
        for sums in self.by_place.values():
            sums.add(clipped, missing)

    def merge(self, other: AutoSums) -> None:
        """Add the sums of other rows."""
        for place, sums in self.by_place.items():
            sums.merge(other.by_place[place])  # type: ignore[arg-type]

    def as_data(self) -> Any:
        """The same as JSON can hold it."""
        return [sums.as_data() for sums in self.by_place.values()]

    def take_over(self, data: Any) -> None:
        """What `as_data` returned."""
        for sums, each in zip(self.by_place.values(), data, strict=True):
            sums.take_over(each)

    def improved(self) -> AutoModel:
        """The model with these experts as all rows make them."""
        models = list(self.model.panel.models)
        for place, sums in self.by_place.items():
            models[place] = sums.improved()
        return replace(self.model, panel=replace(self.model.panel, models=models))
