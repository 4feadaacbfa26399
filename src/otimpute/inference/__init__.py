"""Inference from several completed tables: an analysis of each, pooled by Rubin's rules."""

from .completed_tables import CompletedTables
from .convergence import Convergence
from .diagnostics import ColumnDiagnostics, Diagnostics
from .matched_comparison import MatchedComparison
from .multiple_imputer import MultipleImputer
from .pooled import JointTest, PooledEstimates
from .pooling import pool, pool_estimates
from .sensitivity_analysis import Sensitivity, sensitivity

__all__ = [
    "ColumnDiagnostics",
    "CompletedTables",
    "Convergence",
    "Diagnostics",
    "JointTest",
    "MatchedComparison",
    "MultipleImputer",
    "PooledEstimates",
    "Sensitivity",
    "pool",
    "pool_estimates",
    "sensitivity",
]
