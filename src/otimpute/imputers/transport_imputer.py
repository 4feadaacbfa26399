"""What the transport imputers share: the parameters of the divergence, the start of a fit, and how it is watched and ended."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_flag, check_jobs, check_real
from .._device import PAIRS_A_SECOND, Device
from .._gpu import check_device
from .._random import generator
from .._stored import Real, Whole, stored
from .._threads import n_threads, single_blas_thread
from .._warn import warn_user
from ..estimator import BaseImputer, hide_cells
from ..exceptions import OtimputeWarning, ParameterValueError, StoredFileError
from ..fitting import STOPPED_EARLY, BlockModel, CellFit, Cells, ColumnLayout, FitSummary, check_callbacks
from ..fitting.checkpoint import Checkpoint, checkpoint_path, identity_of
from ..gaussian import GaussianModel
from ..table import Encoding, as_frame
from ..transport import EPSILON_RULES, epsilon_from_rule
from .batches.divergence import BatchPlan, make_cells, make_geometry
from .batches.pair_threads import Batches, PairThreads
from .batches.pairs import ALL_ROWS, one_sided_pools
from .gpu.gpu_batches import GpuBatches
from .preparation.initial_fill import add_noise, fill_from_model
from .preparation.metric import MOST_COLUMNS, fit_model, metric_of
from .preparation.working_copy import WorkingColumns, chunks_of, warn_of_spreads

_ROWS_FOR_EPSILON = 2000
_FEW = 0.01
_SHARE_HIDDEN = 0.1  # where validation is automatic
_FEWEST_ROWS_TO_HIDE = 50
# Inner Sinkhorn iterations from warm-started potentials. More of them does not impute better (docs/studies/defaults.md).
N_CROSS_ITERATIONS = 20
N_SELF_ITERATIONS = 3


@stored(epsilon=Real(above=0), batch_size=Whole())
@dataclass(frozen=True)
class Chosen:
    """What a fit chose where it was not told."""

    epsilon: float
    metric: str
    batch_size: int
    device: str


@dataclass(frozen=True)
class TransportModel(ABC):
    """Imputes new rows in a working copy of their own."""

    columns: WorkingColumns
    chosen: Chosen

    @abstractmethod
    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        """Fill the holes, which hold 0, of a working copy of new rows, each row alone."""

    def impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], start: Cells | None = None) -> Cells:  # noqa: ARG002
        """The missing entries, row by row."""
        return self._cells(values, missing, lambda work, holes, _: self._complete(work, holes))

    def _cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        complete: Callable[[NDArray[np.float32], NDArray[np.bool_], slice], None],
    ) -> Cells:
        """The missing entries, as ``complete`` fills them in working copies of some rows after the others."""
        parts = [np.empty(0)]
        for chunk in chunks_of(len(values)):
            holes = self.columns.holes(missing[chunk])
            work = self.columns.copy_of(values[chunk], holes)
            if len(self.columns):
                with single_blas_thread():
                    complete(work, holes, chunk)
            parts.append(self.columns.read_holes(work, missing[chunk]))
        return np.concatenate(parts)


@dataclass(frozen=True)
class Prepared:
    """A working copy at the start of a fit, and how its rows are compared."""

    columns: WorkingColumns
    work: NDArray[np.float32]  # [n, width], completed
    holes: NDArray[np.bool_]  # [n, d]
    hidden: NDArray[np.bool_]  # [n, d]: observed, but hidden for validation
    truth: NDArray[np.float64]  # what is hidden
    free: NDArray[np.bool_]  # [n, d]: holes and hidden cells
    model: GaussianModel | None  # where metric or start asked for one
    starts_from_model: bool
    metric_name: str
    metric: NDArray[np.float64]  # [d, d]: A, or [0, 0] for the identity
    epsilon: float

    def chosen(self, batch_size: int, device: str) -> Chosen:
        """What people may want to know of the choices."""
        return Chosen(self.epsilon, self.metric_name, batch_size, device)

    def observed_ranges(self) -> NDArray[np.float32]:
        """Smallest and largest observed value of each column ``[2, d]``, hidden ones included."""
        hidden_column = np.nonzero(self.hidden)[1]
        ranges = np.empty((2, self.free.shape[1]), np.float32)
        for k in range(self.free.shape[1]):
            seen = np.concatenate([self.work[~self.free[:, k], k], self.truth[hidden_column == k]])
            ranges[:, k] = seen.min(), seen.max()
        return ranges


class TransportImputer(BaseImputer):
    """Base of the imputers that descend a Sinkhorn divergence between batches of a standardised working copy."""

    # Declared by every subclass's constructor.
    epsilon: float | str
    batch_size: int | str
    n_pairs: int
    max_steps: int | str = "auto"
    step_decay: float
    initial: Any
    noise: float
    metric: str
    one_sided: bool = False
    scale: bool
    tol: float
    validation_fraction: float | str
    max_seconds: float | None
    n_jobs: int | None
    device: str
    random_state: Any
    verbose: int
    callbacks: Any
    checkpoint: Any
    warm_start: bool = False

    _validates_by_default = False
    _model: TransportModel
    _made_of: Any  # what a fit trained: the parameter as it was then

    @abstractmethod
    def _train(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        deadline: float,
        checkpoint: Checkpoint,
    ) -> tuple[NDArray[np.float32], TransportModel, FitSummary]:
        """Learn, or go on to, with the checkpoint's seed; the completed working copy, and what was learned."""

    @staticmethod
    @abstractmethod
    def _compile() -> None:
        """Have all machine code ready, or a first fit with a time limit would spend it on that."""

    def _check_shared_parameters(self) -> None:
        if isinstance(self.epsilon, str):
            check_choice("epsilon", self.epsilon, EPSILON_RULES)
        else:
            check_real("epsilon", self.epsilon, above=0, advice='pass "auto" to derive it from the data')
        if self.batch_size != "auto":
            check_count("batch_size", self.batch_size, advice='pass "auto" to derive it from the table')
        check_count("n_pairs", self.n_pairs)
        check_real("step_decay", self.step_decay, above=0, at_most=1)
        check_real("noise", self.noise, at_least=0)
        check_real("tol", self.tol, at_least=0)
        if not (self._validates_by_default and self.validation_fraction == "auto"):
            check_real("validation_fraction", self.validation_fraction, at_least=0, below=1)
        check_choice("metric", self.metric, ["auto", "covariance", "euclidean"])
        if isinstance(self.initial, str):
            check_choice("initial", self.initial, ["auto", "mean", "em"])
        check_flag("scale", self.scale)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, above=0, advice="pass None for no limit")
        check_jobs(self.n_jobs)
        check_device(self.device)
        check_callbacks(self.callbacks)
        if checkpoint_path(self.checkpoint) is not None and self.warm_start:
            raise ValueError(
                "checkpoint continues a fit that was stopped, warm_start=True one that was not: they exclude each other; "
                "pass checkpoint=None or warm_start=False"
            )

    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        seed: int,
        start: Cells | None = None,  # noqa: ARG002
        deadline: float = math.inf,
    ) -> CellFit:
        checkpoint = self._open_checkpoint(values, missing, layout, seed)
        if self.max_seconds is not None:
            self._compile()
            deadline = min(deadline, time.perf_counter() + float(self.max_seconds))
        with single_blas_thread():
            work, model, summary = self._train(values, missing, layout, deadline, checkpoint)
        if summary.stop_reason not in STOPPED_EARLY:
            checkpoint.finish()
        return CellFit(model.columns.read_holes(work, missing, n_threads(self.n_jobs)), model, summary)

    def _publish(self) -> None:
        chosen, summary = self._model.chosen, self.fit_summary_
        self.epsilon_, self.metric_ = chosen.epsilon, chosen.metric
        self.batch_size_, self.device_ = chosen.batch_size, chosen.device
        self.stop_reason_, self.converged_, self.history_ = summary.stop_reason, summary.converged, summary.history

    def _how_to_resume(self) -> str:
        return "" if self.checkpoint is None else f"; fit again to go on from {self.checkpoint}"

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        model, layout = state["_model"], state["training_table_"].layout

        def checked(model: Any, layout: ColumnLayout) -> TransportModel:
            if not np.array_equal(model.columns.layout_groups, layout.groups):
                raise StoredFileError("the model has other columns than the table; save the imputer again")
            return self._with_modules(model, layout)

        if isinstance(model, BlockModel):
            state["_model"] = model.mapped(lambda each, block: checked(each, layout.only(block.columns)))
        else:
            state["_model"] = checked(model, layout)
        super()._restore_state(state, sizes)

    def _with_modules(self, model: Any, layout: ColumnLayout) -> TransportModel:  # noqa: ARG002
        """A stored model with the torch modules whose weights it has."""
        stored_model: TransportModel = model
        return stored_model

    def _open_checkpoint(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], layout: ColumnLayout, seed: int
    ) -> Checkpoint:
        """What was left by a fit of this table with these parameters, or the place to leave it; and the seed."""
        path = checkpoint_path(self.checkpoint)
        if path is None:
            return Checkpoint(None, {}, seed)
        columns = [layout.groups.tolist(), list(layout.names)]
        return Checkpoint(path, identity_of(type(self).__name__, self.get_params(deep=False), values, missing, columns), seed)

    def _make_batches(
        self, prepared: Prepared, work: NDArray[np.float32], threads: PairThreads, batch_size: int, n_updates: int
    ) -> Batches:
        """The table under training, whose batches are compared where ``device`` says."""
        cells = make_cells(work, prepared.free)
        geometry = make_geometry(prepared.metric, prepared.epsilon, len(prepared.columns), work.shape[1])
        device = Device(self.device, n_updates * self.n_pairs * batch_size**2 / PAIRS_A_SECOND)
        return (GpuBatches if device.is_gpu else Batches)(cells, geometry, threads, device)

    def _prepare(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        seed: int,
        deadline: float,
        *,
        columns: WorkingColumns | None = None,
        wants_model: bool = False,
    ) -> Prepared:
        """Make the working copy, hide cells for validation, choose metric, start and ε; a warm start has its ``columns``."""
        n_jobs, is_warm = n_threads(self.n_jobs), columns is not None
        if columns is None:
            columns = WorkingColumns.fit(values, missing, layout, rescale=self.scale, n_threads=n_jobs)
        d = len(columns)
        holes = columns.holes(missing)
        work = columns.copy_of(values, holes, n_jobs)
        if is_warm:
            _warn_of_other_scales(columns, values, missing, work, holes)
        elif not self.scale:
            standardised = np.flatnonzero(~columns.scaled)
            warn_of_spreads(work[:, standardised], holes[:, standardised])
        hidden = self._hide(holes, columns.groups, seed)
        truth = work[:, :d][hidden].astype(np.float64)
        free = holes | hidden if len(truth) else holes
        work[:, :d][hidden] = 0
        metric_name = self.metric
        if metric_name == "auto":
            metric_name = "covariance" if d <= MOST_COLUMNS else "euclidean"
        own = None if isinstance(self.initial, str) else columns.start_from(self._read_initial(layout), holes, layout.used)
        from_model = own is None and (self.initial == "em" or (self.initial == "auto" and metric_name == "covariance"))
        model, metric = None, np.zeros((0, 0))
        if d and (metric_name == "covariance" or from_model or (wants_model and d <= MOST_COLUMNS)):
            # A model cut short by the clock would not be the same when a checkpoint is continued.
            model = fit_model(work[:, :d], free, generator(seed, "model"), deadline if self.checkpoint is None else np.inf)
            if metric_name == "covariance":
                metric = metric_of(model.covariance, columns.scaled)
            if from_model:
                fill_from_model(work, free, model, n_jobs)
        if own is not None:
            work[:, :d][holes] = own[holes]  # hidden cells start at the mean: their own value would be the answer
        epsilon = self._choose_epsilon(work[:, :d], metric, seed)
        add_noise(work, free, self.noise, generator(seed, "noise"), n_jobs)
        return Prepared(columns, work, holes, hidden, truth, free, model, from_model, metric_name, metric, epsilon)

    def _hide(self, holes: NDArray[np.bool_], groups: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
        """Observed cells for validation."""
        if self.validation_fraction == "auto":
            share = _SHARE_HIDDEN if len(holes) >= _FEWEST_ROWS_TO_HIDE else 0.0
        else:
            share = float(self.validation_fraction)
        hidden = hide_cells(holes | self._spared_from_hiding(holes), share, generator(seed, "validation"), groups)
        if share > 0 and self.validation_fraction != "auto" and not hidden.any():
            warn_user(
                f"validation_fraction={self.validation_fraction} hides none of the table's few values; nothing is validated",
                OtimputeWarning,
            )
        return hidden

    def _model_to_continue(self, made_of: Any, layout: ColumnLayout) -> Any:
        """What a warm start continues from, or None; ``made_of`` is the parameter that says what is trained."""
        before = getattr(self, "_model", None) if self.warm_start else None
        if before is None:
            return None
        if isinstance(before, BlockModel) or layout.predictors is not None:
            raise ParameterValueError(
                "warm_start", True, "False where predictors make several fits of one", "leave out one of the two"
            )
        if self._made_of is not made_of and self._made_of != made_of:
            raise ValueError(
                f"warm_start=True continues to train {self._made_of!r}, got {made_of!r}; pass the same, or warm_start=False"
            )
        if not np.array_equal(before.columns.layout_groups, layout.groups):
            raise ValueError(
                f"warm_start=True continues a fit of {len(before.columns.layout_groups)} columns with values, got "
                f"{len(layout)} or others; pass a table with the same columns, or warm_start=False"
            )
        return before

    def _encoding_to_keep(self) -> Encoding | None:
        # New categories, or another first date, must not change what the coordinates of the first fit mean.
        return self.training_table_.encoding if self.warm_start and hasattr(self, "_model") else None

    def _spared_from_hiding(self, holes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which cells validation must leave alone: one-sided batches need rows that are complete."""
        return np.asarray(~holes.any(axis=1, keepdims=True)) if self.one_sided else np.zeros((1, 1), dtype=bool)

    def _read_initial(self, layout: ColumnLayout) -> NDArray[np.floating]:
        """The coordinates of a user's starting table."""
        frame = as_frame(self.initial)
        if frame is None:
            own = np.asarray(self.initial, dtype=np.float64)
        else:
            start = layout.encoding.read_frame(frame, np.nan)
            own = np.where(start.missing, np.nan, start.values)
        return np.hstack([own, np.zeros((len(own), len(layout.helped)))]) if len(layout.helped) else own

    def _choose_epsilon(self, table: NDArray[np.float32], metric: NDArray[np.float64], seed: int) -> float:
        if not isinstance(self.epsilon, str):
            return float(self.epsilon)
        rng = generator(seed, "epsilon")
        if len(table) > _ROWS_FOR_EPSILON:
            table = table[rng.choice(len(table), _ROWS_FOR_EPSILON, replace=False)]
        points = table.astype(np.float64)
        return epsilon_from_rule(points @ metric if metric.size else points, self.epsilon, rng)

    def _choose_plan(self, free: NDArray[np.bool_], seed: int) -> tuple[BatchPlan, int]:
        """Batches of all rows, or of complete against incomplete ones; and their size."""
        x_rows, y_rows = one_sided_pools(free) if self.one_sided else (ALL_ROWS, ALL_ROWS)
        n_rows = len(free)
        batch_size = self._choose_batch_size(n_rows, min(len(x_rows) or n_rows, len(y_rows) or n_rows))
        return BatchPlan(seed, x_rows, y_rows, N_CROSS_ITERATIONS, N_SELF_ITERATIONS), batch_size

    def _n_steps(self, n_rows: int, batch_size: int, fewest: int, visits: int) -> int:
        """As told, or the steps after which every row was drawn so many times, but at least the ``fewest``."""
        if self.max_steps != "auto":
            return int(self.max_steps)
        return max(fewest, -(-visits * n_rows // (2 * batch_size * self.n_pairs)))

    def _choose_batch_size(self, n_rows: int, pool: int) -> int:
        if self.batch_size == "auto":
            wanted = 128 if n_rows > 256 else 2 ** max(0, (n_rows // 2).bit_length() - 1)
            return min(wanted, pool)
        if int(self.batch_size) > pool:
            raise ValueError(
                f'batch_size={self.batch_size} exceeds the {pool} rows it is drawn from; pass "auto" or at most {pool}'
            )
        return int(self.batch_size)


def _warn_of_other_scales(
    columns: WorkingColumns,
    values: NDArray[np.floating],
    missing: NDArray[np.bool_],
    work: NDArray[np.float32],
    holes: NDArray[np.bool_],
) -> None:
    """A warm start keeps the scales of the first fit; say so where they no longer fit."""
    constant = np.flatnonzero(columns.scaler.spread == 0)
    varies = [k for k in constant if len(np.unique(values[~missing[:, k], k])) > 1]
    far = np.abs(work[:, : len(columns)][~holes]) >= columns.scaler.limit
    if varies or far.mean() > _FEW:
        what = "columns vary that were constant" if varies else f"{far.mean():.0%} of the values lie far outside"
        warn_user(f"warm_start=True keeps the scales of the first fit, but here {what}; pass warm_start=False", OtimputeWarning)
