"""Every imputer there is, quick to fit, and a table of all kinds of columns: for promises that all keep."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from kernels import HAS_GPU
from otimpute import AutoImputer, MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer
from otimpute.baselines import (
    ChainedImputer,
    ExtraTreesImputer,
    GAINImputer,
    GaussianEMImputer,
    GaussianMixtureImputer,
    ICEImputer,
    KernelRidgeImputer,
    KNNImputer,
    MeanImputer,
    MissForestImputer,
    MIWAEImputer,
    SoftImputer,
    VAEACImputer,
)
from otimpute.catalogue import METHODS

Make = Callable[..., Any]
FEW_STEPS = {"max_steps": 15, "validation_fraction": 0.0, "device": "cpu", "random_state": 0}
SHORT = {"max_cycles": 2, "n_updates": 3, "n_pairs": 2, "random_state": 0}


def torch_layer(d_in: int) -> Any:
    import torch

    return torch.nn.Linear(d_in, 1)


def few_experts() -> list[Any]:
    return [
        "gaussian_em",
        SinkhornImputer(max_steps=10),
        GaussianMixtureImputer(n_components=(2,), max_iter=3),
        ExtraTreesImputer(n_estimators=3, n_rounds=2),
        KernelRidgeImputer(n_rounds=1),
    ]


def unseeded(cls: type, **given: Any) -> Make:
    """Of an imputer that draws nothing: whatever the seed, it is the same."""
    return lambda random_state=None, **k: cls(**{**given, **k})


IMPUTERS: dict[str, Make] = {
    "auto": lambda **k: AutoImputer(**{"experts": few_experts(), "n_splits": 1, "random_state": 0, **k}),
    "auto-distribution": lambda **k: AutoImputer(
        **{"experts": few_experts()[:1], "n_splits": 1, "target": "distribution", "random_state": 0, **k}
    ),
    "sinkhorn": lambda **k: SinkhornImputer(**{"max_steps": 40, "random_state": 0, **k}),
    "sinkhorn-paper": lambda **k: SinkhornImputer.paper(**{"max_steps": 40, "random_state": 0, "scale": True, **k}),
    "round-robin": lambda **k: RoundRobinImputer(**{**SHORT, **k}),
    "round-robin-mlp": lambda **k: RoundRobinImputer("mlp", **{**SHORT, **k}),
    "round-robin-paper": lambda **k: RoundRobinImputer.paper(**{**SHORT, "scale": True, "n_updates": 15, **k}),
    "mean": unseeded(MeanImputer),
    "knn": unseeded(KNNImputer),
    "ice": unseeded(ICEImputer, max_iter=3),
    "missforest": lambda **k: MissForestImputer(**{"n_estimators": 5, "max_iter": 2, "random_state": 0, **k}),
    "gaussian-em": unseeded(GaussianEMImputer),
    "gaussian-mixture": lambda **k: GaussianMixtureImputer(**{"n_components": (2, 4), "random_state": 0, **k}),
    "chained": lambda **k: ChainedImputer(**{"n_rounds": 2, "n_estimators": 3, "random_state": 0, **k}),
    "extra-trees": lambda **k: ExtraTreesImputer(**{"n_estimators": 3, "n_rounds": 2, "random_state": 0, **k}),
    "kernel-ridge": KernelRidgeImputer,
    "softimpute": lambda **k: SoftImputer(**{"random_state": 0, **k}),
    "meta-sinkhorn": lambda **k: MetaSinkhornImputer(**{"max_steps": 20, "random_state": 0, **k}),
    "round-robin-torch": lambda **k: RoundRobinImputer(torch_layer, **{**SHORT, "n_updates": 15, "learning_rate": 0.02, **k}),
    "miwae": lambda **k: MIWAEImputer(**{**FEW_STEPS, "n_imputation_samples": 20, **k}),
    "gain": lambda **k: GAINImputer(**{**FEW_STEPS, "alphas": (1.0, 10.0), **k}),
    "vaeac": lambda **k: VAEACImputer(**{**FEW_STEPS, "depth": 1, "width": 16, **k}),
}
_QUICK = {type(make()) for make in IMPUTERS.values()}
IMPUTERS |= {name: partial(each.make, random_state=0) for name, each in METHODS.items() if each.load() not in _QUICK}
DEEP = {"miwae", "gain", "vaeac"}
TORCH = {"meta-sinkhorn", "round-robin-torch", *DEEP}
if not find_spec("torch"):
    IMPUTERS = {name: make for name, make in IMPUTERS.items() if name not in TORCH}
if HAS_GPU and find_spec("torch") and find_spec("triton"):
    IMPUTERS |= {
        f"{name}-cuda": lambda make=IMPUTERS[name], **k: make(**{"device": "cuda", **k})
        for name in (
            *("sinkhorn", "sinkhorn-paper", "round-robin", "round-robin-mlp", "meta-sinkhorn"),
            *("gaussian-em", "gaussian-mixture", "kernel-ridge"),
        )
    }
TORCH |= {name for name in IMPUTERS if name.endswith("-cuda")}
TRANSPORT = {name for name in IMPUTERS if name.startswith(("sinkhorn", "round-robin", "meta"))}
RANDOM = TRANSPORT | {*DEEP, "auto", "auto-distribution", "chained"}
RANDOM |= {"extra-trees", "gaussian-mixture", "missforest", "softimpute"}
RANDOM |= {"gaussian-mixture-cuda"} & set(IMPUTERS)


def grouped_table(n: int = 90, rate: float = 0.2, seed: int = 0) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """A table whose columns all say to which of three groups a row belongs, complete and with holes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    complete = {
        "size": (group * 3 + rng.normal(size=n) * 0.2).tolist(),
        "colour": [["red", "green", "blue"][g] for g in group],
        "is_red": [bool(g == 0) for g in group],
        "count": (group * 10 + rng.integers(0, 2, n)).tolist(),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=int(g) * 30) for g in group],
        "at": [dt.datetime(2024, 1, 1, 12) + dt.timedelta(hours=int(g) * 50) for g in group],
    }
    incomplete = {name: [None if rng.random() < rate else cell for cell in cells] for name, cells in complete.items()}
    return complete, incomplete
