"""Numbers and lists as people write them."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_NAMED = 5


def number(value: float) -> str:
    """A number to four digits.

    >>> number(1234567.0), number(12.3456), number(0.00012)
    ('1.235e+06', '12.35', '0.00012')
    """
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:.4g}"


def share(part: float) -> str:
    """A share in per cent, never 0 % of something or 100 % of not everything.

    >>> share(0.5), share(0.0004), share(0.9996), share(0)
    ('50 %', '< 0.1 %', '> 99.9 %', '0 %')
    """
    if 0 < part < 0.001:
        return "< 0.1 %"
    if 0.999 < part < 1:
        return "> 99.9 %"
    return f"{100 * part:.1f} %" if 0 < part < 0.1 or 0.9 < part < 1 else f"{100 * part:.0f} %"


def count(n: int, what: str, plural: str = "") -> str:
    """A number of things.

    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what if n == 1 else plural or what + 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them.

    >>> listed(["a", "b", "c"]), listed(list("abcdefgh"))
    ('a, b and c', 'a, b, c, d, e and 3 more')
    """
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
