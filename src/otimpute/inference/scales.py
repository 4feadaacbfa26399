"""Scales on which estimates are closer to normal, so that they are pooled there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from .._checks import check_choice
from .._text import listed
from ..exceptions import ParameterTypeError, ParameterValueError
from .rubin import Floats


class Scale(NamedTuple):
    """A monotone function of an estimate, its slope and its inverse; estimates lie strictly between ``low`` and ``high``."""

    to: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    back: Callable[[Any], Any]
    low: float
    high: float


AS_IT_IS = Scale(np.positive, np.ones_like, np.positive, -math.inf, math.inf)
SCALES = {
    "fisher_z": Scale(np.arctanh, lambda q: 1 / (1 - q**2), np.tanh, -1, 1),
    "log": Scale(np.log, lambda q: 1 / q, np.exp, 0, math.inf),
    "logit": Scale(logit, lambda q: 1 / (q * (1 - q)), expit, 0, 1),
}


class Scales:
    """The scale of each parameter.

    Parameters
    ----------
    transform : str, dict or None
        A name for all parameters, or names by parameter.
    names : sequence of str
        Names of the parameters.
    """

    def __init__(self, transform: Any, names: Sequence[str]) -> None:
        self.names = names
        self.scales = [AS_IT_IS] * len(names)
        if isinstance(transform, Mapping):
            unknown = [str(name) for name in transform if name not in names]
            if unknown:
                raise ParameterValueError("transform", listed(unknown), f"of parameters among {listed(names)}")
            for name, scale in transform.items():
                self.scales[names.index(name)] = SCALES[check_choice(f"transform[{name!r}]", scale, SCALES)]
        elif isinstance(transform, str):
            self.scales = [SCALES[check_choice("transform", transform, SCALES)]] * len(names)
        elif transform is not None:
            raise ParameterTypeError("transform", transform, f"one of {', '.join(map(repr, SCALES))}, a dict of them, or None")

    def to(self, estimates: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Estimates on their scales, and their covariance there by the delta method.

        Raises
        ------
        ValueError
            If an estimate has no value there.
        """
        for name, estimate, scale in zip(self.names, estimates, self.scales, strict=True):
            if not scale.low < estimate < scale.high:
                raise ValueError(
                    f"the estimate of {name!r} is {estimate:g}; to be transformed it must lie between {scale.low:g} and "
                    f"{scale.high:g}, exclusively"
                )
        slopes = self.slopes(estimates)
        return self._each("to", estimates), covariance * np.outer(slopes, slopes)

    def slopes(self, estimates: Floats) -> Floats:
        """Slope of each scale at estimates in their own units."""
        return self._each("slope", estimates)

    def back(self, transformed: Floats) -> Floats:
        """From the scales to own units."""
        return self._each("back", transformed)

    def _each(self, function: str, values: Floats) -> Floats:
        pairs = zip(self.scales, values, strict=True)
        return np.array([float(getattr(scale, function)(value)) for scale, value in pairs])
