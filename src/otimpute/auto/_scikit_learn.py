"""Imputers and regressors of scikit-learn as experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor

from .._random import generator
from ..baselines.ice import chain_without_siblings
from ..baselines.standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, TrainingSet
from ..estimator import TableParameters

_ROUNDS = 5  # of a chain of regressors: they take long, and move little after that


@dataclass(frozen=True)
class ScikitLearnRows:
    """A fitted imputer of scikit-learn."""

    imputer: Any

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with their holes filled."""
        return _checked(self.imputer, self.imputer.transform(np.where(holes, np.nan, rows)), rows, holes)


class ScikitLearnImputer(StandardisedImputer):
    """An imputer of scikit-learn, or a regressor that predicts every column from the others, on standardised columns."""

    model_class: ClassVar[type] = StandardisedModel

    def __init__(self, estimator: Any, *, random_state: Any = None, **table: Unpack[TableParameters]):
        super().__init__(**table)
        self.estimator = estimator
        self.random_state = random_state

    def check_parameters(self) -> None: ...

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        rows, holes = training.rows, training.holes
        draw = int(generator(training.seed, "scikit-learn").integers(2**31))
        if is_regressor(self.estimator):
            imputer = chain_without_siblings(
                training.groups, estimator=clone(self.estimator), max_iter=_ROUNDS, tol=1e-3, random_state=draw
            )
        else:
            imputer = clone(self.estimator)
            if "random_state" in imputer.get_params():
                imputer.set_params(random_state=draw)
        completed = imputer.fit_transform(np.where(holes, np.nan, rows))
        return RowFit(_checked(imputer, completed, rows, holes), ScikitLearnRows(imputer))


def _checked(imputer: Any, completed: Any, rows: Rows, holes: Holes) -> Rows:
    if np.shape(completed) != rows.shape:
        raise ValueError(
            f"{imputer!r} as an expert must return the {rows.shape[1]} columns it gets, got {np.shape(completed)}; "
            "switch off its indicators"
        )
    return np.where(holes, np.asarray(completed, dtype=np.float64), rows)


def is_scikit_learn(expert: Any) -> bool:
    """Whether it is an imputer or regressor with scikit-learn's methods."""
    can_impute = hasattr(expert, "fit_transform") and hasattr(expert, "transform")
    return isinstance(expert, BaseEstimator) and not isinstance(expert, type) and (can_impute or is_regressor(expert))
