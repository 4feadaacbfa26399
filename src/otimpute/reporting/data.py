"""The content of a report as plain data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from .._text import Keyword
from ..estimator import Finding, Measure, Overall, Rating
from .knowledge_data import KnowledgeFacts
from .multiple_data import MultipleImputation

_DIGITS = 6


@dataclass(frozen=True)
class Light:
    """A question, its rating and a short answer."""

    key: str
    light: Rating
    question: str
    answer: str


@dataclass(frozen=True)
class TableFacts:
    """Facts about the table that was imputed."""

    source: str | None  # the name of its file
    imputer: str
    n_rows: int
    n_columns: int
    n_missing: int
    n_incomplete_rows: int
    n_shown: int  # rows used for figures: all, or a sample
    from_transform: bool  # whether values were imputed for the report, by `transform`


@dataclass(frozen=True)
class ColumnHoles:
    """Missing values of one column."""

    name: str
    kind: str
    n_missing: int
    share: float


@dataclass(frozen=True)
class Pattern:
    """Which columns are missing together, and how often."""

    missing: list[int]  # indices of columns
    n_rows: int
    share: float


@dataclass(frozen=True)
class Patterns:
    """The most frequent patterns of the columns with the most missing values."""

    columns: list[str]
    rows: list[Pattern]
    n_patterns: int
    n_columns_left_out: int


@dataclass(frozen=True)
class Matrix:
    """Fraction of missing values by blocks of consecutive rows and by column, both in the order of the table."""

    columns: list[str]
    first_rows: list[int]  # of each block, from 1
    n_rows: int
    share: list[list[float]]  # [blocks][columns]
    n_columns_left_out: int


@dataclass(frozen=True)
class Association:
    """A column whose values predict where another one is missing."""

    missing: str
    column: str
    strength: float  # 0 to 1: rank-biserial correlation, or Cramér's V for categories
    p_value: float  # corrected for the number of tested pairs (Holm)
    words: str


@dataclass(frozen=True)
class Predictors:
    """How well the values of one column (across) predict where another (down) is missing."""

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
class MissingnessFacts:
    """Facts about missing values."""

    columns: list[ColumnHoles]
    patterns: Patterns
    matrix: Matrix
    predictors: Predictors
    mcar: McarTest


@dataclass(frozen=True)
class Curve:
    """A quantity during training."""

    name: str
    steps: list[float]
    values: list[float]


@dataclass(frozen=True)
class Weights:
    """Weights of the experts of an ensemble, by column."""

    experts: list[str]
    columns: list[str]
    weights: list[list[float]]  # [columns][experts]
    n_columns_left_out: int


@dataclass(frozen=True)
class LeftOutMethod:
    """An expert that was not used."""

    expert: str
    why: str  # "no time" or "failed"
    words: str


@dataclass(frozen=True)
class Training:
    """Facts about the fit."""

    words: list[str]
    converged: bool | None
    step_name: str
    curves: list[Curve]
    weights: Weights | None
    left_out: list[LeftOutMethod]  # experts of an ensemble
    judgement: dict[str, Any] | None  # findings of an imputer that hides values itself


class ShapeKind(Keyword):
    """How the values of a column are drawn."""

    BINS = "bins"  # numbers, dates
    BARS = "bars"  # values and categories


@dataclass(frozen=True)
class Shape:
    """Distributions of the observed and imputed values of a column: fractions per bin or value."""

    kind: ShapeKind
    labels: list[str]  # of bars; for bins, the axis labels
    at: list[float]  # positions of the labels of bins, from 0 to 1
    observed: list[float]
    imputed: list[float]
    few: list[float]  # positions of the imputed values, from 0 to 1, if they are few
    n_outside: int  # outliers not shown in the bins
    tables: list[list[float]] = field(default_factory=list)  # of imputed values in each of several tables


@dataclass(frozen=True)
class Statistic:
    """A statistic of the observed and of the imputed values."""

    name: str
    observed: str
    imputed: str
    tables: str = ""  # its range over several tables


@dataclass(frozen=True)
class Violation:
    """Values that violate a constraint."""

    what: str
    n_cells: int


@dataclass(frozen=True)
class ColumnReport:
    """Report on one column."""

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
    error_bar: str = ""  # a typical error bar, in words


@dataclass(frozen=True)
class ColumnBar:
    """Typical error bar of the imputed values of a column."""

    name: str
    typical: float  # median, in the column's units (dates: seconds); for categories and booleans, the probability of an error
    words: str


@dataclass(frozen=True)
class UnsureCell:
    """An uncertain imputed value."""

    row: int  # from 1
    column: str
    value: str
    bar: str
    size: float  # of the bar, in standard deviations of the column, or the probability of an error


@dataclass(frozen=True)
class ErrorBarSummary:
    """Summary of an imputer's error bars."""

    columns: list[ColumnBar]
    numbers: list[UnsureCell]  # the most uncertain first
    categories: list[UnsureCell]


@dataclass(frozen=True)
class Correlations:
    """Correlations before (over rows with both values) and after imputation."""

    columns: list[str]
    before: list[list[float | None]]
    after: list[list[float | None]]
    words: list[str]
    n_columns_left_out: int


@dataclass(frozen=True)
class Projection:
    """Rows projected on their first two principal components."""

    points: list[list[float]]  # x, y, number of imputed values
    explained: list[float]  # fractions of the variance
    n_rows: int


@dataclass(frozen=True)
class Joint:
    """The table as a whole."""

    correlations: Correlations | None
    projection: Projection | None


@dataclass(frozen=True)
class MethodScore:
    """Scores of a method on the hidden values of all columns."""

    method: str
    # Means over columns, weighted by their missing values.
    error: float | None  # numbers and dates: mean absolute error in standard deviations of the column
    wrong: float | None  # categories and booleans: fraction of wrong values
    failure: str = ""


@dataclass(frozen=True)
class ColumnCheck:
    """Scores of all methods on the hidden values of one column."""

    name: str
    n_hidden: int
    measure: Measure  # "error" (mean absolute, in `unit`) or "wrong" (share)
    unit: str  # of the errors: "" for the column's own unit
    spread: float | None  # standard deviation of the observed values, in `unit`; None for labels
    method: str  # the name of this imputer
    scores: dict[str, float]  # by method
    against_mean: float | None  # this imputer's score divided by that of the mean
    lead: float | None  # by how many standard errors this imputer is better than the mean
    finding: Finding
    points: list[list[float]]  # (true value, imputed value)
    pairs: list[list[Any]]  # for categories: (true, imputed, count)


@dataclass(frozen=True)
class HiddenCheck:
    """Results of the check on hidden values."""

    n_hidden: int
    n_rows: int
    method: str
    filled_by: str  # "model" (as fitted), "copy" (refitted without the hidden values) or "trial" (in the imputer's own fit)
    words: list[str]
    methods: list[MethodScore]
    overall: list[Overall]  # this imputer against the mean
    columns: list[ColumnCheck]


@dataclass(frozen=True)
class Reproduce:
    """Information to reproduce the imputation."""

    date: str
    parameters: dict[str, str]
    versions: dict[str, str]
    fingerprint: str  # of the table
    code: str
    command: str | None
    words: list[str]


@dataclass(frozen=True)
class ReportData:
    """The content of a report."""

    title: str
    table: TableFacts
    verdict: list[Light]
    missingness: MissingnessFacts
    training: Training
    columns: list[ColumnReport]
    error_bars: ErrorBarSummary | None  # None if the imputer has none
    joint: Joint
    check: HiddenCheck | None
    no_check: str  # why there is no check
    reproduce: Reproduce
    notes: list[str] = field(default_factory=list)
    multiple: MultipleImputation | None = None  # diagnostics of several tables
    known: KnowledgeFacts | None = None  # None if nothing was known of the table

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON data: numbers are rounded to six digits, and None if not finite."""
        return _plain(asdict(self))  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
