"""What the classical methods share: they see columns of mean 0 and spread 1 that vary, and return completed rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._deadline import check_deadline
from .._stored import stored
from .._threads import single_blas_thread
from ..estimator import BaseImputer
from ..exceptions import DivergedError
from ..fitting import CellFit, Cells, ColumnLayout, FitSummary, columns_of
from ..table import Standardiser

Rows = NDArray[np.float64]
Holes = NDArray[np.bool_]

# New rows handled at a time, so that a long table needs little memory beyond itself.
_CHUNK = 65_536


class RowModel(Protocol):
    """Completes standardised rows, each row alone."""

    def fill(self, rows: Rows, holes: Holes) -> Rows:
        """Rows with values in their holes, which hold 0 or, of a method that refines, a first guess."""
        ...


@stored(varying="varying")
@dataclass(frozen=True)
class VaryingColumns:
    """The columns with more than one distinct value, standardised; the others get their one value."""

    scaler: Standardiser  # of all columns
    varying: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not np.array_equal(self.varying, np.flatnonzero(self.scaler.spread > 0)):
            raise ValueError("columns that vary must have a spread")

    @classmethod
    def of(
        cls,
        values: NDArray[np.floating],
        missing: Holes,
        scaled: NDArray[np.bool_],
        row_weight: NDArray[np.float64] | None = None,
    ) -> VaryingColumns:
        """Found from the observed values."""
        scaler = Standardiser.fit(values, missing, robust=False, scaled=scaled, row_weight=row_weight)
        return cls(scaler, np.flatnonzero(scaler.spread > 0))

    def standardise(self, values: NDArray[np.floating], missing: Holes, start: Cells | None = None) -> tuple[Rows, Holes]:
        """Their rows, with 0, the mean, or a first guess in the holes."""
        if start is not None:
            values = np.array(values, dtype=np.float64)
            values[missing] = start
        holes = missing if len(self.varying) == missing.shape[1] else missing[:, self.varying]
        rows = self.scaler.apply(values, self.varying)
        if start is None:
            rows[holes] = 0
        return rows, holes

    def restore(self, completed: Rows, missing: Holes) -> Cells:
        """The missing entries in original units, row by row."""
        if not np.isfinite(completed).all():
            raise DivergedError("the method diverged: an imputed value is not finite; remove columns that repeat others")
        z = completed
        if len(self.varying) < missing.shape[1]:
            z = np.zeros(missing.shape)
            z[:, self.varying] = completed
        return self.scaler.restore(z[missing], columns_of(missing))


@stored()
@dataclass(frozen=True)
class StandardisedModel:
    """A method on standardised columns. A subclass says of which type the method is."""

    columns: VaryingColumns
    method: Any  # a RowModel; None where no column varies

    def __post_init__(self) -> None:
        if (self.method is None) != (len(self.columns.varying) == 0):
            raise ValueError("columns that vary must have a method that fills them")

    def impute_cells(self, values: NDArray[np.floating], missing: Holes, start: Cells | None = None) -> Cells:
        """The missing entries, row by row."""
        parts, done = [np.empty(0)], 0
        for begin in range(0, len(values), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            gaps = np.ascontiguousarray(missing[chunk])
            n_cells = int(np.count_nonzero(gaps))
            rows, holes = self._standardise(values[chunk], gaps, None if start is None else start[done:][:n_cells])
            if self.method is not None:
                with single_blas_thread():
                    rows = self.method.fill(rows, holes)
            parts.append(self.columns.restore(rows, gaps))
            done += n_cells
        return np.concatenate(parts)

    def _standardise(
        self,
        values: NDArray[np.floating],
        missing: Holes,
        start: Cells | None,  # noqa: ARG002
    ) -> tuple[Rows, Holes]:
        return self.columns.standardise(values, missing)


@dataclass(frozen=True)
class TrainingSet:
    """Standardised rows to learn from."""

    rows: Rows  # [n, d], with 0 or a first guess in the holes
    holes: Holes  # [n, d]
    groups: NDArray[np.int64]  # [d]: columns of one group are missing together
    layout: ColumnLayout  # of all columns
    varying: NDArray[np.int64]  # [d]: which of them these are
    seed: int
    deadline: float = math.inf
    row_weight: NDArray[np.float64] | None = None  # [n]: how often rows count, of imputers that weigh rows; all more than 0

    def targets(self) -> list[NDArray[np.int64]]:
        """The columns predicted together, those of one category, from the fewest holes to the most; none without inputs."""
        targets = [np.flatnonzero(self.groups == group) for group in dict.fromkeys(self.groups.tolist())]
        by_holes = np.argsort([self.holes[:, columns[0]].sum() for columns in targets], kind="stable")
        return [targets[place] for place in by_holes] if len(targets) > 1 else []


@dataclass(frozen=True)
class RowFit:
    """What a method made of standardised rows."""

    completed: Rows
    method: RowModel | None
    summary: FitSummary = field(default_factory=FitSummary)


class StandardisedImputer(BaseImputer):
    """Base of the classical imputers, with plain standardisation: outliers count, as they do in the methods' definitions.

    A subclass learns in `_fit_rows`, which gets standardised rows with 0, the mean, in their holes. Columns with one distinct
    value never get there.
    """

    @abstractmethod
    def _fit_rows(self, training: TrainingSet) -> RowFit: ...

    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: Holes,
        layout: ColumnLayout,
        *,
        seed: int,
        start: Cells | None = None,
        deadline: float = math.inf,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> CellFit:
        if not self.ends_early:
            check_deadline(deadline)
        if sample_weight is not None and not sample_weight.all():
            return self._fit_counting_rows(values, missing, layout, seed, start, deadline, sample_weight)
        columns = VaryingColumns.of(values, missing, layout.scaled, sample_weight)
        with single_blas_thread():
            rows, holes, more = self._begin(columns, values, missing, start, deadline, sample_weight)
            if len(columns.varying) == 0:
                fit = RowFit(rows, None)
            else:
                own = layout.groups[columns.varying]
                fit = self._fit_rows(TrainingSet(rows, holes, own, layout, columns.varying, seed, deadline, sample_weight))
        model = self.model_class(columns, fit.method, **more)
        return CellFit(columns.restore(fit.completed, missing), model, fit.summary)

    def _fit_counting_rows(
        self,
        values: NDArray[np.floating],
        missing: Holes,
        layout: ColumnLayout,
        seed: int,
        start: Cells | None,
        deadline: float,
        sample_weight: NDArray[np.float64],
    ) -> CellFit:
        """Learn from the rows of a weight above 0; the others are filled in as new rows."""
        counts = sample_weight > 0
        own_weight = sample_weight[counts]
        of_counting = counts[np.nonzero(missing)[0]]
        own_start, other_start = (None, None) if start is None else (start[of_counting], start[~of_counting])
        fit = self.fit_cells(
            values[counts], missing[counts], layout,
            seed=seed, start=own_start, deadline=deadline, sample_weight=own_weight if np.ptp(own_weight) else None,
        )  # fmt: skip
        cells = np.empty(len(of_counting))
        cells[of_counting] = fit.cells
        cells[~of_counting] = fit.model.impute_cells(values[~counts], missing[~counts], other_start)
        return replace(fit, cells=cells)

    def _begin(
        self,
        columns: VaryingColumns,
        values: NDArray[np.floating],
        missing: Holes,
        start: Cells | None,  # noqa: ARG002
        deadline: float,  # noqa: ARG002
        row_weight: NDArray[np.float64] | None,  # noqa: ARG002
    ) -> tuple[Rows, Holes, dict[str, Any]]:
        """Standardised rows to learn from, and what else the model needs to make such rows."""
        return *columns.standardise(values, missing), {}
