"""Imputers and regressors of scikit-learn as experts."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor

from .._random import generator
from ..baselines import StandardisedImputer
from ..baselines._standardised import Holes, Rows
from ..baselines.ice import chain_without_siblings

_ROUNDS = 5  # of a chain of regressors: they take long, and move little after that


class ScikitLearnImputer(StandardisedImputer):
    """An imputer of scikit-learn, or a regressor that predicts every column from the others, on standardised columns."""

    def __init__(
        self,
        estimator: Any,
        *,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.estimator = estimator
        self.random_state = random_state

    def check_parameters(self) -> None: ...

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:
        draw = int(generator(seed, "scikit-learn").integers(2**31))
        if is_regressor(self.estimator):
            groups = self._groups[self._varying]
            self._imputer = chain_without_siblings(
                groups, estimator=clone(self.estimator), max_iter=_ROUNDS, tol=1e-3, random_state=draw
            )
        else:
            self._imputer = clone(self.estimator)
            if "random_state" in self._imputer.get_params():
                self._imputer.set_params(random_state=draw)
        return self._checked(self._imputer.fit_transform(np.where(holes, np.nan, rows)), rows, holes)

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        return self._checked(self._imputer.transform(np.where(holes, np.nan, rows)), rows, holes)

    def _checked(self, completed: Any, rows: Rows, holes: Holes) -> Rows:
        if np.shape(completed) != rows.shape:
            raise ValueError(
                f"{self.estimator!r} as an expert must return the {rows.shape[1]} columns it gets, got {np.shape(completed)}; "
                "switch off its indicators"
            )
        return np.where(holes, np.asarray(completed, dtype=np.float64), rows)


def is_scikit_learn(expert: Any) -> bool:
    """Whether it is an imputer or regressor with scikit-learn's methods."""
    can_impute = hasattr(expert, "fit_transform") and hasattr(expert, "transform")
    return isinstance(expert, BaseEstimator) and not isinstance(expert, type) and (can_impute or is_regressor(expert))
