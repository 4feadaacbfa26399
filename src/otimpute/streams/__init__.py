"""Tables that are read in parts, more than once: where their rows come from, and what is learned from all of them."""

from .exact_sums import ColumnSums, ScatterSums
from .local import LocalParts
from .source import BatchSource, Fold, Scan, scan, scan_of
from .survey import Survey

__all__ = ["BatchSource", "ColumnSums", "Fold", "LocalParts", "Scan", "ScatterSums", "Survey", "scan", "scan_of"]
