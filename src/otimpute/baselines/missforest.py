"""Random forests, column after column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count
from .._random import generator
from ._standardised import Holes, Rows, StandardisedImputer


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

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_iter: int = 10,
        max_features: Any = "sqrt",
        min_samples_leaf: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
    ):
        self.n_estimators = n_estimators
        self.max_iter = max_iter
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers
        self.constraints = constraints
        self.max_categories = max_categories

    def _check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators)
        check_count("max_iter", self.max_iter)
        check_count("min_samples_leaf", self.min_samples_leaf)

    def _fit_rows(self, rows: Rows, holes: Holes, seed: int) -> Rows:
        seeds = generator(seed, "forests")
        by_holes = np.argsort(holes.sum(axis=0), kind="stable")
        self._order = by_holes if rows.shape[1] > 1 else by_holes[:0]  # a forest needs another column to look at
        self._forests: dict[int, Any] = {}
        incomplete = [k for k in self._order if holes[:, k].any()]
        self.n_iter_, self.converged_ = self.max_iter, not incomplete
        current, moved_before = rows, np.inf
        for round_number in range(1, self.max_iter + 1 if incomplete else 1):
            forests: dict[int, Any] = {}
            update = current.copy()
            for k in incomplete:
                forests[k] = self._fit_forest(update, k, ~holes[:, k], seeds)
                update[holes[:, k], k] = forests[k].predict(np.delete(update[holes[:, k]], k, axis=1))
            moved = float(((update - current) ** 2).sum() / (update**2).sum())
            if moved >= moved_before:
                self.converged_ = True
                break
            current, moved_before = update, moved
            self._forests, self.n_iter_ = forests, round_number
        for k in self._order:
            if k not in self._forests:
                self._forests[k] = self._fit_forest(current, k, np.ones(len(rows), dtype=bool), seeds)
        return current

    def _fit_forest(self, rows: Rows, k: int, observed: NDArray[np.bool_], seeds: np.random.Generator) -> Any:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(
            self.n_estimators,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            n_jobs=self.n_jobs,
            random_state=int(seeds.integers(2**31)),
        )
        forest.fit(np.delete(rows[observed], k, axis=1), rows[observed, k])
        return forest.set_params(n_jobs=1)  # threads add the trees' predictions up in any order: last bits would differ

    def _complete_rows(self, rows: Rows, holes: Holes) -> Rows:
        completed = rows.copy()
        for _ in range(self.n_iter_):
            for k in self._order:
                if holes[:, k].any():
                    others = np.delete(completed[holes[:, k]], k, axis=1)
                    completed[holes[:, k], k] = self._forests[k].predict(others)
        return completed
