"""Inference from several completed tables: an analysis of each, pooled by Rubin's rules."""

from .completed_tables import CompletedTables
from .multiple_imputer import MultipleImputer
from .pooled import JointTest, PooledEstimates
from .pooling import pool, pool_estimates
from .sensitivity_analysis import Sensitivity, sensitivity

__all__ = [
    "CompletedTables",
    "JointTest",
    "MultipleImputer",
    "PooledEstimates",
    "Sensitivity",
    "pool",
    "pool_estimates",
    "sensitivity",
]
