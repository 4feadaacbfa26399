"""Tables that are read in parts, more than once: where their rows come from, and what is learned from all of them."""

from .column_facts import numbers_of
from .exact_sums import ColumnSums, ScatterSums, WholeSums
from .local import LocalParts
from .source import BatchSource, Combine, Fold, Scan, scan, scan_of
from .survey import Survey

__all__ = [
    "BatchSource",
    "ColumnSums",
    "Combine",
    "Fold",
    "LocalParts",
    "Scan",
    "ScatterSums",
    "Survey",
    "WholeSums",
    "numbers_of",
    "scan",
    "scan_of",
]
