"""How far off an imputed value may be, learned from how far off hidden ones were."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .._stored import Array, stored

Cells = NDArray[np.float64]

COVERED = 0.9  # share of values that lie within the interval the error bars are calibrated for
HALF_WIDTH = NormalDist().inv_cdf((1 + COVERED) / 2)  # of that interval, in standard deviations: 1.645
_BORROWED = 50.0  # cells' worth of the average column that a column's error bars lean on
_SMALLEST = 1e-6


def describe_cells(disagreement: Cells, conditional_std: Cells) -> Cells:
    """What error bars are made of ``[N, 3]``.

    A constant; how far the experts are apart; and how far values may lie from what a Gaussian expects of them given the other
    values of their row, which grows with what else is missing there.
    """
    return np.column_stack([np.ones(len(disagreement)), disagreement, conditional_std])


@stored(weights=Array("G T", at_least=0))
@dataclass(frozen=True)
class ErrorBars:
    """A cell's standard deviation is a weighted sum of what `describe_cells` says of it, with weights by column."""

    weights: Cells  # [G, 3]

    @classmethod
    def fit(
        cls, errors: Cells, described: Cells, group: NDArray[np.int64], n_groups: int, stands_for: Cells | None = None
    ) -> ErrorBars:
        """Learn from hidden cells' errors, such that 90 % of them lie within ± 1.645 standard deviations.

        A cell counts as much as the missing values it ``stands_for``.

        >>> rng = np.random.default_rng(0)
        >>> apart = rng.random(4000)
        >>> described = describe_cells(apart, np.zeros(4000))
        >>> bars = ErrorBars.fit(rng.normal(size=4000) * (1 + apart), described, np.zeros(4000, dtype=int), 1)
        >>> bool(np.abs(bars.weights[0] - [1, 1, 0]).max() < 0.3)
        True
        """
        weights = np.zeros((n_groups, described.shape[1]))
        weights[:, 0] = 1.0
        if len(errors) == 0:  # nothing is known: a value may be off by as much as values differ
            return cls(weights)
        size, counts = np.abs(errors), np.ones(len(errors)) if stands_for is None else stands_for
        products, aims = _products(described, size, counts)
        everywhere = _fit_sizes(products, aims)
        overall = max(_quantile(_ratio(size, described, everywhere), counts, COVERED), _SMALLEST)
        typical = max(float(np.average(size, weights=counts)), _SMALLEST)
        for g in range(n_groups):
            mine = group == g
            n_cells = _effective_number(counts[mine])
            if n_cells == 0:  # a column too empty to hide anything in
                weights[g] = everywhere * overall / HALF_WIDTH
                continue
            # Lean on the average column, scaled to how wrong this one usually is.
            scale = max(float(np.average(size[mine], weights=counts[mine])), _SMALLEST) / typical
            units = np.array([1.0, *[scale] * (described.shape[1] - 1)])
            own_products, own_aims = _products(described[mine], size[mine], counts[mine])
            share = _BORROWED / counts.sum()
            own = _fit_sizes(own_products + share * products * np.outer(units, units), own_aims + share * scale * aims * units)
            covered = min(COVERED * (1 + 1 / n_cells), 1.0)  # as conformal prediction does
            ratio = max(_quantile(_ratio(size[mine], described[mine], own), counts[mine], covered), _SMALLEST)
            trust = n_cells / (n_cells + _BORROWED)
            weights[g] = own * np.exp(trust * np.log(ratio) + (1 - trust) * np.log(overall)) / HALF_WIDTH
        return cls(weights)

    def at(self, described: Cells, group: NDArray[np.int64]) -> Cells:
        """Standard deviations of cells."""
        return np.asarray((self.weights[group] * described).sum(axis=1))


def _ratio(size: Cells, described: Cells, weights: Cells) -> Cells:
    return size / np.maximum(described @ weights, _SMALLEST)


def _effective_number(counts: Cells) -> float:
    """How many equally important cells know as much as these."""
    return float(counts.sum() ** 2 / (counts**2).sum()) if counts.any() else 0.0


def _quantile(values: Cells, counts: Cells, share: float) -> float:
    """The value below which a ``share`` of the ``counts`` lies."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    return float(values[order[min(int(np.searchsorted(below, share * below[-1])), len(order) - 1)]])


def _products(described: Cells, size: Cells, counts: Cells) -> tuple[Cells, Cells]:
    """Sums over cells: products of the inputs, and of these with the sizes of errors."""
    return (described * counts[:, None]).T @ described, described.T @ (size * counts)


def _fit_sizes(products: Cells, aims: Cells) -> Cells:
    """Non-negative least squares: of the fits by some of the inputs, the best whose weights are all positive."""
    n_inputs = len(aims)
    best, best_gain = np.zeros(n_inputs), -1.0
    for n_used in range(1, n_inputs + 1):
        for used in combinations(range(n_inputs), n_used):
            some = np.array(used)
            block = products[np.ix_(some, some)]
            if np.linalg.matrix_rank(block, tol=1e-10 * max(float(np.trace(block)), 1e-300)) < n_used:
                continue
            weights = np.linalg.solve(block, aims[some])
            gain = float(weights @ aims[some])
            if weights.min() >= 0 and gain > best_gain:
                best, best_gain = np.zeros(n_inputs), gain
                best[some] = weights
    return best
