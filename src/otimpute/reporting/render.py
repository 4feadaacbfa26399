"""Render the content of a report as an HTML page."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from xml.etree.ElementTree import Element

from .._markup import legible, to_html
from .._optional import require
from .._text import count, number, share, signed
from ..estimator import Rating
from . import plots
from .data import ReportData

_SYMBOLS = {Rating.GOOD: "✓", Rating.CAUTION: "!", Rating.BAD: "✕", Rating.UNKNOWN: "?"}
_SUMMARIES = {
    Rating.BAD: "Check everything marked “bad” before you use the imputed table.",
    Rating.CAUTION: "Usable with care: check everything marked “caution”.",
    Rating.GOOD: "No problems were found.",
    Rating.UNKNOWN: "Not everything could be checked: see the details below.",
}


def render(data: ReportData) -> str:
    """Return the page as a single self-contained HTML file."""
    jinja2 = require("jinja2", "a report", "report")
    Markup = require("markupsafe", "a report", "report").Markup
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("otimpute.reporting"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: Markup(to_html(value)) if isinstance(value, Element) else value,
    )  # fmt: skip
    environment.filters |= {"share": share, "number": number, "count": count, "signed": signed, "prose": _prose}
    style, script = (environment.loader.get_source(environment, name)[0] for name in ("style.css", "script.js"))
    page: str = environment.get_template("report.html.j2").render(
        data=data,
        plots=plots,
        symbols=_SYMBOLS,
        summary=_SUMMARIES[_overall(data)],
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        places={column.name: place for place, column in enumerate(data.columns)},
    )
    return legible(page)


def _overall(data: ReportData) -> Rating:
    """Return the worst rating of the report, ignoring that missingness at random cannot be known."""
    lights = {each.light for each in data.verdict if (each.key, each.light) != ("chance", Rating.UNKNOWN)}
    return next(light for light in Rating if light in lights)


def _prose(words: str) -> str:
    """Prevent line breaks between a number and its %."""
    return words.replace(" %", "\N{NO-BREAK SPACE}%")


def _policy(style: str, script: str) -> str:
    """Return the content security policy: only the page's own style and script, identified by their hashes."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
