"""Chained equations that draw missing values at random."""

from .chained_imputer import ChainedFit, ChainedImputer

__all__ = ["ChainedFit", "ChainedImputer"]
