"""How far off an imputed value may be, learned from how far off hidden ones were."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, stored

Cells = NDArray[np.float64]

COVERED = 0.9  # share of values that lie within the interval the error bars are calibrated for
HALF_WIDTH = NormalDist().inv_cdf((1 + COVERED) / 2)  # of that interval, in standard deviations: 1.645
_BORROWED = 50.0  # cells' worth of the average column that a column's error bars lean on
_SMALLEST = 1e-6


@stored(base=Array("G", at_least=0), slope=Array("G", at_least=0))
@dataclass(frozen=True)
class ErrorBars:
    """A cell's standard deviation is ``base + slope · disagreement`` of the experts, by column."""

    base: Cells  # [G]
    slope: Cells  # [G]

    @classmethod
    def fit(cls, errors: Cells, disagreement: Cells, group: NDArray[np.int64], n_groups: int) -> ErrorBars:
        """Learn from hidden cells' errors, such that 90 % of them lie within ± 1.645 standard deviations.

        >>> rng = np.random.default_rng(0)
        >>> wide = rng.random(4000)
        >>> bars = ErrorBars.fit(rng.normal(size=4000) * (1 + wide), wide, np.zeros(4000, dtype=int), 1)
        >>> bool(abs(bars.base[0] - 1) < 0.15 and abs(bars.slope[0] - 1) < 0.3)
        True
        """
        base, slope = np.ones(n_groups), np.zeros(n_groups)
        if len(errors) == 0:  # nothing is known: a value may be off by as much as values differ
            return cls(base, slope)
        size = np.abs(errors)
        everywhere = _line(disagreement, size, np.zeros((2, 2)), np.zeros(2))
        overall = np.quantile(size / np.maximum(_at(everywhere, disagreement), _SMALLEST), COVERED)
        typical = max(float(size.mean()), _SMALLEST)
        for g in range(n_groups):
            mine = group == g
            if not mine.any():  # a column too empty to hide anything in
                base[g], slope[g] = np.array(everywhere) * overall / HALF_WIDTH
                continue
            # Lean on the average column, scaled to how wrong this one usually is.
            scale = max(float(size[mine].mean()), _SMALLEST) / typical
            borrowed = np.column_stack([np.ones(len(size)), disagreement * scale])
            products = borrowed.T @ borrowed * (_BORROWED / len(size))
            aims = borrowed.T @ (size * scale) * (_BORROWED / len(size))
            line = _line(disagreement[mine], size[mine], products, aims)
            ratio = size[mine] / np.maximum(_at(line, disagreement[mine]), _SMALLEST)
            own = np.quantile(ratio, min(COVERED * (1 + 1 / len(ratio)), 1.0))  # as conformal prediction does
            trust = len(ratio) / (len(ratio) + _BORROWED)
            width = np.exp(trust * np.log(max(own, _SMALLEST)) + (1 - trust) * np.log(max(overall, _SMALLEST)))
            base[g], slope[g] = np.array(line) * width / HALF_WIDTH
        return cls(base, slope)

    def at(self, disagreement: Cells, group: NDArray[np.int64]) -> Cells:
        """Standard deviations of cells."""
        return self.base[group] + self.slope[group] * disagreement


def _line(x: Cells, y: Cells, products: Cells, aims: Cells) -> tuple[float, float]:
    """Non-negative base and slope of the least-squares line through ``y``, beside what is borrowed."""
    inputs = np.column_stack([np.ones(len(x)), x])
    products, aims = products + inputs.T @ inputs, aims + inputs.T @ y
    if products[0, 0] * products[1, 1] - products[0, 1] ** 2 > 1e-12 * products[0, 0] * max(products[1, 1], 1e-300):
        base, slope = np.linalg.solve(products, aims)
        if base >= 0 and slope >= 0:
            return float(base), float(slope)
        if base < 0:
            return 0.0, float(aims[1] / products[1, 1])
    return float(aims[0] / products[0, 0]), 0.0


def _at(line: tuple[float, float], disagreement: Cells) -> Cells:
    return line[0] + line[1] * disagreement
