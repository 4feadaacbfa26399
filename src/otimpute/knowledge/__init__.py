"""What people know about their table: which columns to impute, from which others, and what holds between them."""

from .applicable import Applicability, is_about_rows, plain_applicable
from .derived import DerivedColumns
from .identifiers import identifiers_among
from .names import find_column, find_columns, names_of
from .panel import Panel, PanelColumns
from .plain import plain_columns, plain_predictors
from .roles import ColumnRoles, ColumnWishes

__all__ = [
    "Applicability",
    "ColumnRoles",
    "ColumnWishes",
    "DerivedColumns",
    "Panel",
    "PanelColumns",
    "find_column",
    "find_columns",
    "identifiers_among",
    "is_about_rows",
    "names_of",
    "plain_applicable",
    "plain_columns",
    "plain_predictors",
]
