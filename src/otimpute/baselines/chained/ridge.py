"""Linear regression with parameters that can be drawn from their posterior distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._row_products import row_products

Values = NDArray[np.float64]

_ENOUGH_ROWS = 10  # per input, for a regression that hardly needs a penalty
_SMALLEST = 1e-5  # penalty per row, which keeps columns that repeat each other apart
_PENALTIES = (_SMALLEST, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)  # per row, where rows are few
_LARGEST_LEVERAGE = 0.95


@dataclass(frozen=True)
class LinearModel:
    """Predicts columns from inputs: ``intercept + inputs @ slopes``."""

    intercept: Values  # [k]
    slopes: Values  # [p, k]

    def predict(self, inputs: Values) -> Values:
        """Predictions ``[n, k]``."""
        return np.asarray(self.intercept + row_products(inputs, self.slopes))


@dataclass(frozen=True)
class Regression:
    """A regression of ``targets [n, k]`` on ``inputs [n, p]``, with what is needed to draw other parameters."""

    model: LinearModel
    residuals: Values  # [n, k]: those of a row, as if it had not been fitted on, are about so large
    n_free: float  # rows less the parameters that were fitted
    centre: Values  # [p]: means of the inputs
    directions: Values  # [p, q]: of the inputs, and how uncertain the slopes along them are, in residual standard deviations

    @classmethod
    def fit(cls, inputs: Values, targets: Values) -> Regression:
        """Least squares; where rows are few, with the penalty on slopes that predicts left-out rows best."""
        n, p = inputs.shape
        centre, level = inputs.mean(axis=0), targets.mean(axis=0)
        x, y = inputs - centre, targets - level
        power, axes = np.linalg.eigh(x.T @ x)
        kept = power > 1e-10 * power.max(initial=0.0)
        power, axes = power[kept], axes[:, kept]
        along = x @ axes  # [n, q]
        shared = along.T @ y

        def errors(penalty: float) -> tuple[Values, Values, Values]:
            shrunk = 1 / (power + penalty)
            leverage = np.minimum(1 / n + (along**2) @ shrunk, _LARGEST_LEVERAGE)
            return shrunk, leverage, y - along @ (shrunk[:, None] * shared)

        def left_out_error(penalty: float) -> float:
            _, leverage, residuals = errors(penalty)
            return float(((residuals / (1 - leverage)[:, None]) ** 2).sum())

        penalties = [n * each for each in (_PENALTIES if n < _ENOUGH_ROWS * p else _PENALTIES[:1])]
        shrunk, leverage, residuals = errors(min(penalties, key=left_out_error))
        slopes = axes @ (shrunk[:, None] * shared)
        return cls(
            LinearModel(level - centre @ slopes, slopes),
            residuals / np.sqrt(1 - leverage)[:, None],
            max(n - 1 - float((power * shrunk).sum()), 1.0),
            centre,
            axes * np.sqrt(shrunk),
        )

    def draw(self, rng: np.random.Generator) -> tuple[LinearModel, Values]:
        """Parameters and residual standard deviations ``[k]`` from their posterior distribution under a flat prior."""
        n, k = self.residuals.shape
        scale = np.sqrt((self.residuals**2).mean(axis=0) * self.n_free / rng.chisquare(self.n_free, size=k))
        slopes = self.model.slopes + scale * (self.directions @ rng.normal(size=(self.directions.shape[1], k)))
        level = self.model.intercept + self.centre @ self.model.slopes + scale / np.sqrt(n) * rng.normal(size=k)
        return LinearModel(level - self.centre @ slopes, slopes), scale
