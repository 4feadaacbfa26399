"""A task of a benchmark: one data set, one draw of missing values, one method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Task:
    """A data set, how to hide values, and the method to impute them. Keys are the same on all machines and versions."""

    dataset: str
    mechanism: str
    rate: float
    method: str  # the name shown in results
    imputer: str  # the name in the catalogue
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the imputer
    options: Mapping[str, Any] = field(default_factory=dict)  # of the mechanism, besides its rate
    test_fraction: float = 0.0  # fraction of the rows not fitted but imputed by transform
    n_draws: int = 1  # completed tables of a method that draws at random; 1: draws are not scored

    def __post_init__(self) -> None:
        for each in fields(self):
            value, wanted = getattr(self, each.name), _KINDS[each.name]
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise TypeError(f"a task's {each.name} must be {wanted}, got {value!r}")
        for name in ("rate", "test_fraction"):  # 1 and 1.0 are the same task and need the same key
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def key(self) -> str:
        """A file name that identifies the task."""
        return hashlib.sha256(canonical(self.as_dict()).encode()).hexdigest()[:24]

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def setting(self) -> str:
        """Short name of the mechanism, rate and options."""
        return setting_name(self.mechanism, self.rate, self.options)

    @property
    def on_gpu(self) -> bool:
        """Whether the method runs on a GPU."""
        return self.parameters.get("device") == "cuda"

    def generator_of_holes(self) -> np.random.Generator:
        """Return the generator of the missing entries; it does not depend on the method, so all methods get the same."""
        return self._generator("holes", self.dataset, self.setting, self.seed)

    def generator_of_split(self) -> np.random.Generator:
        """Return the generator of the test rows, the same for every mechanism and method."""
        return self._generator("split", self.dataset, self.seed)

    def seeds_of_draws(self) -> list[int]:
        """Return the seeds of the draws after the first, which has the seed of the task."""
        rng = self._generator("draws", self.dataset, self.setting, self.seed)
        return [int(seed) for seed in rng.integers(2**31 - 1, size=self.n_draws - 1)]

    @staticmethod
    def _generator(*purpose: str | int) -> np.random.Generator:
        return np.random.default_rng(list(hashlib.sha256(canonical(purpose).encode()).digest()))

    def as_dict(self) -> dict[str, Any]:
        """Return the task as a dictionary; without ``n_draws=1``, so that keys and records are those from before it existed."""
        content = asdict(self)
        if self.n_draws == 1:
            del content["n_draws"]
        return content

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a task from the result of `as_dict`; other data raise KeyError or TypeError."""
        data = {"n_draws": 1, **data}
        task = cls(**{each.name: data[each.name] for each in fields(cls)})
        if set(data) != {each.name for each in fields(cls)}:
            raise TypeError(f"not a task: {sorted(data)}")
        return task


_KINDS: dict[str, Any] = {
    **dict.fromkeys(["dataset", "mechanism", "method", "imputer"], str),
    **dict.fromkeys(["parameters", "options"], Mapping),
    **dict.fromkeys(["rate", "test_fraction"], (int, float)),
    **dict.fromkeys(["seed", "n_draws"], int),
}


def setting_name(mechanism: str, rate: float, options: Mapping[str, Any]) -> str:
    """Return a short name of the mechanism, rate in percent, and options.

    >>> setting_name("quantile_mnar", 0.3, {"tails": "upper"})
    'quantile_mnar-30-tails=upper'
    """
    return "-".join([mechanism, f"{100 * rate:g}", *(f"{name}={value}" for name, value in sorted(options.items()))])


def canonical(data: Any) -> str:
    """Return canonical JSON: equal data give equal text.

    >>> canonical({"b": 1, "a": [0.5]})
    '{"a":[0.5],"b":1}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
