"""Imputation by column means, the simplest baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from ..estimator import BaseImputer
from ..fitting import CellFit, Cells, ColumnLayout, columns_of
from ..streams import ColumnSums


@stored(means="columns")
@dataclass(frozen=True)
class MeanModel:
    """Column means."""

    means: NDArray[np.float64]  # [D]

    def impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], start: Cells | None = None) -> Cells:  # noqa: ARG002
        """Return the values of the missing entries, row by row."""
        return self.means[columns_of(missing)]


class MeanSums:
    """Sums of columns over all rows."""

    def __init__(self, model: MeanModel):
        self.model = model
        self.columns = ColumnSums.empty(len(model.means))

    def add(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        """Add rows."""
        self.columns.add(values, missing)

    def merge(self, other: MeanSums) -> None:
        """Add the sums of other rows."""
        self.columns.merge(other.columns)

    def as_data(self) -> Any:
        """The same as JSON can hold it."""
        return self.columns.as_data()

    def take_over(self, data: Any) -> None:
        """What `as_data` returned."""
        self.columns = ColumnSums.from_data(data)

    def improved(self) -> MeanModel:
        """The model with the means of all rows."""
        means = self.columns.means()
        return MeanModel(np.where(np.isnan(means), self.model.means, means))


class MeanImputer(BaseImputer):
    """Impute missing values by the mean of the observed values of their column.

    Parameters
    ----------
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    means_ : array [n_columns]
        Mean of each column that has an observed value.

    Examples
    --------
    >>> import numpy as np
    >>> MeanImputer().fit_transform([[1.0, 2.0], [3.0, np.nan]]).tolist()
    [[1.0, 2.0], [3.0, 2.0]]
    """

    ends_early: ClassVar[bool] = True
    weighs_rows: ClassVar[bool] = True
    uses_predictors: ClassVar[bool] = False
    model_class: ClassVar[type] = MeanModel
    _model: MeanModel

    def check_parameters(self) -> None: ...

    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,  # noqa: ARG002
        *,
        seed: int,  # noqa: ARG002
        start: Cells | None = None,  # noqa: ARG002
        deadline: float = math.inf,  # noqa: ARG002
        sample_weight: NDArray[np.float64] | None = None,
    ) -> CellFit:
        weights = [None if sample_weight is None else sample_weight[~column] for column in missing.T]
        means = [_mean(values[~missing[:, k], k], weight) for k, weight in enumerate(weights)]
        model = MeanModel(np.array(means))
        return CellFit(model.impute_cells(values, missing), model)

    _summed = ("means of columns",)
    _sampled = ()

    def _row_sums(self) -> MeanSums:
        return MeanSums(self._model)

    def _improved(self, sums: MeanSums) -> MeanModel:
        return sums.improved()

    def _publish(self) -> None:
        self.means_ = self._model.means[self.training_table_.layout.own]


def _mean(column: NDArray[np.floating], weight: NDArray[np.float64] | None) -> float:
    """Return the mean, computed without overflow; exact when all values are equal."""
    largest = float(np.abs(column).max())
    if not largest:
        return 0.0
    scaled = column.astype(np.float64) / largest
    return float(np.average(scaled, weights=weight) * largest)
