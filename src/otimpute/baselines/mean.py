"""The column mean: what every other method must beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, Kind
from ..estimator import BaseImputer


class MeanImputer(BaseImputer):
    """Fill every hole with the mean of the observed values of its column.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None, default=None
        Without effect; here so that all imputers are made alike.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    means_ : array [n_columns]
        Mean of each column that had a value.

    Examples
    --------
    >>> import numpy as np
    >>> MeanImputer().fit_transform([[1.0, 2.0], [3.0, np.nan]]).tolist()
    [[1.0, 2.0], [3.0, 2.0]]
    """

    _stored: ClassVar[Mapping[str, Kind]] = {"means_": Array("columns", np.float64)}

    def __init__(
        self,
        *,
        random_state: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
    ):
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers
        self.constraints = constraints
        self.max_categories = max_categories

    def _check_parameters(self) -> None: ...

    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        self.means_ = np.array([_mean(values[~missing[:, k], k]) for k in range(values.shape[1])])
        return self._impute_cells(values, missing)

    def _impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:  # noqa: ARG002
        return self.means_[np.nonzero(missing)[1]]


def _mean(column: NDArray[np.floating]) -> float:
    """The mean, without overflow on the way; exact when all values are equal."""
    largest = float(np.abs(column).max())
    return float((column.astype(np.float64) / largest).mean() * largest) if largest else 0.0
