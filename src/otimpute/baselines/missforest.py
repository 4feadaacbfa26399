"""missForest: imputation by random forests, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count
from .._deadline import check_deadline
from .._random import generator
from .._stored import Whole, stored
from ..estimator import TableParameters
from ..fitting import FitSummary
from ..trees import Forest
from .standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, TrainingSet

_MOST_ROUNDS = 1_000_000  # a model file with a larger number is invalid


@stored(n_rounds=Whole(at_most=_MOST_ROUNDS))
@dataclass(frozen=True)
class ForestRounds:
    """The forests, and how many rounds to apply them."""

    forests: list[Forest]
    n_rounds: int

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Return the rows with their missing values filled in."""
        completed = rows.copy()
        for _ in range(self.n_rounds):
            before = completed.copy()
            for forest in self.forests:
                where = holes[:, forest.columns[0]]
                completed[np.ix_(where, forest.columns)] = forest.predict(completed[where])
            if np.array_equal(completed, before):
                break  # further rounds would change nothing either
        return completed


@stored()
@dataclass(frozen=True)
class MissForestModel(StandardisedModel):
    """The forests of the last round."""

    method: ForestRounds | None


class MissForestImputer(StandardisedImputer):
    """Impute missing values by random forests, one per column (missForest: Stekhoven & Bühlmann, 2012).

    Starting from column means, each round refits the forests, from the column with the fewest missing values to the one with
    the most. As published, the rounds stop when the imputed values change more than in the previous round, whose values are
    then the result. New rows pass through the last forests the same number of times (``max_iter`` times if nothing was
    missing in training). Columns that are complete in training get a forest too.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees per forest.
    max_iter : int, default=10
        Maximum number of rounds.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Number of columns to consider at each split, as in scikit-learn's forests; ``"sqrt"`` is the published choice.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf. Increase it if the forests of a long table take too much memory.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. Pass an int for reproducible results.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds used, also for new rows.
    converged_ : bool
        Whether the stopping rule was met before ``max_iter`` rounds.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> X = np.column_stack([x, x**2])
    >>> X[20, 1] = np.nan
    >>> bool(abs(MissForestImputer(n_estimators=20, random_state=0).fit_transform(X)[20, 1] - x[20] ** 2) < 0.1)
    True
    """

    weighs_rows: ClassVar[bool] = True
    model_class: ClassVar[type] = MissForestModel
    _state_version: ClassVar[int] = 4

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_iter: int = 10,
        max_features: Any = "sqrt",
        min_samples_leaf: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_estimators = n_estimators
        self.max_iter = max_iter
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators)
        check_count("max_iter", self.max_iter)
        check_count("min_samples_leaf", self.min_samples_leaf)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        rows, holes = training.rows, training.holes
        seeds = generator(training.seed, "forests")
        targets = training.targets()
        incomplete = [columns for columns in targets if holes[:, columns[0]].any()]
        n_rounds, converged = self.max_iter, not incomplete
        current, moved_before = rows, np.inf
        found: dict[int, Forest] = {}
        for round_number in range(1, self.max_iter + 1 if incomplete else 1):
            forests = {}
            update = current.copy()
            for columns in incomplete:
                check_deadline(training.deadline)
                where = holes[:, columns[0]]
                forest = forests[columns[0]] = self._fit_forest(update, columns, ~where, seeds, training.row_weight)
                update[np.ix_(where, columns)] = forest.predict(update[where])
            moved = float(((update - current) ** 2).sum() / (update**2).sum())
            if moved >= moved_before:
                converged = True
                break
            current, moved_before = update, moved
            found, n_rounds = forests, round_number
        everywhere = np.ones(len(rows), dtype=bool)
        last = [
            found[columns[0]]
            if columns[0] in found
            else self._fit_forest(current, columns, everywhere, seeds, training.row_weight)
            for columns in targets
        ]
        return RowFit(current, ForestRounds(last, n_rounds), FitSummary(n_steps=n_rounds, converged=converged))

    def _fit_forest(
        self,
        rows: Rows,
        columns: NDArray[np.int64],
        observed: NDArray[np.bool_],
        seeds: np.random.Generator,
        row_weight: NDArray[np.float64] | None,
    ) -> Forest:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(
            self.n_estimators,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            n_jobs=self.n_jobs,
            random_state=int(seeds.integers(2**31)),
        )
        inputs = np.setdiff1d(np.arange(rows.shape[1]), columns)
        known = rows[observed]
        own = None if row_weight is None else row_weight[observed]
        forest.fit(known[:, inputs], known[:, columns] if len(columns) > 1 else known[:, columns[0]], own)
        return Forest.of(forest, columns, inputs)

    def _publish(self) -> None:
        summary = self.fit_summary_
        if summary.n_steps is not None:
            self.n_iter_, self.converged_ = summary.n_steps, summary.converged
