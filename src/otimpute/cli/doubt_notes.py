"""Doubts about a file as notes, each with the options that settle it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from .._text import listed, number

if TYPE_CHECKING:
    from ..files import Doubt, DoubtfulSpelling, Misfits, TableFile


def doubt_notes(table: TableFile, used: Collection[str]) -> list[str]:
    """What people should look at in the columns they use."""
    from ..files import find_doubts

    return [doubt_note(doubt) for doubt in find_doubts(table) if doubt.name in used]


def doubt_note(doubt: Doubt) -> str:
    """One doubt as a line.

    >>> from otimpute.files import Misfits, Sentinel
    >>> doubt_note(Misfits("x", "numbers", 199, 200, ("1O.5",), 79, ("NA",)))
    "x: 199 of 200 values are numbers, not '1O.5' (line 79): correct it, or pass --na x=1O.5 --na x=NA"
    >>> doubt_note(Sentinel("x", "-999", 300, 0, 12.5))
    'x: -999 × 300 is far from all other values (0 to 12.5): if it means missing, pass --na x=-999'
    """
    from ..files import DoubtfulSpelling, Misfits, Sentinel, UnclearMark

    if isinstance(doubt, DoubtfulSpelling):
        return _spelling_note(doubt)
    if isinstance(doubt, Misfits):
        return _misfits_note(doubt)
    if isinstance(doubt, UnclearMark):
        return (
            f"{doubt.name} looks like numbers, but {doubt.example!r} may have decimals or thousands: "
            "pass --decimal , or --decimal ."
        )
    if isinstance(doubt, Sentinel):
        rest = f"{number(doubt.low)} to {number(doubt.high)}"
        cure = f"pass {_options('--na', doubt.name, [doubt.spelling, *doubt.na_values])}" if doubt.is_text else "make it null"
        return (
            f"{doubt.name}: {doubt.spelling} × {doubt.n_cells:,} is far from all other values ({rest}): "
            f"if it means missing, {cure}"
        )
    return (
        f"{doubt.name} has every number once, from {doubt.first} to {doubt.last}: "
        f"if it only numbers the rows, pass --exclude {shlex.quote(doubt.name)}"
    )


def missing_as(spellings: Mapping[str, int]) -> str:
    """How missing values are written, and how often.

    >>> missing_as({"NA": 1045, "": 3})
    'NA × 1,045, empty × 3'
    """
    return listed([f"{spelling or 'empty'} × {n:,}" for spelling, n in spellings.items()], 3)


def _spelling_note(doubt: DoubtfulSpelling) -> str:
    what = f"{doubt.name}: {doubt.spelling!r} × {doubt.n_cells:,}"
    answer = _options("--keep", doubt.name, [doubt.spelling])
    missing = _options("--na", doubt.name, [doubt.spelling, *doubt.others])
    if doubt.is_missing:
        return f"{what} counts as missing ({doubt.because}): if it is an answer, pass {answer}; if not, {missing}"
    return f"{what} is kept as an answer ({doubt.because}): if it means missing, pass {missing}; if not, {answer}"


def _misfits_note(doubt: Misfits) -> str:
    if not doubt.misfits:
        return f"{doubt.name} looks like dates: pass --day-first or --month-first"
    first, *others = doubt.misfits
    strange = listed([f"{first!r} (line {doubt.line})", *map(repr, others)], 3)
    options = _options("--na", doubt.name, (*doubt.misfits[:3], *doubt.na_values))
    them = "them" if others else "it"
    return (
        f"{doubt.name}: {doubt.n_fitting:,} of {doubt.n_values:,} values are {doubt.holds}, not {strange}: "
        f"correct {them}, or pass {options}"
    )


def _options(option: str, name: str, spellings: Iterable[str]) -> str:
    return " ".join(f"{option} {shlex.quote(f'{name}={spelling}')}" for spelling in spellings)
