"""One imputer for any table."""

from .auto_imputer import AutoImputer

__all__ = ["AutoImputer"]
