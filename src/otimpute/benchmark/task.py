"""A run is a datum: one data set, one draw of holes, one method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Task:
    """What is hidden, in what, and who fills it in. Equal tasks have equal keys, on any machine and in any version."""

    dataset: str
    mechanism: str
    rate: float
    method: str  # the name results are shown under
    imputer: str  # the name in the catalogue
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the imputer
    options: Mapping[str, Any] = field(default_factory=dict)  # of the mechanism, besides its rate
    test_fraction: float = 0.0  # share of the rows kept from the fit and imputed by transform

    def __post_init__(self) -> None:
        for each in fields(self):
            value, wanted = getattr(self, each.name), _KINDS[each.name]
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise TypeError(f"a task's {each.name} must be {wanted}, got {value!r}")
        for name in ("rate", "test_fraction"):  # 1 and 1.0 are the same task, so they must have the same text
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def key(self) -> str:
        """A name for files, from everything that makes the task what it is."""
        return hashlib.sha256(canonical(asdict(self)).encode()).hexdigest()[:24]

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def setting(self) -> str:
        """What was hidden how, in short."""
        return setting_name(self.mechanism, self.rate, self.options)

    @property
    def on_gpu(self) -> bool:
        """Whether the method is to compute on a GPU, which makes it another task than the one on the CPU."""
        return self.parameters.get("device") == "cuda"

    def generator_of_holes(self) -> np.random.Generator:
        """Depends on data set, mechanism, rate and seed only: every method sees the same holes."""
        return self._generator("holes", self.dataset, self.setting, self.seed)

    def generator_of_split(self) -> np.random.Generator:
        """Which rows are kept for the test; the same for every mechanism and method."""
        return self._generator("split", self.dataset, self.seed)

    @staticmethod
    def _generator(*purpose: str | int) -> np.random.Generator:
        return np.random.default_rng(list(hashlib.sha256(canonical(purpose).encode()).digest()))

    def as_dict(self) -> dict[str, Any]:
        """The task as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The task from `as_dict`; KeyError or TypeError if that is not what it is."""
        task = cls(**{each.name: data[each.name] for each in fields(cls)})
        if set(data) != {each.name for each in fields(cls)}:
            raise TypeError(f"not a task: {sorted(data)}")
        return task


_KINDS: dict[str, Any] = {
    **dict.fromkeys(["dataset", "mechanism", "method", "imputer"], str),
    **dict.fromkeys(["parameters", "options"], Mapping),
    **dict.fromkeys(["rate", "test_fraction"], (int, float)),
    "seed": int,
}


def setting_name(mechanism: str, rate: float, options: Mapping[str, Any]) -> str:
    """Mechanism, rate in percent, and options, in short.

    >>> setting_name("quantile_mnar", 0.3, {"tails": "upper"})
    'quantile_mnar-30-tails=upper'
    """
    return "-".join([mechanism, f"{100 * rate:g}", *(f"{name}={value}" for name, value in sorted(options.items()))])


def canonical(data: Any) -> str:
    """JSON in one form only, so that equal data give equal text.

    >>> canonical({"b": 1, "a": [0.5]})
    '{"a":[0.5],"b":1}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
