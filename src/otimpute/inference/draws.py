"""Where the draws of a multiple imputation come from, by kind of imputer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from .._random import generator
from .._row_noise import keys_by_place
from ..baselines import ChainedImputer, GaussianEMImputer, GaussianMixtureImputer
from ..baselines.chained import ChainedFit, PreparedDraws
from ..estimator import BaseImputer, FitTask
from ..fitting import Block, BlockModel, CellFit, DrawingModel, blocks_of, fit_within_predictors, join_fits
from ..imputers import SinkhornImputer

DRAWING: tuple[type[BaseImputer], ...] = (ChainedImputer, GaussianEMImputer, GaussianMixtureImputer, SinkhornImputer)
_FEWEST_VALUES = 3  # of a column, that every model sees where there are so many


class DrawSource(Protocol):
    """Makes any number of draws of the missing values of one table."""

    def draw(self, seed: int) -> CellFit:
        """One draw, and the model behind it; other seeds, other draws."""
        ...


def check_draws(imputer: object) -> None:
    """Raise unless an imputer draws what is missing from a model that is drawn too."""
    if isinstance(imputer, DRAWING):
        return
    accepted = ", ".join(f"{cls.__name__}()" for cls in DRAWING)
    what = type(imputer).__name__ if isinstance(imputer, BaseImputer) else repr(imputer)
    raise TypeError(
        f"imputer must be None for the default, or one of {accepted}, got {what}: a multiple imputation needs random draws, "
        "from another fit for each table"
    )


def draw_source(imputer: BaseImputer, task: FitTask, seed: int) -> DrawSource:
    """What makes the draws of the table of a ``task`` for an imputer that passed `check_draws`."""
    if not isinstance(imputer, ChainedImputer):
        return BootstrapFits(imputer, task)
    blocks = blocks_of(task.layout)
    if not blocks or len(blocks[0].columns) == len(task.layout):
        return imputer.prepare_draws(task.values, task.missing, task.layout, seed=seed)
    prepared = [
        imputer.prepare_draws(each.of(task.values), each.of(task.missing), task.layout.only(each.columns), seed=seed)
        for each in blocks
    ]
    return BlockDraws(task, blocks, prepared)


@dataclass(frozen=True)
class BlockDraws:
    """Chained draws where not every column may inform every other; what a block may see of others' draws, it knows."""

    task: FitTask
    blocks: list[Block]
    prepared: list[PreparedDraws]

    def draw(self, seed: int) -> ChainedFit:
        """One draw, and the models behind it."""
        values, missing, groups = self.task.values, self.task.missing, self.task.layout.groups
        seeds = generator(seed, "blocks").integers(2**63, size=len(self.blocks)).tolist()
        fits = [each.draw(own) for each, own in zip(self.prepared, seeds, strict=True)]
        joined = join_fits(self.blocks, fits, values, missing)
        cells = cast("BlockModel", joined.model).draw_cells(values, missing, keys_by_place(len(values), seed))
        traced, traces = [], []
        for block, fit in zip(self.blocks, fits, strict=True):
            for k, place in enumerate(fit.traced):
                if fit.trace is not None and place in groups[block.targets]:
                    traced.append(place)
                    traces.append(fit.trace[:, k])
        trace = np.stack(traces, axis=1) if traces else None
        return ChainedFit(cells, joined.model, joined.summary, tuple(traced), trace)


@dataclass(frozen=True)
class BootstrapFits:
    """Each draw is made by a model that is fitted to a bootstrap sample of the rows, so that draws know how uncertain it is."""

    imputer: BaseImputer
    task: FitTask

    def draw(self, seed: int) -> CellFit:
        """One draw, and the model behind it."""
        values, missing = self.task.values, self.task.missing
        rows = bootstrap_rows(missing, generator(seed, "bootstrap rows"))
        fit = fit_within_predictors(self.imputer, values[rows], missing[rows], self.task.layout.of_some_rows(), seed=seed)
        model = cast("DrawingModel", fit.model)
        return CellFit(model.draw_cells(values, missing, keys_by_place(len(values), seed)), fit.model, fit.summary)


def bootstrap_rows(missing: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a table drawn with replacement, with some more for columns of which hardly a value would be left.

    >>> missing = np.zeros((50, 2), dtype=bool)
    >>> missing[2:, 1] = True
    >>> rows = bootstrap_rows(missing, np.random.default_rng(0))
    >>> np.unique(rows[~missing[rows, 1]]).tolist()
    [0, 1]
    """
    rows = rng.integers(len(missing), size=len(missing))
    for column in missing.T:
        if len(np.unique(rows[~column[rows]])) < _FEWEST_VALUES:
            others = np.setdiff1d(np.flatnonzero(~column), rows)
            rows = np.concatenate([rows, rng.permutation(others)[:_FEWEST_VALUES]])
    return np.sort(rows)
