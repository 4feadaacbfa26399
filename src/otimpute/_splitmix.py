"""splitmix64: 64 bits scrambled such that numbers counted up become random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # what a state is counted up by
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


def mix(value: Any) -> Any:
    """Scramble the bits of unsigned 64-bit numbers; plain enough to be compiled where loops need it.

    >>> with np.errstate(over="ignore"):
    ...     hex(mix(GOLDEN))
    '0xe220a8397b1dcdaf'
    """
    value = (value ^ (value >> np.uint64(30))) * MIX_1
    value = (value ^ (value >> np.uint64(27))) * MIX_2
    return value ^ (value >> np.uint64(31))
