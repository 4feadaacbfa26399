"""What the transport imputers share: the parameters of the divergence, the start of a fit, and how it is watched and ended."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_flag, check_real
from .._gpu import check_device, gpu_trouble, interpreted
from .._random import generator, seed_from
from .._stored import IfThere, Kind, Plain, Real, Record, Scalar, Whole
from .._threads import n_threads, single_blas_thread
from .._warn import warn_user
from ..estimator import BaseImputer, check_callbacks, hide_cells, warn_of_stop
from ..exceptions import GpuError, OtimputeWarning
from ..gaussian import GaussianModel
from ..table import as_frame
from ..transport import EPSILON_RULES, epsilon_from_rule
from ._batches import Plan, make_geometry
from ._checkpoint import Checkpoint, checkpoint_path, identity_of
from ._cpu_steps import make_cells
from ._gpu_batches import GpuBatches
from ._initial_fill import add_noise, fill_from_model
from ._metric import MOST_COLUMNS, fit_model, metric_of
from ._pair_threads import Batches, PairThreads
from ._pairs import ALL_ROWS, one_sided_pools
from ._working_copy import WorkingColumns, chunks_of, warn_of_spreads

STOPPED_EARLY = ("callback", "interrupted", "max_seconds")  # by somebody else than the fit itself
_ROWS_FOR_EPSILON = 2000
_FEW = 0.01
_SHARE_HIDDEN = 0.1  # where validation is automatic
_FEWEST_ROWS_TO_HIDE = 50
# Inner Sinkhorn iterations from warm-started potentials. More of them does not impute better (docs/studies/defaults.md).
N_CROSS_ITERATIONS = 20
N_SELF_ITERATIONS = 3
_WORTH_A_GPU = 2e9  # pairs of rows compared: about 20 s of a CPU; a GPU's code takes as long to compile when it is first used

Result = TypeVar("Result")


@dataclass(frozen=True)
class Prepared:
    """A working copy at the start of a fit."""

    work: NDArray[np.float32]  # [n, width], completed
    holes: NDArray[np.bool_]  # [n, d]
    hidden: NDArray[np.bool_]  # [n, d]: observed, but hidden for validation
    truth: NDArray[np.float64]  # what is hidden
    free: NDArray[np.bool_]  # [n, d]: holes and hidden cells
    model: GaussianModel | None  # where metric or start asked for one

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

    _stored: ClassVar[Mapping[str, Kind]] = {
        "_columns": Record((WorkingColumns,)),
        "epsilon_": Real(above=0),
        "metric_": Scalar(str),
        "batch_size_": Whole(),
        "device_": IfThere(Scalar(str)),
        "stop_reason_": Scalar(str),
        "converged_": Scalar(bool),
        "history_": Plain(),
    }

    @abstractmethod
    def _train(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], deadline: float, checkpoint: Checkpoint
    ) -> NDArray[np.float32]:
        """Learn, or go on to, with the checkpoint's seed; return the completed working copy."""

    @abstractmethod
    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        """Fill the holes, which hold 0, of a working copy of new rows, each row alone."""

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
        if self.n_jobs is not None and self.n_jobs != -1:
            check_count("n_jobs", self.n_jobs, advice="pass None for one thread, -1 for all cores")
        check_device(self.device)
        check_callbacks(self.callbacks)
        if checkpoint_path(self.checkpoint) is not None and self.warm_start:
            raise ValueError(
                "checkpoint continues a fit that was stopped, warm_start=True one that was not: they exclude each other; "
                "pass checkpoint=None or warm_start=False"
            )

    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        checkpoint = self._open_checkpoint(values, missing)
        deadline = np.inf
        if self.max_seconds is not None:
            self._compile()
            deadline = time.perf_counter() + float(self.max_seconds)
        with single_blas_thread():
            work = self._train(values, missing, deadline, checkpoint)
        if self.stop_reason_ not in STOPPED_EARLY:
            checkpoint.finish()
        return self._columns.read_holes(work, missing, n_threads(self.n_jobs))

    def _open_checkpoint(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> Checkpoint:
        """What was left by a fit of this table with these parameters, or the place to leave it; and the seed."""
        path, seed = checkpoint_path(self.checkpoint), seed_from(self.random_state)
        if path is None:
            return Checkpoint(None, {}, seed)
        layout = [self._empty.tolist(), self._groups.tolist(), list(getattr(self, "feature_names_in_", []))]
        return Checkpoint(path, identity_of(type(self).__name__, self.get_params(deep=False), values, missing, layout), seed)

    def _wants_gpu(self, n_compared: float) -> bool:
        """Whether to compute on a GPU, given how many pairs of rows will be compared; "auto" leaves short work to the CPU."""
        if self.device == "auto":
            return n_compared >= _WORTH_A_GPU and gpu_trouble() is None and not interpreted()
        return self.device == "cuda"

    def _on_device(
        self, on_cpu: Callable[[], Result], on_gpu: Callable[[], Result], n_compared: float, checkpoint: Checkpoint
    ) -> Result:
        """Compute where ``device`` says; what "auto" took to a GPU that fails goes on, or begins again, on the CPU."""
        if self._wants_gpu(n_compared):
            try:
                result = on_gpu()
            except GpuError as error:
                if self.device == "cuda":
                    raise
                warn_user(f'{error}. With device="auto" the CPU takes over', OtimputeWarning)
                checkpoint.reload()
            else:
                self.device_ = "cuda"
                return result
        self.device_ = "cpu"
        return on_cpu()

    def _make_batches(
        self, work: NDArray[np.float32], free: NDArray[np.bool_], threads: PairThreads, n_updates: int
    ) -> Batches:
        """The table under training, whose batches are compared where ``device`` says."""
        cells = make_cells(work, free)
        geometry = make_geometry(self._metric, self.epsilon_, 1.0, len(self._columns), work.shape[1])
        if self._wants_gpu(float(n_updates) * self.n_pairs * self.batch_size_**2):
            return GpuBatches(cells, geometry, threads, may_fall_back=self.device == "auto")
        return Batches(cells, geometry, threads)

    def _note_outcome(self, outcome: Any, reached: str) -> None:
        """Keep what there is to say about a training; if it was stopped, say that it can be used all the same."""
        self.stop_reason_: str = outcome.stop_reason
        self.converged_: bool = outcome.converged
        self.history_: dict[str, list[float]] = outcome.history
        warn_of_stop(
            self.stop_reason_, reached, "" if self.checkpoint is None else f"; fit again to go on from {self.checkpoint}"
        )

    def _impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        parts = []
        for chunk in chunks_of(len(values)):
            holes = self._columns.holes(missing[chunk])
            work = self._columns.copy_of(values[chunk], holes)
            if len(self._columns):
                with single_blas_thread():
                    self._complete(work, holes)
            parts.append(self._columns.read_holes(work, missing[chunk]))
        return np.concatenate(parts)

    def _prepare(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        seed: int,
        deadline: float,
        *,
        columns: WorkingColumns | None = None,
        wants_model: bool = False,
    ) -> Prepared:
        """Make the working copy, hide cells for validation, choose metric, start and ε."""
        if columns is None:
            columns = WorkingColumns.fit(
                values, missing, self._groups, self._scaled, rescale=self.scale, n_threads=n_threads(self.n_jobs)
            )
            self._columns, is_warm = columns, False
        else:
            self._columns, is_warm = columns, True
        d = len(self._columns)
        holes = self._columns.holes(missing)
        work = self._columns.copy_of(values, holes, n_threads(self.n_jobs))
        if is_warm:
            self._warn_of_other_scales(values, missing, work, holes)
        elif not self.scale:
            standardised = np.flatnonzero(~self._columns.scaled)
            warn_of_spreads(work[:, standardised], holes[:, standardised])
        if self.validation_fraction == "auto":
            share = _SHARE_HIDDEN if len(work) >= _FEWEST_ROWS_TO_HIDE else 0.0
        else:
            share = float(self.validation_fraction)
        spared = holes | self._spared_from_hiding(holes)
        hidden = hide_cells(spared, share, generator(seed, "validation"), self._columns.groups)
        if share > 0 and self.validation_fraction != "auto" and not hidden.any():
            warn_user(
                f"validation_fraction={self.validation_fraction} hides none of the table's few values; nothing is validated",
                OtimputeWarning,
            )
        truth = work[:, :d][hidden].astype(np.float64)
        free = holes | hidden if len(truth) else holes
        work[:, :d][hidden] = 0
        model = self._choose_start_and_metric(work, holes, free, seed, deadline, wants_model)
        self.epsilon_ = self._choose_epsilon(work[:, :d], seed)
        add_noise(work, free, self.noise, generator(seed, "noise"), n_threads(self.n_jobs))
        return Prepared(work, holes, hidden, truth, free, model)

    def _fitted_before(self, made_of: Any) -> Any:
        """What a warm start continues from, or None; ``made_of`` is the parameter that says what is trained."""
        before = getattr(self, "_fitted", None) if self.warm_start else None
        if before is None:
            return None
        if before.made_of is not made_of and before.made_of != made_of:
            raise ValueError(
                f"warm_start=True continues to train {before.made_of!r}, got {made_of!r}; pass the same, or warm_start=False"
            )
        if not np.array_equal(before.empty, self._empty):
            raise ValueError(
                f"warm_start=True continues a fit of {int((~before.empty).sum())} columns with values, got "
                f"{int((~self._empty).sum())} or others; pass a table with the same columns, or warm_start=False"
            )
        return before

    def _keeps_encoding(self) -> bool:
        # New categories, or another first date, must not change what the coordinates of the first fit mean.
        return self.warm_start and getattr(self, "_fitted", None) is not None

    def _places(self) -> NDArray[np.int64]:
        """Which coordinates of the table the columns of the working copy are."""
        return np.flatnonzero(~self._empty)[self._columns.varying]

    def _names_of(self, columns: NDArray[np.int64]) -> str:
        """Names of the table's columns behind columns of the working copy, for people."""
        return self._names(np.unique(self._columns.groups[columns]))

    def _spared_from_hiding(self, holes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which cells validation must leave alone: one-sided batches need rows that are complete."""
        return np.asarray(~holes.any(axis=1, keepdims=True)) if self.one_sided else np.zeros((1, 1), dtype=bool)

    def _warn_of_other_scales(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], work: NDArray[np.float32], holes: NDArray[np.bool_]
    ) -> None:
        """A warm start keeps the scales of the first fit; say so where they no longer fit."""
        constant = np.flatnonzero(self._columns.scaler.spread == 0)
        varies = [k for k in constant if len(np.unique(values[~missing[:, k], k])) > 1]
        far = np.abs(work[:, : len(self._columns)][~holes]) >= self._columns.scaler.limit
        if varies or far.mean() > _FEW:
            what = "columns vary that were constant" if varies else f"{far.mean():.0%} of the values lie far outside"
            warn_user(
                f"warm_start=True keeps the scales of the first fit, but here {what}; pass warm_start=False", OtimputeWarning
            )

    def _automatic_metric(self) -> str:
        return "covariance" if len(self._columns) <= MOST_COLUMNS else "euclidean"

    def _choose_start_and_metric(
        self,
        work: NDArray[np.float32],
        holes: NDArray[np.bool_],
        free: NDArray[np.bool_],
        seed: int,
        deadline: float,
        wants_model: bool,
    ) -> GaussianModel | None:
        """Set ``metric_`` and ``_metric`` (A, or [0, 0] for the identity) and write the start into the holes of ``work``."""
        d = len(self._columns)
        self.metric_ = self._automatic_metric() if self.metric == "auto" else self.metric
        own = None if isinstance(self.initial, str) else self._columns.start_from(self._read_initial(), holes, ~self._empty)
        from_model = self._starts_from_model()
        self._metric = np.zeros((0, 0))
        model = None
        if d and (self.metric_ == "covariance" or from_model or (wants_model and d <= MOST_COLUMNS)):
            # A model cut short by the clock would not be the same when a checkpoint is continued.
            model = fit_model(work[:, :d], free, generator(seed, "model"), deadline if self.checkpoint is None else np.inf)
            if self.metric_ == "covariance":
                self._metric = metric_of(model.covariance, self._columns.scaled)
            if from_model:
                fill_from_model(work, free, model, n_threads(self.n_jobs))
        if own is not None:
            work[:, :d][holes] = own[holes]  # hidden cells start at the mean: their own value would be the answer
        return model

    def _read_initial(self) -> NDArray[np.floating]:
        """The coordinates of a user's starting table."""
        frame = as_frame(self.initial)
        if frame is None:
            return np.asarray(self.initial, dtype=np.float64)
        start = self._encoding.read_frame(frame, np.nan)
        return np.where(start.missing, np.nan, start.values)

    def _starts_from_model(self) -> bool:
        if not isinstance(self.initial, str):
            return False
        return self.initial == "em" or (self.initial == "auto" and self.metric_ == "covariance")

    def _choose_epsilon(self, table: NDArray[np.float32], seed: int) -> float:
        if not isinstance(self.epsilon, str):
            return float(self.epsilon)
        rng = generator(seed, "epsilon")
        if len(table) > _ROWS_FOR_EPSILON:
            table = table[rng.choice(len(table), _ROWS_FOR_EPSILON, replace=False)]
        points = table.astype(np.float64)
        return epsilon_from_rule(points @ self._metric if self._metric.size else points, self.epsilon, rng)

    def _choose_plan(self, free: NDArray[np.bool_], seed: int) -> Plan:
        """Batches of all rows, or of complete against incomplete ones; sets ``batch_size_``."""
        x_rows, y_rows = one_sided_pools(free) if self.one_sided else (ALL_ROWS, ALL_ROWS)
        n_rows = len(free)
        self.batch_size_ = self._choose_batch_size(n_rows, min(len(x_rows) or n_rows, len(y_rows) or n_rows))
        return Plan(seed, x_rows, y_rows, N_CROSS_ITERATIONS, N_SELF_ITERATIONS)

    def _steps_for(self, n_rows: int, fewest: int, visits: int) -> int:
        """The steps after which every row was drawn so many times, but at least the ``fewest``."""
        return max(fewest, -(-visits * n_rows // (2 * self.batch_size_ * self.n_pairs)))

    def _choose_batch_size(self, n_rows: int, pool: int) -> int:
        if self.batch_size == "auto":
            wanted = 128 if n_rows > 256 else 2 ** max(0, (n_rows // 2).bit_length() - 1)
            return min(wanted, pool)
        if int(self.batch_size) > pool:
            raise ValueError(
                f'batch_size={self.batch_size} exceeds the {pool} rows it is drawn from; pass "auto" or at most {pool}'
            )
        return int(self.batch_size)
