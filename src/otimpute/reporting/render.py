"""From what a report says to the page that says it."""

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
    Rating.BAD: "Do not use it before you have looked at what is marked bad.",
    Rating.CAUTION: "Usable with care: look at what is marked caution.",
    Rating.GOOD: "Nothing that was found speaks against using it.",
    Rating.UNKNOWN: "Not all could be checked: judge for yourself by what is shown below.",
}


def render(data: ReportData) -> str:
    """The page: one file that needs no other, and no network."""
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
    """The light of the whole report: its worst one; nobody ever knows whether values are missing by chance."""
    lights = {each.light for each in data.verdict if (each.key, each.light) != ("chance", Rating.UNKNOWN)}
    return next(light for light in Rating if light in lights)


def _prose(words: str) -> str:
    """No line begins with the % of a number."""
    return words.replace(" %", "\N{NO-BREAK SPACE}%")


def _policy(style: str, script: str) -> str:
    """What a browser may load for the page: nothing but the page's own style and script, known by their hashes."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
