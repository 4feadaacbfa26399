"""Imputers by optimal transport."""

from ._side_by_side import fit_transform_many, side_by_side
from .meta_sinkhorn import MetaSinkhornImputer
from .round_robin import RoundRobinImputer
from .sinkhorn import SinkhornImputer

__all__ = ["MetaSinkhornImputer", "RoundRobinImputer", "SinkhornImputer", "fit_transform_many", "side_by_side"]
