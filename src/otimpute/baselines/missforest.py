"""Random forests, column after column."""

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

_MOST_ROUNDS = 1_000_000  # nobody waits longer, and a file that asks for more is not ours


@stored(n_rounds=Whole(at_most=_MOST_ROUNDS))
@dataclass(frozen=True)
class ForestRounds:
    """Forests, and how many times rows go through them."""

    forests: list[Forest]
    n_rounds: int

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with their holes filled."""
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
    """missForest (Stekhoven & Bühlmann, 2012): a random forest per column, refitted in rounds.

    Rounds go over the columns from the fewest holes to the most, starting from column means, and end when the imputed values
    move more than in the round before; the values of the round before are then the result, as published. New rows go
    through the last forests as many times (``max_iter`` times if nothing was missing in training). Columns that are complete
    in training get a forest too.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees per forest.
    max_iter : int, default=10
        Most rounds.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Columns tried at a split, as in scikit-learn's forests; the square root is the published choice.
    min_samples_leaf : int, default=1
        Least rows in a leaf. Forests of long tables take gigabytes: more rows per leaf take less.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    n_iter_ : int
        Rounds whose values were used, and made for new rows.
    converged_ : bool
        Whether the rule ended the rounds, rather than ``max_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> X = np.column_stack([x, x**2])
    >>> X[20, 1] = np.nan
    >>> bool(abs(MissForestImputer(n_estimators=20, random_state=0).fit_transform(X)[20, 1] - x[20] ** 2) < 0.1)
    True
    """

    model_class: ClassVar[type] = MissForestModel

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
                forest = forests[columns[0]] = self._fit_forest(update, columns, ~where, seeds)
                update[np.ix_(where, columns)] = forest.predict(update[where])
            moved = float(((update - current) ** 2).sum() / (update**2).sum())
            if moved >= moved_before:
                converged = True
                break
            current, moved_before = update, moved
            found, n_rounds = forests, round_number
        everywhere = np.ones(len(rows), dtype=bool)
        last = [
            found[columns[0]] if columns[0] in found else self._fit_forest(current, columns, everywhere, seeds)
            for columns in targets
        ]
        return RowFit(current, ForestRounds(last, n_rounds), FitSummary(n_steps=n_rounds, converged=converged))

    def _fit_forest(
        self, rows: Rows, columns: NDArray[np.int64], observed: NDArray[np.bool_], seeds: np.random.Generator
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
        forest.fit(known[:, inputs], known[:, columns] if len(columns) > 1 else known[:, columns[0]])
        return Forest.of(forest, columns, inputs)

    def _publish(self) -> None:
        summary = self.fit_summary_
        if summary.n_steps is not None:
            self.n_iter_, self.converged_ = summary.n_steps, summary.converged
