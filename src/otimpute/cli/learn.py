"""Learn from the table of a file, and fill its holes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .._text import count, listed
from .asked import Asked
from .method import MethodChoice
from .options import Showing, about
from .plan import TablePlan
from .reading_notes import reading_notes
from .show import collected_notes, console, tell, working

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..estimator import BaseImputer
    from ..files import TableFile
    from ..reporting.data import ErrorBarSummary


@dataclass(frozen=True)
class Fitted:
    """An imputed table and the imputer."""

    table: TableFile
    imputer: BaseImputer
    method: str
    seed: int
    used: list[str]
    plan: TablePlan
    completed: Any  # a pyarrow table like that of ``table``
    notes: list[str]
    seconds: float

    def filled(self) -> list[dict[str, Any]]:
        """Numbers of missing and of imputed values by column."""
        columns, spelled = [], {column.name: column.missing_as for column in self.table.columns}
        typical = {each.name: each for each in self.error_bars.columns} if self.error_bars else {}
        for name in self.used:
            before = n_missing(self.table.frame.column(name))
            after = n_missing(self.completed.column(name))
            bar = {"typical_error_bar": typical[name].typical} if name in typical else {}
            found = {"name": name, "n_missing": before, "n_filled": before - after, "missing_as": dict(spelled[name])}
            columns.append({**found, **bar})
        return columns

    def bars(self) -> dict[str, NDArray[Any]] | None:
        """Error bars by column; None if the method has none."""
        from ..estimator import bars_of, has_error_bars

        if not has_error_bars(self.imputer):
            return None
        return dict(zip(self.used, bars_of(self.imputer, self.imputer.imputation_std_).T, strict=True))

    @cached_property
    def error_bars(self) -> ErrorBarSummary | None:
        """Summary of the error bars by column, and of the most uncertain cells."""
        from ..reporting import error_bars

        return error_bars(self.imputer, self.table.frame.select(self.used), self.completed.select(self.used))

    @property
    def not_used(self) -> list[str]:
        """Columns of the file that were not used."""
        return [name for name in self.table.frame.column_names if name not in self.used]

    def validation(self) -> dict[str, float]:
        """Errors on values hidden from the fit, if ``validation_fraction`` is set."""
        history = getattr(self.imputer, "history_", {})
        return {name: history[name][-1] for name in ("validation_mae", "validation_rmse") if history.get(name)}

    def least_sure(self) -> list[dict[str, Any]]:
        """The cells with the largest error bars, numbers before categories."""
        found = self.error_bars
        return [asdict(cell) for cell in (*found.numbers, *found.categories)] if found else []

    def summary(self) -> dict[str, Any]:
        """Return the summary as JSON data."""
        frame = self.table.frame
        return {
            "input": self.table.path,
            "method": self.method,
            "seed": self.seed,
            "n_rows": frame.num_rows,
            "n_columns": frame.num_columns,
            "seconds": round(self.seconds, 3),
            "columns": self.filled(),
            "not_used": self.not_used,
            "plan": self.plan.as_dict(),
            "notes": self.notes,
            **self.validation(),
            **({"least_sure": self.least_sure()} if self.error_bars else {}),
            **trial_of(self.imputer),
        }


@dataclass(frozen=True)
class Chosen:
    """A table that was read, and what of it is used."""

    table: TableFile
    used: list[str]
    plan: TablePlan
    notes: list[str]

    @classmethod
    def read(cls, source: str, asked: Asked, showing: Showing) -> Chosen:
        """Read a file and choose its columns; those without any value are left alone."""
        with working(f"reading {source} …", shown=not showing.quiet):
            table = asked.read(source)
        frame = table.frame
        with about(source):
            plan = asked.plan(table.columns)
            chosen = plan.used(frame.column_names)
            used = [name for name in chosen if n_missing(frame.column(name)) < frame.num_rows]
            if not used:
                raise ValueError(f"all values of {listed(chosen)} are missing, so there is nothing to learn from")
        plan = plan.within(used)
        seen = [name for name in used if name not in set_aside(frame.select(used), plan)]
        notes = [*asked.notes(), *_never_filled(frame, plan.constraints or {}), *reading_notes(table, seen)]
        empty = [name for name in chosen if name not in used]
        if empty:
            notes.append(f"all values of {listed(empty)} are missing: left empty")
        return cls(table, used, plan, notes)

    @property
    def X(self) -> Any:
        """The columns that are used."""
        return self.table.frame.select(self.used)

    def weights(self) -> dict[str, Any]:
        """The weights of rows, as fits take them."""
        name = self.plan.weights
        if name is None:
            return {}
        cells = self.table.frame.column(name)
        if n := n_missing(cells):
            raise ValueError(f"weights: column {name!r} has {count(n, 'missing value')}; fill them in, or leave out --weights")
        return {"sample_weight": cells.to_numpy()}


def learn(source: str, asked: Asked, showing: Showing) -> Fitted:
    """Fit an imputer on the chosen columns of a file."""
    imputer, method = asked.imputer(), asked.method  # first, to report wrong options before reading a long file
    chosen = Chosen.read(source, asked, showing)
    table, used, plan = chosen.table, chosen.used, chosen.plan
    with about(source), asked.naming(table.columns), collected_notes() as notes:
        imputer.set_params(constraints=plan.constraints, **plan.parameters_for(imputer, method.name))
        begun = time.perf_counter()
        filled = _fit(imputer, chosen, method, shown=not (showing.quiet or showing.json))
        seconds = time.perf_counter() - begun
    imputer.file_gaps_ = [sorted(table.gaps.get(name, ())) for name in used]
    notes += chosen.notes
    return Fitted(table, imputer, method.name, method.seed, used, plan, put_back(table.frame, filled), notes, seconds)


def set_aside(frame: Any, plan: TablePlan) -> list[str]:
    """Return the columns that imputers do not look at, because they look like identifiers."""
    import narwhals as nw

    from ..knowledge import ColumnWishes

    told = {"identifiers": "set aside"} | plan.parameters()
    wishes = ColumnWishes(told.get("columns"), None, told["identifiers"], plan.predictors, plan.constraints)
    return [frame.column_names[k] for k in wishes.idle(nw.from_native(frame, eager_only=True))]


def _never_filled(frame: Any, wishes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return notes on declared categories that never occur and so cannot be imputed; ordered ones can."""
    notes = []
    for name, wish in wishes.items():
        if "categories" in wish and not wish.get("ordered"):
            observed = set(frame.column(name).unique().to_pylist())
            absent = [str(label) for label in wish["categories"] if label not in observed]
            if absent:
                notes.append(f"{name}: {listed(absent)} never occurs, so it is never imputed")
    return notes


def put_back(frame: Any, filled: Any) -> Any:
    """Return the table with some columns replaced."""
    for name in filled.column_names:
        place = frame.column_names.index(name)
        frame = frame.set_column(place, frame.schema.field(place).with_type(filled.column(name).type), filled.column(name))
    return frame


def trial_of(imputer: BaseImputer) -> dict[str, Any]:
    """Return the findings of an imputer that tested its experts on hidden values; None for others."""
    if not hasattr(imputer, "verdict_"):
        return {}
    found = getattr(imputer, "judgement_", None)  # absent in files of older versions
    judgement = {} if found is None else {"judgement": asdict(found)}
    return {name: getattr(imputer, f"{name}_") for name in ("verdict", "weights", "scores")} | judgement


def n_missing(column: Any) -> int:
    """Return which values are null or NaN."""
    return int(column.is_null(nan_is_null=True).to_numpy().sum())


def _fit(imputer: BaseImputer, chosen: Chosen, method: MethodChoice, *, shown: bool) -> Any:
    from ..fitting import StopReason

    own_bar = "verbose" in imputer.get_params(deep=False)
    shown = shown and console(err=True).is_terminal
    if own_bar:
        imputer.set_params(verbose=int(shown))
    with working(f"{method.name} …", shown=shown and not own_bar):
        filled = imputer.fit_transform(chosen.X, **chosen.weights())
    if own_bar:
        imputer.set_params(verbose=0)  # no progress bar when the saved model is applied
    if getattr(imputer, "stop_reason_", "") == StopReason.INTERRUPTED:
        # The library keeps a partial result, but the command must not write one.
        saved = method.checkpoint is not None and method.checkpoint.exists()
        raise KeyboardInterrupt(f"run the same command to continue from {method.checkpoint}" if saved else "")
    return filled


def tell_verdict(imputer: BaseImputer, *, err: bool = True) -> None:
    """Describe these findings in words."""
    if trial := trial_of(imputer):
        tell(trial["verdict"], err=err)


def filled_words(n_filled: int, n_missing: int) -> str:
    """Say how many values were filled in; where a column does not apply, some are left.

    >>> filled_words(20, 20), filled_words(1500, 2000), filled_words(0, 20)
    ('20', '1,500 of 2,000', 'left alone')
    """
    if n_filled == 0:
        return "left alone"
    return f"{n_filled:,}" if n_filled == n_missing else f"{n_filled:,} of {n_missing:,}"
