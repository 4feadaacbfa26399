"""A report on an imputation: gathered as plain data, drawn as pictures, put into one page."""

from .collect import collect

__all__ = ["collect"]
