"""Elements of HTML and SVG as data, so that nothing in a page is unescaped by accident."""

from __future__ import annotations

import math
import re
from copy import copy
from numbers import Real
from typing import Any, SupportsFloat
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

# Control characters, lone surrogates and code points that are no characters: no page may contain them.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_VERBATIM = {"script", "style"}  # HTML has no escapes inside these
_NAME = re.compile(r"[A-Za-z][\w.:-]*", re.ASCII)


def element(tag: str, *children: str | Element, **attributes: Any) -> Element:
    """An element of HTML or SVG with its children in order; strings are text.

    Of an attribute's name, a last underscore is dropped and others become hyphens. Values are text or finite numbers, rounded
    to two decimals; True is an attribute without a value, None and False leave it out.

    >>> to_html(element("p", "a < b ", element("b", "c"), class_="note", data_width=12.345, hidden=None))
    '<p class="note" data-width="12.35">a &lt; b <b>c</b></p>'
    """
    made = Element(_name(tag))
    for name, value in attributes.items():
        if value is not None and value is not False:
            named = _name(name.removesuffix("_").replace("_", "-"))
            made.set(named, _attribute(name, value))
    last = None
    for child in children:
        if isinstance(child, str):
            text = _FORBIDDEN.sub("�", child)
            if last is None:
                made.text = (made.text or "") + text
            else:
                last.tail = (last.tail or "") + text
        else:
            last = copy(child)  # the text after it belongs to this place only
            last.tail = None
            made.append(last)
    if tag.lower() in _VERBATIM and "<" in (made.text or ""):
        raise ValueError(
            f"the text of a {tag} element must not contain '<', which may end it; write it as an escape of its own"
        )
    return made


def to_html(root: Element) -> str:
    """The element as HTML, SVG inside it included."""
    return ET.tostring(root, encoding="unicode", method="html")


def short(number: SupportsFloat) -> str:
    """A finite number with two decimals at most.

    >>> short(12.345), short(3.0), short(-0.001), short(1200)
    ('12.35', '3', '0', '1200')
    """
    if not math.isfinite(number):
        raise ValueError(f"a number in a page must be finite, got {number}")
    text = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"a tag or attribute must be a name of ASCII letters, digits and hyphens, got {name!r}")
    return name


def _attribute(name: str, value: Any) -> str:
    if value is True:
        return ""
    if isinstance(value, str):
        return _FORBIDDEN.sub("�", value)
    if isinstance(value, Real):
        return short(value)
    raise TypeError(f"attribute {name} must be text, a number, True, False or None, got {value!r}")
