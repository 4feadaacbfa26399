"""Shapes of relations beyond straight lines: curves in the inputs, and logarithms or logits of the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._stored import Array, Real, stored
from ..._text import Keyword

Values = NDArray[np.float64]

_AT = (0.05, 0.275, 0.5, 0.725, 0.95)  # quantiles where cubic pieces meet
TERMS = 4  # of a curved input beside itself
MOST_CURVED = 8  # inputs, those most closely related to the target
_SMALLEST_GAP = 1e-3  # between knots, in standard deviations
_BEYOND = 2.0  # standard deviations of the logarithm that draws may lie above everything observed


@stored(inputs=Array("C", at_least=0), knots="C 5")
@dataclass(frozen=True)
class Curves:
    """Some inputs squared, and natural cubic splines of them: any curve between the outermost knots, a parabola beyond."""

    inputs: NDArray[np.int64]  # [C]: places among the inputs
    knots: Values  # [C, 5]

    def __post_init__(self) -> None:
        if not (np.diff(self.knots, axis=1) > 0).all():
            raise ValueError("knots must be in order")

    @classmethod
    def none(cls) -> Curves:
        """Of no input."""
        return cls(np.empty(0, np.int64), np.empty((0, len(_AT))))

    @classmethod
    def fit(cls, inputs: Values, target: Values) -> Curves:
        """Of the inputs ``[n, p]`` that vary enough and follow the ``target [n]``, or their squares do, most closely."""
        knots = np.quantile(inputs, _AT, axis=0).T
        able = np.flatnonzero((np.diff(knots, axis=1) > _SMALLEST_GAP).all(axis=1))
        chosen = able[np.argsort(-_relation(inputs[:, able], target), kind="stable")[:MOST_CURVED]]
        chosen = np.sort(chosen)
        return cls(chosen, knots[chosen])

    def expand(self, inputs: Values) -> Values:
        """The inputs, and `TERMS` more columns for each curved one, of about their size."""
        terms = [inputs]
        for k, knots in zip(self.inputs, self.knots, strict=True):
            first, last = knots[0], knots[-1]
            # Far outside there is nothing to learn a curve from: a square would throw draws ever farther away.
            x = np.clip(inputs[:, [k]], 2 * first - last, 2 * last - first)
            cubes = np.maximum(x - knots, 0) ** 3  # [n, 5]
            slopes = (cubes[:, :-1] - cubes[:, -1:]) / (last - knots[:-1])
            terms += [x**2, (slopes[:, :-1] - slopes[:, -1:]) / (last - first)]
        return np.column_stack(terms)


def _relation(inputs: Values, target: Values) -> Values:
    """How closely a target follows each input or its square, from 0 to 1."""
    y = target - target.mean()
    found = np.zeros(inputs.shape[1])
    for each in (inputs - inputs.mean(axis=0), (inputs - inputs.mean(axis=0)) ** 2):
        x = each - each.mean(axis=0)
        size = np.sqrt((x**2).sum(axis=0) * (y @ y))
        found = np.maximum(found, np.abs(y @ x) / np.where(size > 0, size, np.inf))
    return found


class ScaleKind(Keyword):
    """On which scale a target is predicted and residuals are added."""

    IDENTITY = "identity"
    ROOT = "root"  # of the distance from the lower bound: for counts
    LOG = "log"  # of the distance from the lower bound, or from a little below it where values are at the bound
    LOGIT = "logit"  # between two bounds


@stored(low=Real(finite=False), high=Real(finite=False), largest=Real(finite=False))
@dataclass(frozen=True)
class TargetScale:
    """A column with bounds on a scale that has none."""

    kind: ScaleKind
    low: float
    high: float
    largest: float  # on the scale, that is not exceeded

    @classmethod
    def identity(cls) -> TargetScale:
        """The column as it is."""
        return cls(ScaleKind.IDENTITY, -np.inf, np.inf, np.inf)

    @classmethod
    def fit(cls, kind: ScaleKind, target: Values, low: float, high: float) -> TargetScale:
        """For a ``target`` inside of its bounds, which are NaN where open."""
        if kind is ScaleKind.IDENTITY:
            return cls.identity()
        if kind is ScaleKind.LOG and target.min() <= low:
            above = target[target > low]
            low -= (float(above.min()) - low) / 2 if above.size else 1.0
        scale = cls(kind, low, high if kind is ScaleKind.LOGIT else np.inf, np.inf)
        on_scale = scale.forward(target)
        return cls(scale.kind, scale.low, scale.high, float(on_scale.max() + _BEYOND * on_scale.std()))

    @staticmethod
    def that_suit(target: Values, low: float, high: float) -> list[ScaleKind]:
        """Scales for values above a lower bound, or all strictly between two bounds; their own one is the first."""
        found = [ScaleKind.IDENTITY]
        if not np.isnan(low):
            if np.isnan(high):
                found += [ScaleKind.ROOT, ScaleKind.LOG]
            elif target.min() > low and target.max() < high:
                found.append(ScaleKind.LOGIT)
        return found

    def forward(self, values: Values) -> Values:
        """From the column to the scale."""
        if self.kind is ScaleKind.IDENTITY:
            return values
        if self.kind is ScaleKind.ROOT:
            return np.sqrt(values - self.low)
        if self.kind is ScaleKind.LOG:
            return np.log(values - self.low)
        return np.log(values - self.low) - np.log(self.high - values)

    def backward(self, on_scale: Values) -> Values:
        """From the scale to the column."""
        if self.kind is ScaleKind.IDENTITY:
            return on_scale
        if self.kind is ScaleKind.ROOT:
            return np.asarray(self.low + on_scale * np.abs(on_scale))  # of a negative root, below the bound
        if self.kind is ScaleKind.LOG:
            return self.low + np.exp(on_scale)
        return self.low + (self.high - self.low) / (1 + np.exp(-on_scale))
