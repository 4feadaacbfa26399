"""Decide from all fields of a text file what its columns hold, and which of their fields are missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..exceptions import InPython, Message, Term
from .arrow import ArrowArray, ArrowSchema, ArrowType, arrow, compute
from .booleans import BooleanDetector, BooleanFormat
from .columns import CellTexts, Column, FieldKind, Format, kind_of
from .dates import DateDetector, DateFormat, date_detectors
from .dialect import Dialect
from .numbers import NumberDetector
from .spellings import NA_VALUES, AmbiguousSpelling, SpellingCounts, find_answers

_FEW = 64  # most columns show by so many values what they are not
_MOST_COUNTED = 1000  # different texts; more are no categories


@dataclass(frozen=True)
class ColumnGuess:
    """What a column holds, if all spellings of missing values mean just that."""

    kind: FieldKind
    type: ArrowType
    format: Format | None = None
    is_text: bool = False  # so that they may be answers


class ColumnDetector:
    """Detects the type of one column from its fields, chunk by chunk."""

    def __init__(self, name: str, dialect: Dialect) -> None:
        self.name = name
        self.candidates = dialect.declared.candidates(name)
        self.na_values = dialect.declared.missing_in(name)  # None: to be found out
        marks = (".", ",") if dialect.decimal is None else (dialect.decimal,)
        self.numbers = {mark: NumberDetector(mark) for mark in marks}
        self.booleans = BooleanDetector()
        self.dates = date_detectors(dialect.day_first)
        self.n_seen = self.n_quoted = 0
        self.n_candidates: Counter[str] = Counter()
        self.n_texts: Counter[str] | None = Counter()  # None: too many to be counted

    def observe(self, cells: CellTexts) -> None:
        """Look at more fields."""
        pc = compute()
        candidates = cells.are_in(self.candidates, numbers=True)
        if pc.any(candidates).as_py():
            self.n_candidates.update(_counts(pc.value_counts(cells.trimmed.filter(candidates))))
        clear = pc.invert(candidates)
        values = cells.trimmed.filter(clear)
        self.n_seen += len(values)
        self.n_quoted += pc.sum(cells.quoted.filter(clear)).as_py() or 0
        special: list[NumberDetector | DateDetector] = [*self.numbers.values(), *self.dates]
        for part in (values[:_FEW], values[_FEW:]):
            if len(part):
                for detector in (self.booleans, *special):
                    detector.observe(part)
        if self.n_texts is not None and not any(detector.fit for detector in special):
            counts = pc.value_counts(values)
            self.n_texts = Counter(_counts(counts)) + self.n_texts if len(counts) <= _MOST_COUNTED else None
            if self.n_texts is not None and len(self.n_texts) > _MOST_COUNTED:
                self.n_texts = None

    def guess(self, decimal: str, *, is_known: bool) -> ColumnGuess:
        """The most special kind that all values fit; ``is_known`` is the decimal mark if it was not chosen for want of one."""
        pa, numbers = arrow(), self.numbers[decimal]
        pair = self.booleans.format(declared=False)
        if not self.n_seen:
            return ColumnGuess(FieldKind.EMPTY, pa.null(), is_text=True)
        if pair is not None:
            return ColumnGuess(FieldKind.BOOLEAN, pa.bool_(), pair, is_text=pair.true.lower() not in ("1", "true"))
        integers = self._integers(decimal, is_known)
        if integers is not None:
            return ColumnGuess(FieldKind.INTEGER, pa.int64(), integers.integer())
        if numbers.fit and not numbers.whole and _is_grouped_surely(numbers, is_known):
            return ColumnGuess(FieldKind.NUMBER, pa.float64(), numbers.number())
        dates = [detector.format() for detector in self.dates if detector.fit]
        if len(dates) != 1:
            return ColumnGuess(FieldKind.STRING, pa.string(), is_text=True)
        if dates[0].gap:
            return ColumnGuess(FieldKind.TIMESTAMP, pa.timestamp("us"), dates[0])
        return ColumnGuess(FieldKind.DATE, pa.date32(), dates[0])

    def fit_to(self, data_type: ArrowType, decimal: str, *, is_known: bool) -> ColumnGuess:
        """The column if its type is known already; whether the fields fit shows when they are read."""
        kind = kind_of(data_type)
        if kind == FieldKind.OTHER or (kind == FieldKind.TIMESTAMP and data_type.tz is not None):
            raise ValueError(
                f"column {self.name!r} has the type {data_type}, which text files cannot hold; use Parquet or Arrow files"
            )
        if kind in (FieldKind.STRING, FieldKind.EMPTY):
            return ColumnGuess(kind, data_type, is_text=True)
        if kind == FieldKind.BOOLEAN:
            return ColumnGuess(kind, data_type, self.booleans.format(declared=True) or BooleanFormat())
        if kind in (FieldKind.DATE, FieldKind.TIMESTAMP):
            return ColumnGuess(kind, data_type, self._date_format(kind == FieldKind.TIMESTAMP))
        if kind == FieldKind.INTEGER:
            return ColumnGuess(kind, data_type, (self._integers(decimal, is_known) or NumberDetector(decimal)).integer())
        numbers = self.numbers[decimal]
        # 1,234 is refused rather than misread.
        return ColumnGuess(
            kind, data_type, (numbers if _is_grouped_surely(numbers, is_known) else NumberDetector(decimal)).number()
        )

    def spelling_counts(self, guess: ColumnGuess) -> SpellingCounts:
        """What distinguishes answers from missing values."""
        return SpellingCounts(self.name, guess.is_text, self.na_values is not None, self.n_candidates, self.n_texts)

    def decide(self, guess: ColumnGuess, answers: frozenset[str]) -> Column:
        """The column, some candidates of which are answers after all."""
        if answers and guess.kind != FieldKind.STRING:
            guess = ColumnGuess(FieldKind.STRING, arrow().string(), is_text=True)
        if self.na_values is not None:
            na_values = self.na_values
        elif guess.is_text:
            na_values = self.candidates & (NA_VALUES | self.n_candidates.keys()) - answers
        else:
            na_values = self.candidates
        exact = (
            na_values if guess.kind == FieldKind.STRING else self.n_candidates.keys()
        )  # among texts equal numbers are no gaps
        gaps = {spelling: n for spelling, n in self.n_candidates.most_common() if spelling in exact}
        all_quoted = 0 < self.n_quoted == self.n_seen
        return Column(self.name, guess.kind, guess.type, sum(gaps.values()), na_values, guess.format, all_quoted, gaps)

    def _date_format(self, timed: bool) -> DateFormat:
        formats = [detector.format() for detector in self.dates if detector.fit and self.n_seen]
        formats = [form for form in formats if timed or not form.gap]
        if len(formats) > 1:
            raise ValueError(
                Message(
                    f"column {self.name!r} does not show whether days or months come first; pass ",
                    Term("day_first"),
                    InPython("=True or False"),
                )
            )
        return formats[0] if formats else DateFormat(gap=" " if timed else "")

    def _integers(self, decimal: str, is_known: bool) -> NumberDetector | None:
        """What shows that all are whole numbers; 1.234.567 is one whatever the decimal mark."""
        for numbers in (self.numbers[decimal], *self.numbers.values()):
            surely = _is_grouped_surely(numbers, is_known and numbers.mark == decimal)
            if numbers.fit and numbers.whole and numbers.small and surely:
                return numbers
        return None


def decide_columns(
    detectors: Sequence[ColumnDetector], dialect: Dialect, schema: ArrowSchema | None
) -> tuple[Dialect, list[Column], list[AmbiguousSpelling]]:
    """The dialect with its decimal mark, all columns, and hints; columns that ``schema`` has too are of its types."""
    decimal, is_known = dialect.decimal, True
    if decimal is None:
        votes = {mark: sum(_votes(detector.numbers[mark]) for detector in detectors) for mark in ".,"}
        decimal, is_known = "," if votes[","] > votes["."] else ".", votes[","] != votes["."]
    known = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
    guesses = [
        detector.fit_to(known[detector.name], decimal, is_known=is_known)
        if detector.name in known
        else detector.guess(decimal, is_known=is_known)
        for detector in detectors
    ]
    answers, hints = find_answers([detector.spelling_counts(guess) for detector, guess in zip(detectors, guesses, strict=True)])
    columns = [detector.decide(guess, kept) for detector, guess, kept in zip(detectors, guesses, answers, strict=True)]
    return replace(dialect, decimal=decimal), columns, hints


def _is_grouped_surely(numbers: NumberDetector, is_known: bool) -> bool:
    """Whether 1,234 cannot be a number with three decimals."""
    return not numbers.group or numbers.certain or is_known


def _votes(numbers: NumberDetector) -> bool:
    return numbers.fit and numbers.certain and not numbers.whole


def _counts(counted: ArrowArray) -> dict[str, int]:
    return dict(zip(*(part.to_pylist() for part in counted.flatten()), strict=True))
