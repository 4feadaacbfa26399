"""Sums over all rows of a table that is read in batches, for the experts that can make use of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..baselines.gaussian_em import GaussianEMModel, GaussianSums
from ..baselines.gaussian_mixture import GaussianMixtureModel, MixtureSums
from ..baselines.mean import MeanModel, MeanSums
from ..estimator import BaseImputer
from ._model import AutoModel

_SUMS: dict[type, tuple[Callable[[Any], Any], str]] = {
    MeanModel: (MeanSums, "means"),
    GaussianEMModel: (GaussianSums, "mean and covariance of the Gaussian (a step of EM)"),
    GaussianMixtureModel: (MixtureSums, "components of mixtures (a step of EM)"),
}


class AutoSums:
    """The sums of each expert that has any, by its place."""

    def __init__(self, model: AutoModel) -> None:
        self.model = model
        self.by_place: dict[int, Any] = {}
        for place, expert in enumerate(model.panel.models):
            if type(expert) in _SUMS:
                self.by_place[place] = _SUMS[type(expert)][0](expert)

    @property
    def described(self) -> list[str]:
        """What is summed, in words."""
        types = {type(self.model.panel.models[place]) for place in self.by_place}
        return [words for model_type, (_, words) in _SUMS.items() if model_type in types]

    def add(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        """Add rows, in which outliers count as they do where experts learn."""
        clipped = self.model.columns.clip_outliers(values, missing)
        for sums in self.by_place.values():
            sums.add(clipped, missing)

    def merge(self, other: AutoSums) -> None:
        """Add the sums of other rows."""
        for place, sums in self.by_place.items():
            sums.merge(other.by_place[place])

    def as_data(self) -> Any:
        """The same as JSON can hold it."""
        return [sums.as_data() for sums in self.by_place.values()]

    def take_over(self, data: Any) -> None:
        """What `as_data` returned."""
        for sums, each in zip(self.by_place.values(), data, strict=True):
            sums.take_over(each)

    def improved(self, experts: Mapping[str, BaseImputer]) -> AutoModel:
        """The model with these experts as all rows make them, with as many imaginary rows as each was fitted with."""
        models = list(self.model.panel.models)
        for place, sums in self.by_place.items():
            prior_rows = getattr(experts.get(self.model.panel.names[place]), "prior_rows", None)
            models[place] = sums.improved() if prior_rows is None else sums.improved(prior_rows)
        return replace(self.model, panel=replace(self.model.panel, models=models))
