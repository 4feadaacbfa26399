"""From what a report says to the page that says it."""

from __future__ import annotations

from .._optional import require
from .data import ReportData


def render(data: ReportData) -> str:
    """The page: one file that needs no other, and no network."""
    jinja2 = require("jinja2", "a report", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("otimpute.reporting"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    page: str = environment.get_template("report.html.j2").render(data=data)
    return page
