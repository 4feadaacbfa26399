"""Extremely randomised trees, column after column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from .._checks import check_count, check_jobs, check_real
from .._deadline import check_deadline
from .._random import generator
from .._stored import stored
from .._threads import FEW, Workers, n_threads
from ..estimator import TableParameters
from ..trees import Forest, GrownForest, grow_extra_trees
from .inputs import choose_inputs
from .refining import RefiningImputer, RefiningModel
from .standardised import Holes, RowFit, Rows, TrainingSet

_TREES_OF_NEW_ROWS, _LEAF_OF_NEW_ROWS = 16, 2  # fewer and smaller trees do as well for new rows (docs/studies/auto.md)
_TURNS = 6  # about, of the columns in a round: more do no better, and threads wait for each other after every one
_PASSES = 2  # of new rows through these: what is missing beside an entry is better known in the second


@stored()
@dataclass(frozen=True)
class LastForests:
    """The forests of the last round, by column; new rows go through them some after the others, and once more."""

    forests: list[Forest]

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with better values in their holes."""
        current, completed = rows.astype(np.float32), rows.copy()
        where = [np.flatnonzero(holes[:, forest.columns[0]]) for forest in self.forests]
        for k in range(_PASSES):
            for turn in _turns(len(self.forests)):
                following = list(zip(self.forests[turn], where[turn], strict=True))
                found = [forest.predict(current, its_rows) for forest, its_rows in following]
                for (forest, its_rows), values in zip(following, found, strict=True):
                    place = np.ix_(its_rows, forest.columns)
                    current[place] = values
                    if k == _PASSES - 1:
                        completed[place] = values
        return completed


@stored()
@dataclass(frozen=True)
class ExtraTreesModel(RefiningModel):
    """Forests that refine a first guess."""

    method: LastForests | None


class ExtraTreesImputer(RefiningImputer):
    """Extremely randomised trees per column, grown anew in every round, from the guess of a Gaussian model.

    The result is the mean over the rounds: later ones follow the table more closely, earlier ones stay nearer to the start,
    and each has trees of its own. New rows go twice through the trees of the last round, which are all that is kept. With
    ``sample_weight`` a row is there as often in every tree as its weight says, on average.

    Parameters
    ----------
    n_estimators : int, default=20
        Trees per column and round; at most 16 in the last round.
    n_rounds : int, default=6
        Rounds over the columns, from the fewest holes to the most.
    max_features : float, default=0.75
        Share of the inputs tried at a split. Inputs are the other columns, in wide tables the 32 with the closest relation.
    min_samples_leaf : int, default=1
        Least rows in a leaf; at least 2 in the last round.
    max_rows : int, default=5000
        Most rows a tree is grown on, drawn for each tree.
    n_jobs : int or None, default=None
        Threads; None is one, -1 all cores. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
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

    weighs_rows: ClassVar[bool] = True
    model_class: ClassVar[type] = ExtraTreesModel
    _state_version: ClassVar[int] = 4

    def __init__(
        self,
        *,
        n_estimators: int = 20,
        n_rounds: int = 6,
        max_features: float = 0.75,
        min_samples_leaf: int = 1,
        max_rows: int = 5000,
        n_jobs: int | None = None,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_estimators = n_estimators
        self.n_rounds = n_rounds
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators)
        check_count("n_rounds", self.n_rounds)
        check_real("max_features", self.max_features, above=0, at_most=1)
        check_count("min_samples_leaf", self.min_samples_leaf)
        check_count("max_rows", self.max_rows)
        check_jobs(self.n_jobs)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        rows, holes, rng = training.rows, training.holes, generator(training.seed, "extra trees")
        targets = training.targets()
        inputs = choose_inputs(rows, targets)
        observed, missing = (
            [np.flatnonzero(holes[:, columns[0]] == is_missing) for columns in targets] for is_missing in (False, True)
        )
        cells = [where[:, None] * rows.shape[1] + columns for where, columns in zip(missing, targets, strict=True)]
        current = rows.astype(np.float32, order="C")  # what trees see
        completed = np.ascontiguousarray(np.where(holes, 0, rows))
        cells_of_trees, cells_of_rounds = current.reshape(-1), completed.reshape(-1)  # views
        last: list[GrownForest] = []
        with Workers(n_threads(self.n_jobs)) as workers:
            for k in range(self.n_rounds):
                is_last = k == self.n_rounds - 1
                for turn in _turns(len(targets)):
                    check_deadline(training.deadline)
                    grown = grow_extra_trees(
                        current,
                        targets[turn],
                        inputs[turn],
                        observed[turn],
                        missing[turn],
                        n_trees=min(self.n_estimators, _TREES_OF_NEW_ROWS) if is_last else self.n_estimators,
                        max_features=self.max_features,
                        min_samples_leaf=max(self.min_samples_leaf, _LEAF_OF_NEW_ROWS) if is_last else self.min_samples_leaf,
                        max_rows=self.max_rows,
                        rng=rng,
                        workers=workers,
                        row_weight=training.row_weight,
                        with_trees=is_last,
                    )
                    for (forest, found), its_cells in zip(grown, cells[turn], strict=True):
                        cells_of_trees[its_cells] = found
                        cells_of_rounds[its_cells] += found / self.n_rounds
                        last += [forest] if is_last else []
            forests = workers.map(GrownForest.whole, last, most_threads=FEW)
        return RowFit(completed, LastForests(forests))


def _turns(n_columns: int) -> list[slice]:
    """Which columns are improved side by side: the few of many, so that each sees what became of nearly all others."""
    n_turns = -(-n_columns // (1 + n_columns // _TURNS))
    return [slice(k * n_columns // n_turns, (k + 1) * n_columns // n_turns) for k in range(n_turns)]
