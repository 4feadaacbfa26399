"""What people know about their table: which columns to impute, from which others, and what holds between them."""

from .identifiers import identifiers_among
from .names import find_column, find_columns, names_of
from .plain import plain_columns, plain_predictors
from .roles import ColumnRoles, ColumnWishes

__all__ = [
    "ColumnRoles",
    "ColumnWishes",
    "find_column",
    "find_columns",
    "identifiers_among",
    "names_of",
    "plain_columns",
    "plain_predictors",
]
