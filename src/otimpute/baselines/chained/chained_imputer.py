"""Draw missing values column after column, each from a regression on the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_count
from ..._deadline import check_deadline
from ..._random import generator
from ..._row_noise import keys_by_content, keys_by_place, normal, uniform
from ..._stored import stored
from ..._threads import single_blas_thread
from ...estimator import BaseImputer, TableParameters
from ...fitting import CellFit, Cells, ColumnLayout, FitSummary
from ...gaussian import MixtureModel, fit_gaussian
from ...table import ColumnCode, ColumnKind, MomentCode, NumberCode, few_values
from ..inputs import choose_inputs
from ..standardised import Holes, Rows, StandardisedModel, VaryingColumns
from .column_draws import NO_ADJUSTMENT, Adjustment, ColumnDraws, DonorRule
from .delta import check_delta, read_adjustments
from .rules import choose_rule

_CHUNK = 16_384  # new rows handled at a time


@stored()
@dataclass(frozen=True)
class ChainedDraws:
    """Draws whole rows: a first draw from a Gaussian, then rounds over the columns."""

    first: MixtureModel
    columns: list[ColumnDraws]
    n_rounds: int

    def __post_init__(self) -> None:
        if self.n_rounds < 1:
            raise ValueError("there must be a round")

    def draw(self, rows: Rows, holes: Holes, keys: NDArray[np.uint64]) -> Rows:
        """Rows with draws in their holes; those of a row follow from its key and its observed values."""
        draws = RowDraws.begin(draw_first(self.first, rows, holes, keys), holes, keys, self.columns)
        for k in range(self.n_rounds):
            for place, column in enumerate(self.columns):
                draws.redraw(column, k * len(self.columns) + place)
        return draws.imputed


def draw_first(gaussian: MixtureModel, rows: Rows, holes: Holes, keys: NDArray[np.uint64]) -> Rows:
    """Rows with a draw from a Gaussian in their holes."""
    return gaussian.draw(rows, holes, uniform(keys, 0), normal(keys, rows.shape[1], first=1))


@dataclass(frozen=True)
class RowDraws:
    """Rows with draws in their holes, which are redrawn column after column.

    Where ``delta`` adjusts a column, there are two chains with the same random numbers. One knows nothing of it: models are
    fitted to its rows. In the other, the column is what the first one drew, adjusted, and all others follow from that. In one
    chain alone, a column whose neighbours are missing too would be adjusted to neighbours that followed it already, and so
    end up further away than ``delta`` in every round.
    """

    suggested: Rows  # what observed values suggest
    imputed: Rows  # with adjusted columns; the same array where there are none
    holes: Holes
    keys: NDArray[np.uint64]

    @classmethod
    def begin(cls, rows: Rows, holes: Holes, keys: NDArray[np.uint64], columns: Sequence[ColumnDraws | Target]) -> RowDraws:
        """Both chains from the same first draws."""
        return cls(rows, rows.copy() if any(column.is_adjusted for column in columns) else rows, holes, keys)

    def redraw(self, column: ColumnDraws, turn: int) -> None:
        """Draw the missing values of a column anew, given what the others are now."""
        missing = np.flatnonzero(self.holes[:, column.columns[0]])
        if len(missing) == 0:
            return
        number = 1 + self.holes.shape[1] + 2 * turn  # random numbers of a row that were not used before
        two = uniform(self.keys[missing], number), uniform(self.keys[missing], number + 1)
        place = np.ix_(missing, column.columns)
        if self.imputed is not self.suggested:
            given = self.suggested if column.is_adjusted else self.imputed
            self.imputed[place] = column.draw(given[missing], *two, adjusted=column.is_adjusted)
        self.suggested[place] = column.draw(self.suggested[missing], *two)


@stored()
@dataclass(frozen=True)
class ChainedModel(StandardisedModel):
    """Chained draws for rows that were not in training; a row's draw follows from its observed values and the seed."""

    method: ChainedDraws | None
    seed: int

    def impute_cells(self, values: NDArray[np.floating], missing: Holes, start: Cells | None = None) -> Cells:  # noqa: ARG002
        return self.draw_cells(values, missing, keys_by_content(values, missing, self.seed))

    def draw_cells(self, values: NDArray[np.floating], missing: Holes, keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries, row by row."""
        parts = [np.empty(0)]
        for begin in range(0, len(values), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            rows, holes = self.columns.standardise(values[chunk], missing[chunk])
            if self.method is not None:
                with single_blas_thread():
                    rows = self.method.draw(rows, holes, keys[chunk])
            parts.append(self.columns.restore(rows, missing[chunk]))
        return np.concatenate(parts)


@dataclass(frozen=True)
class ChainedFit(CellFit):
    """A completed table with how its draws developed over the rounds."""

    traced: tuple[int, ...] = ()  # positions in the table of the columns that were drawn
    trace: NDArray[np.float64] | None = None  # [n_rounds, columns, 2]: mean and standard deviation of the draws, in units


@dataclass(frozen=True)
class Target:
    """A column of the table whose missing values are drawn."""

    place: int  # in the table
    columns: NDArray[np.int64]
    inputs: NDArray[np.int64]
    observed: NDArray[np.int64]  # rows
    rule: DonorRule
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    grid: tuple[float, float]  # of whole numbers: the step between them, and where 0 is; a step of 0 for others
    adjustment: Adjustment = NO_ADJUSTMENT

    @property
    def is_adjusted(self) -> bool:
        """Whether draws differ from what observed values suggest."""
        return self.adjustment is not NO_ADJUSTMENT


@dataclass(frozen=True)
class PreparedDraws:
    """What the draws of one table have in common: any number of them can be made, each from a seed of its own."""

    columns: VaryingColumns
    values: NDArray[np.floating]
    missing: NDArray[np.bool_]
    rows: NDArray[np.int64]  # that are learned from
    first: MixtureModel | None  # None where no column varies
    targets: Sequence[Target]
    n_rounds: int
    n_trees: int

    def draw(self, seed: int, deadline: float = math.inf) -> ChainedFit:
        """Draw the missing values of the table once."""
        keys = keys_by_place(len(self.values), seed)
        if self.first is None:
            model = ChainedModel(self.columns, None, seed)
            return ChainedFit(model.draw_cells(self.values, self.missing, keys), model)
        rng = generator(seed, "chained draws")
        rows, holes = self.columns.standardise(self.values[self.rows], self.missing[self.rows])
        own = keys[self.rows]
        trace = np.zeros((self.n_rounds, len(self.targets), 2))
        with single_blas_thread():
            draws = RowDraws.begin(draw_first(self.first, rows, holes, own), holes, own, self.targets)
            models: list[ColumnDraws] = []
            for k in range(self.n_rounds):
                models = []
                for place, target in enumerate(self.targets):
                    check_deadline(deadline)
                    if len(target.observed) == len(holes) and k < self.n_rounds - 1:
                        continue  # nothing is missing, but it may be in new rows
                    model_of_column = ColumnDraws.fit(
                        draws.suggested, target.columns, target.inputs, target.observed, target.rule, n_trees=self.n_trees,
                        rng=rng, low=target.low, high=target.high, grid=target.grid, adjustment=target.adjustment,
                    )  # fmt: skip
                    draws.redraw(model_of_column, k * len(self.targets) + place)
                    models.append(model_of_column)
                    drawn = draws.imputed[holes[:, target.columns[0]], target.columns[0]]
                    if len(drawn):
                        trace[k, place] = drawn.mean(), drawn.std()
        model = ChainedModel(self.columns, ChainedDraws(self.first, models, self.n_rounds), seed)
        if len(self.rows) == len(self.values):
            cells = self.columns.restore(draws.imputed, self.missing)
        else:
            is_fitted = np.zeros(len(self.values), dtype=bool)
            is_fitted[self.rows] = True
            of_fitted, others = is_fitted[np.nonzero(self.missing)[0]], ~is_fitted
            cells = np.empty(len(of_fitted))
            cells[of_fitted] = self.columns.restore(draws.imputed, self.missing[self.rows])
            cells[~of_fitted] = model.draw_cells(self.values[others], self.missing[others], keys[others])
        column = np.tile([self.columns.varying[target.columns[0]] for target in self.targets], self.n_rounds).astype(np.int64)
        means, spreads = trace.reshape(-1, 2).T
        trace = np.stack([self.columns.scaler.restore(means, column), spreads * self.columns.scaler.unit[column]], axis=1)
        traced = tuple(target.place for target in self.targets)
        return ChainedFit(cells, model, FitSummary(n_steps=self.n_rounds), traced, trace.reshape(self.n_rounds, -1, 2))


class ChainedImputer(BaseImputer):
    """Draw missing values at random by chained equations: each column from a regression on the others.

    One fit gives one proper draw: its parameters are drawn from their posterior distribution and its residuals from rows that
    are alike, so that several fits with other seeds differ by as much as is unknown (`MultipleImputer` does that). Draws vary
    as true values do; they are not the best guesses, which `AutoImputer` makes.

    A missing number is a linear prediction, whose parameters are drawn, plus the residual of a donor: a random row, or a row
    in the same leaf of a random tree where that foretells left-out values better (relations that are curved, or noise that is
    larger in some rows). Predictions may be curved, or those of a logarithm. A category, or a number with few different values,
    is that of a donor. Where prediction and residual
    would leave the bounds of a column, or lie absurdly far from all observed values, the donor's own value is taken, so that
    nothing piles up at a bound.

    Parameters
    ----------
    n_rounds : int, default=5
        Rounds over the columns.
    n_estimators : int, default=10
        Trees per column and round among which donors are looked for.
    max_rows : int, default=20000
        Most rows that are learned from, drawn at random from longer tables; the others are filled in as new rows.
    delta : dict, default=None
        By column, how missing values differ from what observed ones suggest: a number that is added to draws (in the units of
        the column; dates: seconds), ``"0.5 sd"`` (standard deviations), ``"1.1 x"`` (a factor), or for categories and booleans
        the odds of some of them, ``{"yes": 2}``. It applies to a missing value given what is observed in its row; missing
        values of other columns follow, as far as they depend on it. Bounds win: what would leave them ends at the bound.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> from otimpute.baselines import ChainedImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> X = np.column_stack([x, x + rng.normal(size=500)])
    >>> X[:200, 1] = np.nan
    >>> drawn = ChainedImputer(random_state=0).fit_transform(X)[:200, 1]
    >>> bool(0.8 < (drawn - x[:200]).std() < 1.2)  # draws vary around their expectation as true values do
    True
    """

    model_class: ClassVar[type] = ChainedModel

    def __init__(
        self,
        *,
        n_rounds: int = 5,
        n_estimators: int = 10,
        max_rows: int = 20_000,
        delta: Any = None,
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_rounds = n_rounds
        self.n_estimators = n_estimators
        self.max_rows = max_rows
        self.delta = delta
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_count("n_rounds", self.n_rounds)
        check_count("n_estimators", self.n_estimators)
        check_count("max_rows", self.max_rows, at_least=2)
        check_delta(self.delta)

    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        seed: int,
        start: Cells | None = None,  # noqa: ARG002
        deadline: float = math.inf,
    ) -> CellFit:
        return self.prepare_draws(values, missing, layout, seed=seed, deadline=deadline).draw(seed, deadline)

    def prepare_draws(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        seed: int,
        deadline: float = math.inf,
    ) -> PreparedDraws:
        """Find out what all draws of a table have in common: where they start, and which donors suit each column."""
        columns = VaryingColumns.of(values, missing, layout.scaled)
        adjustments = read_adjustments(self.delta, layout, columns)
        rng = generator(seed, "donor rules")
        rows = _rows_to_learn_from(missing, self.max_rows, rng)
        if len(columns.varying) == 0:
            return PreparedDraws(columns, values, missing, rows, None, [], self.n_rounds, self.n_estimators)
        standardised, holes = columns.standardise(values[rows], missing[rows])
        with single_blas_thread():
            first = MixtureModel.of(fit_gaussian(standardised, holes, deadline=deadline))
            completed = draw_first(first, standardised, holes, keys_by_place(len(rows), seed))
            targets = []
            own = layout.groups[columns.varying]
            of_groups = [np.flatnonzero(own == group) for group in dict.fromkeys(own.tolist())]
            for group, inputs in zip(of_groups, choose_inputs(completed, of_groups), strict=True):
                check_deadline(deadline)
                place = int(own[group[0]])
                code, observed = layout.code_of_each[columns.varying[group[0]]], np.flatnonzero(~holes[:, group[0]])
                known = columns.scaler.restore(completed[observed, group[0]], np.full(len(observed), columns.varying[group[0]]))
                is_label = _takes_values_of_donors(code, known)
                low, high = _bounds(code, columns, group)
                grid = _grid(code, columns, group)
                rule = choose_rule(
                    completed, group, inputs, observed, is_label=is_label, low=low, high=high, grid=grid, rng=rng
                )
                adjustment = adjustments.get(place, NO_ADJUSTMENT)
                targets.append(Target(place, group, inputs, observed, rule, low, high, grid, adjustment))
        targets.sort(key=lambda target: len(target.observed), reverse=True)
        return PreparedDraws(columns, values, missing, rows, first, targets, self.n_rounds, self.n_estimators)


def _rows_to_learn_from(missing: Holes, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All rows or a sample; every column keeps a row in which it is observed."""
    if len(missing) <= most:
        return np.arange(len(missing))
    chosen = np.zeros(len(missing), dtype=bool)
    chosen[rng.choice(len(missing), most, replace=False)] = True
    for column in missing.T:
        if column[chosen].all():
            observed = np.flatnonzero(~column)
            chosen[rng.choice(observed, min(most, len(observed)), replace=False)] = True
    return np.flatnonzero(chosen)


def _takes_values_of_donors(code: ColumnCode, observed: NDArray[np.float64]) -> bool:
    """Whether a column holds labels, or numbers of which only a few values are possible; whole ones can be rounded."""
    if not isinstance(code, (NumberCode, MomentCode)) or code.has_labels:
        return True
    return not _is_whole(code) and len(few_values(observed)) > 0


def _is_whole(code: ColumnCode) -> bool:
    return isinstance(code, NumberCode) and (code.whole or code.kind == ColumnKind.INTEGER)


def _grid(code: ColumnCode, columns: VaryingColumns, group: NDArray[np.int64]) -> tuple[float, float]:
    """The step between whole numbers and where 0 is, in standard deviations; zeros for columns of others."""
    if not _is_whole(code):
        return 0.0, 0.0
    place = columns.varying[group[:1]]
    return 1 / float(columns.scaler.unit[place[0]]), float(columns.scaler.apply_entries(np.zeros(1), place)[0])


def _bounds(code: Any, columns: VaryingColumns, group: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Between which a column's draws must lie, in standard deviations; NaN where they need not."""
    low, high = np.full(len(group), np.nan), np.full(len(group), np.nan)
    if isinstance(code, NumberCode):
        for bounds, given in ((low, code.low), (high, code.high)):
            if math.isfinite(given):
                bounds[0] = columns.scaler.apply_entries(np.array([given]), columns.varying[group[:1]])[0]
    return low, high
