"""How much to trust each expert in each column, from its errors on hidden values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._threads import FEW, workers_in_use

# Studied in docs/studies/auto.md.
_BORROWED = 50.0  # cells' worth of the whole table's evidence that every column gets beside its own
_LARGE = 0.7  # errors above this share of the best expert's typical one count by their size, not by its square
_ROUNDS = 6  # of reweighting for that
_LEAST = 0.01  # smaller weights are dropped
_SMALLEST_SCALE = 1e-6


def learn_weights(
    errors: NDArray[np.float64],
    group: NDArray[np.int64],
    width: NDArray[np.int64],
    counts: NDArray[np.float64] | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Non-negative weights ``[G, E]`` that sum to one, from the ``errors [N, E]`` of E experts on hidden cells.

    ``group`` says which column a cell is of, ``width [G]`` how many cells a value of the column has. Weights minimise
    Huber's loss of the combined error, which an expert that explodes in a few cells cannot hide from and cannot dominate
    either. Columns borrow from each other: `_BORROWED` cells of the average column count beside a column's own, errors being
    measured against those of its best expert. Cells count as ``counts [N]`` says; experts that are not ``allowed [G, E]`` in a
    column get nothing there.

    >>> errors = np.array([[1.0, 0.1], [-1.0, 0.1], [1.0, -0.1], [-1.0, -0.1]])
    >>> learn_weights(errors, np.zeros(4, dtype=int), np.array([1])).round(1).tolist()
    [[0.0, 1.0]]
    """
    n_experts = errors.shape[1]
    even = np.full(n_experts, 1 / n_experts)
    if len(errors) == 0:
        return np.tile(even, (len(width), 1)) if allowed is None else allowed / allowed.sum(axis=1, keepdims=True)
    if counts is not None:
        counts = counts / counts.mean()
    cells = [np.flatnonzero(group == g) for g in range(len(width))]
    relative = np.array(errors)
    for mine, n_coordinates in zip(cells, width, strict=True):
        if len(mine):
            squares = np.average(errors[mine] ** 2, axis=0, weights=None if counts is None else counts[mine])
            best = np.sqrt(squares.min() * n_coordinates)  # a value counts once, however wide
            relative[mine] /= max(best, _SMALLEST_SCALE)
    nothing = np.zeros((n_experts, n_experts))
    overall = _minimise(relative, even, nothing, counts)
    borrowed = _products(relative, overall, counts) * (_BORROWED / len(relative))

    def learn(g: int) -> NDArray[np.float64]:
        mine, own_counts = cells[g], None if counts is None else counts[cells[g]]
        if allowed is None or allowed[g].all():
            return _without_crumbs(_minimise(relative[mine], overall, borrowed, own_counts))
        some, own = np.flatnonzero(allowed[g]), np.zeros(n_experts)
        start = np.full(len(some), 1 / len(some))
        own[some] = _without_crumbs(_minimise(relative[np.ix_(mine, some)], start, borrowed[np.ix_(some, some)], own_counts))
        return own

    return np.array(workers_in_use().map(learn, range(len(width)), most_threads=FEW))


def learn_in_pools(
    errors: NDArray[np.float64],
    group: NDArray[np.int64],
    width: NDArray[np.int64],
    pool: NDArray[np.int64] | None,
    counts: NDArray[np.float64] | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """`learn_weights` of columns that only borrow from those of their ``pool [G]``; from all where it is None."""
    if pool is None:
        return learn_weights(errors, group, width, counts, allowed)
    weights = np.empty((len(width), errors.shape[1]))
    for each in np.unique(pool):
        columns = np.flatnonzero(pool == each)
        mine = pool[group] == each
        weights[columns] = learn_weights(
            errors[mine], np.searchsorted(columns, group[mine]), width[columns],
            None if counts is None else counts[mine], None if allowed is None else allowed[columns],
        )  # fmt: skip
    return weights


def combine(guesses: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weighted mean of the guesses ``[N, E]`` for each cell."""
    return np.asarray((guesses * weights).sum(axis=1))


def _minimise(
    errors: NDArray[np.float64],
    start: NDArray[np.float64],
    borrowed: NDArray[np.float64],
    counts: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    weights = start
    for _ in range(_ROUNDS):
        weights = _on_simplex(_products(errors, weights, counts) + borrowed, weights)
    return weights


def _products(
    errors: NDArray[np.float64], weights: NDArray[np.float64], counts: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Products of the experts' errors, summed over cells; where the combination is far off, a cell counts less."""
    influence = _LARGE / np.maximum(np.abs(errors @ weights), _LARGE)
    if counts is not None:
        influence = influence * counts
    return np.asarray((errors * influence[:, None]).T @ errors)


def _without_crumbs(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = np.where(weights >= _LEAST, weights, 0.0)
    return np.asarray(kept / kept.sum())


@compiled
def _on_simplex(products, start):  # type: ignore[no-untyped-def]
    """Minimise ``wᵀ products w`` over non-negative weights that sum to one, by accelerated projected gradient steps."""
    n = start.shape[0]
    steepest = 1e-12
    for r in range(n):
        steepest += products[r, r]  # the trace is at least the largest eigenvalue
    weights, ahead, target, falling = start.copy(), start.copy(), np.empty(n), np.empty(n)
    momentum = 1.0
    for _ in range(1000):
        for r in range(n):
            slope = 0.0
            for c in range(n):
                slope += products[r, c] * ahead[c]
            target[r] = ahead[r] - slope / steepest
        # The nearest point of the simplex: lower all by what makes the positive ones sum to one.
        falling[0] = target[0]
        for r in range(1, n):  # sort a few numbers, the largest first
            value, place = target[r], r
            while place > 0 and falling[place - 1] < value:
                falling[place] = falling[place - 1]
                place -= 1
            falling[place] = value
        total, lowered = 0.0, 0.0
        for r in range(n):
            total += falling[r]
            if falling[r] - (total - 1.0) / (r + 1) > 0:
                lowered = (total - 1.0) / (r + 1)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        moved = 0.0
        for r in range(n):
            new = max(target[r] - lowered, 0.0)
            moved = max(moved, abs(new - weights[r]))
            ahead[r] = new + (momentum - 1.0) / following * (new - weights[r])
            weights[r] = new
        momentum = following
        if moved < 1e-9:
            break
    return weights
