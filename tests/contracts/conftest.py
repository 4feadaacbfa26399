"""Each test of a promise runs on every imputer; and imputers with their files, for the tests of model files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otimpute
from every_imputer import IMPUTERS, SHORT, Make
from otimpute import MetaSinkhornImputer, RoundRobinImputer
from otimpute._archive import read_archive, write_archive


def own_model(d_in: int) -> Any:
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(d_in, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    module.register_buffer("count", torch.tensor(3))  # neither a float nor a list
    return module


def own_completer(n_columns: int = 4) -> Any:
    import torch

    from otimpute.imputers.meta_sinkhorn.joint_completer import JointCompleter

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return JointCompleter(n_columns, width=5)


# Variants that hold the same kinds of parts as another one are left out.
STORED: dict[str, Make] = {
    name: make for name, make in IMPUTERS.items() if name not in ("round-robin-paper", "round-robin-torch")
}
if find_spec("torch"):
    STORED |= {
        "own-completer": lambda **k: MetaSinkhornImputer(
            **{"completer": own_completer(), "max_steps": 5, "random_state": 0, **k}
        ),
        "own-model": lambda **k: RoundRobinImputer(**{"model": own_model, **SHORT, **k}),
    }
GIVEN: dict[str, dict[str, Any]] = {"own-completer": {"completer": own_completer}, "own-model": {"model": own_model}}


def table(n: int = 60, seed: int = 0) -> np.ndarray:
    """Correlated columns with holes, the third constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4))
    X[:, 2] = 3.0
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


@dataclass(frozen=True)
class Models:
    """Imputers by name, fitted to one table, and their files."""

    folder: Path
    names: tuple[str, ...] = tuple(STORED)

    def make(self, name: str, **parameters: Any) -> Any:
        return STORED[name](**parameters)

    def table(self, n: int = 60, seed: int = 0) -> np.ndarray:
        return table(n, seed)

    def given(self, name: str) -> dict[str, Any]:
        """What `load` needs besides the file."""
        return GIVEN.get(name, {})

    def file(self, name: str) -> Path:
        path = self.folder / f"{name}.otimpute"
        if not path.exists():
            self.make(name).fit(table()).save(path)
        return path

    def reload(self, name: str, imputer: Any, path: Path) -> Any:
        imputer.save(path)
        return otimpute.load(path, **self.given(name))

    def rewrite(self, name: str, change: Callable[[Any, dict[str, Any]], Any], path: Path) -> Path:
        """The file after a change of its document or arrays, its checksum correct."""
        document, arrays = read_archive(self.file(name), "model file")
        change(document, arrays)
        write_archive(path, "model file", document, arrays)
        return path


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("models"))


@pytest.fixture(params=STORED)
def model_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=IMPUTERS)
def make(request: pytest.FixtureRequest) -> Make:
    return IMPUTERS[request.param]


@pytest.fixture
def name_of(request: pytest.FixtureRequest, make: Make) -> str:
    """Which imputer `make` makes, where a promise differs."""
    return next(name for name, factory in IMPUTERS.items() if factory is make)
