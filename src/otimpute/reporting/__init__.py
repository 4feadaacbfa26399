"""A report on an imputation: gathered as plain data, drawn as pictures, put into one page."""

from ._error_bars import error_bars
from .collect import collect
from .data import ReportData
from .make_report import Report, report

__all__ = ["Report", "ReportData", "collect", "error_bars", "report"]
