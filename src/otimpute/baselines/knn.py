"""Nearest neighbours, by scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count
from .._stored import Array, Whole, stored
from ..estimator import TableParameters
from .standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, Training


@stored(rows=Array("R varying", nan=True), n_neighbors=Whole(at_least=1))
@dataclass(frozen=True)
class Neighbours:
    """The training rows and how to use them."""

    rows: NDArray[np.float64]  # [R, d], NaN in the holes
    n_neighbors: int
    weights: str

    def __post_init__(self) -> None:
        if np.isnan(self.rows).all(axis=0).any():
            raise ValueError("a column has no value in any row")
        check_choice("weights", self.weights, ["uniform", "distance"])

    @cached_property
    def method(self) -> Any:
        """scikit-learn's imputer, which keeps the rows and needs no other training."""
        from sklearn.impute import KNNImputer as ScikitLearnKNN

        return ScikitLearnKNN(n_neighbors=self.n_neighbors, weights=self.weights, copy=False).fit(self.rows)

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with their holes filled."""
        return np.asarray(self.method.transform(np.where(holes, np.nan, rows)))


@stored()
@dataclass(frozen=True)
class KNNModel(StandardisedModel):
    """The nearest of the training rows."""

    method: Neighbours | None


class KNNImputer(StandardisedImputer):
    """Fill a hole with the mean of its column over the nearest rows that have it (scikit-learn's KNNImputer).

    Columns are standardised inside, so that no unit dominates the distance. A row without any value gets column means. Where
    several rows are equally near, as with categories, which of them count may depend on the rows transformed together.

    Parameters
    ----------
    n_neighbors : int, default=5
        Rows to average.
    weights : {"uniform", "distance"}, default="uniform"
        Whether nearer rows count more.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
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

    def _fit_rows(self, training: Training) -> RowFit:
        neighbours = Neighbours(np.where(training.holes, np.nan, training.rows), self.n_neighbors, self.weights)
        return RowFit(neighbours.fill(training.rows, training.holes), neighbours)
