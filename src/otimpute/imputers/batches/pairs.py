"""Which rows meet in which step: a pure function of (seed, step, pair, side), so the same on any number of threads.

A batch is the first ``m`` images of a keyed permutation of the rows, hence drawn without replacement. The permutation is a
Feistel network on the smallest power of two that holds all rows, walked until it lands inside the table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._compile import compiled
from ..._splitmix import GOLDEN, MIX_1, MIX_2, mix

ROUNDS = 8
# A Feistel network on a handful of values is a poor shuffle; on 256 it is even enough to test as uniform.
FEWEST_BITS = 8


ALL_ROWS = np.empty(0, np.int64)  # as a pool to draw from


def one_sided_pools(missing: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Complete rows for the first batch, incomplete ones for the second."""
    incomplete = missing.any(axis=1)
    if not incomplete.any():
        return ALL_ROWS, ALL_ROWS
    if incomplete.all():
        raise ValueError(
            f"one_sided=True compares complete with incomplete rows, but none of the {len(missing)} rows is complete; "
            "use one_sided=False"
        )
    return np.flatnonzero(~incomplete), np.flatnonzero(incomplete)


_mix = compiled(mix)


@compiled
def draw_rows(seed, step, pair, side, n_rows, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with distinct row numbers below ``n_rows``."""
    n_bits = FEWEST_BITS
    while (1 << n_bits) < n_rows:
        n_bits += 1
    low_bits = np.uint64((n_bits + 1) // 2)
    low_mask = (np.uint64(1) << low_bits) - np.uint64(1)
    high_mask = (np.uint64(1) << np.uint64(n_bits // 2)) - np.uint64(1)
    key = _mix(np.uint64(seed) + GOLDEN)
    key = _mix(key + np.uint64(step) * GOLDEN)
    key = _mix(key + np.uint64(2 * pair + side + 1) * GOLDEN)
    for i in range(out.shape[0]):
        position = np.uint64(i)
        while True:
            low = position & low_mask
            high = position >> low_bits
            round_key = key
            for _ in range(ROUNDS // 2):
                low ^= (((high + round_key) * MIX_1) >> np.uint64(32)) & low_mask
                round_key = round_key * MIX_2 + GOLDEN
                high ^= (((low + round_key) * MIX_1) >> np.uint64(32)) & high_mask
                round_key = round_key * MIX_2 + GOLDEN
            position = (high << low_bits) | low
            if position < np.uint64(n_rows):
                break
        out[i] = np.int64(position)
