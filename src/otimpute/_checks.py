"""Parameter checks whose messages say what was received, what is accepted and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    >>> check_choice("metric", "euclid", ["euclidean", "covariance"])
    Traceback (most recent call last):
    ValueError: metric must be one of 'covariance', 'euclidean', got 'euclid'; did you mean 'euclidean'?
    """
    allowed = sorted(choices)
    if not isinstance(value, str) or value not in allowed:
        near = get_close_matches(value.lower(), allowed, 1, cutoff=0.7) if isinstance(value, str) else []
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}{meant}")
    return value


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    advice: str = "",
) -> float:
    """Return ``value`` as a float if it is a finite real number inside the given bounds."""
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in ((">", above), (">=", at_least), ("<=", at_most), ("<", below))
        if bound is not None
    ]
    accepted = f"{name} must be a finite number {' and '.join(bounds)}".rstrip()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _error(TypeError, accepted, value, advice)
    if not math.isfinite(value):
        raise _error(ValueError, accepted, value, advice)
    number = float(value)
    inside = (
        (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
        and (below is None or number < below)
    )
    if not inside:
        raise _error(ValueError, accepted, value, advice)
    return number


def check_count(name: str, value: Any, *, at_least: int = 1, advice: str = "") -> int:
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    accepted = f"{name} must be a whole number >= {at_least}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _error(TypeError, accepted, value, advice)
    if value < at_least:
        raise _error(ValueError, accepted, value, advice)
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is a boolean."""
    if value not in (True, False) or not (isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _error(kind: type[Exception], accepted: str, value: Any, advice: str) -> Exception:
    return kind(f"{accepted}, got {value!r}" + (f"; {advice}" if advice else ""))
