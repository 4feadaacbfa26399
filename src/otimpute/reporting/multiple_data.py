"""What a report says of several completed tables, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from ..estimator import Rating


@dataclass(frozen=True)
class Trace:
    """How the draws of a column developed over the rounds, a line per table."""

    what: str  # that is followed
    lines: list[list[float]]  # [tables][rounds]
    drift: float | None  # in the last rounds, in standard errors
    r_hat: float | None
    words: str


@dataclass(frozen=True)
class Matched:
    """Imputed values compared with observed ones in rows that are alike."""

    what: str  # differs most: "mean", "spread", or the name of a class
    difference: float  # in standard deviations, or as a share
    standard_error: float
    distance: float  # of the two distributions, from 0 to 1
    n_alike: float
    words: str


@dataclass(frozen=True)
class MultipleColumn:
    """Diagnostics of one column with missing values."""

    name: str
    n_missing: int
    what: str  # is estimated: "mean", or the share of the class about which least is known
    within: float | None  # None and 0 if nothing varies
    between: float | None
    fmi: float | None
    monte_carlo_error: float | None  # dates: seconds
    monte_carlo: str  # the same in words
    estimate: str  # with its standard error
    tables_needed: int
    error_against_tables: list[list[float]]  # (tables, Monte-Carlo error as a share of the standard error)
    trace: Trace | None
    matched: Matched | None
    light: Rating
    words: str


@dataclass(frozen=True)
class MultipleImputation:
    """Diagnostics of several completed tables."""

    n_tables: int
    no_trace: str  # why there are no traces
    columns: list[MultipleColumn]
