"""A file with what people know of their table: read, combined with flags, and drafted."""

from .document import PlanError
from .table_plan import TablePlan

__all__ = ["PlanError", "TablePlan"]
