"""Fits in which not every column may inform every other: one for each set of columns that inform the same ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._random import generator, seed_from
from .._row_noise import other_keys
from ..exceptions import ParameterValueError
from .cells import CellFit, CellModel, Cells
from .layout import ColumnLayout
from .summary import STOPPED_EARLY, FitSummary

_Places = NDArray[np.int64]


class FitsCells(Protocol):
    """An imputer, as far as a fit to arrays goes; those that weigh rows take ``sample_weight`` as well."""

    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        seed: int,
        start: Cells | None = None,
        deadline: float = math.inf,
    ) -> CellFit:
        """Learn from an array of numbers, and impute its missing entries."""
        ...


@dataclass(frozen=True)
class Block:
    """Some columns of an array that are imputed from the same columns, which they are among."""

    targets: _Places
    columns: _Places

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """What an array holds of the columns."""
        return array[:, self.columns]

    @property
    def is_target(self) -> NDArray[np.bool_]:
        """Which of the columns are imputed here."""
        return np.isin(self.columns, self.targets)


def blocks_of(layout: ColumnLayout) -> list[Block]:
    """The fits that a layout asks for, the ones with fewest columns first; those that nobody imputes are targets of none.

    Two columns share a fit if they and what may inform them are the same columns: nothing else reaches a fit.

    >>> from dataclasses import replace
    >>> layout = replace(ColumnLayout.of_numbers("abc"), predictors=np.array([[0, 1, 0], [1, 0, 0], [1, 1, 0]], dtype=bool))
    >>> [(block.targets.tolist(), block.columns.tolist()) for block in blocks_of(layout)]
    [([0, 1], [0, 1]), ([2], [0, 1, 2])]
    """
    if layout.predictors is None:
        every = np.arange(len(layout))
        return [Block(np.flatnonzero(layout.is_imputed), every)]
    found: dict[bytes, tuple[_Places, list[int]]] = {}  # helpers inform whoever may learn from the column they are about
    for group in np.unique(layout.groups[layout.is_imputed]).tolist():
        together = layout.predictors[group] | (np.arange(len(layout.predictors)) == group)
        columns = np.flatnonzero(together[layout.column_of_each])
        found.setdefault(columns.tobytes(), (columns, []))[1].append(group)
    blocks = [Block(np.flatnonzero(np.isin(layout.groups, targets)), columns) for columns, targets in found.values()]
    return sorted(blocks, key=lambda block: len(block.columns))


@dataclass(frozen=True)
class BlockModel:
    """A model for each block of columns. Missing entries of columns that nobody imputes get the mean."""

    centre: NDArray[np.float64]  # [D]
    blocks: list[Block]
    models: list[CellModel]  # of the blocks

    def __post_init__(self) -> None:
        targets = np.concatenate([np.empty(0, np.int64), *(block.targets for block in self.blocks)])
        inside = all(
            np.isin(block.targets, block.columns).all() and (np.diff(block.columns) > 0).all() for block in self.blocks
        )
        in_range = all(0 <= block.columns.min() <= block.columns.max() < len(self.centre) for block in self.blocks)
        if not inside or not in_range or len(np.unique(targets)) < len(targets) or len(self.blocks) != len(self.models):
            raise ValueError("blocks of columns and their models do not go together")

    def impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], start: Any = None) -> Cells:  # noqa: ARG002
        """The missing entries, row by row; a start is not used, for it may know more than a block may."""
        return self.collect(missing, lambda model, block: model.impute_cells(block.of(values), block.of(missing)), self.centre)

    def draw_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries; what was drawn in a block is known in blocks that may see all of it."""
        drawn, done = np.where(missing, self.centre, values), list[Block]()
        for k, (block, model) in enumerate(zip(self.blocks, self.models, strict=True)):
            left = missing.copy()
            for other in done:
                if np.isin(other.columns, block.columns).all():
                    left[:, other.targets] = False
            unknown = block.of(left)
            points = np.zeros(unknown.shape)
            points[unknown] = model.draw_cells(block.of(drawn), unknown, other_keys(keys, k))  # type: ignore[attr-defined]
            own = missing[:, block.targets]
            drawn[:, block.targets] = np.where(own, points[:, block.is_target], drawn[:, block.targets])
            done.append(block)
        return np.asarray(drawn[missing])

    def collect(
        self, missing: NDArray[np.bool_], ask: Callable[[Any, Block], Cells], otherwise: NDArray[np.float64] | float = 0.0
    ) -> Cells:
        """What ``ask`` says of each block's missing entries, for its targets; ``otherwise`` for entries of nobody's targets."""
        found = np.broadcast_to(np.asarray(otherwise, dtype=np.float64), missing.shape).copy()
        for block, model in zip(self.blocks, self.models, strict=True):
            own = block.of(missing)
            points = np.zeros(own.shape)
            points[own] = ask(model, block)
            found[:, block.targets] = points[:, block.is_target]
        return np.asarray(found[missing])

    def mapped(self, change: Callable[[Any, Block], CellModel]) -> BlockModel:
        """With other models."""
        models = [change(model, block) for block, model in zip(self.blocks, self.models, strict=True)]
        return BlockModel(self.centre, self.blocks, models)

    def columns_said(self, ask: Callable[[Any, Block], NDArray[np.int64]]) -> NDArray[np.int64]:
        """The targets among the columns that ``ask`` names of each block."""
        said = [block.columns[ask(model, block)] for block, model in zip(self.blocks, self.models, strict=True)]
        named = [each[np.isin(each, block.targets)] for each, block in zip(said, self.blocks, strict=True)]
        return np.sort(np.concatenate([np.empty(0, np.int64), *named]))


def fit_within_predictors(
    imputer: FitsCells,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    layout: ColumnLayout,
    *,
    seed: int,
    start: Cells | None = None,
    deadline: float = math.inf,
    sample_weight: NDArray[np.float64] | None = None,
) -> CellFit:
    """Fit an imputer such that no column learns from one that may not inform it, once for each block of columns.

    With several fits a ``start`` is not used: it may come from columns that a block must not see.
    """
    blocks = blocks_of(layout)
    weight: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}  # not all imputers know it
    if not getattr(imputer, "uses_predictors", True) or not blocks or len(blocks[0].columns) == len(layout):
        return imputer.fit_cells(values, missing, layout, seed=seed, start=start, deadline=deadline, **weight)
    _refuse_checkpoint(imputer)
    fits: list[CellFit] = []
    for k, block in enumerate(blocks):
        now = time.perf_counter()
        part = deadline if math.isinf(deadline) else now + (deadline - now) / (len(blocks) - k)
        own = seed_from(int(generator(seed, f"block {k}").integers(2**31)))
        fits.append(
            imputer.fit_cells(
                block.of(values), block.of(missing), layout.only(block.columns), seed=own, deadline=part, **weight
            )
        )
    return join_fits(blocks, fits, values, missing)


def join_fits(
    blocks: Sequence[Block], fits: Sequence[CellFit], values: NDArray[np.floating], missing: NDArray[np.bool_]
) -> CellFit:
    """The fits of blocks as one."""
    centre = centre_of(values, missing)
    model = BlockModel(centre, list(blocks), [fit.model for fit in fits])
    cells = {id(fit.model): fit.cells for fit in fits}
    return CellFit(
        model.collect(missing, lambda each, _: cells[id(each)], centre), model, _worst([fit.summary for fit in fits])
    )


def centre_of(values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The means of columns, computed without overflow."""
    n = np.maximum((~missing).sum(axis=0), 1)
    return np.asarray((np.where(missing, 0.0, values) / n).sum(axis=0), dtype=np.float64)


def ask_model(
    model: Any, missing: NDArray[np.bool_], question: Callable[[Any, Callable[[NDArray[Any]], NDArray[Any]], int], Cells]
) -> Cells:
    """What a model, or each model of blocks, says about missing entries: to a ``question`` about what it sees of an array."""
    if not isinstance(model, BlockModel):
        return question(model, lambda array: array, 0)
    places = {id(block): k for k, block in enumerate(model.blocks)}
    return model.collect(missing, lambda each, block: question(each, block.of, places[id(block)]))


def is_made_of(model: Any, kind: type) -> bool:
    """Whether a model, or each model of blocks, is of a kind."""
    return all(isinstance(each, kind) for each in model.models) if isinstance(model, BlockModel) else isinstance(model, kind)


def _worst(summaries: Sequence[FitSummary]) -> FitSummary:
    """The summary of several fits: that of the one that was stopped, or did not settle, or took longest."""
    stopped = [each for each in summaries if each.stop_reason in STOPPED_EARLY]
    unsettled = [each for each in summaries if each.converged is False]
    return max(stopped or unsettled or summaries, key=lambda each: each.n_steps or 0)


def _refuse_checkpoint(imputer: Any) -> None:
    if getattr(imputer, "checkpoint", None) is not None:
        raise ParameterValueError(
            "checkpoint", imputer.checkpoint, "None where predictors make several fits of one", "leave out one of the two"
        )
