"""A multivariate Gaussian fitted by expectation–maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_jobs, check_real
from .._device import Device
from .._gpu import check_device
from .._row_noise import normal, uniform
from .._stored import stored
from .._threads import Workers, n_threads, single_blas_thread
from ..estimator import TableParameters
from ..fitting import Cells, FitSummary
from ..gaussian import COVARIANCE_STEPS, GaussianModel, MixtureModel, fit_gaussian
from ..streams import ScatterSums
from .standardised import RowFit, StandardisedImputer, StandardisedModel, TrainingSet

_ROWS_SUMMED = 1 << 17  # at a time, of which sums of whole numbers are exact in float64
_TYPICAL_ROUNDS, _WORK_A_SECOND = 20, 5e8  # rows × columns² × rounds of the CPU


@stored()
@dataclass(frozen=True)
class GaussianEMModel(StandardisedModel):
    """One Gaussian for all rows."""

    method: GaussianModel | None

    def conditional_std(self, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How far missing entries may lie from their expectation given the rest of their row, in the columns' units.

        These are what the Gaussian says, row by row; columns with one distinct value get 0.
        """
        spread = np.zeros(missing.shape)
        if self.method is not None:
            with single_blas_thread():
                spread[:, self.columns.varying] = self.method.conditional_std(missing[:, self.columns.varying])
        return (spread * self.columns.scaler.unit)[missing]

    def draw_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries given the rest of their row."""
        rows, holes = self.columns.standardise(values, missing)
        if self.method is not None:
            with single_blas_thread():
                rows = MixtureModel.of(self.method).draw(rows, holes, uniform(keys, 0), normal(keys, rows.shape[1], first=1))
        return self.columns.restore(rows, missing)


class GaussianSums:
    """What a step of EM needs of all rows: what the model expects of them, centred at its mean."""

    def __init__(self, model: GaussianEMModel):
        self.model = model
        d = len(model.columns.varying)
        self.rows = ScatterSums.empty(d)
        self.conditional = np.zeros((d, d), dtype=object)  # Python's integers, which have no largest one

    def add(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        """Add rows."""
        if self.model.method is None:
            return
        for begin in range(0, len(values), _ROWS_SUMMED):
            some = slice(begin, begin + _ROWS_SUMMED)
            rows, holes = self.model.columns.standardise(values[some], missing[some])
            with single_blas_thread():
                filled, conditional = self.model.method.expect(rows, holes)
                self.rows.add(filled - self.model.method.mean)
            self.conditional = self.conditional + conditional.astype(object)

    def merge(self, other: GaussianSums) -> None:
        """Add the sums of other rows."""
        self.rows.merge(other.rows)
        self.conditional = self.conditional + other.conditional

    def as_data(self) -> Any:
        """The same as JSON can hold it."""
        return {"rows": self.rows.as_data(), "conditional": self.conditional.tolist()}

    def take_over(self, data: Any) -> None:
        """What `as_data` returned."""
        self.rows = ScatterSums.from_data(data["rows"])
        self.conditional = np.array(data["conditional"], dtype=object).reshape(self.conditional.shape)

    def improved(self, prior_rows: float = 1.0) -> GaussianEMModel:
        """The model after a step of EM over all rows."""
        method = self.model.method
        if method is None or not self.rows.n:
            return self.model
        drift, scatter = self.rows.totals()
        scatter = scatter + (self.conditional / int(COVARIANCE_STEPS)).astype(np.float64)
        return replace(self.model, method=method.improved(self.rows.n, drift, scatter, prior_rows))


class GaussianEMImputer(StandardisedImputer):
    """Fill a row's holes with their expectation given its other values, under a Gaussian fitted to the whole table.

    Parameters
    ----------
    prior_rows : float, default=1.0
        Imaginary rows of independent columns added to the table; more of them help small wide tables.
    max_iter : int, default=200
        Most rounds of expectation and maximisation.
    tol : float, default=1e-3
        Stop when the imputed values move by less than this (root mean square, in standard deviations).
    n_jobs : int or None, default=None
        Threads; None is one, -1 all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute: ``"cuda"`` is a GPU, by torch; ``"auto"`` takes one if there is one and the CPU would take about
        20 s or more. The result is the same up to rounding. New rows are always imputed on the CPU.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    mean_, covariance_ : arrays [n_varying], [n_varying, n_varying]
        The Gaussian, of the standardised columns that have more than one distinct value.
    n_iter_ : int
        Rounds made.
    converged_ : bool
        Whether the imputed values had settled.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> X = np.column_stack([x, 2 * x])
    >>> X[4, 1] = np.nan
    >>> abs(GaussianEMImputer(prior_rows=0.01).fit_transform(X)[4, 1] - 8) < 0.1
    np.True_
    """

    ends_early: ClassVar[bool] = True
    weighs_rows: ClassVar[bool] = True
    model_class: ClassVar[type] = GaussianEMModel
    _model: GaussianEMModel

    def __init__(
        self,
        *,
        prior_rows: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        device: str = "auto",
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.prior_rows = prior_rows
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device

    def check_parameters(self) -> None:
        check_real("prior_rows", self.prior_rows, above=0)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, at_least=0)
        check_jobs(self.n_jobs)
        check_device(self.device)

    def _fit_rows(self, training: TrainingSet) -> RowFit:
        n, d = training.rows.shape
        seconds = n * d**2 * min(self.max_iter, _TYPICAL_ROUNDS) / _WORK_A_SECOND / n_threads(self.n_jobs)
        return Device(self.device, seconds).run_torch(f"a fit of {n} × {d} values", lambda place: self._fit_on(place, training))

    def _fit_on(self, torch_device: str | None, training: TrainingSet) -> RowFit:
        with Workers(n_threads(self.n_jobs)) as workers:
            model = fit_gaussian(
                training.rows,
                training.holes,
                prior_rows=self.prior_rows,
                tolerance=self.tol,
                max_iterations=self.max_iter,
                deadline=training.deadline,
                workers=workers,
                torch_device=torch_device,
                row_weight=training.row_weight,
            )
        summary = FitSummary(n_steps=model.n_iterations, converged=model.converged)
        return RowFit(model.fill(training.rows, training.holes, torch_device=torch_device), model, summary)

    _improves_in_rounds = True
    _summed = ("mean and covariance, by a step of EM",)
    _sampled = ("where EM begins",)

    def _row_sums(self) -> GaussianSums:
        return GaussianSums(self._model)

    def _improved(self, sums: GaussianSums) -> GaussianEMModel:
        return sums.improved(self.prior_rows)

    def _publish(self) -> None:
        method = self._model.method
        if method is not None:
            self.mean_, self.covariance_ = method.mean, method.covariance
            self.n_iter_, self.converged_ = method.n_iterations, method.converged
