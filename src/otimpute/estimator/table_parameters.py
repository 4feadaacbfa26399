"""The parameters that every imputer has, declared once."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any, TypedDict

import numpy as np

from .._checks import check_choice, check_count, check_flag
from ..knowledge import ColumnWishes


class TableParameters(TypedDict, total=False):
    """What a table looks like, and how it should come out; see `SinkhornImputer` for what each does."""

    missing_values: float
    add_indicator: bool
    keep_empty_features: bool
    integers: str
    constraints: Any
    max_categories: int | None
    columns: Any
    exclude: Any
    identifiers: str
    predictors: Any
    groups: Any
    time: Any
    derive: Any
    applicable: Any


class HasTableParameters:
    """Takes the table parameters. A subclass's constructor hands them on as ``**table``, and gets them into its signature."""

    def __init__(
        self,
        *,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
        columns: Any = None,
        exclude: Any = None,
        identifiers: str = "set aside",
        predictors: Any = None,
        groups: Any = None,
        time: Any = None,
        derive: Any = None,
        applicable: Any = None,
    ):
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers
        self.constraints = constraints
        self.max_categories = max_categories
        self.columns = columns
        self.exclude = exclude
        self.identifiers = identifiers
        self.predictors = predictors
        self.groups = groups
        self.time = time
        self.derive = derive
        self.applicable = applicable

    def __init_subclass__(cls, **options: Any) -> None:
        """Replace ``**table`` in the signature of a constructor by what it stands for: scikit-learn reads parameters there."""
        super().__init_subclass__(**options)
        constructor = vars(cls).get("__init__")
        if constructor is None:
            return
        own = signature(constructor).parameters
        if not any(each.kind is Parameter.VAR_KEYWORD for each in own.values()):
            return
        given = [each for each in own.values() if each.kind is not Parameter.VAR_KEYWORD]
        of_base = signature(super(cls, cls).__init__).parameters.values()
        handed_on = [each for each in of_base if each.kind is Parameter.KEYWORD_ONLY and each.name not in own]
        constructor.__signature__ = Signature([*given, *handed_on])

    def _check_table_parameters(self) -> None:
        check_choice("integers", self.integers, ["round", "float"])
        check_flag("add_indicator", self.add_indicator)
        check_flag("keep_empty_features", self.keep_empty_features)
        if self.max_categories is not None:
            check_count("max_categories", self.max_categories, advice="pass None to use all categories of all columns")
        check_choice("identifiers", self.identifiers, ["set aside", "use"])

    @property
    def _wishes(self) -> ColumnWishes:
        """What is said about columns."""
        said = self.columns, self.exclude, self.identifiers, self.predictors, self.constraints
        return ColumnWishes(*said, used_elsewhere=(self.groups, self.time))
