"""Figures of a report: pure functions from its data to SVG; the page's style sheet defines the colours."""

from .check import mark, methods_by_mark, off_by_column, off_by_method, pairs_of_categories, true_against_imputed
from .columns import observed_against_imputed
from .joint import correlations, projection
from .knowledge import predictor_matrix
from .missingness import MOST_BARS, holes_by_column, matrix, patterns, predictors
from .multiple import error_against_tables, trace
from .training import curve, weights

__all__ = [
    "MOST_BARS",
    "correlations",
    "curve",
    "error_against_tables",
    "holes_by_column",
    "mark",
    "matrix",
    "methods_by_mark",
    "observed_against_imputed",
    "off_by_column",
    "off_by_method",
    "pairs_of_categories",
    "patterns",
    "predictor_matrix",
    "predictors",
    "projection",
    "trace",
    "true_against_imputed",
    "weights",
]
