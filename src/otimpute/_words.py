"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


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
    """
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


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
