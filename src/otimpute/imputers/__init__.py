"""Imputers by optimal transport."""

from ._side_by_side import FitInParts, descend_together, fit_transform_many
from .meta_sinkhorn import MetaSinkhornImputer
from .round_robin import RoundRobinImputer
from .sinkhorn import SinkhornImputer

__all__ = [
    "FitInParts",
    "MetaSinkhornImputer",
    "RoundRobinImputer",
    "SinkhornImputer",
    "descend_together",
    "fit_transform_many",
]
