"""Chained equations that draw missing values at random."""

from .chained_imputer import ChainedFit, ChainedImputer
from .delta import Delta, check_delta

__all__ = ["ChainedFit", "ChainedImputer", "Delta", "check_delta"]
