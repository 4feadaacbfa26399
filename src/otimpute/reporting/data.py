"""What a report says, as plain data: everything that pictures and words are made of, and nothing that is not shown."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from ..estimator import Finding, Measure, Overall, Rating

_DIGITS = 6


@dataclass(frozen=True)
class Light:
    """One question that readers have, and the short answer."""

    key: str
    light: Rating
    question: str
    answer: str


@dataclass(frozen=True)
class TableFacts:
    """What was imputed."""

    source: str | None  # the name of its file
    imputer: str
    n_rows: int
    n_columns: int
    n_missing: int
    n_incomplete_rows: int
    n_shown: int  # rows that pictures are made of: all, or a sample
    from_transform: bool  # whether values were imputed for the report, each row alone


@dataclass(frozen=True)
class ColumnHoles:
    """How much is missing in one column."""

    name: str
    kind: str
    n_missing: int
    share: float


@dataclass(frozen=True)
class Pattern:
    """Which columns are missing together, and how often."""

    missing: list[int]  # places in the list of columns
    n_rows: int
    share: float


@dataclass(frozen=True)
class Patterns:
    """The most frequent patterns of the columns with most holes."""

    columns: list[str]
    rows: list[Pattern]
    n_patterns: int
    n_columns_left_out: int


@dataclass(frozen=True)
class Matrix:
    """The share that is missing, by blocks of consecutive rows and by column, both in the order of the table."""

    columns: list[str]
    first_rows: list[int]  # of each block, from 1
    n_rows: int
    share: list[list[float]]  # [blocks][columns]
    n_columns_left_out: int


@dataclass(frozen=True)
class Association:
    """A column whose values tell where another one is missing."""

    missing: str
    column: str
    strength: float  # 0 to 1: rank-biserial correlation, or Cramér's V for categories
    p_value: float  # corrected for the number of pairs that were looked at (Holm)
    words: str


@dataclass(frozen=True)
class Predictors:
    """How much the values of one column (across) tell about where another (down) is missing."""

    missing: list[str]
    columns: list[str]
    strength: list[list[float | None]]
    strongest: list[Association]
    n_pairs: int


@dataclass(frozen=True)
class McarTest:
    """Little's test that values are missing completely at random."""

    statistic: float | None
    degrees_of_freedom: int | None
    p_value: float | None
    n_rows: int
    n_columns: int
    n_patterns: int
    words: str
    caveat: str


@dataclass(frozen=True)
class Missingness:
    """Everything about what was not there."""

    columns: list[ColumnHoles]
    patterns: Patterns
    matrix: Matrix
    predictors: Predictors
    mcar: McarTest


@dataclass(frozen=True)
class Curve:
    """A quantity in the course of training."""

    name: str
    steps: list[float]
    values: list[float]


@dataclass(frozen=True)
class Weights:
    """What an imputer of many experts trusts, column by column."""

    experts: list[str]
    columns: list[str]
    weights: list[list[float]]  # [columns][experts]
    n_columns_left_out: int


@dataclass(frozen=True)
class LeftOut:
    """An expert that could not be asked."""

    expert: str
    why: str  # "no time" or "failed"
    words: str


@dataclass(frozen=True)
class Training:
    """How the fit went."""

    words: list[str]
    converged: bool | None
    step_name: str
    curves: list[Curve]
    weights: Weights | None
    left_out: list[LeftOut]  # of many experts
    judgement: dict[str, Any] | None  # what an imputer that hides values itself found, as data


@dataclass(frozen=True)
class Shape:
    """Observed against imputed values of a column: shares of bins, or of values."""

    kind: str  # "bins" (numbers, dates) or "bars" (values and categories)
    labels: list[str]  # of bars; of bins: some places along the axis
    at: list[float]  # where the labels of bins stand, from 0 to 1
    observed: list[float]
    imputed: list[float]
    few: list[float]  # where imputed values stand, from 0 to 1, if they are few
    n_outside: int  # values that lie outside the bins, which leave out the farthest ones


@dataclass(frozen=True)
class Statistic:
    """One line of a comparison."""

    name: str
    observed: str
    imputed: str


@dataclass(frozen=True)
class Violation:
    """Imputed values that break a promise."""

    what: str
    n_cells: int


@dataclass(frozen=True)
class ColumnReport:
    """What was there and what was filled in, in one column."""

    name: str
    kind: str
    n_observed: int
    n_missing: int
    n_filled: int
    light: Rating
    words: str
    shape: Shape | None
    statistics: list[Statistic]
    violations: list[Violation]
    error_bar: str = ""  # a typical one, in words


@dataclass(frozen=True)
class ColumnBar:
    """How far off an imputed value of a column typically may be."""

    name: str
    typical: float  # median, in the column's units (dates: seconds); of categories and booleans the chance to be wrong
    words: str


@dataclass(frozen=True)
class UnsureCell:
    """An imputed value that may be far off."""

    row: int  # from 1
    column: str
    value: str
    bar: str
    size: float  # of the bar, in standard deviations of the column, or the chance to be wrong


@dataclass(frozen=True)
class ErrorBars:
    """What an imputer says about how sure it is."""

    columns: list[ColumnBar]
    numbers: list[UnsureCell]  # the least sure first
    categories: list[UnsureCell]


@dataclass(frozen=True)
class Correlations:
    """How columns go together, before (rows that have both) and after."""

    columns: list[str]
    before: list[list[float | None]]
    after: list[list[float | None]]
    words: list[str]
    n_columns_left_out: int


@dataclass(frozen=True)
class Projection:
    """Rows in the plane in which they vary most."""

    points: list[list[float]]  # x, y, number of imputed values
    explained: list[float]  # shares of the variance
    n_rows: int


@dataclass(frozen=True)
class Joint:
    """The table as a whole."""

    correlations: Correlations | None
    projection: Projection | None


@dataclass(frozen=True)
class MethodScore:
    """How far off a method was on hidden values of all columns."""

    method: str
    # Means over columns, each counted by its holes in the table.
    error: float | None  # numbers and dates: mean absolute error in standard deviations of the column
    wrong: float | None  # categories and booleans: share of wrong ones
    failure: str = ""


@dataclass(frozen=True)
class ColumnCheck:
    """The same in one column."""

    name: str
    n_hidden: int
    measure: Measure  # "error" (mean absolute, in `unit`) or "wrong" (share)
    unit: str  # what errors are in: "" for the column's own unit
    spread: float | None  # standard deviation of the observed values, in `unit`; None where a guess is right or wrong
    method: str  # this imputer's
    scores: dict[str, float]  # by method
    against_mean: float | None  # this imputer's score over that of the mean
    lead: float | None  # by how many standard errors this imputer is better than the mean
    finding: Finding
    points: list[list[float]]  # true value, imputed value
    pairs: list[list[Any]]  # of categories: true one, imputed one, how often


@dataclass(frozen=True)
class HiddenCheck:
    """What the method makes of observed values that are hidden from it."""

    n_hidden: int
    n_rows: int
    method: str
    filled_by: str  # "model" (as it is), "copy" (fitted to what was not hidden) or "trial" (of the imputer's own fit)
    words: list[str]
    methods: list[MethodScore]
    overall: list[Overall]  # this imputer against the mean
    columns: list[ColumnCheck]


@dataclass(frozen=True)
class Reproduce:
    """What is needed to get the same again."""

    date: str
    parameters: dict[str, str]
    versions: dict[str, str]
    fingerprint: str  # of the table
    code: str
    command: str | None
    words: list[str]


@dataclass(frozen=True)
class ReportData:
    """A whole report."""

    title: str
    table: TableFacts
    verdict: list[Light]
    missingness: Missingness
    training: Training
    columns: list[ColumnReport]
    error_bars: ErrorBars | None  # of imputers that have them
    joint: Joint
    check: HiddenCheck | None
    no_check: str  # why there is none
    reproduce: Reproduce
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: numbers to six digits, and null for those that are not finite."""
        return _plain(asdict(self))  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
