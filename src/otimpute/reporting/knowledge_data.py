"""What people knew of their table, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from .._text import Keyword


class RuleKind(Keyword):
    """What a rule is about."""

    ONLY = "only"  # these columns are imputed
    EXCLUDED = "excluded"
    IDENTIFIERS = "identifiers"
    PREDICTORS = "predictors"
    GROUPS = "groups"
    DERIVED = "derived"
    APPLICABLE = "applicable"
    METHODS = "methods"


@dataclass(frozen=True)
class Rule:
    """Something that people knew, or that was assumed."""

    kind: RuleKind
    columns: list[str]  # that it is about; none: the table
    words: str


@dataclass(frozen=True)
class PredictorMatrix:
    """Which columns (across) inform which imputed ones (down)."""

    imputed: list[str]
    columns: list[str]
    informs: list[list[bool | None]]  # [imputed][columns]; None: the column itself
    n_left_out: int  # columns that are not shown


@dataclass(frozen=True)
class KnowledgeFacts:
    """What was known of a table."""

    rules: list[Rule]
    matrix: PredictorMatrix | None  # None if every column may inform every other
