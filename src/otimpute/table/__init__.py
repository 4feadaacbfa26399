"""Tables in, arrays out, and back."""

from .encoding import ColumnSummary, Encoding, describe_columns
from .standardise import FARTHEST, Standardiser
from .table import Table, as_frame, with_fields_of

__all__ = ["FARTHEST", "ColumnSummary", "Encoding", "Standardiser", "Table", "as_frame", "describe_columns", "with_fields_of"]
