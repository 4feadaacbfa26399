"""A file with what people know of their table: read, combined with flags, and drafted."""

from .document import PlanError
from .table_plan import TablePlan
from .toml_text import toml_line

__all__ = ["PlanError", "TablePlan", "toml_line"]
