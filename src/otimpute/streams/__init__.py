"""Tables that are read in parts, more than once: where their rows come from, and what is learned from all of them."""

from .source import BatchSource, Fold, source_of

__all__ = ["BatchSource", "Fold", "source_of"]
