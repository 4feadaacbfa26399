"""Where the draws of a multiple imputation come from, by kind of imputer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._row_noise import keys_by_place
from ..auto import AutoImputer
from ..baselines import ChainedImputer, GaussianEMImputer, GaussianMixtureImputer
from ..estimator import BaseImputer
from ..exceptions import ParameterTypeError, ParameterValueError
from ..fitting import CellFit, DrawingModel
from ..estimator import FitTask
from ..imputers import SinkhornImputer

DRAWING: tuple[type[BaseImputer], ...] = (
    ChainedImputer,
    AutoImputer,
    GaussianEMImputer,
    GaussianMixtureImputer,
    SinkhornImputer,
)


class DrawSource(Protocol):
    """Makes any number of draws of the missing values of one table."""

    def draw(self, seed: int) -> CellFit:
        """One draw, and the model behind it; other seeds, other draws."""
        ...


def check_draws(imputer: object) -> None:
    """Raise unless an imputer draws, rather than guesses, what is missing."""
    accepted = ", ".join(cls.__name__ for cls in DRAWING)
    if not isinstance(imputer, DRAWING):
        what = type(imputer).__name__ if isinstance(imputer, BaseImputer) else repr(imputer)
        raise ParameterTypeError(
            f"imputer must be one that can draw missing values at random, {accepted}, or None for the default; got {what}, "
            "whose tables would all be alike"
        )
    if isinstance(imputer, AutoImputer) and imputer.target != "distribution":
        raise ParameterValueError(
            f'an AutoImputer draws values with target="distribution" only, got target={imputer.target!r}; its best guesses would '
            "be nearly the same in all tables"
        )


def draw_source(imputer: BaseImputer, task: FitTask) -> DrawSource:
    """What makes the draws of the table of a ``task`` for an imputer that passed `check_draws`."""
    if isinstance(imputer, ChainedImputer):
        return imputer.prepare_draws(task.values, task.missing, task.layout, seed=task.seed)
    return ResampledFits(imputer, task, with_duplicates=not isinstance(imputer, AutoImputer))


@dataclass(frozen=True)
class ResampledFits:
    """Each draw is made by a model that is fitted to other rows of the table, so that draws know how uncertain it is.

    The rows are a bootstrap sample. An imputer that hides values from itself must not find them in a copy of the row: it gets
    a half of the rows, each once, which varies as much.
    """

    imputer: BaseImputer
    task: FitTask
    with_duplicates: bool

    def draw(self, seed: int) -> CellFit:
        """One draw, and the model behind it."""
        values, missing = self.task.values, self.task.missing
        rows = resample(missing, self.with_duplicates, generator(seed, "resampled rows"))
        fit = self.imputer.fit_cells(values[rows], missing[rows], self.task.layout, seed=seed)
        model = fit.model
        if not hasattr(model, "draw_cells"):
            raise ParameterValueError("nothing was missing in the rows that were drawn; there must be more rows with missing values")
        drawing: DrawingModel = model  # type: ignore[assignment]
        return CellFit(drawing.draw_cells(values, missing, keys_by_place(len(values), seed)), model, fit.summary)


def resample(missing: NDArray[np.bool_], with_duplicates: bool, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a table at random, with some in which a column is observed for every column."""
    n = len(missing)
    rows = rng.integers(n, size=n) if with_duplicates else rng.choice(n, (n + 1) // 2, replace=False)
    for column in missing.T:
        if np.count_nonzero(~column[rows]) < _FEWEST_VALUES:
            observed = np.flatnonzero(~column)
            more = np.setdiff1d(observed, rows)
            rows = np.concatenate([rows, rng.permutation(more)[:_FEWEST_VALUES]])
    return np.sort(rows)


_FEWEST_VALUES = 3  # of a column, that every model sees where there are so many
