"""Trials where not every column may inform every other: one for each set of columns that inform the same ones.

Which values are hidden, and how much experts count, is then found out without the columns that have no say.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import generator, seed_from
from ..estimator import BaseImputer
from ..fitting import Block, BlockModel, ColumnLayout, blocks_of, centre_of
from ._choices import Choice
from ._columns import Columns
from ._trial import Trial, n_splits_for, sample_rows_to_try, share_out, try_experts


def try_in_blocks(
    experts: Mapping[str, BaseImputer],
    layout: ColumnLayout,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    columns: Columns,
    *,
    wanted: NDArray[np.bool_],
    draws: bool,
    n_splits: int | None,
    seed: int,
    stop_at: float,
    row_weight: NDArray[np.float64] | None,
    choices: Mapping[int, Choice],
    **how: Any,
) -> Trial:
    """`try_experts` in each block of columns, as one trial; in all columns at once where each may inform all others."""
    blocks = blocks_of(layout)
    shared = {"draws": draws, "row_weight": row_weight, **how}
    if not blocks or len(blocks[0].columns) == len(layout):
        return try_experts(
            experts, layout, values, missing, columns, wanted=wanted, n_splits=n_splits, seed=seed, stop_at=stop_at,
            choices=choices, **shared,
        )  # fmt: skip
    rows = sample_rows_to_try(missing, generator(seed, "hidden"), stop_at, row_weight)
    n_splits = n_splits or n_splits_for(missing[rows], layout, columns, draws=draws)
    trials = []
    for k, block in enumerate(blocks):
        now = time.perf_counter()
        until = stop_at if math.isinf(stop_at) else now + (stop_at - now) / (len(blocks) - k)
        own_layout = replace(layout.only(block.columns), imputed=_only(layout, block))
        trials.append(
            try_experts(
                experts, own_layout, block.of(values), block.of(missing), columns.only(block.columns),
                wanted=block.of(wanted), n_splits=n_splits, stop_at=until, rows=rows,
                choices=_choices_in(block, choices, columns),
                seed=seed_from(int(generator(seed, f"trial of block {k}").integers(2**31))), **shared,
            )
        )  # fmt: skip
    return replace(_joined(blocks, trials, columns, rows, values, missing), choices=choices)


def _choices_in(block: Block, choices: Mapping[int, Choice], columns: Columns) -> dict[int, Choice]:
    """The choices for columns that are imputed in a block, by their place in it."""
    targets = np.unique(columns.group[block.targets]).tolist()
    places = np.unique(columns.group[block.columns]).tolist()
    return {places.index(g): choice for g, choice in choices.items() if g in targets}


def _only(layout: ColumnLayout, block: Block) -> NDArray[np.bool_]:
    """The columns of the table that are imputed in a block: hidden values of others would teach nothing there."""
    return np.isin(np.arange(len(layout.codes)), layout.groups[block.targets])


def _joined(
    blocks: Sequence[Block],
    trials: Sequence[Trial],
    columns: Columns,
    rows: NDArray[np.int64],
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
) -> Trial:
    """The trials of blocks as one, of the experts that could be tried in all of them."""
    names = [name for name in trials[0].names if all(name in trial.names for trial in trials)]
    trials = [trial.only(names) for trial in trials]
    n_splits = min(int(trial.split.max(initial=0)) for trial in trials) + 1
    n_first, n_groups = trials[0].n_first, columns.n_groups
    first_weights, odds = np.zeros((n_groups, n_first)), np.ones((len(rows), n_groups))
    pool = np.full(n_groups, -1)
    kept = []
    for k, (block, trial) in enumerate(zip(blocks, trials, strict=True)):
        targets = np.unique(columns.group[block.targets])
        own = np.searchsorted(np.unique(columns.group[block.columns]), targets)
        first_weights[targets], odds[:, targets], pool[targets] = trial.first_weights[own], trial.odds[:, own], k
        kept.append(np.isin(block.columns[trial.column], block.targets) & (trial.split < n_splits))

    def joined(name: str) -> Any:
        return np.concatenate([getattr(trial, name)[mine] for trial, mine in zip(trials, kept, strict=True)])

    order = np.argsort(joined("split"), kind="stable")  # those that were hidden together stay together
    parts = zip(blocks, trials, kept, strict=True)
    column = np.concatenate([block.columns[trial.column[mine]] for block, trial, mine in parts])
    centre = centre_of(values, missing)
    return Trial(
        names=tuple(names),
        n_first=n_first,
        first_weights=share_out(first_weights, names[:n_first]),
        guesses=joined("guesses")[order],
        truth=joined("truth")[order],
        column=column[order],
        row=joined("row")[order],
        split=joined("split")[order],
        stands_for=joined("stands_for")[order],
        conditional_std=joined("conditional_std")[order],
        left_out={name: why for trial in trials for name, why in trial.left_out.items() if name not in names},
        rows=rows,
        odds=odds,
        seconds={name: sum(trial.seconds[name] for trial in trials) for name in names},
        fitted={name: BlockModel(centre, list(blocks), [trial.fitted[name] for trial in trials]) for name in names},
        pool=pool,
        row_weight=None if trials[0].row_weight is None else joined("row_weight")[order],
    )
