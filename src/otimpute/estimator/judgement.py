"""Whether imputed values are to be relied on, by what became of hidden ones: the only place where that is decided.

Everybody who says it in words, the verdict of an imputer, the report, the command line, says what is found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._stored import stored
from .._text import Keyword

Cells = NDArray[np.float64]

_NO_BETTER = 0.97  # of the simplest guess's error
_CLEARLY = 1.645  # standard errors: of columns that cannot be told, one in twenty is called better
_FEWEST_HIDDEN = 10
_MOSTLY = 0.5


class Rating(Keyword):
    """How far something is to be relied on, the worst first."""

    BAD = "bad"
    CAUTION = "caution"
    UNKNOWN = "unknown"
    GOOD = "good"


class Finding(Keyword):
    """What hidden values show about imputed ones, next to the simplest guess: the mean or the most frequent value."""

    BETTER = "better"
    EXACT = "exact"  # as the simplest guess is
    MOSTLY_IMPUTED = "mostly imputed"  # better, in a column of which more is imputed than observed
    MOSTLY_WRONG = "mostly wrong"  # better, and more often wrong than right
    MAY_BE_CHANCE = "may be chance"  # better, on too few values to be sure
    NO_BETTER = "no better"
    TOO_FEW = "too few"  # values that could be hidden

    @property
    def rating(self) -> Rating:
        """How far the column is to be relied on.

        >>> Finding.NO_BETTER.rating
        'caution'
        """
        if self is Finding.TOO_FEW:
            return Rating.UNKNOWN
        return Rating.GOOD if self in (Finding.BETTER, Finding.EXACT) else Rating.CAUTION


class Measure(Keyword):
    """How far off imputed values are."""

    ERROR = "error"  # mean absolute error of numbers and dates
    WRONG = "wrong"  # share of wrong categories and booleans


@dataclass(frozen=True)
class Comparison:
    """How far off an imputer and the simplest guess were on hidden values of a column."""

    own: float  # mean absolute error, or the share of wrong labels
    simplest: float
    n_hidden: int
    lead: float | None  # by how many standard errors the imputer is better; None where these are 0 or unknown

    @classmethod
    def of(cls, own: Cells, simplest: Cells, weight: Cells) -> Comparison:
        """From how far off each value is (1 for a wrong label), and how much it counts.

        >>> Comparison.of(np.array([0.0, 0.5]), np.array([1.0, 1.0]), np.ones(2))
        Comparison(own=0.25, simplest=1.0, n_hidden=2, lead=3.0)
        """
        gains = simplest - own
        spread = float(gains.std(ddof=1)) if len(gains) > 1 else 0.0
        lead = float(gains.mean() / (spread / np.sqrt(len(gains)))) if 0 < spread < np.inf else None
        return cls(float(np.average(own, weights=weight)), float(np.average(simplest, weights=weight)), len(own), lead)


@stored()
@dataclass(frozen=True)
class Overall:
    """The same on hidden values of all columns, each column counted by its holes; numbers in standard deviations."""

    measure: Measure
    n_hidden: int
    own: float
    simplest: float
    finding: Finding


def judge_column(compared: Comparison, *, is_label: bool, share_missing: float) -> Finding:
    """What is found about a column.

    >>> judge_column(Comparison(0.5, 1.0, 100, 6.0), is_label=False, share_missing=0.2)
    'better'
    """
    if compared.n_hidden < _FEWEST_HIDDEN:
        return Finding.TOO_FEW
    found = judge(compared.own, compared.simplest)
    if found is not Finding.BETTER:
        return found
    if compared.lead is not None and compared.lead < _CLEARLY:
        return Finding.MAY_BE_CHANCE
    if is_label and compared.own > _MOSTLY:
        return Finding.MOSTLY_WRONG
    return Finding.MOSTLY_IMPUTED if share_missing > _MOSTLY else Finding.BETTER


def judge(own: float, simplest: float) -> Finding:
    """What is found about errors over many values.

    >>> judge(0.98, 1.0), judge(0.0, 0.0)
    ('no better', 'exact')
    """
    if own == simplest == 0:
        return Finding.EXACT
    return Finding.BETTER if own < _NO_BETTER * simplest else Finding.NO_BETTER


def rate(found: Sequence[Finding], *, draws: bool) -> Rating:
    """How far a whole table is to be relied on, by what is found about its numbers and its categories.

    Single ``draws`` are further off than expected values by design.

    >>> rate([Finding.BETTER, Finding.NO_BETTER], draws=False)
    'caution'
    """
    better = [each.rating is Rating.GOOD for each in found]
    if not better:
        return Rating.UNKNOWN
    return Rating.GOOD if all(better) else Rating.CAUTION if any(better) or draws else Rating.BAD
