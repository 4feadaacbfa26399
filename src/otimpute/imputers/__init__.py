"""Imputers by optimal transport."""

from .sinkhorn import SinkhornImputer

__all__ = ["SinkhornImputer"]
