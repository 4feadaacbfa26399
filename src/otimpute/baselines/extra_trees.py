"""Extremely randomised trees, column after column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from .._checks import check_count, check_real
from .._deadline import check_deadline
from .._random import generator
from .._stored import stored
from ..estimator import TableParameters
from ..trees import Forest, grow_extra_trees
from .refining import RefiningImputer, RefiningModel
from .standardised import Holes, RowFit, Rows, TrainingSet

_MOST_TRIED = 50  # columns at a split: in wide tables time goes nowhere else


@stored()
@dataclass(frozen=True)
class TreeRounds:
    """The forests of every round; the result is the mean over the rounds."""

    rounds: list[list[Forest]]

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with better values in their holes."""
        current, mean = rows.copy(), np.zeros_like(rows)
        for forests in self.rounds:
            for forest in forests:
                _predict(forest, current, holes[:, forest.columns[0]])
            mean += current / len(self.rounds)
        return mean


@stored()
@dataclass(frozen=True)
class ExtraTreesModel(RefiningModel):
    """Forests that refine a first guess."""

    method: TreeRounds | None


class ExtraTreesImputer(RefiningImputer):
    """Extremely randomised trees per column, grown anew in every round, from the guess of a Gaussian model.

    The result is the mean over the rounds: later ones follow the table more closely, earlier ones stay nearer to the start,
    and each has trees of its own. New rows go through the same rounds and the same trees.

    Parameters
    ----------
    n_estimators : int, default=20
        Trees per column and round.
    n_rounds : int, default=6
        Rounds over the columns, from the fewest holes to the most.
    max_features : float, default=0.75
        Share of the other columns tried at a split, but never more than 50 columns.
    min_samples_leaf : int, default=1
        Least rows in a leaf.
    max_rows : int, default=5000
        Most rows a tree is grown on, drawn for each tree.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> X = np.column_stack([x, x**2])
    >>> X[20, 1] = np.nan
    >>> bool(abs(ExtraTreesImputer(random_state=0).fit_transform(X)[20, 1] - x[20] ** 2) < 0.1)
    True
    """

    model_class: ClassVar[type] = ExtraTreesModel

    def __init__(
        self,
        *,
        n_estimators: int = 20,
        n_rounds: int = 6,
        max_features: float = 0.75,
        min_samples_leaf: int = 1,
        max_rows: int = 5000,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_estimators = n_estimators
        self.n_rounds = n_rounds
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.max_rows = max_rows
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators)
        check_count("n_rounds", self.n_rounds)
        check_real("max_features", self.max_features, above=0, at_most=1)
        check_count("min_samples_leaf", self.min_samples_leaf)
        check_count("max_rows", self.max_rows)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        rows, holes = training.rows, training.holes
        rng = generator(training.seed, "extra trees")
        targets = training.targets()
        current, mean = rows.copy(), np.zeros_like(rows)
        rounds: list[list[Forest]] = []
        for _ in range(self.n_rounds):
            forests = []
            for columns in targets:
                check_deadline(training.deadline)
                inputs = np.setdiff1d(np.arange(rows.shape[1]), columns)
                where = holes[:, columns[0]]
                forest = grow_extra_trees(
                    current,
                    columns,
                    inputs,
                    np.flatnonzero(~where),
                    n_trees=self.n_estimators,
                    max_features=min(int(self.max_features * len(inputs)), _MOST_TRIED),
                    min_samples_leaf=self.min_samples_leaf,
                    max_rows=self.max_rows,
                    rng=rng,
                )
                _predict(forest, current, where)
                forests.append(forest)
            rounds.append(forests)
            mean += current / self.n_rounds
        return RowFit(mean, TreeRounds(rounds))


def _predict(forest: Forest, rows: Rows, where: Holes) -> None:
    if where.any():
        rows[np.ix_(where, forest.columns)] = forest.predict(rows[where])
