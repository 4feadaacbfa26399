"""What people know of their table, as one value: from a file, from flags, or from both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..._text import listed
from ...exceptions import ParameterError, ParameterValueError
from ..parse import parse_range
from ..spelling import in_options
from .blame import blamed
from .document import Document, Keys, PlanError, dotted
from .rules import rules_without, targets_of
from .shapes import PLAN

_ALL_OTHERS = "*"  # in `na` and `keep`: all columns that are not named
_SPELLINGS = ("na", "keep")
_BY_COLUMN = ("constraints", "predictors", "derive", "applicable", "methods", *_SPELLINGS)
_COLUMNS = ("columns", "exclude", "only", "weights", "groups", "time")
_AS_NAMED = ("identifiers", "predictors", "groups", "time", "derive", "applicable", "methods")
_OF_IMPUTERS = {"only": "columns"} | {key: key for key in _AS_NAMED}
_NOT = "not"  # in `predictors`: columns that inform nobody
_NO_COLUMNS = {("na", _ALL_OTHERS), ("keep", _ALL_OTHERS), ("predictors", _NOT)}


@dataclass(frozen=True)
class TablePlan:
    """What is known of a table, and wishes for it; None: as usual."""

    na: Mapping[str | None, Sequence[str]] | None = None  # spellings of missing values, by column; None: all others
    keep: Mapping[str | None, Sequence[str]] | None = None  # spellings of answers that look like missing values
    columns: Sequence[str] | None = None  # used
    exclude: Sequence[str] | None = None  # not used
    only: Sequence[str] | None = None  # imputed; others inform
    identifiers: str | None = None  # whether what looks like an identifier is used
    weights: str | None = None
    groups: str | Sequence[str] | None = None
    time: str | None = None
    method: str | None = None
    max_categories: int | None = None
    settings: Mapping[str, Any] | None = None  # parameters of the method
    constraints: Mapping[str, Mapping[str, Any]] | None = None
    predictors: str | Mapping[str, Any] | None = None
    derive: Mapping[str, str] | Sequence[str] | None = None
    applicable: Mapping[str, str] | None = None
    methods: Mapping[str, str | Sequence[str]] | None = None
    document: Document | None = field(default=None, compare=False, repr=False)  # where most of this is written

    @classmethod
    def read(cls, path: Path | None) -> TablePlan:
        """Read a file; without one nothing is known."""
        if path is None:
            return cls()
        document = Document.read(path)
        PLAN.check(document.content, (), document)
        known: dict[str, Any] = {
            key: _READ[key](value, document) if key in _READ else value for key, value in document.content.items()
        }
        return cls(**{key: value for key, value in known.items() if value != {}}, document=document)

    def given(self) -> dict[str, Any]:
        """Return what is known, as plain data."""
        return {each.name: value for each in fields(self) if each.compare and (value := getattr(self, each.name)) is not None}

    def over(self, other: TablePlan) -> TablePlan:
        """Return both; where both speak of the same thing, or of the same column, this one counts."""
        own = self.given()
        for key in (*_BY_COLUMN, "settings"):
            one, two = own.get(key), getattr(other, key)
            if isinstance(one, Mapping) and isinstance(two, Mapping):
                own[key] = {**two, **one}
                if key == "constraints":
                    own[key] = {name: {**two.get(name, {}), **one.get(name, {})} for name in own[key]}
            elif key == "derive" and one and two:
                own[key] = [*rules_without(two, targets_of(one)), *rules_without(one, ())]
        return replace(other, **own)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise if the file names a column that the table does not have."""
        for keys, name in self._columns_named():
            if name not in names:
                near = get_close_matches(name, names, 1) or [each for each in names if each.lower() == name.lower()]
                meant = f"; did you mean {near[0]!r}? There" if near else "; there"
                raise self.error(keys, f"names a column {name!r}, which is not in the table{meant} are {listed(names, 20)}")

    def within(self, used: Sequence[str]) -> TablePlan:
        """Return what concerns these columns; wishes for others are dropped."""
        own: dict[str, Any] = {
            key: {name: wish for name, wish in wishes.items() if name in used or (key, name) == ("predictors", _NOT)} or None
            for key in _BY_COLUMN
            if key not in _SPELLINGS and isinstance(wishes := getattr(self, key), Mapping)
        }
        if self.only is not None:
            own["only"] = [name for name in self.only if name in used]
        return replace(self, **own)

    def parameters(self) -> dict[str, Any]:
        """Return what imputers are told, besides constraints, as their parameters."""
        told = {parameter: value for key, parameter in _OF_IMPUTERS.items() if (value := getattr(self, key)) is not None}
        return {"identifiers": "use"} | told if self.columns else told  # who names the columns means them

    def parameters_for(self, imputer: Any, method: str) -> dict[str, Any]:
        """Return the same for an imputer; raise if it lacks one of the parameters."""
        told, known = self.parameters(), imputer.get_params(deep=False)
        for name in told.keys() - known.keys():
            raise ParameterValueError(name, told[name], f"left out for method {method}", "use --method auto, the default")
        return told

    def used(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are used, in the order of the table."""
        out = {*(self.exclude or ()), self.weights}
        left = [name for name in names if name in (self.columns or names) and name not in out]
        if not left:
            raise ValueError("no column is left: --exclude names all of them")
        return left

    def as_dict(self) -> dict[str, Any]:
        """Return what is known as JSON and TOML have it."""
        own = self.given()
        for key in _SPELLINGS:
            if key in own:
                own[key] = {name or _ALL_OTHERS: texts for name, texts in own[key].items()}
        if "constraints" in own:
            own["constraints"] = {
                name: wish | ({"bounds": _as_written(*wish["bounds"])} if "bounds" in wish else {})
                for name, wish in own["constraints"].items()
            }
        return own

    @contextmanager
    def named(self, flags: TablePlan) -> Iterator[None]:
        """Say of errors where in the file the cause is, unless it is in flags."""
        try:
            yield
        except PlanError:
            raise
        except (ValueError, TypeError) as error:
            keys = None if self.document is None else blamed(error, self.document.content, flags.given())
            if keys is None:
                raise
            raise self._caused(keys, error) from error

    @contextmanager
    def blaming(self, *keys: str) -> Iterator[None]:
        """Turn errors about a parameter into one about a key of the file."""
        try:
            yield
        except ParameterError as error:
            raise self._caused(keys, error) from error

    def error(self, keys: Keys, said: str) -> PlanError:
        """Return an error about something in the file."""
        assert self.document is not None  # flags are checked where they are parsed
        return self.document.error(keys, said)

    def _caused(self, keys: Keys, error: Exception) -> PlanError:
        """Return an error as one about a key of the file."""
        assert self.document is not None
        if isinstance(error, ParameterError) and error.parameter == keys[-1]:
            return PlanError(f"{self.document.where(keys)}: {error.said_of(dotted(keys), error.advice)}")
        said, option = in_options(error), f"--{keys[0]} "
        colon = "" if said.startswith(option) else ":"
        return PlanError(f"{self.document.where(keys)}: {dotted(keys)}{colon} {said.removeprefix(option)}")

    def _columns_named(self) -> Iterator[tuple[Keys, str]]:
        """Yield where the file names a column, and its name."""
        content = {} if self.document is None else self.document.content
        for key in _COLUMNS:
            named = content.get(key, [])
            yield from (((key,), name) for name in ([named] if isinstance(named, str) else named))
        for key in _BY_COLUMN:
            for name, wish in content[key].items() if isinstance(content.get(key), Mapping) else ():
                if (key, name) not in _NO_COLUMNS:
                    yield (key, name), name
                if key == "predictors":
                    others = wish["not"] if isinstance(wish, Mapping) else wish
                    yield from (((key, name), other) for other in others)


def _spellings(value: Any, document: Document) -> dict[str | None, list[str]]:  # noqa: ARG001
    by_column = value if isinstance(value, Mapping) else {_ALL_OTHERS: value}
    return {None if name == _ALL_OTHERS else name: [str(each) for each in texts] for name, texts in by_column.items()}


def _constraints(value: Any, document: Document) -> dict[str, dict[str, Any]]:
    return {
        name: wish
        | ({"bounds": _bounds(wish["bounds"], ("constraints", name, "bounds"), document)} if "bounds" in wish else {})
        for name, wish in value.items()
    }


def _as_written(low: Any, high: Any) -> Any:
    """Bounds as a file has them; an open one is infinity among numbers, and nothing among dates."""
    if any(isinstance(each, date) for each in (low, high)):
        return ":".join("" if each is None else each.isoformat() for each in (low, high))
    return [float("-inf") if low is None else low, float("inf") if high is None else high]


def _bounds(value: Any, keys: Keys, document: Document) -> tuple[Any, Any]:
    """Two values; None where open, for which TOML has no word but infinity."""
    if isinstance(value, str):
        try:
            return parse_range(value)
        except ValueError as error:
            raise document.error(keys, f"must be {error}, got {value!r}") from None
    low, high = (None if each in (float("inf"), float("-inf")) else each for each in value)
    return low, high


_READ = {"na": _spellings, "keep": _spellings, "constraints": _constraints}
