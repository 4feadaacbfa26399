"""Chained equations that draw missing values at random."""

from .chained_imputer import ChainedFit, ChainedImputer, PreparedDraws
from .delta import Delta, check_delta

__all__ = ["ChainedFit", "ChainedImputer", "Delta", "PreparedDraws", "check_delta"]
