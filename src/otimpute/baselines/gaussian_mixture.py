"""Mixtures of Gaussians fitted by expectation–maximisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_jobs, check_real
from .._deadline import OutOfTime, check_deadline
from .._device import Device
from .._gpu import check_device
from .._random import generator
from .._row_noise import normal, uniform
from .._stored import stored
from .._threads import ALONE, Workers, n_threads, single_blas_thread
from ..estimator import TableParameters
from ..fitting import Cells, FitSummary
from ..gaussian import MixtureModel, fit_gaussian, fit_mixture
from ..streams import WholeSums
from .standardised import Holes, RowFit, Rows, StandardisedImputer, StandardisedModel, TrainingSet

_ROWS_PER_COMPONENT = 5
# With more columns there are fewer components, or time would grow with the square of the columns.
_COLUMNS_FOR_ALL = 50
_FEWEST = 8  # components, of a mixture that became smaller for that: fewer take as long
_WORK_A_SECOND = 4e9  # rows × columns² × components × rounds of the CPU
_ROWS_SUMMED = 1 << 17  # at a time, of which an int64 holds sums of whole numbers
_CLOSE_ENOUGH = 0.02  # the start: standard deviations that it may still be off


@stored()
@dataclass(frozen=True)
class Mixtures:
    """Mixtures of several sizes, which are averaged."""

    mixtures: list[MixtureModel]

    def __post_init__(self) -> None:
        if not self.mixtures:
            raise ValueError("there must be a mixture")

    def fill(self, rows: Rows, holes: Holes, workers: Workers = ALONE, torch_device: str | None = None) -> Rows:
        """Rows with their holes filled."""
        filled = workers.map(lambda mixture: mixture.fill(rows, holes, workers, torch_device), self.mixtures)
        total = filled[0]
        for other in filled[1:]:
            total += other
        total /= len(filled)
        return total

    def draw_residuals(self, rows: Rows, holes: Holes, keys: NDArray[np.uint64]) -> Rows:
        """How far draws of the holes lie from their expectation; each row uses one mixture."""
        residuals = np.zeros(rows.shape)
        chosen = (uniform(keys, 0) * len(self.mixtures)).astype(np.int64)
        for place, mixture in enumerate(self.mixtures):
            mine = np.flatnonzero(chosen == place)
            chance, noise = uniform(keys[mine], 1), normal(keys[mine], holes.shape[1], first=2)
            residuals[mine] = mixture.draw_residuals(rows[mine], holes[mine], chance, noise)
        return residuals


@stored()
@dataclass(frozen=True)
class GaussianMixtureModel(StandardisedModel):
    """Mixtures of Gaussians."""

    method: Mixtures | None

    def draw_residuals(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """How far draws of the missing entries lie from their expectation, row by row, in the columns' units.

        A row's draw follows from its key and its observed values, whatever rows it comes with.
        """
        residuals = np.zeros(missing.shape)
        if self.method is not None:
            rows, holes = self.columns.standardise(values, missing)
            residuals[:, self.columns.varying] = self.method.draw_residuals(rows, holes, keys)
        return (residuals * self.columns.scaler.unit)[missing]

    def draw_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries given the rest of their row."""
        return self.impute_cells(values, missing) + self.draw_residuals(values, missing, keys)


class MixtureSums:
    """What a step of EM needs of all rows, for each mixture: how much of them components have, and what they expect of them."""

    def __init__(self, model: GaussianMixtureModel):
        self.model, self.n = model, 0
        self.mixtures = [] if model.method is None else model.method.mixtures
        self.expected = [WholeSums.empty(*shape) for shape in self._shapes]

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        width = 1 + len(self.model.columns.varying)
        return [(3, len(mixture.share), width, width) for mixture in self.mixtures]

    def add(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        """Add rows."""
        self.n += len(values)
        for begin in range(0, len(values) if self.mixtures else 0, _ROWS_SUMMED):
            some = slice(begin, begin + _ROWS_SUMMED)
            rows, holes = self.model.columns.standardise(values[some], missing[some])
            with single_blas_thread():
                for sums, mixture in zip(self.expected, self.mixtures, strict=True):
                    sums.add(mixture.expect(rows, holes))

    def merge(self, other: MixtureSums) -> None:
        """Add the sums of other rows."""
        self.n += other.n
        for own, more in zip(self.expected, other.expected, strict=True):
            own.merge(more)

    def as_data(self) -> Any:
        """The same as JSON can hold it."""
        return {"n": self.n, "expected": [sums.as_data() for sums in self.expected]}

    def take_over(self, data: Any) -> None:
        """What `as_data` returned."""
        self.n = data["n"]
        found = zip(data["expected"], self._shapes, strict=True)
        self.expected = [WholeSums.from_data(each, *shape) for each, shape in found]

    def improved(self, prior_rows: float | None = None) -> GaussianMixtureModel:
        """The model after a step of EM of every mixture over all rows."""
        if not self.mixtures or not self.n:
            return self.model
        pairs = zip(self.mixtures, self.expected, strict=True)
        with single_blas_thread():
            mixtures = [mixture.improved(sums.totals(), self.n, prior_rows) for mixture, sums in pairs]
        return replace(self.model, method=Mixtures(mixtures))


class GaussianMixtureImputer(StandardisedImputer):
    """Fill a row's holes with their expectation given its other values, under mixtures of Gaussians.

    Each component of a mixture is a straight relation in one region of the table, so that a mixture follows clusters and
    curves. Small mixtures are too plain and large ones too wild in different places: the mean over several sizes is better
    than any of them.

    Parameters
    ----------
    n_components : int or tuple of int, default=(8, 16, 32)
        Sizes of the mixtures that are averaged; never more than one component per five rows. In tables of more than 50
        columns they are smaller, as 50 is to the number of columns, and those that would have fewer than 8 are left out.
    prior_rows : float or None, default=None
        As if so many rows of every component had the pooled covariance; None is the number of columns + 2.
    max_iter : int, default=15
        Most rounds of expectation and maximisation.
    tol : float, default=2e-3
        Stop when the imputed values move by less than this (root mean square, in standard deviations).
    n_jobs : int or None, default=None
        Threads; None is one, -1 all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute, as in `GaussianEMImputer`.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    n_iter_ : int
        Rounds made, by the mixture that took most.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> X = np.column_stack([x, x**2])
    >>> X[20, 1] = np.nan
    >>> bool(abs(GaussianMixtureImputer(random_state=0).fit_transform(X)[20, 1] - x[20] ** 2) < 0.1)
    True
    """

    weighs_rows: ClassVar[bool] = True
    model_class: ClassVar[type] = GaussianMixtureModel
    _model: GaussianMixtureModel

    def __init__(
        self,
        *,
        n_components: int | tuple[int, ...] = (8, 16, 32),
        prior_rows: float | None = None,
        max_iter: int = 15,
        tol: float = 2e-3,
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.n_components = n_components
        self.prior_rows = prior_rows
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state

    def check_parameters(self) -> None:
        sizes = self._sizes()
        if len(sizes) == 0:
            raise ValueError("n_components must be a size, or several such as (8, 16, 32), got none")
        for size in sizes:
            check_count("a size in n_components", size)
        if self.prior_rows is not None:
            check_real("prior_rows", self.prior_rows, above=0)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, at_least=0)
        check_jobs(self.n_jobs)
        check_device(self.device)

    def _sizes(self) -> Sequence[int]:
        return self.n_components if isinstance(self.n_components, (tuple, list)) else (self.n_components,)

    def _sizes_for(self, n_rows: int, n_columns: int) -> list[int]:
        """The sizes for a table of so many rows and columns."""
        most, wanted = max(n_rows // _ROWS_PER_COMPONENT, 1), [int(size) for size in self._sizes()]
        if n_columns > _COLUMNS_FOR_ALL:
            smaller = [size * _COLUMNS_FOR_ALL // n_columns for size in wanted]
            wanted = [size for size in smaller if size >= _FEWEST] or [max(*smaller, 1)]
        return [min(size, most) for size in wanted]

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        n, d = training.rows.shape
        seconds = n * d**2 * sum(self._sizes_for(n, d)) * self.max_iter / _WORK_A_SECOND / n_threads(self.n_jobs)
        return Device(self.device, seconds).run_torch(f"a fit of {n} × {d} values", lambda place: self._fit_on(place, training))

    def _fit_on(self, torch_device: str | None, training: TrainingSet) -> RowFit:
        rows, holes, deadline = training.rows, training.holes, training.deadline
        with Workers(n_threads(self.n_jobs)) as workers:
            gaussian = fit_gaussian(
                rows, holes, tolerance=_CLOSE_ENOUGH, deadline=deadline, workers=workers, torch_device=torch_device,
                row_weight=training.row_weight,
            )  # fmt: skip
            start = gaussian.fill(rows, holes, workers, torch_device=torch_device)
            check_deadline(deadline)

            def fit(place_and_size: tuple[int, int]) -> tuple[int, MixtureModel | None]:
                place, size = place_and_size
                try:
                    return place, fit_mixture(
                        rows,
                        holes,
                        size,
                        start=start,
                        rng=generator(training.seed, f"mixture {place}"),
                        prior_rows=self.prior_rows,
                        tolerance=self.tol,
                        max_iterations=self.max_iter,
                        deadline=deadline,
                        workers=workers,
                        torch_device=torch_device,
                        row_weight=training.row_weight,
                    )
                except OutOfTime:
                    return place, None

            sizes = list(enumerate(self._sizes_for(*rows.shape)))
            # What takes longest goes first, so that no thread waits for it in the end; where time may run out it goes last.
            found = dict(workers.map(fit, sizes[::-1] if math.isinf(deadline) else sizes))
            mixtures = [mixture for _, mixture in sorted(found.items()) if mixture is not None]  # those that are done must do
            if not mixtures:
                raise OutOfTime
            method = Mixtures(mixtures)
            completed = method.fill(rows, holes, workers, torch_device)
        return RowFit(completed, method, FitSummary(n_steps=max(each.n_iterations for each in mixtures)))

    _improves_in_rounds = True
    _summed = ("components of the mixtures, by a step of EM",)
    _sampled = ("where EM begins",)

    def _row_sums(self) -> MixtureSums:
        return MixtureSums(self._model)

    def _improved(self, sums: MixtureSums) -> GaussianMixtureModel:
        return sums.improved(self.prior_rows)

    def _publish(self) -> None:
        if self.fit_summary_.n_steps is not None:
            self.n_iter_ = self.fit_summary_.n_steps
