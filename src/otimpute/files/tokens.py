"""Split delimited text into fields and line ends, losing nothing.

Quotes count where a field begins (after spaces at most): ``5" pipe`` is a plain field. What follows a closing quote belongs
to the field too, so that any text can be split and joined again. If the delimiter is a space, so are several in a row:
all but one of them belong to the field after them, those at the end of a line to the last field.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class SplitRows(NamedTuple):
    """The whole rows of a text: what ``n_read`` characters hold."""

    fields: list[str]  # row by row
    ends: list[str]  # of the rows
    widths: list[int]  # fields per row
    n_read: int


def split_rows(text: str, delimiter: str, quote: str, newline: str) -> SplitRows:
    r"""Split the whole rows of ``text``; ``newline`` is the last character of line ends.

    >>> split_rows('a,"b\n""c"\r\nd,', ",", '"', "\n")
    SplitRows(fields=['a', '"b\n""c"'], ends=['\r\n'], widths=[2], n_read=11)
    >>> split_rows("  a   b \n", " ", '"', "\n").fields
    ['  a', '  b ']
    """
    # Strings of a field and what ends it: tuples of both would take three times as long.
    tokens = _pattern(delimiter, quote, newline).findall(text)
    n_left = 0
    while tokens and (not tokens[-1].endswith(newline) or _is_open(tokens[-1], quote)):
        n_left += len(tokens.pop())
    places = [place for place, token in enumerate(tokens) if token[-1] == newline]
    fields = [token[:-1] for token in tokens]
    ends = [newline] * len(places)
    if newline == "\n" and "\r" in text:
        for row, place in enumerate(places):
            if fields[place].endswith("\r"):
                fields[place], ends[row] = fields[place][:-1], "\r\n"
    widths = [end - before for before, end in zip([-1, *places], places, strict=False)]
    return SplitRows(fields, ends, widths, len(text) - n_left)


def unquoted(field: str, quote: str) -> str:
    """What a raw field says.

    >>> unquoted(' "a ""b"" c"', '"'), unquoted("a", '"')
    ('a "b" c', 'a')
    """
    inner = field.strip(" ")
    if quote and len(inner) > 1 and inner[0] == quote == inner[-1]:
        inner = inner[1:-1]
        if quote not in inner.replace(quote * 2, ""):  # otherwise the quotes do not span the field
            return inner.replace(quote * 2, quote)
    return field


def _is_open(token: str, quote: str) -> bool:
    """Whether a quote opens the field and never closes."""
    text = token.lstrip(" ")
    return bool(quote) and text.startswith(quote) and not _closed(quote).match(text)


@cache
def _closed(quote: str) -> re.Pattern[str]:
    q = re.escape(quote)
    return re.compile(rf"{q}[^{q}]*+(?:{q}{q}[^{q}]*+)*+{q}")


@cache
def _pattern(delimiter: str, quote: str, newline: str) -> re.Pattern[str]:
    apart = re.escape(delimiter)
    if newline == "\r":
        end, plain = r"\r", rf"[^{apart}\r]*+"
    else:  # a carriage return alone is text
        end, plain = r"\r?\n", rf"[^{apart}\r\n]*+(?:\r(?!\n)[^{apart}\r\n]*+)*+"
    field = plain
    if quote:
        q, spaces = re.escape(quote), " *+"
        # Possessive throughout: a quote that never closes takes the whole rest, instead of the nearest wrong reading.
        field = rf"(?:{spaces}(?:{_closed(quote).pattern}{plain}|{q}(?s:.)*+)|(?!{spaces}{q}){plain})"
    if delimiter == " ":
        field = rf" *+{field}(?: *+(?={end}|\Z))?"
    return re.compile(rf"{field}(?:{apart}|{end}|\Z)")
