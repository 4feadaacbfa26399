"""Decide from all fields of a text file what its columns hold, and which of their fields are missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .arrow import ArrowArray, ArrowSchema, ArrowType, arrow, compute
from .booleans import BooleanClues, BooleanFormat
from .columns import Cells, Column, Format, kind_of
from .dates import DateClues, DateFormat, date_clues
from .dialect import Dialect
from .numbers import NumberClues
from .spellings import NA_VALUES, DoubtfulSpelling, Seen, find_answers

_FEW = 64  # most columns show by so many values what they are not
_MOST_COUNTED = 1000  # different texts; more are no categories


class Clues(Protocol):
    """What is known about a column, as far as it was looked at."""

    def observe(self, values: ArrowArray) -> None:
        """Look at more values (none missing)."""


@dataclass(frozen=True)
class Draft:
    """What a column holds, if all spellings of missing values mean just that."""

    kind: str
    type: ArrowType
    format: Format | None = None
    is_text: bool = False  # so that they may be answers


class Evidence:
    """What the fields of one column show, chunk by chunk."""

    def __init__(self, name: str, dialect: Dialect) -> None:
        self.name = name
        self.candidates = dialect.told.candidates(name)
        self.na_values = dialect.told.missing_in(name)  # None: to be found out
        marks = (".", ",") if dialect.decimal is None else (dialect.decimal,)
        self.numbers = {mark: NumberClues(mark) for mark in marks}
        self.booleans = BooleanClues()
        self.dates = date_clues(dialect.day_first)
        self.n_seen = self.n_quoted = 0
        self.n_candidates: Counter[str] = Counter()
        self.n_texts: Counter[str] | None = Counter()  # None: too many to be counted

    def observe(self, cells: Cells) -> None:
        """Look at more fields."""
        pc = compute()
        candidates = cells.are_in(self.candidates, numbers=True)
        if pc.any(candidates).as_py():
            self.n_candidates.update(_counts(pc.value_counts(cells.trimmed.filter(candidates))))
        clear = pc.invert(candidates)
        values = cells.trimmed.filter(clear)
        self.n_seen += len(values)
        self.n_quoted += pc.sum(cells.quoted.filter(clear)).as_py() or 0
        special: list[NumberClues | DateClues] = [*self.numbers.values(), *self.dates]
        for part in (values[:_FEW], values[_FEW:]):
            if len(part):
                for clues in (self.booleans, *special):
                    clues.observe(part)
        if self.n_texts is not None and not any(clues.fit for clues in special):
            counts = pc.value_counts(values)
            self.n_texts = Counter(_counts(counts)) + self.n_texts if len(counts) <= _MOST_COUNTED else None
            if self.n_texts is not None and len(self.n_texts) > _MOST_COUNTED:
                self.n_texts = None

    def draft(self, decimal: str, *, is_known: bool) -> Draft:
        """The most special kind that all values fit; ``is_known`` is the decimal mark if it was not chosen for want of one."""
        pa, numbers = arrow(), self.numbers[decimal]
        pair = self.booleans.format(told=False)
        if not self.n_seen:
            return Draft("empty", pa.null(), is_text=True)
        if pair is not None:
            return Draft("boolean", pa.bool_(), pair, is_text=pair.true.lower() not in ("1", "true"))
        integers = self._integers(decimal, is_known)
        if integers is not None:
            return Draft("integer", pa.int64(), integers.integer())
        if numbers.fit and not numbers.whole and _is_grouped_surely(numbers, is_known):
            return Draft("number", pa.float64(), numbers.number())
        dates = [clues.format() for clues in self.dates if clues.fit]
        if len(dates) != 1:
            return Draft("string", pa.string(), is_text=True)
        if dates[0].gap:
            return Draft("timestamp", pa.timestamp("us"), dates[0])
        return Draft("date", pa.date32(), dates[0])

    def fit_to(self, data_type: ArrowType, decimal: str, *, is_known: bool) -> Draft:
        """The column if its type is known already; whether the fields fit shows when they are read."""
        kind = kind_of(data_type)
        if kind == "other" or (kind == "timestamp" and data_type.tz is not None):
            raise ValueError(
                f"column {self.name!r} has the type {data_type}, which text files cannot hold; use Parquet or Arrow files"
            )
        if kind in ("string", "empty"):
            return Draft(kind, data_type, is_text=True)
        if kind == "boolean":
            return Draft(kind, data_type, self.booleans.format(told=True) or BooleanFormat())
        if kind in ("date", "timestamp"):
            return Draft(kind, data_type, self._date_format(kind == "timestamp"))
        if kind == "integer":
            return Draft(kind, data_type, (self._integers(decimal, is_known) or NumberClues(decimal)).integer())
        numbers = self.numbers[decimal]
        # 1,234 is refused rather than misread.
        return Draft(kind, data_type, (numbers if _is_grouped_surely(numbers, is_known) else NumberClues(decimal)).number())

    def seen(self, draft: Draft) -> Seen:
        """What tells answers from missing values."""
        return Seen(self.name, draft.is_text, self.na_values is not None, self.n_candidates, self.n_texts)

    def decide(self, draft: Draft, answers: frozenset[str]) -> Column:
        """The column, some candidates of which are answers after all."""
        if answers and draft.kind != "string":
            draft = Draft("string", arrow().string(), is_text=True)
        if self.na_values is not None:
            na_values = self.na_values
        elif draft.is_text:
            na_values = self.candidates & (NA_VALUES | self.n_candidates.keys()) - answers
        else:
            na_values = self.candidates
        exact = na_values if draft.kind == "string" else self.n_candidates.keys()  # among texts equal numbers are no gaps
        gaps = {spelling: n for spelling, n in self.n_candidates.most_common() if spelling in exact}
        all_quoted = 0 < self.n_quoted == self.n_seen
        return Column(self.name, draft.kind, draft.type, sum(gaps.values()), na_values, draft.format, all_quoted, gaps)

    def _date_format(self, timed: bool) -> DateFormat:
        formats = [clues.format() for clues in self.dates if clues.fit and self.n_seen]
        formats = [form for form in formats if timed or not form.gap]
        if len(formats) > 1:
            raise ValueError(
                f"column {self.name!r} does not show whether days or months come first; pass day_first=True or False"
            )
        return formats[0] if formats else DateFormat(gap=" " if timed else "")

    def _integers(self, decimal: str, is_known: bool) -> NumberClues | None:
        """What shows that all are whole numbers; 1.234.567 is one whatever the decimal mark."""
        for numbers in (self.numbers[decimal], *self.numbers.values()):
            surely = _is_grouped_surely(numbers, is_known and numbers.mark == decimal)
            if numbers.fit and numbers.whole and numbers.small and surely:
                return numbers
        return None


def decide_columns(
    evidence: Sequence[Evidence], dialect: Dialect, schema: ArrowSchema | None
) -> tuple[Dialect, list[Column], list[DoubtfulSpelling]]:
    """The dialect with its decimal mark, all columns, and doubts; columns that ``schema`` has too are of its types."""
    decimal, is_known = dialect.decimal, True
    if decimal is None:
        votes = {mark: sum(_votes(seen.numbers[mark]) for seen in evidence) for mark in ".,"}
        decimal, is_known = "," if votes[","] > votes["."] else ".", votes[","] != votes["."]
    known = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
    drafts = [
        seen.fit_to(known[seen.name], decimal, is_known=is_known)
        if seen.name in known
        else seen.draft(decimal, is_known=is_known)
        for seen in evidence
    ]
    answers, doubts = find_answers([seen.seen(draft) for seen, draft in zip(evidence, drafts, strict=True)])
    columns = [seen.decide(draft, kept) for seen, draft, kept in zip(evidence, drafts, answers, strict=True)]
    return replace(dialect, decimal=decimal), columns, doubts


def _is_grouped_surely(numbers: NumberClues, is_known: bool) -> bool:
    """Whether 1,234 cannot be a number with three decimals."""
    return not numbers.group or numbers.certain or is_known


def _votes(numbers: NumberClues) -> bool:
    return numbers.fit and numbers.certain and not numbers.whole


def _counts(counted: ArrowArray) -> dict[str, int]:
    return dict(zip(*(part.to_pylist() for part in counted.flatten()), strict=True))
