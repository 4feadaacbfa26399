"""Reports on imputations: collected as plain data, and rendered as an HTML page."""

from ._error_bars import error_bars
from .collect import collect
from .data import ReportData
from .make_report import Report, report

__all__ = ["Report", "ReportData", "collect", "error_bars", "report"]
