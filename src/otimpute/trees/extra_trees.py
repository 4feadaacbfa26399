"""Extremely randomised trees (Geurts, Ernst & Wehenkel, 2006), grown in compiled code.

At a node some columns are tried, each at one random threshold between its smallest and its largest value there, and the split
that leaves the least squared error wins. A round robin over columns needs trees by the thousand, so all columns of a row lie
next to each other in memory and are compared with their thresholds at once, by vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._lanes import (
    NARROW_WIDTH,
    add_to,
    choose_less,
    lane_of,
    larger,
    largest,
    load,
    random_units,
    smaller,
    spread,
    store,
)
from .._splitmix import mix as plain_mix
from .._threads import ALONE, FEW, Workers, own_memory
from .forest import GrownForest, Trees, add_trees

_MOST_AT_ONCE, _ROWS_AT_ONCE = 5, 5000  # trees, and rows of them
_NO_SPREAD = 1e-12  # squared error per row, in squared units of the targets, that no split need explain
_NOT_TRIED, _NOT_ALLOWED = np.float32(-1e30), np.float32(-2e30)  # what a split explains that is the last to be taken, or never
_TIES = np.float32(1e-5)  # of two rows all splits explain the same, and any of them may be taken
_ANOTHER = np.uint32(0x9E3779B9)  # from one key of random numbers to the next
_mix = compiled(plain_mix)


def grow_extra_trees(
    table: NDArray[np.floating],
    columns: Sequence[NDArray[np.int64]],
    inputs: Sequence[NDArray[np.int64]],
    rows: Sequence[NDArray[np.int64]],
    other_rows: Sequence[NDArray[np.int64]],
    *,
    n_trees: int,
    max_features: float,
    min_samples_leaf: int,
    rng: np.random.Generator,
    max_rows: int | None = None,
    workers: Workers = ALONE,
    row_weight: NDArray[np.float64] | None = None,
    with_trees: bool = True,
) -> list[tuple[GrownForest, NDArray[np.float64]]]:
    """Forests that each predict some ``columns`` of a table from ``inputs``, grown on some ``rows``.

    With each come its predictions for the ``other_rows`` of the table; who needs no more can have forests without trees.

    An input is tried at a split with the probability ``max_features``; of more than ``max_rows`` rows each tree sees other
    ones, drawn at random. Every tree has a seed of its own, so the number of workers does not change the result. A row of the
    table with a ``row_weight`` is in a tree so many times, relative to the others, on average: 2.3 is two or three times.

    >>> rng = np.random.default_rng(0)
    >>> table = rng.uniform(-1, 1, size=(300, 2))
    >>> table[:, 1] = table[:, 0] ** 2
    >>> asked = {"n_trees": 20, "max_features": 1.0, "min_samples_leaf": 1}
    >>> which = np.arange(200), np.arange(200, 300)
    >>> ((_, found),) = grow_extra_trees(table, [np.array([1])], [np.array([0])], which[:1], which[1:], rng=rng, **asked)
    >>> bool(np.abs(found[:, 0] - table[200:, 1]).mean() < 0.02)
    True
    """
    single = np.asarray(table, np.float32, order="C")  # the precision in which rows go down a tree
    seeds = _seeds(rng, len(columns), n_trees).ravel()
    n_parts = np.array([n_trees if row_weight is not None else -(-n_trees // _at_once(len(each), max_rows)) for each in rows])
    # Pieces are some trees of a forest, which threads take one after the other within compiled code: to come back for each,
    # they would wait for each other.
    place = np.repeat(np.arange(len(columns)), n_parts)
    part = np.arange(len(place)) - (np.cumsum(n_parts) - n_parts)[place]
    first_seed = place * n_trees + part * n_trees // n_parts[place]
    after_seed = place * n_trees + (part + 1) * n_trees // n_parts[place]
    its_rows, which_rows = rows, place
    if row_weight is not None:

        def draw(piece: int) -> NDArray[np.int64]:
            of_forest = rows[place[piece]]
            return np.asarray(of_forest[_repeated(row_weight[of_forest], seeds[first_seed[piece]])])

        which_rows = np.arange(len(place))
        its_rows = workers.map(draw, which_rows.tolist(), most_threads=FEW)
    all_rows, rows_begin = _joined(its_rows)
    all_inputs, inputs_begin = _joined(inputs)
    all_columns, columns_begin = _joined(columns)
    all_others, others_begin = _joined(other_rows)
    n_rows, n_inputs, n_targets, n_others = (np.diff(each) for each in (rows_begin, inputs_begin, columns_begin, others_begin))
    means_begin = np.append(0, np.cumsum(n_others * n_targets))
    totals_end = np.cumsum((n_others * n_targets)[place])
    per_tree = n_rows if max_rows is None else np.minimum(n_rows, max_rows)
    most_leaves = (after_seed - first_seed) * np.maximum(per_tree[which_rows] // min_samples_leaf, 1)
    nodes, values = ((np.cumsum(each) - each) * with_trees for each in (2 * most_leaves, most_leaves * n_targets[place]))
    pieces = np.column_stack(
        [
            place, rows_begin[which_rows], rows_begin[which_rows + 1], inputs_begin[place], inputs_begin[place + 1],
            columns_begin[place], columns_begin[place + 1], others_begin[place], others_begin[place + 1],
            first_seed, after_seed, nodes, values, most_leaves, totals_end - (n_others * n_targets)[place],
        ]
    )  # fmt: skip
    counters = np.append(0, n_parts)  # pieces that were taken; of every forest those that are not done
    totals, means, sizes = np.empty(totals_end[-1:].sum()), np.empty(means_begin[-1]), np.empty((len(pieces), 2), np.int64)
    of_pieces = _Nodes.of(most_leaves.sum(), (most_leaves * n_targets[place]).sum(), _new_memory) if with_trees else None
    roots = np.empty(len(seeds), np.int32)

    def grow(_: int) -> None:
        if counters[0] >= len(pieces):
            return
        n, each = int(per_tree.max()), int(n_targets.max())
        own = of_pieces or _Nodes.of(most_leaves.max(), most_leaves.max() * each, own_memory)
        memory = (
            own_memory("features", (n * -(-int(n_inputs.max()) // NARROW_WIDTH) * NARROW_WIDTH,), np.float32),
            own_memory("targets", (n * each,), np.float32),
            own_memory("rows of nodes", (2, int(n_rows.max())), np.uint32),
            own_memory("nodes to split", (n + 2, 3), np.uint64),
            own_memory("sums of nodes", (n + 2, each + 1), np.float64),
        )
        _grow_pieces(
            counters, pieces, single, all_rows, all_inputs, all_columns, all_others, seeds, np.float32(max_features),
            min_samples_leaf, n if max_rows is None else max_rows, *memory, roots, *own, totals, means_begin, means,
            sizes, n_trees,
        )  # fmt: skip

    workers.map(grow, range(min(workers.n_threads, len(pieces))))
    forests = []
    for k, (its_columns, its_inputs) in enumerate(zip(columns, inputs, strict=True)):
        parts = [] if of_pieces is None else [
            of_pieces.trees(roots[first_seed[p] : after_seed[p]], nodes[p], values[p], sizes[p], len(its_columns))
            for p in np.flatnonzero(place == k)
        ]  # fmt: skip
        mean = means[means_begin[k] : means_begin[k + 1]].reshape(-1, len(its_columns))
        forests.append((GrownForest(its_columns, its_inputs, parts), mean))
    return forests


class _Nodes(NamedTuple):
    """Memory for nodes of trees."""

    child: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    value: NDArray[np.float32]  # of leaves, one after the other

    @classmethod
    def of(cls, n_leaves: int, n_values: int, memory: Callable[[str, tuple[int, ...], Any], NDArray[Any]]) -> _Nodes:
        """For so many leaves, with so many values in all."""
        n_nodes = (2 * int(n_leaves),)
        return cls(
            memory("children", n_nodes, np.int32),
            memory("features of nodes", n_nodes, np.int16),
            memory("thresholds", n_nodes, np.float32),
            memory("values of leaves", (int(n_values),), np.float32),
        )

    def trees(
        self, roots: NDArray[np.int32], first_node: int, first_value: int, size: NDArray[np.int64], n_targets: int
    ) -> Trees:
        """A copy of some trees."""
        n_nodes, n_leaves = size
        mine = slice(first_node, first_node + n_nodes)
        value = self.value[first_value : first_value + n_leaves * n_targets].reshape(n_leaves, n_targets)
        return Trees(roots, self.child[mine].copy(), self.feature[mine].copy(), self.threshold[mine].copy(), value.copy())


def _new_memory(_: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    return np.empty(shape, dtype)


def _joined(arrays: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Arrays one after the other, and where each begins, and the end."""
    return np.concatenate(arrays), np.cumsum([0, *map(len, arrays)])


def _at_once(n_rows: int, max_rows: int | None) -> int:
    """How many trees one worker grows before it asks for more."""
    per_tree = n_rows if max_rows is None else min(n_rows, max_rows)
    return int(np.clip(_ROWS_AT_ONCE // max(per_tree, 1), 1, _MOST_AT_ONCE))


def _repeated(weight: NDArray[np.float64], seed: np.uint32) -> NDArray[np.int64]:
    """Rows of one tree: each as often as its weight says relative to the mean, a fraction by its chance.

    >>> _repeated(np.array([1.0, 3.0]), np.uint32(0)).tolist() in ([1], [1, 1], [0, 1], [0, 1, 1])
    True
    """
    times = np.floor(weight / weight.mean() + np.random.default_rng(int(seed)).random(len(weight)))
    return np.repeat(np.arange(len(weight)), times.astype(np.int64))


def _seeds(rng: np.random.Generator, n_forests: int, n_trees: int) -> NDArray[np.uint32]:
    return rng.integers(2**32, size=(n_forests, n_trees), dtype=np.uint32)


@compiled
def _grow_pieces(  # type: ignore[no-untyped-def]
    counters, pieces, table, all_rows, all_inputs, all_columns, all_others, all_seeds, tried, min_leaf, max_rows,
    all_features, all_targets, parted, waiting, sums, all_roots, child, feature, threshold, value, totals, means_begin, means,
    sizes, n_trees,
):  # fmt: skip
    """Take pieces and grow their trees, until there are none left; who has done the last one of a forest averages it.

    How many nodes and leaves a piece has is noted among the ``sizes``.
    """
    while True:
        k = add_to(counters, 0, 1)
        if k >= pieces.shape[0]:
            break
        piece = pieces[k]
        place = piece[0]
        rows, inputs = all_rows[piece[1] : piece[2]], all_inputs[piece[3] : piece[4]]
        columns, others = all_columns[piece[5] : piece[6]], all_others[piece[7] : piece[8]]
        seeds, roots = all_seeds[piece[9] : piece[10]], all_roots[piece[9] : piece[10]]
        n_targets, n_leaves = columns.shape[0], piece[13]
        per_tree, width = min(rows.shape[0], max_rows), (inputs.shape[0] + NARROW_WIDTH - 1) // NARROW_WIDTH * NARROW_WIDTH
        total = totals[piece[14] : piece[14] + others.shape[0] * n_targets].reshape((others.shape[0], n_targets))
        total[:] = 0
        sizes[k, 0], sizes[k, 1] = _grow(
            table, rows, inputs, columns, tried, min_leaf, per_tree, seeds,
            all_features[: per_tree * width].reshape((per_tree, width)),
            all_targets[: per_tree * n_targets].reshape((per_tree, n_targets)), parted, waiting, sums, roots,
            child[piece[11] : piece[11] + 2 * n_leaves], feature[piece[11] : piece[11] + 2 * n_leaves],
            threshold[piece[11] : piece[11] + 2 * n_leaves],
            value[piece[12] : piece[12] + n_leaves * n_targets].reshape((n_leaves, n_targets)), others, total,
        )  # fmt: skip
        if add_to(counters, 1 + place, -1) == 1:
            first, after = means_begin[place], means_begin[place + 1]
            mean = means[first:after]
            mean[:] = 0
            for p in range(pieces.shape[0]):
                if pieces[p, 0] == place:
                    for i in range(after - first):
                        mean[i] += totals[pieces[p, 14] + i]
            for i in range(after - first):
                mean[i] /= n_trees


@compiled
def _grow(  # type: ignore[no-untyped-def]
    table, rows, inputs, columns, tried, min_leaf, per_tree, seeds, features, targets, parted, waiting, sums,
    roots, child, feature, threshold, value, other_rows, total_of_others,
):  # fmt: skip
    """Grow one tree after the other into the arrays of nodes; how many nodes and leaves there are in the end.

    ``table`` is in single precision. An input is tried at a node with the probability ``tried``; where none of these can be
    split at, all others are. In the end predictions for ``other_rows`` are added to their total.

    Memory: ``features`` and ``targets`` are what a tree needs of the table, close together, so that it stays in the cache; the
    last features may be of no input. ``parted [2, n]`` are rows in the order of nodes, and those on their way to the other side
    of a split. Nodes are ``waiting [., 3]`` to be split: their number, and where their rows begin and end; ``sums`` over these
    are of the targets, then of all their squares.
    """
    n, n_targets = rows.shape[0], columns.shape[0]
    n_blocks = features.shape[1] // NARROW_WIDTH
    order, apart = parted[0], parted[1]
    # Unsigned numbers are used as they are to find an entry of an array; of others numba would ask each time whether they count
    # from the end.
    cuts, total, below = np.empty((n_blocks, NARROW_WIDTH), np.float32), np.empty(n_targets + 1), np.empty(n_targets + 1)
    zero, one, least = spread(np.float32(0)), spread(np.float32(1)), spread(np.float32(min_leaf))
    next_row, a_pair = np.uint64(1), np.uint64(2)
    n_nodes = n_leaves = 0
    for tree in range(roots.shape[0]):
        key = seeds[tree]
        for i in range(n):
            order[i] = i
        if per_tree < n:
            for i in range(per_tree):
                key = np.uint32(key + _ANOTHER)
                j = i + np.int64(_mix(np.uint64(key)) % np.uint64(n - i))
                order[i], order[j] = order[j], order[i]
        for i in range(per_tree if per_tree < n or tree == 0 else 0):
            source = np.uint64(rows[order[i]])
            for c in range(inputs.shape[0]):
                features[i, c] = table[source, np.uint64(inputs[c])]
            for c in range(inputs.shape[0], features.shape[1]):
                features[i, c] = 0
            for k in range(n_targets):
                targets[i, k] = table[source, np.uint64(columns[k])]
        for i in range(per_tree):
            order[i] = i
        roots[tree] = n_nodes
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = n_nodes, 0, per_tree
        _sum_rows(targets, order, np.uint64(0), np.uint64(per_tree), sums[0])
        n_nodes += 1
        n_waiting = 1
        while n_waiting > 0:
            n_waiting -= 1
            node, begin, end = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
            n_rows = np.int64(end - begin)
            for k in range(n_targets + 1):
                total[k] = sums[n_waiting, k]
            unexplained = total[n_targets]
            for k in range(n_targets):
                unexplained -= total[k] * total[k] / n_rows
            count, last = spread(np.float32(n_rows)), end - next_row
            best, chosen = _NOT_ALLOWED, -1
            is_leaf = n_rows < 2 * min_leaf or unexplained <= _NO_SPREAD * n_rows
            for block in range(0 if is_leaf else n_blocks):
                low = load(features, order[begin] * n_blocks + block)
                high, low_1, high_1 = low, low, low
                for i in range(begin + next_row, end, a_pair):  # whose instructions need not wait for each other
                    x = load(features, order[i] * n_blocks + block)
                    x_1 = load(features, order[min(i + next_row, last)] * n_blocks + block)
                    low, high, low_1, high_1 = smaller(low, x), larger(high, x), smaller(low_1, x_1), larger(high_1, x_1)
                low, high = smaller(low, low_1), larger(high, high_1)
                key = np.uint32(key + _ANOTHER)
                cut = low + random_units(key) * (high - low)
                cut = choose_less(cut, high, cut, low)  # rounded up, it would leave nothing above it
                store(cuts, block, cut)
                explained, n_below = zero, zero
                for k in range(n_targets):
                    sum_below, sum_below_1, n_below, n_below_1 = zero, zero, zero, zero
                    for i in range(begin, last, a_pair):
                        row, row_1 = order[i], order[i + next_row]
                        x, x_1 = load(features, row * n_blocks + block), load(features, row_1 * n_blocks + block)
                        n_below += choose_less(cut, x, zero, one)
                        n_below_1 += choose_less(cut, x_1, zero, one)
                        sum_below += choose_less(cut, x, zero, spread(targets[row, k]))
                        sum_below_1 += choose_less(cut, x_1, zero, spread(targets[row_1, k]))
                    if n_rows % 2:
                        x = load(features, order[last] * n_blocks + block)
                        n_below += choose_less(cut, x, zero, one)
                        sum_below += choose_less(cut, x, zero, spread(targets[order[last], k]))
                    n_below += n_below_1
                    sum_below += sum_below_1
                    sum_above = spread(np.float32(total[k])) - sum_below
                    explained += sum_below * sum_below / n_below + sum_above * sum_above / larger(count - n_below, one)
                key = np.uint32(key + _ANOTHER)
                chance = random_units(key)
                explained *= one + spread(_TIES) * chance
                explained += choose_less(chance, spread(tried), zero, spread(_NOT_TRIED))
                explained = choose_less(smaller(n_below, count - n_below), least, spread(_NOT_ALLOWED), explained)
                highest = largest(explained)
                if highest > best:
                    best, chosen = highest, block * NARROW_WIDTH + lane_of(explained, highest)
            if chosen < 0:
                child[node], feature[node], threshold[node] = -1 - n_leaves, 0, 0
                for k in range(n_targets):
                    value[n_leaves, k] = total[k] / n_rows
                n_leaves += 1
                continue
            cut_at, column = cuts[chosen // NARROW_WIDTH, chosen % NARROW_WIDTH], np.uint64(chosen)
            middle, n_apart = begin, np.uint64(0)
            for i in range(begin, end):  # without a branch, which no processor would foresee
                row = order[i]
                is_below = np.uint64(features[row, column] <= cut_at)
                order[middle], apart[n_apart] = row, row
                middle += is_below
                n_apart += next_row - is_below
            for i in range(n_apart):
                order[middle + i] = apart[i]
            _sum_rows(targets, order, begin, middle, below)
            child[node], feature[node], threshold[node] = n_nodes, chosen, cut_at
            for side in range(2):
                first, after = (begin, middle) if side == 0 else (middle, end)
                for k in range(n_targets + 1):
                    sums[n_waiting, k] = below[k] if side == 0 else total[k] - below[k]
                if after - first == next_row:
                    child[n_nodes], feature[n_nodes], threshold[n_nodes] = -1 - n_leaves, 0, 0
                    for k in range(n_targets):
                        value[n_leaves, k] = targets[order[first], k]
                    n_leaves += 1
                else:
                    waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = n_nodes, first, after
                    n_waiting += 1
                n_nodes += 1
    add_trees(table, other_rows, inputs, roots, child, feature, threshold, value, total_of_others)
    return n_nodes, n_leaves


@compiled
def _sum_rows(targets, order, begin, end, sums):  # type: ignore[no-untyped-def]
    """Sums over rows of the targets, then of all their squares."""
    n_targets = targets.shape[1]
    squares = 0.0
    for k in range(n_targets):
        total = 0.0
        for i in range(begin, end):
            y = np.float64(targets[order[i], k])
            total += y
            squares += y * y
        sums[k] = total
    sums[n_targets] = squares
