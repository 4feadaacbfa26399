"""A verdict: what was found, as data, and how it is said in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .._stored import stored
from .._text import Keyword, count, listed, number, share
from ..estimator import Finding, Measure, Overall, Rating
from ._left_out import LeftOut

_MOST_NAMED = 5
_SIMPLEST = "the mean (or the most frequent value)"
_CANNOT_KNOW = (
    "No check on observed values can tell whether values are missing because of what they are (the rich not stating their "
    "income): if so, imputed values are off in that direction by more than stated here."
)


class About(Keyword):
    """What a verdict is about."""

    CHECKED = "checked"  # imputed values, judged by hidden ones
    UNCHECKED = "unchecked"  # imputed values, with too few observed ones to hide some
    NOTHING_LEARNED = "nothing learned"  # holes in columns that nothing can be learned from
    NOTHING_MISSING = "nothing missing"


_NOTHING = {
    About.NOTHING_MISSING: "Nothing was missing.",
    About.NOTHING_LEARNED: (
        "No column with holes could be learned from: holes got the one value of their column, or were left as they are."
    ),
}


@stored()
@dataclass(frozen=True)
class ColumnVerdict:
    """What hidden values show about a column with holes."""

    name: Any
    measure: Measure
    n_missing: int
    n_hidden: int
    own: float | None  # in the column's units (dates: seconds), or the share of wrong ones
    simplest: float | None
    lead: float | None  # by how many standard errors the imputer is better
    spread: float | None  # standard deviation of numbers
    finding: Finding
    is_mean: bool  # whether nothing was better than the mean, and that is what was filled in


@stored()
@dataclass(frozen=True)
class Unseen:
    """Many values of a column are missing where another one is from ``low`` to ``high``, and hardly any was observed."""

    column: Any
    other: Any
    low: float
    high: float
    share: float  # of the missing values
    n_observed: int


@stored()
@dataclass(frozen=True)
class Verdict:
    """What to make of a fit; ``str()`` says it in plain words."""

    about: About
    rating: Rating = Rating.UNKNOWN  # of all imputed values
    overall: list[Overall] = field(default_factory=list)
    columns: list[ColumnVerdict] = field(default_factory=list)
    trusted: dict[str, float] = field(default_factory=dict)  # mean weight in columns with holes by expert, the highest first
    n_asked: int = 0  # experts
    unseen: list[Unseen] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    draws: bool = False
    set_aside: list[Any] = field(default_factory=list)  # columns that look like identifiers

    def __str__(self) -> str:
        lines = [_NOTHING[self.about]] if self.about in _NOTHING else list(self._lines())
        if self.set_aside:
            lines.insert(len(lines) - (self.about not in _NOTHING), f"Set aside as identifiers: {_names(self.set_aside)}.")
        return "\n".join(lines)

    def _lines(self) -> Iterator[str]:
        if self.about is About.UNCHECKED:
            yield "There were too few observed values to check the imputation on: treat the imputed ones as guesses."
        if self.about is About.CHECKED:
            yield from map(self._about_all, self.overall)
            yield "Most trusted: " + ", ".join(f"{name} {weight:.0%}" for name, weight in self.trusted.items()) + "."
        if self.n_asked > 1:
            yield from self._about_columns()
        yield from self._about_unseen()
        yield from (f"Left out: {name} ({reason})." for name, reason in self.left_out.items())
        yield _CANNOT_KNOW

    def _about_all(self, found: Overall) -> str:
        if found.measure is Measure.WRONG:
            compared = _compared(found, "the most frequent ones")
            return f"Of hidden categories, {found.own:.0%} were imputed wrongly, {compared} ({found.simplest:.0%})."
        imputed = "what draws are made around was" if self.draws else "the imputed ones were"
        return (
            f"On {found.n_hidden:,} observed numbers that were hidden the way values are missing, {imputed} "
            f"off by {found.own:.2f} standard deviations on average, {_compared(found, 'column means')} ({found.simplest:.2f})."
        )

    def _about_columns(self) -> Iterator[str]:
        hopeless = [each.name for each in self.columns if each.is_mean and each.finding in (Finding.NO_BETTER, Finding.TOO_FEW)]
        doubtful = (Finding.NO_BETTER, Finding.MAY_BE_CHANCE)
        others = [each.name for each in self.columns if each.finding in doubtful and each.name not in hopeless]
        if hopeless:
            filled = "draws around it were" if self.draws else "that is what was"
            yield (
                f"Nothing was better than {_SIMPLEST} in {_names(hopeless)}: {filled} filled in, and other columns say little "
                "about it."
            )
        if others:
            yield f"Not clearly better than {_SIMPLEST}, as far as hidden values can tell: {_names(others)}."

    def _about_unseen(self) -> Iterator[str]:
        for each in self.unseen[:_MOST_NAMED]:
            seen = "none" if each.n_observed == 0 else f"only {each.n_observed:,}"
            yield (
                f"{share(each.share)} of the values missing in {each.column} are where {each.other} is {number(each.low)} to "
                f"{number(each.high)}, and there {seen} of {each.column} was observed: imputed values rest on what holds "
                "elsewhere, and may be further off than stated here."
            )
        if len(self.unseen) > _MOST_NAMED:
            yield f"The same holds for {count(len(self.unseen) - _MOST_NAMED, 'other column')}."


def _compared(found: Overall, simplest: str) -> str:
    if found.finding is Finding.EXACT:
        return f"as with {simplest}"
    better = found.finding is Finding.BETTER
    return f"{1 - found.own / found.simplest:.0%} less than {simplest}" if better else f"no better than {simplest}"


def _names(names: list[Any]) -> str:
    return listed([name if isinstance(name, str) else f"column {name}" for name in names], _MOST_NAMED)
