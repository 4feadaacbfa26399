"""Notes on how a file was read, each with the options to change it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from .._text import listed, number

if TYPE_CHECKING:
    from ..files import AmbiguousSpelling, ReadingHint, TableFile, UnparsedValues

USE_IDENTIFIERS = "pass --identifiers use to use them, --exclude to say nothing"


def reading_notes(table: TableFile, used: Collection[str]) -> list[str]:
    """Return notes on the used columns."""
    from ..files import find_reading_hints

    return [reading_note(hint) for hint in find_reading_hints(table) if hint.name in used]


def reading_note(hint: ReadingHint) -> str:
    """Format a hint as one line.

    >>> from otimpute.files import UnparsedValues, Sentinel
    >>> reading_note(UnparsedValues("x", "numbers", 199, 200, ("1O.5",), 79, ("NA",)))
    "x: 199 of 200 values are numbers, not '1O.5' (line 79): correct it, or pass --na x=1O.5 --na x=NA"
    >>> reading_note(Sentinel("x", "-999", 300, 0, 12.5))
    'x: -999 × 300 is far from all other values (0 to 12.5): if it means missing, pass --na x=-999'
    """
    from ..files import AmbiguousSeparator, AmbiguousSpelling, Sentinel, UnparsedValues

    if isinstance(hint, AmbiguousSpelling):
        return _spelling_note(hint)
    if isinstance(hint, UnparsedValues):
        return _unparsed_note(hint)
    if isinstance(hint, AmbiguousSeparator):
        return (
            f"{hint.name} looks like numbers, but {hint.example!r} may have decimals or thousands: "
            "pass --decimal , or --decimal ."
        )
    if isinstance(hint, Sentinel):
        rest = f"{number(hint.low)} to {number(hint.high)}"
        cure = f"pass {_options('--na', hint.name, [hint.spelling, *hint.na_values])}" if hint.is_text else "make it null"
        return (
            f"{hint.name}: {hint.spelling} × {hint.n_cells:,} is far from all other values ({rest}): "
            f"if it means missing, {cure}"
        )
    return (
        f"{hint.name} has every number once, from {hint.first} to {hint.last}: "
        f"if it only numbers the rows, pass --exclude {shlex.quote(hint.name)}"
    )


def missing_as(spellings: Mapping[str, int]) -> str:
    """Describe how missing values are written, and how often.

    >>> missing_as({"NA": 1045, "": 3})
    'NA × 1,045, empty × 3'
    """
    return listed([f"{spelling or 'empty'} × {n:,}" for spelling, n in spellings.items()], 3)


def _spelling_note(hint: AmbiguousSpelling) -> str:
    what = f"{hint.name}: {hint.spelling!r} × {hint.n_cells:,}"
    answer = _options("--keep", hint.name, [hint.spelling])
    missing = _options("--na", hint.name, [hint.spelling, *hint.others])
    if hint.is_missing:
        return f"{what} counts as missing ({hint.because}): if it is an answer, pass {answer}; if not, {missing}"
    return f"{what} is kept as an answer ({hint.because}): if it means missing, pass {missing}; if not, {answer}"


def _unparsed_note(hint: UnparsedValues) -> str:
    if not hint.examples:
        return f"{hint.name} looks like dates: pass --day-first or --month-first"
    first, *others = hint.examples
    strange = listed([f"{first!r} (line {hint.line})", *map(repr, others)], 3)
    options = _options("--na", hint.name, (*hint.examples[:3], *hint.na_values))
    them = "them" if others else "it"
    return (
        f"{hint.name}: {hint.n_fitting:,} of {hint.n_values:,} values are {hint.holds}, not {strange}: "
        f"correct {them}, or pass {options}"
    )


def _options(option: str, name: str, spellings: Iterable[str]) -> str:
    return " ".join(f"{option} {shlex.quote(f'{name}={spelling}')}" for spelling in spellings)
