"""Options for columns, method and constraints, which become an imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .._checks import check_choice
from ..catalogue import METHODS, make_imputer
from .options import option
from .parse import parse_bounds, parse_categories, parse_columns, parse_settings, parse_value

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..files import Column

_ELSEWHERE = {
    "random_state": "--seed", "seed": "--seed", "n_jobs": "--jobs", "max_seconds": "--max-seconds", "model": "--method",
    "checkpoint": "--checkpoint", "verbose": "--quiet", "max_categories": "--max-categories", "missing_values": "--na",
    "delta": "--delta",
    "constraints": "--bounds, --integer, --non-negative, --categories or --ordered",
}  # fmt: skip
# These take Python objects, or would change the columns of the output.
_PYTHON_ONLY = ("callbacks", "completer", "warm_start", "add_indicator", "keep_empty_features", "integers")

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
        chosen = parse_columns("--columns", self.columns, names) if self.columns else names
        excluded = parse_columns("--exclude", self.exclude or [], names)
        left = [name for name in names if name in chosen and name not in excluded]
        if not left:
            raise ValueError("no column is left: --exclude names all of them")
        return left


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
        str, _METHOD(f"{', '.join(sorted(METHODS))}.", "--method", "-m", default=True, autocompletion=_complete_method)
    ] = "auto"
    settings: Annotated[Names, _METHOD("A parameter of the method; repeat for more.", "--set", metavar="KEY=VALUE")] = None
    seed: Annotated[int, _METHOD("The same seed gives the same result.", default=True, min=0)] = 0
    max_categories: Annotated[
        int, _METHOD("Categories used per column; rarer ones are pooled and never imputed.", default=True, min=1)
    ] = 50
    max_seconds: Annotated[float | None, _METHOD("Stop after this time and use the result so far.")] = None
    jobs: Annotated[int | None, _METHOD("Number of threads; -1 for all cores. Does not change the result.", default="1")] = None
    checkpoint: Annotated[Path | None, _METHOD("Save progress in this file, and resume from it.", metavar="FILE")] = None

    def imputer(self) -> BaseImputer:
        """Create the imputer."""
        imputer = make_imputer(check_choice("--method", self.method, METHODS), {}, self.seed)
        known = set(imputer.get_params(deep=False))
        special = {"max_seconds": self.max_seconds, "n_jobs": self.jobs, "checkpoint": self.checkpoint}
        given = {name: value for name, value in special.items() if value is not None}
        for name in given.keys() - known:
            raise ValueError(f"{_ELSEWHERE[name]} is not for method {self.method!r}; leave it out, or pass --method sinkhorn")
        accepted = known - _ELSEWHERE.keys() - set(_PYTHON_ONLY)
        parameters = parse_settings(self.settings or [], accepted, _ELSEWHERE, self.method)
        if isinstance(experts := parameters.get("experts"), str):
            parameters["experts"] = [name.strip() for name in experts.split(",")]
        imputer.set_params(**given, **parameters, max_categories=self.max_categories)
        return imputer
