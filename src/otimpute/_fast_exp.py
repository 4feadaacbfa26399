"""An exponential for compiled loops."""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload


def exp(x):  # type: ignore[no-untyped-def]
    """``exp`` that the compiler can vectorise in float32."""
    return math.exp(x)


@overload(exp, inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    if x != types.float32:
        return lambda x: math.exp(x)

    def exp_float32(x):  # type: ignore[no-untyped-def]
        # Write x = n·log 2 + r with |r| ≤ ½ log 2; a polynomial gives exp(r) to 2e-7, the exponent bits give 2ⁿ.
        # Not below exp(−69): smaller factors times small weights are denormal, which costs 100 cycles apiece.
        x = max(x, np.float32(-69.0))
        n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
        r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
        p = np.float32(1.0 / 5040)
        p = p * r + np.float32(1.0 / 720)
        p = p * r + np.float32(1.0 / 120)
        p = p * r + np.float32(1.0 / 24)
        p = p * r + np.float32(1.0 / 6)
        p = p * r + np.float32(0.5)
        p = p * r * r + r + np.float32(1.0)
        return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)

    return exp_float32
