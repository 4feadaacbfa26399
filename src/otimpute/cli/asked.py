"""What people know of their table, as flags and as a file; together they are what was asked of a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .._checks import check_choice
from .method import ColumnChoice, Constraints, MethodChoice, Names
from .options import Reading, option
from .parse import named_as_set, parse_column, parse_columns, parse_methods, parse_predictors, parse_wishes
from .plan import TablePlan

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..files import Column, TableFile

_IDENTIFIERS = ("set aside", "use")
_KNOWN = partial(option, "What you know of your table")
PlanFile = Annotated[
    Path | None, _KNOWN("A .toml or .yaml file with all of this, see otimpute inspect --write-plan; flags win.", metavar="PLAN")
]


@dataclass(frozen=True)
class Knowledge:
    """What is known of a table besides constraints."""

    plan: PlanFile = None
    only: Annotated[Names, _KNOWN("Impute only these columns; all others still inform.", metavar="NAME,...")] = None
    identifiers: Annotated[
        str | None, _KNOWN("use or 'set aside' columns that look like identifiers.", default="set aside", metavar="WHAT")
    ] = None
    predictors: Annotated[
        Names,
        _KNOWN("What may inform a column: income=age,job, income=not:tax_code; not:outcome for all; or auto.", metavar="RULE"),
    ] = None
    groups: Annotated[Names, _KNOWN("Columns that tell groups of rows apart, such as a person.", metavar="NAME,...")] = None
    time: Annotated[str | None, _KNOWN("Column with the time within a group.", metavar="NAME")] = None
    derive: Annotated[
        Names, _KNOWN("What holds in every row: 'bmi = weight / (height / 100) ** 2', 'start <= end'.", metavar="RULE")
    ] = None
    applicable: Annotated[
        Names,
        _KNOWN("Rows in which a column applies; elsewhere it stays empty: \"pregnancies=sex == 'f'\".", metavar="COL=RULE"),
    ] = None
    methods: Annotated[
        Names, _KNOWN("The method for a column, or several to choose from: age=gaussian_em,knn.", metavar="COL=METHOD,...")
    ] = None
    weights: Annotated[str | None, _KNOWN("Column with the weights of rows; not imputed.", metavar="NAME")] = None

    def of(self, names: Sequence[str]) -> TablePlan:
        """Return what was said of the used columns."""
        return TablePlan(
            only=parse_columns("--only", self.only, names) if self.only else None,
            predictors=parse_predictors(self.predictors, names) if self.predictors else None,
            groups=parse_columns("--groups", self.groups, names) if self.groups else None,
            time=parse_column("--time", self.time, names) if self.time else None,
            identifiers=None if self.identifiers is None else check_choice("--identifiers", self.identifiers, _IDENTIFIERS),
            derive=self.derive or None,
            applicable=parse_wishes("--applicable", "\"pregnancies=sex == 'f'\"", self.applicable, names),
            methods=parse_methods(self.methods, names),
        )


@dataclass(frozen=True)
class Asked:
    """All that was asked of a command."""

    file: TablePlan
    chosen: TablePlan  # method and settings that were flags
    reading: Reading
    choice: ColumnChoice
    constraints: Constraints
    knowledge: Knowledge
    method: MethodChoice

    @classmethod
    def of(
        cls,
        reading: Reading,
        choice: ColumnChoice,
        constraints: Constraints,
        knowledge: Knowledge,
        method: MethodChoice,
        default: str = "auto",
    ) -> Asked:
        """Read the file, if there is one; ``default`` is the method where none was chosen."""
        file = TablePlan.read(knowledge.plan)
        return cls(file, method.plan(), reading, choice, constraints, knowledge, method.over(file, default))

    def imputer(self) -> BaseImputer:
        """Create the imputer; the table is not known yet."""
        return self.method.imputer(self.file if self.uses_settings else replace(self.file, settings=None))

    def read(self, source: str) -> TableFile:
        """Read the table."""
        with self.file.named(self.reading.spellings()):
            return self.reading.read(source, plan=self.file)

    def plan(self, columns: Sequence[Column]) -> TablePlan:
        """Return what is known of a table: what was said by flags, and the file where nothing was."""
        names = [column.name for column in columns]
        self.file.check_columns(names)
        both = self.flags(columns).over(self.file if self.uses_settings else replace(self.file, settings=None))
        return both.within(both.used(names))

    @property
    def uses_settings(self) -> bool:
        """Whether the settings of the file are for the method that was chosen."""
        return self.chosen.method is None or self.chosen.method == self.file.method

    def notes(self) -> list[str]:
        """Return what of the file is not used."""
        if self.uses_settings or not self.file.settings:
            return []
        of = f"for {self.file.method}" if self.file.method else "for the default method"
        return [f"{self.knowledge.plan}: the settings are {of}, not for --method {self.method.name}"]

    @contextmanager
    def naming(self, columns: Sequence[Column]) -> Iterator[None]:
        """Say of errors where the parameter was set: by ``--set``, or in the file."""
        with named_as_set(self.chosen.settings), self.file.named(self.flags(columns)):
            yield

    def flags(self, columns: Sequence[Column]) -> TablePlan:
        """Return what was said by flags."""
        names = [column.name for column in columns]
        weights = parse_column("--weights", self.knowledge.weights, names) if self.knowledge.weights else None
        first = TablePlan(weights=weights).over(self.choice.plan(names)).over(self.reading.spellings())
        used = first.over(self.file).used(names)
        constraints = self.constraints.of([column for column in columns if column.name in used])
        return TablePlan(constraints=constraints).over(self.knowledge.of(used)).over(first).over(self.chosen)
