"""The registry of methods, missingness mechanisms and metrics: names, import locations and labels.

Entries are imported only when they are used, so listing or completing names is instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._checks import check_choice

if TYPE_CHECKING:
    from .estimator import BaseImputer


@dataclass(frozen=True)
class MethodStyle:
    """How one method is drawn in every figure."""

    color: str
    hatch: str
    marker: str | tuple[int, int, int]  # a tuple is matplotlib's (number of sides, style, rotation)


@dataclass(frozen=True)
class CatalogueEntry:
    """Base class of the entries for methods, mechanisms and metrics."""

    name: str
    location: str  # "module:object", within otimpute
    label: str  # shown in figures

    def load(self) -> Any:
        """Import the class or function."""
        module, _, name = self.location.partition(":")
        return getattr(import_module(f"otimpute.{module}"), name)


@dataclass(frozen=True)
class MethodEntry(CatalogueEntry):
    """An imputer, or a named variant of one."""

    description: str
    style: MethodStyle | None = None  # None: one of the spare styles
    ours: bool = False  # False: a baseline
    preset: str = ""  # class method that creates the variant
    parameters: Mapping[str, Any] = field(default_factory=dict)  # parameters that define the variant
    expert: int = 0  # position among the experts of AutoImputer, cheapest first; 0: not an expert
    draws: bool = False  # imputes values drawn at random, others with each seed

    @property
    def make(self) -> Callable[..., BaseImputer]:
        """Return a function that takes further parameters and returns the imputer."""
        cls = self.load()
        return partial(getattr(cls, self.preset) if self.preset else cls, **self.parameters)


@dataclass(frozen=True)
class MechanismEntry(CatalogueEntry):
    """A missingness mechanism."""

    description: str


@dataclass(frozen=True)
class MetricEntry(CatalogueEntry):
    """A function ``(X_true, X_imputed, missing)`` that returns a number, or one per column (NaN where undefined)."""

    of_draws: bool = False  # takes draws [m, n, d] instead of one imputed table
    power: int = 1  # 2: its unit is the square of that of the values
    lower_is_better: bool = True
    few_rows: bool = False  # not computed for more than ``metrics.MOST_ROWS`` incomplete rows
    compared: int = 0  # position among the figures of ranks and wins; 0: no such figure


# In the order of tables and figures, except that our methods come after all others.
# No two colours are equally light, so that they also differ in greyscale print; so do hatches and markers.
METHODS: Mapping[str, MethodEntry] = {method.name: method for method in (
    MethodEntry("mean", "baselines.mean:MeanImputer", "column mean", "Mean or most frequent category of the column.",
           MethodStyle("#dddddd", "", "o"), expert=1),
    MethodEntry("knn", "baselines.knn:KNNImputer", "KNN", "Mean of the nearest rows.",
           MethodStyle("#92cef1", "////", "v"), expert=3),
    MethodEntry("ice", "baselines.ice:ICEImputer", "ICE", "Chained equations: ridge regression of each column on the others.",
           MethodStyle("#2486bd", "-----", "^"), expert=6),
    MethodEntry("softimpute", "baselines.softimpute:SoftImputer", "softimpute", "Low-rank matrix completion.",
           MethodStyle("#31b18e", "\\\\\\\\", "<"), expert=10),
    MethodEntry("gaussian_em", "baselines.gaussian_em:GaussianEMImputer", "Gaussian EM", "Multivariate Gaussian, fitted by EM.",
           MethodStyle("#bd709b", "xxxx", "P"), expert=2),
    MethodEntry("missforest", "baselines.missforest:MissForestImputer", "missForest", "Random forest for each column.",
           MethodStyle("#291d5a", "", ">"), expert=7),
    MethodEntry("miwae", "baselines.miwae:MIWAEImputer", "MIWAE", "Importance-weighted autoencoder; needs torch.",
           MethodStyle("#5f7f1e", "xx..", (7, 1, 0)), expert=15),
    MethodEntry("gain", "baselines.gain:GAINImputer", "GAIN", "Generative adversarial network; needs torch.",
           MethodStyle("#c3cf6d", "++..", (3, 1, 30)), expert=14),
    MethodEntry("vaeac", "baselines.vaeac:VAEACImputer", "VAEAC", "Variational autoencoder; needs torch.",
           MethodStyle("#0f5f6d", "//..", (4, 1, 22)), expert=16),
    MethodEntry("sinkhorn_paper", "imputers.sinkhorn.sinkhorn_imputer:SinkhornImputer", "Sinkhorn (paper preset)",
           "Algorithm 1 with the settings of the paper.", MethodStyle("#f5aa07", "", "D"), ours=True, preset="paper"),
    MethodEntry("linear_rr_paper", "imputers.round_robin.round_robin_imputer:RoundRobinImputer", "Linear RR (paper preset)",
           "Algorithm 3 with linear models and the settings of the paper.",
           MethodStyle("#ffc795", "|||||", "d"), ours=True, preset="paper", parameters={"model": "linear"}),
    MethodEntry("mlp_rr_paper", "imputers.round_robin.round_robin_imputer:RoundRobinImputer", "MLP RR (paper preset)",
           "Algorithm 3 with small networks and the settings of the paper.",
           MethodStyle("#f68a94", "++++", "h"), ours=True, preset="paper", parameters={"model": "mlp"}),
    MethodEntry("sinkhorn", "imputers.sinkhorn.sinkhorn_imputer:SinkhornImputer", "Sinkhorn (ours, defaults)",
           "Algorithm 1: each missing value is moved by optimal transport.",
           MethodStyle("#cd1c05", "", "*"), ours=True, expert=4),
    MethodEntry("linear_rr", "imputers.round_robin.round_robin_imputer:RoundRobinImputer", "Linear RR (ours)",
           "Algorithm 3: a linear model for each column, trained by optimal transport.",
           MethodStyle("#e0772d", "/////", "s"), ours=True, parameters={"model": "linear"}, expert=11),
    MethodEntry("mlp_rr", "imputers.round_robin.round_robin_imputer:RoundRobinImputer", "MLP RR (ours)",
           "Algorithm 3: a small network for each column, trained by optimal transport.",
           MethodStyle("#921331", "", "X"), ours=True, parameters={"model": "mlp"}, expert=12),
    MethodEntry("meta_sinkhorn", "imputers.meta_sinkhorn.meta_sinkhorn_imputer:MetaSinkhornImputer", "Meta Sinkhorn (ours)",
           "Algorithm 2: one network for whole rows, trained by optimal transport; needs torch.",
           MethodStyle("#d31ca6", "\\\\\\\\\\", "p"), ours=True, expert=13),
    MethodEntry("gaussian_mixture", "baselines.gaussian_mixture:GaussianMixtureImputer", "Gaussian mixture (ours)",
           "Mixture of Gaussians.", ours=True, expert=5),
    MethodEntry("extra_trees", "baselines.extra_trees:ExtraTreesImputer", "extra trees (ours)",
           "Extremely randomised trees for each column.", ours=True, expert=9),
    MethodEntry("kernel_ridge", "baselines.kernel_ridge:KernelRidgeImputer", "kernel ridge (ours)",
           "Kernel ridge regression for each column.", ours=True, expert=8),
    MethodEntry("chained", "baselines.chained.chained_imputer:ChainedImputer", "chained draws (ours)",
           "Random draws by chained equations; several of them are a multiple imputation.", ours=True, draws=True),
    MethodEntry("auto", "auto.auto_imputer:AutoImputer", "AutoImputer",
           "Weighted average of several methods, by how well they recover hidden values.",
           MethodStyle("#0b0b0b", "", (6, 1, 0)), ours=True),
    MethodEntry("auto_distribution", "auto.auto_imputer:AutoImputer", "AutoImputer (distribution)",
           "The same, with values drawn at random around the averages.",
           MethodStyle("#6b6b6b", "....", (8, 1, 0)), ours=True, parameters={"target": "distribution"}, draws=True),
)}  # fmt: skip

# The methods that can be experts of AutoImputer, in the order in which they are fitted.
EXPERTS = tuple(sorted((name for name in METHODS if METHODS[name].expert), key=lambda name: METHODS[name].expert))

MECHANISMS: Mapping[str, MechanismEntry] = {mechanism.name: mechanism for mechanism in (
    MechanismEntry("mcar", "missingness.mcar:MCAR", "MCAR", "Completely at random."),
    MechanismEntry("logistic_mar", "missingness.logistic:LogisticMAR", "MAR", "Depends on columns that stay complete."),
    MechanismEntry("logistic_mnar", "missingness.logistic:LogisticMNAR", "MNAR logistic", "Depends on incomplete columns."),
    MechanismEntry("logistic_self_mnar", "missingness.logistic:LogisticSelfMNAR", "MNAR self-masked", "Depends on the value."),
    MechanismEntry("quantile_mnar", "missingness.quantile_mnar:QuantileMNAR", "MNAR quantile", "Extremes of some columns."),
)}  # fmt: skip

METRICS: Mapping[str, MetricEntry] = {metric.name: metric for metric in (
    MetricEntry("mae", "metrics.pointwise:mae", "MAE", compared=2),
    MetricEntry("rmse", "metrics.pointwise:rmse", "RMSE", compared=1),
    MetricEntry("energy_distance", "metrics.distributional:energy_distance", "energy distance", compared=3),
    MetricEntry("sliced_wasserstein2", "metrics.distributional:sliced_wasserstein2", "sliced squared W₂", power=2),
    MetricEntry("marginal_wasserstein1", "metrics.distributional:marginal_wasserstein1", "marginal W₁"),
    MetricEntry("wasserstein2", "metrics.distributional:wasserstein2", "squared W₂", power=2, few_rows=True, compared=4),
    MetricEntry("crps", "metrics.draws:crps", "CRPS", of_draws=True, compared=5),
    MetricEntry("energy_score", "metrics.draws:energy_score", "energy score", of_draws=True),
)}  # fmt: skip

COSTS: Mapping[str, str] = {"seconds": "seconds", "added_mib": "memory added (MiB)"}  # costs of a fit: name and label


def make_imputer(name: str, parameters: Mapping[str, Any], random_state: Any = None) -> BaseImputer:
    """Create an imputer by its name, or by the location of your own class: ``"package.module:Class"``.

    ``random_state`` is ignored by imputers without randomness.

    >>> make_imputer("knn", {"n_neighbors": 3}, random_state=0)
    KNNImputer(n_neighbors=3)
    >>> make_imputer("mlp_rr", {"max_cycles": 2}, random_state=0)
    RoundRobinImputer(max_cycles=2, model='mlp', random_state=0)
    """
    if ":" in name:
        module, _, attribute = name.partition(":")
        make: Callable[..., BaseImputer] = getattr(import_module(module), attribute)
    else:
        make = METHODS[check_choice("imputer", name, METHODS)].make
    imputer = make(**parameters)
    return imputer.set_params(random_state=random_state) if hasattr(imputer, "random_state") else imputer


def draws_at_random(name: str, parameters: Mapping[str, Any]) -> bool:
    """Whether an imputer, by its name and parameters, imputes values drawn at random. Classes of your own do not count.

    >>> draws_at_random("auto", {}), draws_at_random("auto", {"target": "distribution"})
    (False, True)
    """
    if name not in METHODS:
        return False
    location, chosen = METHODS[name].location, {**METHODS[name].parameters, **parameters}
    alike = (method for method in METHODS.values() if method.draws and method.location == location)
    return any(all(chosen.get(key) == value for key, value in method.parameters.items()) for method in alike)


def make_mechanism(name: str, rate: float, options: Mapping[str, Any]) -> Any:
    """Create a missingness mechanism by its name.

    >>> make_mechanism("mcar", 0.3, {})
    MCAR(rate=0.3)
    """
    return MECHANISMS[check_choice("mechanism", name, MECHANISMS)].load()(rate, **options)


def imputer_classes(methods: Iterable[str] = METHODS) -> dict[str, type[BaseImputer]]:
    """Return the classes of these methods, by class name.

    >>> imputer_classes(["mean", "mlp_rr", "mlp_rr_paper"])
    {'MeanImputer': <class '...MeanImputer'>, 'RoundRobinImputer': <class '...RoundRobinImputer'>}
    """
    classes = (METHODS[name].load() for name in methods)
    return {cls.__name__: cls for cls in classes}
