"""Inference from several completed tables: an analysis of each, pooled by Rubin's rules."""

from .completed_tables import CompletedTables
from .multiple_imputer import MultipleImputer
from .pooled import JointTest, PooledEstimates
from .pooling import pool, pool_estimates

__all__ = ["CompletedTables", "JointTest", "MultipleImputer", "PooledEstimates", "pool", "pool_estimates"]
