"""Tables in, arrays out, and back."""

from .categories import CategoryCode, plain_label
from .codes import ColumnCode, MomentCode, NumberCode, category_of, observed_category_of, seconds_of
from .encoding import ColumnSummary, Encoding, describe_columns
from .extent import few_values
from .kinds import ColumnKind, Family
from .moments import has_zone
from .native import family_of
from .numbers import labels_of, to_numbers
from .standardise import FARTHEST, Standardiser
from .table import Table, as_frame, with_fields_of

__all__ = [
    "FARTHEST",
    "CategoryCode",
    "ColumnCode",
    "ColumnKind",
    "ColumnSummary",
    "Encoding",
    "Family",
    "MomentCode",
    "NumberCode",
    "Standardiser",
    "Table",
    "as_frame",
    "category_of",
    "describe_columns",
    "family_of",
    "few_values",
    "has_zone",
    "labels_of",
    "observed_category_of",
    "plain_label",
    "seconds_of",
    "to_numbers",
    "with_fields_of",
]
