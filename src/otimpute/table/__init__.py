"""Tables in, arrays out, and back."""

from .standardise import FARTHEST, Standardiser
from .table import Table, as_frame, read_array, read_frame

__all__ = ["FARTHEST", "Standardiser", "Table", "as_frame", "read_array", "read_frame"]
