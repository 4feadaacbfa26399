"""What a fit leaves: experts, their weights, and what is known about the errors of their combination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._row_noise import keys_by_content, keys_by_place, other_keys, uniform
from .._stored import Array, ListOf, RecordOf, stored
from .._threads import ALONE, Workers, single_blas_thread
from ..baselines.gaussian_mixture import GaussianMixtureModel
from ..fitting import BlockModel, CellModel, ask_model, columns_of, is_made_of
from ._class_chances import ClassChances
from ._columns import Cells, Columns
from ._draws import DrawRule, reflect
from ._error_bars import ErrorBars, describe_cells
from ._experts import MIXTURE
from ._panel import Panel, disagreement
from ._trial import Trial, Weighed, conditional_std
from ._weights import combine

_ENOUGH_RESIDUALS, _MOST_RESIDUALS = 1000, 50_000  # of a column, and of all of them together
_CHUNK = 8192  # new rows handled at a time
Seen = Callable[[NDArray[Any]], NDArray[Any]]  # what a model may see of an array
_FIRST_OF_CLASSES = 1 << 20  # random number of a row that categories are drawn with; those before are the mixture's


@stored(
    columns=RecordOf((Columns,)),
    panel=RecordOf((Panel,)),
    error_bars=RecordOf((ErrorBars,)),
    classes=ListOf(RecordOf((ClassChances,))),
    draw_rule=RecordOf((DrawRule,)),
    low=Array("columns", nan=True),
    high=Array("columns", nan=True),
)
@dataclass(frozen=True)
class AutoModel:
    """Fills missing entries row by row; a pure function of a row, and of the ``seed`` where values are drawn."""

    columns: Columns
    panel: Panel
    error_bars: ErrorBars
    classes: list[ClassChances]
    draw_rule: DrawRule
    low: Cells  # [D]: between which draws must lie; NaN where they need not
    high: Cells
    draws: bool
    seed: int

    def __post_init__(self) -> None:
        n_groups, n_coordinates = self.columns.n_groups, len(self.columns.group)
        parts = self.panel.weights, self.error_bars.weights, self.draw_rule.drawn, self.draw_rule.slope
        fits = {len(part) for part in parts} == {n_groups} and len(self.low) == len(self.high) == n_coordinates
        fits &= all(each.columns.stop <= n_coordinates for each in self.classes)
        mixture = dict(zip(self.panel.names, self.panel.models, strict=True)).get(MIXTURE)
        if not fits or (self.draws and not is_made_of(mixture, GaussianMixtureModel)):
            raise ValueError("experts, weights and columns do not go together")

    def impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], start: Cells | None = None) -> Cells:  # noqa: ARG002
        """Imputed entries of rows."""
        return self.impute(values, missing, with_bars=False)[0]

    def draw_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries."""
        if not self.draws:
            raise ValueError('this model imputes best guesses; fit an AutoImputer with target="distribution" to draw')
        return self.impute(values, missing, keys, with_bars=False)[0]

    def impute(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        keys: NDArray[np.uint64] | None = None,
        workers: Workers = ALONE,
        *,
        with_bars: bool = True,
    ) -> tuple[Cells, Cells]:
        """Imputed entries of rows, and how far off they may be; a row's draw follows from its key, by default its values."""

        def impute_chunk(chunk: slice) -> tuple[Cells, Cells]:
            rows, guesses = self._guess(values[chunk], missing[chunk])
            return self.combine(rows, missing[chunk], guesses, None if keys is None else keys[chunk], with_bars=with_bars)

        with single_blas_thread():
            parts = [(np.empty(0), np.empty(0)), *workers.map(impute_chunk, _chunks(len(values)))]
        cells, bars = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cells, bars

    def chances(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> dict[int, Cells]:
        """By column of the table that has classes, the chance of each in every row ``[n, K]``."""
        found = {each.place: np.empty((len(values), len(each.corners))) for each in self.classes}
        for chunk in _chunks(len(values)):
            holes = missing[chunk]
            rows, guesses = self._guess(values[chunk], holes)
            points, std = self.columns.scaler.apply(np.where(holes, 0, rows)), np.zeros(holes.shape)
            points[holes], std[holes] = self.weighted(holes, guesses), self._std(holes, guesses)
            for each in self.classes:
                own = points[:, each.columns]
                known = np.eye(len(each.corners))[each.nearest(own)]
                found[each.place][chunk] = np.where(holes[:, [each.first]], each.of(own, std[:, each.first]), known)
        return found

    def combine(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        guesses: Cells,
        keys: NDArray[np.uint64] | None,
        *,
        with_bars: bool = True,
    ) -> tuple[Cells, Cells]:
        """Imputed entries and error bars from the experts' guesses, in the columns' units; of labels, chances to be wrong.

        Without ``with_bars`` error bars are 0 where nothing imputed depends on them: they are a tenth of the work.
        """
        column = columns_of(missing)
        scaler, group = self.columns.scaler, self.columns.group[column]
        z = self.weighted(missing, guesses)
        std = self._std(missing, guesses) if with_bars or self.classes else np.zeros(len(z))
        cells, bars = scaler.restore(z, column), std * scaler.unit[column]
        if self.draws:
            drawn = self.draw_rule.apply(z, self._residuals(values, missing, keys), group)
            cells = reflect(scaler.restore(drawn, column), self.low[column], self.high[column])
            bars = bars * np.sqrt(2)  # a draw is as far from what is expected as the truth is, independently of it
        if self.classes:  # the place of a missing coordinate among all of them
            entry = np.cumsum(missing).reshape(missing.shape) - 1
        for each in self.classes:
            rows = np.flatnonzero(missing[:, each.first])
            mine = entry[rows, each.columns]
            chances = each.of(z[mine], std[mine[:, 0]])
            chosen = chances[:, : each.n_classes].argmax(axis=1)
            if self.draws:
                own_keys = self._keys(values, missing, keys, *self._seen_for(each.first))[rows]
                chosen = _draw(chances[:, : each.n_classes], uniform(own_keys, _FIRST_OF_CLASSES + each.place))
            if each.is_decided or self.draws:
                own = np.arange(len(missing[0]))[each.columns]
                cells[mine] = scaler.restore(each.corners[chosen].ravel(), np.tile(own, len(rows))).reshape(mine.shape)
            if each.is_label:
                wrong = 1 - chances[np.arange(len(rows)), chosen] if each.was_tried else np.full(len(rows), np.nan)
                bars[mine] = wrong[:, None]
        return cells, bars

    def with_draws_scaled(
        self, trial: Trial, weighed: Weighed, values: NDArray[np.floating], missing: NDArray[np.bool_], guess: Cells
    ) -> AutoModel:
        """With draws that vary as much as true values do around what experts guess at them, which is ``guess`` in these rows.

        Rows are drawn for several times, so that there are enough residuals of every column to know their tails.
        """
        incomplete = missing.any(axis=1)
        if not incomplete.any():  # nothing could be hidden either
            return self
        fewest = int(missing.sum(axis=0)[missing.any(axis=0)].min())
        n_times = int(np.clip(_ENOUGH_RESIDUALS / fewest, 1, max(_MOST_RESIDUALS / missing.sum(), 1)))
        values, missing = (np.tile(each[incomplete], (n_times, 1)) for each in (values, missing))
        drawn, group = self._residuals(values, missing, keys_by_place(len(values), self.seed)), self.columns.group
        rule = DrawRule.fit(
            weighed.guess, trial.truth, trial.stands_for, group[trial.column],
            np.tile(guess, n_times), drawn, group[columns_of(missing)], self.columns.n_groups,
        )  # fmt: skip
        return replace(self, draw_rule=rule)

    def _guess(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> tuple[NDArray[np.float64], Cells]:
        """Rows as experts see them, and their guesses at what is missing."""
        rows = self.columns.clip_outliers(values, missing)
        with single_blas_thread():
            return rows, self.panel.guess(rows, missing, self.columns)

    def weighted(self, missing: NDArray[np.bool_], guesses: Cells) -> Cells:
        """The experts' guesses at missing entries, combined; in standard deviations."""
        return combine(guesses, self.panel.weights[self.columns.group[columns_of(missing)]])

    def _std(self, missing: NDArray[np.bool_], guesses: Cells) -> Cells:
        """Error bars of missing entries, in standard deviations of their columns."""
        group = self.columns.group[columns_of(missing)]
        apart = disagreement(guesses, self.panel.weights[group])
        return self.error_bars.at(describe_cells(apart, conditional_std(self.panel.models, missing, self.columns)), group)

    def _keys(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64] | None, seen: Seen, k: int
    ) -> NDArray[np.uint64]:
        """What rows are drawn with: given ones, or by what is seen of them."""
        return keys_by_content(seen(values), seen(missing), self.seed) if keys is None else other_keys(keys, k)

    def _seen_for(self, coordinate: int) -> tuple[Seen, int]:
        """What may be seen of arrays where a coordinate is imputed."""
        mixture = self._mixture
        for k, block in enumerate(mixture.blocks if isinstance(mixture, BlockModel) else ()):
            if coordinate in block.targets:
                return block.of, k
        return _all_of, 0

    @property
    def _mixture(self) -> CellModel:
        return self.panel.models[self.panel.names.index(MIXTURE)]

    def _residuals(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64] | None) -> Cells:
        """How far from expected the missing entries may turn out to be, at random, as the mixture has it."""
        unit = self.columns.scaler.unit[columns_of(missing)]

        def draw(model: GaussianMixtureModel, seen: Seen, k: int) -> Cells:
            return model.draw_residuals(seen(values), seen(missing), self._keys(values, missing, keys, seen, k))

        drawn = ask_model(self._mixture, missing, draw)
        return np.asarray(drawn / np.where(unit > 0, unit, np.inf))


def _all_of(array: NDArray[Any]) -> NDArray[Any]:
    return array


def _chunks(n_rows: int) -> list[slice]:
    return [slice(begin, begin + _CHUNK) for begin in range(0, n_rows, _CHUNK)]


def _draw(chances: Cells, number: Cells) -> NDArray[np.int64]:
    """A class for each row, by a random number between 0 and 1."""
    below = np.cumsum(chances, axis=1)
    return np.asarray(np.minimum((below < number[:, None] * below[:, -1:]).sum(axis=1), chances.shape[1] - 1))
