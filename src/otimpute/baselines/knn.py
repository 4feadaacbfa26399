"""Nearest neighbours, by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_choice, check_count
from ._standardised import Holes, Rows, StandardisedImputer


class KNNImputer(StandardisedImputer):
    """Fill a hole with the mean of its column over the nearest rows that have it (scikit-learn's KNNImputer).

    Columns are standardised inside, so that no unit dominates the distance. A row without any value gets column means.

    Parameters
    ----------
    n_neighbors : int, default=5
        Rows to average.
    weights : {"uniform", "distance"}, default="uniform"
        Whether nearer rows count more.
    random_state : int, Generator, RandomState or None, default=None
        Without effect; here so that all imputers are made alike.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[1.0, 10.0], [1.1, 12.0], [9.0, 90.0], [1.05, np.nan]]
    >>> KNNImputer(n_neighbors=2).fit_transform(X)[3, 1].round(6)
    np.float64(11.0)
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        weights: str = "uniform",
        random_state: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers
        self.constraints = constraints
        self.max_categories = max_categories

    def _check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_choice("weights", self.weights, ["uniform", "distance"])

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:  # noqa: ARG002
        from sklearn.impute import KNNImputer as ScikitLearnKNN

        self._knn = ScikitLearnKNN(n_neighbors=self.n_neighbors, weights=self.weights)
        self._knn.fit(np.where(holes, np.nan, rows))
        return self._complete_rows(rows, holes)

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        return np.asarray(self._knn.transform(np.where(holes, np.nan, rows)))
