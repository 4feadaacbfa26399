"""Options for columns, method and constraints, which become an imputer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .._checks import check_choice
from ..catalogue import METHODS, make_imputer
from .options import option
from .parse import parse_bounds, parse_categories, parse_columns, parse_settings, parse_value
from .plan import TablePlan

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..files import Column

_ELSEWHERE = {
    "random_state": "--seed", "seed": "--seed", "n_jobs": "--jobs", "max_seconds": "--max-seconds", "model": "--method",
    "checkpoint": "--checkpoint", "verbose": "--quiet", "max_categories": "--max-categories", "missing_values": "--na",
    "delta": "--delta",
    "constraints": "--bounds, --integer, --non-negative, --categories or --ordered",
    "columns": "--only", "exclude": "--exclude", "identifiers": "--identifiers", "predictors": "--predictors",
    "groups": "--groups", "time": "--time", "derive": "--derive", "applicable": "--applicable", "methods": "--methods",
}  # fmt: skip
# These take Python objects, or would change the columns of the output.
_PYTHON_ONLY = ("callbacks", "completer", "warm_start", "add_indicator", "keep_empty_features", "integers")

MAX_CATEGORIES = 50

Names = list[str] | None
_COLUMNS = partial(option, "Columns")
_METHOD = partial(option, "Method")


def _complete_method(incomplete: str) -> list[tuple[str, str]]:
    return [(name, METHODS[name].description) for name in sorted(METHODS) if name.startswith(incomplete)]


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that a command uses."""

    columns: Annotated[Names, _COLUMNS("Use only these columns.", metavar="NAME,...", default="all")] = None
    exclude: Annotated[Names, _COLUMNS("Use all columns except these.", metavar="NAME,...")] = None

    def of(self, names: list[str]) -> list[str]:
        """Return the chosen columns, in the order of the table."""
        return self.plan(names).used(names)

    def plan(self, names: Sequence[str]) -> TablePlan:
        """Return what was said."""
        return TablePlan(
            columns=parse_columns("--columns", self.columns, names) if self.columns else None,
            exclude=parse_columns("--exclude", self.exclude, names) if self.exclude else None,
        )


@dataclass(frozen=True)
class Constraints:
    """Constraints on imputed values."""

    bounds: Annotated[
        Names, _COLUMNS("Bounds of imputed values; either may be left out: age=0:120, when=2020-01-01:", metavar="COL=LOW:HIGH")
    ] = None
    integer: Annotated[Names, _COLUMNS("Impute integers.", metavar="NAME,...")] = None
    non_negative: Annotated[Names, _COLUMNS("Impute numbers >= 0.", metavar="NAME,...")] = None
    categories: Annotated[Names, _COLUMNS("Impute one of these categories.", metavar="COL=A,B,C")] = None
    ordered: Annotated[Names, _COLUMNS("The same, ordered from lowest to highest.", metavar="COL=A,B,C")] = None

    def of(self, columns: Sequence[Column]) -> dict[str, dict[str, Any]] | None:
        """Return the constraints by column, as imputers take them; None if there are none."""
        from ..files import FieldKind

        kinds = {column.name: column.kind for column in columns}
        names = list(kinds)
        constraints: dict[str, dict[str, Any]] = {name: {} for name in names}
        for text in self.bounds or []:
            name, pair = parse_bounds(text, names)
            constraints[name]["bounds"] = pair
        for name in parse_columns("--integer", self.integer or [], names):
            constraints[name]["integer"] = True
        for name in parse_columns("--non-negative", self.non_negative or [], names):
            constraints[name]["non_negative"] = True
        listed = [("--categories", text) for text in self.categories or []] + [
            ("--ordered", text) for text in self.ordered or []
        ]
        for asked, text in listed:
            name, labels = parse_categories(asked, text, names)
            are_numbers = kinds[name] in (FieldKind.INTEGER, FieldKind.NUMBER)
            constraints[name]["categories"] = [parse_value(label) for label in labels] if are_numbers else labels
            if asked == "--ordered":
                constraints[name]["ordered"] = True
        return {name: constraint for name, constraint in constraints.items() if constraint} or None


@dataclass(frozen=True)
class MethodChoice:
    """The imputation method and its parameters."""

    method: Annotated[
        str | None,
        _METHOD(f"{', '.join(sorted(METHODS))}.", "--method", "-m", default="auto", autocompletion=_complete_method),
    ] = None
    settings: Annotated[Names, _METHOD("A parameter of the method; repeat for more.", "--set", metavar="KEY=VALUE")] = None
    seed: Annotated[int, _METHOD("The same seed gives the same result.", default=True, min=0)] = 0
    max_categories: Annotated[
        int | None, _METHOD("Categories used per column; rarer ones are pooled and never imputed.", default="50", min=1)
    ] = None
    max_seconds: Annotated[float | None, _METHOD("Stop after this time and use the result so far.")] = None
    jobs: Annotated[int | None, _METHOD("Number of threads; -1 for all cores. Does not change the result.", default="1")] = None
    checkpoint: Annotated[Path | None, _METHOD("Save progress in this file, and resume from it.", metavar="FILE")] = None

    def plan(self) -> TablePlan:
        """Return what was said."""
        settings = [setting.partition("=") for setting in self.settings or []]
        return TablePlan(
            method=self.method,
            max_categories=self.max_categories,
            settings={key.strip(): parse_value(value.strip()) for key, _, value in settings} or None,
        )

    @property
    def name(self) -> str:
        """The method, once it is known."""
        return self.method or ""

    def over(self, plan: TablePlan, default: str) -> MethodChoice:
        """Return this choice, that of a plan where nothing was said, and otherwise the default."""
        if plan.method is not None:
            with plan.blaming("method"):
                check_choice("method", plan.method, METHODS)
        most = self.max_categories or plan.max_categories or MAX_CATEGORIES
        return replace(self, method=self.method or plan.method or default, max_categories=most)

    def imputer(self, plan: TablePlan) -> BaseImputer:
        """Create the imputer."""
        imputer = make_imputer(check_choice("--method", self.name, METHODS), {}, self.seed)
        known = set(imputer.get_params(deep=False))
        special = {"max_seconds": self.max_seconds, "n_jobs": self.jobs, "checkpoint": self.checkpoint}
        given = {name: value for name, value in special.items() if value is not None}
        for name in given.keys() - known:
            raise ValueError(f"{_ELSEWHERE[name]} is not for method {self.name!r}; leave it out, or pass --method sinkhorn")
        accepted = known - _ELSEWHERE.keys() - set(_PYTHON_ONLY)
        parameters = _settings_of(plan, accepted, self.name) | parse_settings(
            self.settings or [], accepted, _ELSEWHERE, self.name
        )
        if isinstance(experts := parameters.get("experts"), str):
            parameters["experts"] = [name.strip() for name in experts.split(",")]
        imputer.set_params(**given, **parameters, max_categories=self.max_categories)
        return imputer


def _settings_of(plan: TablePlan, accepted: Collection[str], whose: str) -> dict[str, Any]:
    """Return the parameters of the method in a plan."""
    for name in plan.settings or {}:
        if name in _ELSEWHERE:
            raise plan.error(("settings", name), f"has a place of its own; use {_ELSEWHERE[name]} instead")
        with plan.blaming("settings", name):
            check_choice(f"a parameter of {whose}", name, accepted)
    return dict(plan.settings or {})
