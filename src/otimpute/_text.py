"""Numbers and lists in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

_HUGE = 1e15  # from here on digits say nothing
_MOST_DECIMALS = 8


class Keyword(StrEnum):
    """One of a few words that programs tell apart; people see it as any other text.

    >>> Keyword("Light", {"GOOD": "good"}).GOOD
    'good'
    """

    __repr__ = str.__repr__


def count(n: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "row"), count(12345, "hole")
    ('1 row', '12,345 holes')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def share(part: float, whole: float = 1) -> str:
    """A share in percent, never rounded to nothing or all.

    >>> share(1, 3), share(1, 1000), share(999, 1000), share(0, 5)
    ('33 %', '<1 %', '>99 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 1:
        return "<1 %"
    return ">99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def number(value: float | None) -> str:
    """Three digits, or a dash.

    >>> number(0.12345), number(12345.6), number(None)
    ('0.123', '12346', '–')
    >>> number(999.7), number(1e300), number(-0.0)
    ('1000', '1e+300', '0')
    """
    if value is None:
        return "–"
    return f"{value:.0f}" if 999.5 <= abs(value) < _HUGE else f"{value + 0.0:.3g}"


def number_beside(value: float, spread: float) -> str:
    """A number with as many decimals as numbers need that differ by about ``spread``.

    >>> number_beside(52.51234, 0.003), number_beside(52.51234, 20.0), number_beside(52.0, 20.0), number_beside(-1e-9, 1.0)
    ('52.51234', '52.5', '52', '0.00')
    """
    if not 0 < spread < _HUGE or abs(value) >= _HUGE or spread < 1e-12 * abs(value):
        return number(value)
    decimals = 0 if value == round(value) else max(0, 2 - math.floor(math.log10(spread)))
    return f"{round(value, decimals) + 0.0:.{decimals}f}" if decimals <= _MOST_DECIMALS else number(value)


def signed(value: float) -> str:
    """Two decimals with their sign; nothing has none.

    >>> signed(0.456), signed(-0.5), signed(-0.001)
    ('+0.46', '-0.50', '0.00')
    """
    text = f"{value:+.2f}"
    return text[1:] if float(text) == 0 else text


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them.

    >>> duration(0.42), duration(12), duration(1000)
    ('0.4 s', '12 s', '17 min')
    """
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a line of text.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name or "''" for name in names[:most]) + more
