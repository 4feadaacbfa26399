"""Names for imputers and missingness mechanisms, for suites and commands: explicit, nothing is discovered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ._checks import check_choice
from .auto import AutoImputer
from .baselines import (
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
from .estimator import BaseImputer
from .imputers import MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer
from .missingness import MCAR, LogisticMAR, LogisticMNAR, LogisticSelfMNAR, QuantileMNAR

IMPUTERS: Mapping[str, Callable[..., BaseImputer]] = {
    "auto": AutoImputer,
    "auto_distribution": partial(AutoImputer, target="distribution"),
    "sinkhorn": SinkhornImputer,
    "sinkhorn_paper": SinkhornImputer.paper,
    "linear_rr": partial(RoundRobinImputer, "linear"),
    "linear_rr_paper": partial(RoundRobinImputer.paper, "linear"),
    "mlp_rr": partial(RoundRobinImputer, "mlp"),
    "mlp_rr_paper": partial(RoundRobinImputer.paper, "mlp"),
    "meta_sinkhorn": MetaSinkhornImputer,
    "mean": MeanImputer,
    "knn": KNNImputer,
    "ice": ICEImputer,
    "missforest": MissForestImputer,
    "gaussian_em": GaussianEMImputer,
    "gaussian_mixture": GaussianMixtureImputer,
    "extra_trees": ExtraTreesImputer,
    "kernel_ridge": KernelRidgeImputer,
    "softimpute": SoftImputer,
    "miwae": MIWAEImputer,
    "gain": GAINImputer,
    "vaeac": VAEACImputer,
}

MECHANISMS: Mapping[str, Callable[..., Any]] = {
    "mcar": MCAR,
    "logistic_mar": LogisticMAR,
    "logistic_mnar": LogisticMNAR,
    "logistic_self_mnar": LogisticSelfMNAR,
    "quantile_mnar": QuantileMNAR,
}


def make_imputer(name: str, parameters: Mapping[str, Any], random_state: Any = None) -> BaseImputer:
    """The imputer of that name.

    >>> make_imputer("knn", {"n_neighbors": 3}, random_state=0)
    KNNImputer(n_neighbors=3, random_state=0)
    >>> make_imputer("mlp_rr", {"max_cycles": 2}, random_state=0)
    RoundRobinImputer(max_cycles=2, model='mlp', random_state=0)
    """
    return IMPUTERS[check_choice("imputer", name, IMPUTERS)](**parameters, random_state=random_state)


def make_mechanism(name: str, rate: float, options: Mapping[str, Any]) -> Any:
    """The missingness mechanism of that name.

    >>> make_mechanism("mcar", 0.3, {})
    MCAR(rate=0.3)
    """
    return MECHANISMS[check_choice("mechanism", name, MECHANISMS)](rate, **options)
