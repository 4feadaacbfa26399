"""otimpute: fill in the missing values of tables, by optimal transport and other methods.

>>> import numpy as np
>>> from otimpute import AutoImputer
>>> X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0], [np.nan, 8.0], [5.0, 10.0]])
>>> X_imputed = AutoImputer(random_state=0).fit_transform(X)
>>> bool(np.isfinite(X_imputed).all())
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names are loaded when first used (PEP 562): importing otimpute is instant and loads none of its dependencies.
_HOME = {
    "AutoImputer": ".auto",
    "MetaSinkhornImputer": ".imputers",
    "MultipleImputer": ".inference",
    "RoundRobinImputer": ".imputers",
    "SinkhornImputer": ".imputers",
    "fit_transform_many": ".imputers",
    "from_bytes": ".model_file",
    "load": ".model_file",
    "pool": ".inference",
    "pool_estimates": ".inference",
    "report": ".reporting",
    "scan": ".streams",
    "sensitivity": ".inference",
    "sinkhorn_divergence": ".transport",
}
_PACKAGES = ("baselines", "benchmark", "datasets", "estimator", "fitting", "inference", "metrics", "missingness", "transport")

if TYPE_CHECKING:
    from .auto import AutoImputer as AutoImputer
    from .imputers import MetaSinkhornImputer as MetaSinkhornImputer
    from .imputers import RoundRobinImputer as RoundRobinImputer
    from .imputers import SinkhornImputer as SinkhornImputer
    from .imputers import fit_transform_many as fit_transform_many
    from .inference import MultipleImputer as MultipleImputer
    from .inference import pool as pool
    from .inference import pool_estimates as pool_estimates
    from .inference import sensitivity as sensitivity
    from .model_file import from_bytes as from_bytes
    from .model_file import load as load
    from .reporting import report as report
    from .streams import scan as scan
    from .transport import sinkhorn_divergence as sinkhorn_divergence

__all__ = [
    "AutoImputer",
    "MetaSinkhornImputer",
    "MultipleImputer",
    "RoundRobinImputer",
    "SinkhornImputer",
    "__version__",
    "fit_transform_many",
    "from_bytes",
    "load",
    "pool",
    "pool_estimates",
    "report",
    "scan",
    "sensitivity",
    "sinkhorn_divergence",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'otimpute' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
