"""Imputers by optimal transport."""

from .meta_sinkhorn import MetaSinkhornImputer
from .round_robin import RoundRobinImputer
from .sinkhorn import SinkhornImputer

__all__ = ["MetaSinkhornImputer", "RoundRobinImputer", "SinkhornImputer"]
