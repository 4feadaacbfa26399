"""Parameter checks whose messages say what was received, what is accepted and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from .exceptions import ParameterTypeError, ParameterValueError


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    >>> check_choice("metric", "euclid", ["euclidean", "covariance"])
    Traceback (most recent call last):
    otimpute.exceptions.ParameterValueError: metric must be one of 'covariance', 'euclidean', got 'euclid'; did you mean ...
    """
    allowed = sorted(choices)
    if not isinstance(value, str) or value not in allowed:
        near = get_close_matches(value.lower(), allowed, 1, cutoff=0.7) if isinstance(value, str) else []
        meant = f"did you mean {near[0]!r}?" if near else ""
        raise ParameterValueError(name, value, f"one of {', '.join(map(repr, allowed))}", meant)
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
    accepted = f"a finite number {' and '.join(bounds)}".rstrip()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterTypeError(name, value, accepted, advice)
    number = float(value) if math.isfinite(value) else math.nan
    inside = (
        math.isfinite(number)
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
        and (below is None or number < below)
    )
    if not inside:
        raise ParameterValueError(name, value, accepted, advice)
    return number


def check_count(name: str, value: Any, *, at_least: int = 1, advice: str = "") -> int:
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    accepted = f"a whole number >= {at_least}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterTypeError(name, value, accepted, advice)
    if value < at_least:
        raise ParameterValueError(name, value, accepted, advice)
    return int(value)


def check_jobs(value: Any) -> None:
    """Check the parameter ``n_jobs``."""
    if value is not None and value != -1:
        check_count("n_jobs", value, advice="pass None for one thread, -1 for all cores")


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is a boolean."""
    if value not in (True, False) or not (isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")):
        raise ParameterTypeError(name, value, "True or False")
    return bool(value)
