"""Inference from several completed tables: an analysis of each, pooled by Rubin's rules."""

from .pooled import JointTest, PooledEstimates
from .pooling import pool, pool_estimates

__all__ = ["JointTest", "PooledEstimates", "pool", "pool_estimates"]
