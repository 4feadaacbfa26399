"""Randomness is an argument: a `random_state` at the edge becomes seeds and generators below; nothing is global."""

from __future__ import annotations

from typing import Any

import numpy as np


def seed_from(random_state: Any) -> int:
    """A 63-bit seed from what scikit-learn calls ``random_state``: None, a whole number, a RandomState or a Generator.

    None gives a fresh seed each time; a generator is advanced by one draw, as scikit-learn does.

    >>> seed_from(7) == seed_from(np.int64(7))
    True
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 1
    if isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        draw = random_state.integers if isinstance(random_state, np.random.Generator) else random_state.randint
        return int(draw(0, 2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)[0]) >> 1
    raise ValueError(
        f"random_state must be None, a whole number >= 0, a numpy Generator or a RandomState, got {random_state!r}"
    )


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator for one ``purpose`` of a fit, so that adding a draw in one place leaves the others as they were."""
    return np.random.default_rng([seed, *purpose.encode()])


def generator_from(random_state: Any, purpose: str) -> np.random.Generator:
    """The generator itself, or one for ``purpose`` from a seed; None gives a fresh one each time.

    The purpose counts: were data and holes both drawn from ``default_rng(0)``, the data would decide where the holes are.

    >>> generator_from(7, "data").random() == generator_from(7, "holes").random()
    False
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return generator(int(random_state), purpose)
    return generator(seed_from(random_state), purpose)
