"""Imputation by nearest neighbours, using scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count
from .._stored import Array, Whole, stored
from ..estimator import TableParameters
from .standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, TrainingSet


@stored(rows=Array("R varying", nan=True), n_neighbors=Whole(at_least=1))
@dataclass(frozen=True)
class Neighbours:
    """The training rows and the parameters of the search."""

    rows: NDArray[np.float64]  # [R, d], NaN where missing
    n_neighbors: int
    weights: str

    def __post_init__(self) -> None:
        if np.isnan(self.rows).all(axis=0).any():
            raise ValueError("a column has no value in any row")
        check_choice("weights", self.weights, ["uniform", "distance"])

    @cached_property
    def method(self) -> Any:
        """scikit-learn's imputer, fitted on the rows."""
        from sklearn.impute import KNNImputer as ScikitLearnKNN

        return ScikitLearnKNN(n_neighbors=self.n_neighbors, weights=self.weights, copy=False).fit(self.rows)

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Return the rows with their missing values filled in."""
        return np.asarray(self.method.transform(np.where(holes, np.nan, rows)))


@stored()
@dataclass(frozen=True)
class KNNModel(StandardisedModel):
    """Nearest neighbours on standardised columns."""

    method: Neighbours | None


class KNNImputer(StandardisedImputer):
    """Impute missing values by the mean of the nearest rows with an observed value (scikit-learn's KNNImputer).

    Columns are standardised internally, so that no unit dominates the distance. A row without any observed value gets column
    means. When several rows are equally near, as with categories, the choice among them may depend on the other rows passed
    to ``transform``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbouring rows to average.
    weights : {"uniform", "distance"}, default="uniform"
        Whether all neighbours have the same weight, or the inverse of their distance.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[1.0, 10.0], [1.1, 12.0], [9.0, 90.0], [1.05, np.nan]]
    >>> KNNImputer(n_neighbors=2).fit_transform(X)[3, 1].round(6)
    np.float64(11.0)
    """

    model_class: ClassVar[type] = KNNModel

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        weights: str = "uniform",
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_neighbors = n_neighbors
        self.weights = weights

    def check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_choice("weights", self.weights, ["uniform", "distance"])

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        neighbours = Neighbours(np.where(training.holes, np.nan, training.rows), self.n_neighbors, self.weights)
        return RowFit(neighbours.fill(training.rows, training.holes), neighbours)
