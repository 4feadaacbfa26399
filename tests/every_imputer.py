"""Every imputer there is, quick to fit: what tests of promises that all keep are run on."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from otimpute import MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer
from otimpute.baselines import (
    GaussianEMImputer,
    ICEImputer,
    KNNImputer,
    MeanImputer,
    MissForestImputer,
    SoftImputer,
)

Make = Callable[..., Any]
SHORT = {"max_cycles": 2, "n_updates": 3, "n_pairs": 2, "random_state": 0}


def torch_layer(d_in: int) -> Any:
    import torch

    return torch.nn.Linear(d_in, 1)


IMPUTERS: dict[str, Make] = {
    "sinkhorn": lambda **k: SinkhornImputer(**{"max_steps": 40, "random_state": 0, **k}),
    "sinkhorn-paper": lambda **k: SinkhornImputer.paper(**{"max_steps": 40, "random_state": 0, "scale": True, **k}),
    "sinkhorn-weighted": lambda **k: SinkhornImputer(**{"max_steps": 40, "random_state": 0, "imputed_weight": 0.5, **k}),
    "round-robin": lambda **k: RoundRobinImputer(**{**SHORT, **k}),
    "round-robin-mlp": lambda **k: RoundRobinImputer("mlp", **{**SHORT, **k}),
    "round-robin-paper": lambda **k: RoundRobinImputer.paper(**{**SHORT, "scale": True, "n_updates": 15, **k}),
    "mean": MeanImputer,
    "knn": KNNImputer,
    "ice": lambda **k: ICEImputer(**{"max_iter": 3, "random_state": 0, **k}),
    "missforest": lambda **k: MissForestImputer(**{"n_estimators": 5, "max_iter": 2, "random_state": 0, **k}),
    "gaussian-em": GaussianEMImputer,
    "softimpute": lambda **k: SoftImputer(**{"random_state": 0, **k}),
}
if find_spec("torch"):
    IMPUTERS["meta-sinkhorn"] = lambda **k: MetaSinkhornImputer(**{"max_steps": 20, "random_state": 0, **k})
    IMPUTERS["round-robin-torch"] = lambda **k: RoundRobinImputer(
        torch_layer, **{**SHORT, "n_updates": 15, "learning_rate": 0.02, **k}
    )
TORCH = {"meta-sinkhorn", "round-robin-torch"}
TRANSPORT = {name for name in IMPUTERS if name.startswith(("sinkhorn", "round-robin", "meta"))}
RANDOM = TRANSPORT | {"missforest", "softimpute"}
