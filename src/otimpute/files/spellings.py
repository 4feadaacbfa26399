"""Which spellings mean that a value is missing: decided column by column, with the whole file as witness.

Among numbers and dates every usual spelling marks a gap. Among texts it may be an answer: "None" to the question how often,
"NA" for Namibia, "-" for a blood group. What speaks for an answer: it is about as frequent as other values, it is written
like them, and another spelling marks the missing values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from ..exceptions import Message, Term

# Of programs, which mean nothing else.
_ALWAYS = frozenset(["", "NaN", "nan", "NAN", "<NA>", "#N/A", "#NA"])
# Usually missing, sometimes an answer; the higher, the more often.
_WORDS = {"null": 1, "Null": 1, "NULL": 1, "NA": 2, "na": 2, "N/A": 3, "n/a": 3, "None": 4, "none": 4, "NONE": 4}
_OFTEN_ANSWERS = 4
_CODES = frozenset(["NA", "na"])  # of countries, of people
# Missing among numbers and dates; an answer among texts, unless the same file marks missing numbers with it.
_SIGNS = frozenset(["-", "--", ".", "..", "?", "*", "#DIV/0!", "#NUM!", "#REF!", "#VALUE!"])
# Missing among numbers and dates; among texts a category like others.
_CATEGORIES = frozenset(
    [
        "unknown", "Unknown", "UNKNOWN", "missing", "Missing", "MISSING", "n.a.", "N.A.", "n.d.", "N.D.", "not available",
        "-nan", "-NaN",
    ]
)  # fmt: skip

NA_VALUES = _ALWAYS | _WORDS.keys()
NA_IN_NUMBERS = NA_VALUES | _SIGNS | _CATEGORIES

Spellings = Iterable[str] | Mapping[str | None, Iterable[str]]


@dataclass(frozen=True)
class DeclaredSpellings:
    """Spellings that the caller declared before the file is read: by column, and under None for all others."""

    missing: Mapping[str | None, frozenset[str]] = field(default_factory=dict)
    answers: Mapping[str | None, frozenset[str]] = field(default_factory=dict)
    known: Mapping[str, frozenset[str]] = field(default_factory=dict)  # from an earlier file; what is declared comes first

    @classmethod
    def from_arguments(
        cls, na_values: Spellings | None, keep_values: Spellings | None, known: Mapping[str, Iterable[str]] | None
    ) -> DeclaredSpellings:
        """From what callers pass: a list for all columns, or a dict of lists by column."""
        before = {name: frozenset(spellings) for name, spellings in (known or {}).items()}
        return cls(_by_column("na_values", na_values), _by_column("keep_values", keep_values), before)

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns that a file has not got."""
        for what, declared in (("na_values", self.missing), ("keep_values", self.answers)):
            absent = [name for name in declared if name is not None and name not in names]
            if absent:
                raise ValueError(Message(Term(what), f" names a column {absent[0]!r}; there are {', '.join(map(repr, names))}"))

    def missing_in(self, name: str) -> frozenset[str] | None:
        """All that means a missing value in a column, if that is known; empty fields always do."""
        for declared in (self.missing.get(name), self.missing.get(None), self.known.get(name)):
            if declared is not None:
                return (declared | {""}) - self.answers_in(name)
        return None

    def answers_in(self, name: str) -> frozenset[str]:
        """What means no missing value in a column, whatever it looks like."""
        return self.answers.get(name, self.answers.get(None, frozenset())) - {""}

    def candidates(self, name: str) -> frozenset[str]:
        """All that may mean a missing value in a column."""
        declared = self.missing_in(name)
        return NA_IN_NUMBERS - self.answers_in(name) if declared is None else declared

    def describe(self) -> list[str]:
        """What means a missing value in most columns."""
        return sorted(self.missing.get(None, NA_VALUES) | {""})


NOTHING_DECLARED = DeclaredSpellings()


def numbers_among(spellings: Iterable[str]) -> list[float]:
    """The spellings that are numbers, which may be written in other ways too (-999.0, -999,0).

    >>> numbers_among(["-999", "nan", "?"])
    [-999.0]
    """
    return [number for number in map(_number, spellings) if math.isfinite(number)]


def _number(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class AmbiguousSpelling:
    """A spelling in a text column that may be an answer or a missing value, and what it was taken for."""

    name: str
    spelling: str
    n_cells: int
    is_missing: bool
    because: str
    others: tuple[str, ...]  # what else marks missing values in this column, besides an empty field


@dataclass(frozen=True)
class SpellingCounts:
    """How often a column has spellings that may mean missing values (``candidates``), and all other values."""

    name: str
    is_text: bool
    is_declared: bool  # what means a missing value here is known
    candidates: Mapping[str, int]
    values: Mapping[str, int] | None  # None: too many to be counted

    def is_frequent(self, spelling: str) -> bool:
        """Whether a spelling occurs about as often as other values do."""
        usual = median(self.values.values()) if self.values else 1
        return self.candidates[spelling] >= max(2, usual / 2)

    def is_alike(self, spelling: str) -> bool:
        """Whether most other values are written like it: NA among DE, FR and US, - beside +."""
        enough = 1 if spelling in _SIGNS else 3 if spelling in _CODES else math.inf
        alike = [_shape(value) == _shape(spelling) for value in self.values or ()]
        return len(alike) >= enough and 2 * sum(alike) > len(alike)


def find_answers(columns: Sequence[SpellingCounts]) -> tuple[list[frozenset[str]], list[AmbiguousSpelling]]:
    """Of each column, the candidates that are answers; and the decisions that might be wrong.

    >>> counts = SpellingCounts("drinks", True, False, {"NA": 45, "None": 66}, {"Some": 98, "Freq": 115})
    >>> find_answers([counts])[0]
    [frozenset({'None'})]
    """
    open_ = [column for column in columns if not column.is_declared]
    # What marks missing numbers does so for certain.
    certain = {spelling for column in open_ if not column.is_text for spelling in column.candidates}
    in_texts = {spelling for column in open_ if column.is_text for spelling in column.candidates if spelling in NA_VALUES}
    answers, ambiguous = [], []
    for column in columns:
        is_open = column.is_text and not column.is_declared
        judged = {spelling: _judge(spelling, column, certain, in_texts) for spelling in column.candidates if is_open}
        kept = frozenset(spelling for spelling, (is_missing, _) in judged.items() if not is_missing)
        marks = [spelling for spelling in column.candidates if spelling and spelling not in kept]
        for spelling, (is_missing, because) in judged.items():
            if because:
                others = tuple(mark for mark in marks if mark != spelling)
                ambiguous.append(
                    AmbiguousSpelling(column.name, spelling, column.candidates[spelling], is_missing, because, others)
                )
        answers.append(kept)
    return answers, ambiguous


def _judge(spelling: str, column: SpellingCounts, certain: set[str], in_texts: set[str]) -> tuple[bool, str]:
    """Whether a spelling in a column of text is missing, and why; no reason where it is clear."""

    def clearer(among: Iterable[str]) -> list[str]:
        """What means a missing value more clearly, the clearest first."""
        return [one for one in sorted(among, key=clarity, reverse=True) if clarity(one) > clarity(spelling)]

    def clarity(one: str) -> tuple[bool, int]:
        return one in certain, -_WORDS.get(one, 0 if one in _ALWAYS else 9)

    if spelling in _ALWAYS:
        return True, ""
    among_numbers = spelling in certain
    if spelling in _CATEGORIES:
        return False, "it is a category among texts, although it marks missing numbers" if among_numbers else ""
    frequent, alike = column.is_frequent(spelling), column.is_alike(spelling)
    if spelling in _SIGNS:
        if among_numbers:
            return not alike, "it is written like other values, although it marks missing numbers" if alike else ""
        return False, "it does not mark missing numbers"
    often_an_answer = _WORDS[spelling] == _OFTEN_ANSWERS
    here = clearer(column.candidates)
    if not often_an_answer and 10 * sum(column.candidates[mark] for mark in here) < column.candidates[spelling]:
        here = []  # one field that was forgotten says nothing about what hundreds mean
    elsewhere = [] if among_numbers else sorted(certain) + (clearer(in_texts) if often_an_answer else [])
    if here or elsewhere:
        mark = (here or elsewhere)[0] or "an empty field"
        witness = f"{mark} marks the missing values of {'this column' if here else 'other columns'}"
        if here and often_an_answer and not frequent and column.candidates[spelling] > 1:
            return False, f"{witness}, although it is rare"  # an answer that is lost is worse than a gap that stays
        return not frequent, f"{witness}, and it is as frequent as other values" if frequent else f"it is rare, but {witness}"
    if among_numbers:
        return True, "it marks missing numbers, but it is written like other values" if alike else ""
    if often_an_answer:
        return not frequent, "it is as frequent as other values" if frequent else "it is rare"
    if alike:
        return False, "it is written like other values"
    return True, "" if _WORDS[spelling] <= _WORDS["NA"] else "nothing else marks missing values"


def _by_column(what: str, declared: Spellings | None) -> dict[str | None, frozenset[str]]:
    if declared is None:
        return {}
    if isinstance(declared, Mapping):
        return {name: _as_spellings(f"{what} of column {name!r}", spellings) for name, spellings in declared.items()}
    return {None: _as_spellings(what, declared)}


def _as_spellings(what: str, declared: Iterable[str]) -> frozenset[str]:
    if isinstance(declared, str):
        raise TypeError(f"{what} must be a list of spellings, got {declared!r}; pass [{declared!r}]")
    return frozenset(declared)


def _shape(text: str) -> str:
    """Letters, digits and signs, whichever they are."""
    return "".join(
        "A" if character.isupper() else "a" if character.islower() else "9" if character.isdigit() else "."
        for character in text
    )
