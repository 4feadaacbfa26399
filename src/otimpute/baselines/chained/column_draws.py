"""How the missing values of one column are drawn, given the other columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._stored import Array, stored
from .donors import DonorTrees
from .ridge import LinearModel, Regression
from .shapes import TERMS, Curves, ScaleKind, TargetScale

Values = NDArray[np.float64]

_SMALLEST_SPREAD = 1e-12
_FARTHEST = 1.0  # beyond the observed values that a draw may lie, in units of their range: far more than chance explains


@dataclass(frozen=True)
class DonorRule:
    """What a missing value is made of: a donor's residual added to a prediction, or a donor's value.

    Donors are rows in the same leaf of a random tree with at least ``leaf`` rows; of 0, any row. The prediction is linear, or
    ``curved``, of the column itself or on another ``scale``.
    """

    adds_residual: bool
    leaf: int
    curved: bool = False
    scale: ScaleKind = ScaleKind.IDENTITY


@dataclass(frozen=True)
class Adjustment:
    """How draws differ from what observed values suggest: ``factor · value + offset``, or other odds of categories."""

    factor: float = 1.0
    offset: float = 0.0  # in standard deviations
    corners: Values | None = None  # [C, k]: coordinates of categories, and their odds compared with the observed ones
    odds: Values | None = None  # [C]

    def weights_of(self, values: Values) -> Values:
        """How much more often than others rows with these values are donors ``[n]``; empty where all count alike."""
        if self.corners is None or self.odds is None:
            return np.empty(0)
        distance = ((values[:, None, :] - self.corners) ** 2).sum(axis=2)
        return np.asarray(self.odds[distance.argmin(axis=1)])


NO_ADJUSTMENT = Adjustment()


@stored(
    columns=Array("K", index_of="varying"),
    inputs=Array("P", index_of="varying"),
    expected_intercept="K",
    expected_slopes="Q K",
    intercept="K",
    slopes="Q K",
    values="D K",
    residuals="D K",
    weights=Array("W", at_least=0),
    low=Array("K", nan=True),
    high=Array("K", nan=True),
)
@dataclass(frozen=True)
class ColumnDraws:
    """Draws the ``columns`` of one column of the table (a category has several) from ``inputs``, row by row."""

    columns: NDArray[np.int64]  # [K]
    inputs: NDArray[np.int64]  # [P]
    expected_intercept: Values  # [K] and the next: the best linear prediction, by which donors are found
    expected_slopes: Values  # [Q, K]
    intercept: Values  # [K] and the next: the one drawn, to which residuals are added
    slopes: Values  # [Q, K]
    curves: Curves
    scale: TargetScale
    trees: DonorTrees
    values: Values  # [D, K] of the donors
    residuals: Values  # [D, K], on the scale
    weights: Values  # [D] or empty, of donors
    adds_residual: bool
    low: Values  # [K]: draws outside of these are replaced by the donor's value, which is inside; NaN where open
    high: Values
    factor: float = 1.0
    offset: float = 0.0
    step: float = 0.0  # between neighbouring whole numbers, and where 0 is, of a column of such; 0 for others
    origin: float = 0.0

    def __post_init__(self) -> None:
        n_donors, n_inputs = len(self.values), len(self.inputs) + len(self.columns)
        fits = self.trees.donor.max(initial=-1) < n_donors and self.trees.feature.max(initial=-1) < n_inputs
        fits &= self.curves.inputs.max(initial=-1) < len(self.inputs)
        fits &= len(self.slopes) == len(self.inputs) + TERMS * len(self.curves.inputs)
        if not fits or len(self.weights) not in (0, n_donors) or len(self.columns) == 0:
            raise ValueError("donors, inputs and trees do not go together")

    @classmethod
    def fit(
        cls,
        table: Values,
        columns: NDArray[np.int64],
        inputs: NDArray[np.int64],
        observed: NDArray[np.int64],
        rule: DonorRule,
        *,
        n_trees: int,
        rng: np.random.Generator,
        low: Values,
        high: Values,
        grid: tuple[float, float] = (0.0, 0.0),
        adjustment: Adjustment = NO_ADJUSTMENT,
        proper: bool = True,
    ) -> ColumnDraws:
        """Learn from the rows in which the column is ``observed``; draws of whole numbers lie on a ``grid`` (step, origin).

        If ``proper``, parameters are drawn from their posterior distribution and donors are a bootstrap sample, so that draws
        of several fits differ by as much as is unknown about both.
        """
        x, y = table[np.ix_(observed, inputs)], table[np.ix_(observed, columns)]
        n, scale = len(observed), TargetScale.fit(rule.scale, y, float(low[0]), float(high[0]))
        curves = Curves.fit(x, scale.forward(y)[:, 0]) if rule.curved else Curves.none()
        expanded = curves.expand(x)
        regression = Regression.fit(expanded, scale.forward(y))
        drawn, spread = regression.draw(rng) if proper else (regression.model, None)
        chosen = rng.integers(n, size=n) if proper else np.arange(n)
        residuals = regression.residuals[chosen]
        if rule.leaf == 0 or n < 2 * rule.leaf:
            trees = DonorTrees.any_row(n)
            if spread is not None:  # mean and spread of the residuals are parameters, and drawn already
                residuals = residuals - residuals.mean(axis=0)
                residuals = residuals * (spread / np.maximum(np.sqrt((residuals**2).mean(axis=0)), _SMALLEST_SPREAD))
        else:
            features = _features(x[chosen], regression.model.predict(expanded[chosen]))
            targets = residuals if rule.adds_residual else y[chosen]
            trees = DonorTrees.grow(features, targets, n_trees=n_trees, leaf=rule.leaf, rng=rng)
        expected, values = regression.model, y[chosen]
        return cls(
            columns, inputs, expected.intercept, expected.slopes, drawn.intercept, drawn.slopes, curves, scale, trees, values,
            residuals, adjustment.weights_of(values), rule.adds_residual, low, high, adjustment.factor, adjustment.offset,
            *grid,
        )  # fmt: skip

    @property
    def is_adjusted(self) -> bool:
        """Whether draws differ from what observed values suggest."""
        return len(self.weights) > 0 or (self.factor, self.offset) != (1.0, 0.0)

    def draw(self, rows: Values, which_tree: Values, which_donor: Values, *, adjusted: bool = False) -> Values:
        """Values ``[n, K]`` for the columns, by two random numbers between 0 and 1 per row.

        They are what observed values suggest or, if ``adjusted``, how missing ones differ from that; bounds hold for both.
        """
        inputs = rows[:, self.inputs]
        expanded = self.curves.expand(inputs)
        features = _features(inputs, LinearModel(self.expected_intercept, self.expected_slopes).predict(expanded))
        weights = self.weights if adjusted and len(self.weights) else None
        donor = self.trees.choose(features, which_tree, which_donor, weights)
        drawn = own = self.values[donor]
        if self.adds_residual:
            on_scale = LinearModel(self.intercept, self.slopes).predict(expanded) + self.residuals[donor]
            drawn = self.scale.backward(np.minimum(on_scale, self.scale.largest))
            lowest, highest = self.values.min(axis=0), self.values.max(axis=0)
            far = _FARTHEST * (highest - lowest)
            whole = self._rounded(drawn)
            outside = (whole < self.low) | (whole > self.high) | (on_scale > self.scale.largest)  # never true of NaN
            drawn = np.where(outside | (drawn < lowest - far) | (drawn > highest + far), own, drawn)
        if adjusted:
            adjusted_values = self._rounded(self.factor * drawn + self.offset)
            return np.asarray(np.fmin(np.fmax(adjusted_values, self.low), self.high))  # a bound that is NaN is none
        return self._rounded(drawn)

    def _rounded(self, drawn: Values) -> Values:
        """Draws of whole numbers as whole numbers."""
        if self.step == 0:
            return drawn
        return np.asarray(self.origin + self.step * np.rint((drawn - self.origin) / self.step))


def _features(inputs: Values, expected: Values) -> NDArray[np.float32]:
    """What trees see: the inputs, and what is expected from them, so that one split can follow many columns."""
    return np.column_stack([inputs, expected]).astype(np.float32)
