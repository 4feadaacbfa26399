"""Imputers by optimal transport."""

from .meta_sinkhorn.meta_sinkhorn_imputer import MetaSinkhornImputer
from .round_robin.round_robin_imputer import RoundRobinImputer
from .side_by_side import FitInParts, descend_together, fit_transform_many
from .sinkhorn.sinkhorn_imputer import SinkhornImputer

__all__ = [
    "FitInParts",
    "MetaSinkhornImputer",
    "RoundRobinImputer",
    "SinkhornImputer",
    "descend_together",
    "fit_transform_many",
]
