"""Algorithm 3: one model per column, trained in turn until random batches of rows look alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_flag, check_real
from .._random import generator
from .._threads import n_threads
from .._warn import warn_user
from ..estimator import check_callbacks, hide_cells, progress_bar, score_cells
from ..exceptions import OtimputeWarning
from ..gaussian import GaussianModel
from ..metrics import energy_distance
from ._batches import Plan, make_geometry
from ._cycles import ColumnModels, CycleSchedule, NetTrainer, Trainee, run_cycles, settle_rows
from ._descent import make_cells
from ._metric import MOST_COLUMNS, shrunk_covariance
from ._modules import ModuleModels, ModuleTrainer, torch_session
from ._net_models import NetModels, gaussian_regressions, layer_sizes, linear_parameters, random_parameters
from ._nets import Target
from ._pair_threads import Batches, PairThreads
from ._pairs import ALL_ROWS
from ._transport_imputer import N_CROSS_ITERATIONS, N_SELF_ITERATIONS, Prepared, TransportImputer, warn_if_stopped
from ._working_copy import WorkingColumns

_PRACTICE = 0.2  # share of rows a model is trained on at least, on observed cells if need be
_REACH = 1.0  # how far beyond the observed range predictions may go, in units of that range
_MOST_SWEEPS = 30  # over the columns of a new row
_SETTLED = 1e-3  # a new row whose values move by less, in standard deviations, is done
_ROWS_FOR_ENERGY = 1000
_ROWS_FOR_COVARIANCE = 20_000


class RoundRobinImputer(TransportImputer):
    """TODO."""

    _PAPER: ClassVar[dict[str, Any]] = {
        "epsilon": "authors",
        "initial": "mean",
        "initial_weights": "random",
        "learning_rate": 1e-2,
        "max_cycles": 10,
        "metric": "euclidean",
        "n_pairs": 10,
        "n_updates": 15,
        "noise": 0.1,
        "one_sided": True,
        "order": "random",
        "scale": False,
        "skip_complete": True,
        "step_decay": 1.0,
        "tol": 1e-3,
    }

    def __init__(
        self,
        model: Any = "linear",
        *,
        max_cycles: int = 3,
        n_updates: int = 15,
        n_pairs: int = 10,
        one_sided: bool = False,
        order: str = "increasing",
        validation_fraction: float = 0.0,
        validation_score: str = "rmse",
        patience: int = 2,
        skip_complete: bool = False,
        initial_weights: str = "gaussian",
        learning_rate: float = 1e-3,
        step_decay: float = 1.0,
        l2: float = 1e-5,
        epsilon: float | str = "auto",
        batch_size: int | str = "auto",
        initial: Any = "auto",
        noise: float = 0.0,
        metric: str = "auto",
        scale: bool = True,
        tol: float = 1e-3,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
    ):
        self.model = model
        self.max_cycles = max_cycles
        self.n_updates = n_updates
        self.n_pairs = n_pairs
        self.one_sided = one_sided
        self.order = order
        self.validation_fraction = validation_fraction
        self.validation_score = validation_score
        self.patience = patience
        self.skip_complete = skip_complete
        self.initial_weights = initial_weights
        self.learning_rate = learning_rate
        self.step_decay = step_decay
        self.l2 = l2
        self.epsilon = epsilon
        self.batch_size = batch_size
        self.initial = initial
        self.noise = noise
        self.metric = metric
        self.scale = scale
        self.tol = tol
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers

    @classmethod
    def paper(cls, model: Any = "linear", **overrides: Any) -> Self:
        """TODO."""
        return cls(model, **{**cls._PAPER, **overrides})

    def _check_parameters(self) -> None:
        self._check_shared_parameters()
        if not callable(self.model):
            if not isinstance(self.model, str):
                raise TypeError(
                    f'model must be "linear", "mlp" or a function that takes a number of inputs and returns a torch module, '
                    f"got {self.model!r}"
                )
            check_choice("model", self.model, ["linear", "mlp"])
        check_count("max_cycles", self.max_cycles)
        check_count("n_updates", self.n_updates)
        check_count("patience", self.patience)
        check_choice("order", self.order, ["increasing", "random", "given"])
        check_choice("validation_score", self.validation_score, ["mae", "rmse", "energy"])
        check_choice("initial_weights", self.initial_weights, ["gaussian", "random"])
        check_real("l2", self.l2, at_least=0)
        check_flag("skip_complete", self.skip_complete)
        check_flag("warm_start", self.warm_start)

    def _train(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], seed: int, deadline: float
    ) -> NDArray[np.float32]:
        before = self._fitted_before()
        wants_model = self.initial_weights == "gaussian" and not callable(self.model) and before is None
        prepared = self._prepare(
            values,
            missing,
            seed,
            deadline,
            columns=None if before is None else before.columns,
            wants_model=wants_model,
        )
        work, d = prepared.work, len(self._columns)
        self.batch_size_ = self._choose_batch_size(len(work), len(work))
        trainees = self._trainees(prepared, seed)
        with torch_session(seed, callable(self.model) and d > 1):
            models = self._make_models(prepared, seed) if before is None else before.models
            if before is not None:
                work[:, :d][prepared.free] = 0
                settle_rows(work, prepared.free, [t.target for t in trainees], models, _SETTLED, _MOST_SWEEPS)
            self._run(prepared, trainees, models, seed, deadline)
        targets = [trainees[place].target._replace(free=np.empty(0, dtype=bool)) for place in self._last_order]
        self._before = _Fitted(self._empty, self._columns, models, targets)
        return work

    def _trainees(self, prepared: Prepared, seed: int) -> list[Trainee]:
        """The columns to train, with their rows and batches."""
        n, d = prepared.free.shape
        rng = generator(seed, "practice")
        trainees = []
        for column in range(d):
            free = prepared.free[:, column]
            practice = np.zeros(n, dtype=bool)
            if not self.skip_complete:
                lacking = max(_PRACTICE * n - free.sum(), 0) / max(n - free.sum(), 1)
                practice = hide_cells(free[:, None], lacking, rng)[:, 0]
            rows, practised = np.flatnonzero(free), np.flatnonzero(practice)
            if len(rows) + len(practised) == 0:
                continue
            trained = free | practice
            observed = prepared.work[~free, column]
            low, high = float(observed.min()), float(observed.max())
            reach = _REACH * (high - low)
            pools, batch_size = (ALL_ROWS, ALL_ROWS), self.batch_size_
            if self.one_sided:
                pools = np.flatnonzero(~trained), np.flatnonzero(trained)
                batch_size = min(batch_size, *map(len, pools))
            trainees.append(
                Trainee(
                    Target(column, trained, not self.one_sided, low - reach, high + reach),
                    Plan(seed, *pools, N_CROSS_ITERATIONS, N_SELF_ITERATIONS),
                    batch_size,
                    rows,
                    practised,
                )
            )
        return trainees

    def _make_models(self, prepared: Prepared, seed: int) -> Any:
        d = len(self._columns)
        if callable(self.model) and d > 1:
            return ModuleModels(self.model, d)
        sizes = layer_sizes("linear" if callable(self.model) else self.model, max(d - 1, 0))
        rng = generator(seed, "weights")
        if self.initial_weights == "random" or d == 0:
            return NetModels(sizes, random_parameters(sizes, d, rng))
        model = prepared.model
        if model is None or d > MOST_COLUMNS:
            table = prepared.work[:, :d]
            rows = generator(seed, "model").permutation(len(table))[:_ROWS_FOR_COVARIANCE]
            covariance = np.atleast_2d(np.cov(table[rows].astype(np.float64), rowvar=False, ddof=0))
            model = GaussianModel(np.zeros(d), shrunk_covariance(covariance), 0, False)
        return NetModels(sizes, linear_parameters(sizes, *gaussian_regressions(model), rng))

    def _run(self, prepared: Prepared, trainees: list[Trainee], models: Any, seed: int, deadline: float) -> None:
        """Algorithm 3 on the prepared working copy, in place."""
        work, d = prepared.work, len(self._columns)
        largest = float(np.abs(work[:, :d][~prepared.free]).max(initial=0))
        schedule = CycleSchedule(
            self.max_cycles,
            self.n_updates,
            self.learning_rate,
            self.step_decay,
            self.l2,
            self.tol * largest,
            self.patience,
            deadline,
        )
        geometry = make_geometry(self._metric, self.epsilon_, 1.0, d, work.shape[1])
        threads = PairThreads(self.n_pairs, n_threads(self.n_jobs))
        batches = Batches(make_cells(work, prepared.free), geometry, threads)
        try:
            with progress_bar("round-robin imputation", self.verbose) as bar:
                outcome = run_cycles(
                    trainees,
                    self._orders(trainees, seed),
                    models,
                    self._trainer(models, batches, trainees).update,
                    schedule,
                    work,
                    lambda: batches.evaluate(self.batch_size_, seed),
                    self._score(prepared, seed) if prepared.hidden.any() else None,
                    [*bar, *check_callbacks(self.callbacks)],
                )
        finally:
            threads.close()
        if prepared.hidden.any():
            # What was hidden is known after all: the models see it when they predict the rest.
            work[:, :d][prepared.hidden] = prepared.truth
            targets = [trainees[place].target for place in self._last_order]
            settle_rows(work, prepared.holes, targets, models, _SETTLED, 1)
        self.n_cycles_ = outcome.n_cycles
        self.best_cycle_ = outcome.best_cycle
        self.stop_reason_ = outcome.stop_reason
        self.converged_ = outcome.converged
        self.history_ = outcome.history
        warn_if_stopped(outcome.stop_reason, f"{outcome.n_cycles} whole cycles")

    def _trainer(self, models: Any, batches: Batches, trainees: list[Trainee]) -> Any:
        if isinstance(models, NetModels):
            return NetTrainer(models.nets(), batches, trainees)
        return ModuleTrainer(models, batches)

    def _orders(self, trainees: list[Trainee], seed: int) -> Iterator[NDArray[np.int64]]:
        """The order of each cycle; the last one is kept for new rows."""
        rng = generator(seed, "order")
        self._last_order = np.arange(len(trainees))
        if self.order == "increasing":
            self._last_order = np.argsort([len(trainee.rows) for trainee in trainees], kind="stable")
        while True:
            if self.order == "random":
                self._last_order = rng.permutation(len(trainees))
            yield self._last_order

    def _score(self, prepared: Prepared, seed: int) -> Any:
        """A function that scores the hidden values as they are now, the decisive score first."""
        hidden, truth, table = prepared.hidden, prepared.truth, prepared.work[:, : len(self._columns)]
        rows = np.flatnonzero(hidden.any(axis=1))
        if len(rows) > _ROWS_FOR_ENERGY:
            rows = generator(seed, "energy").choice(rows, _ROWS_FOR_ENERGY, replace=False)
        answer = np.zeros(hidden.shape, np.float32)
        answer[hidden] = truth
        answer, judged = answer[rows], hidden[rows]

        def score() -> dict[str, float]:
            mae, rmse = score_cells(truth, table[hidden])
            now = table[rows]
            energy = energy_distance(np.where(judged, answer, now), now, judged)
            scores = {"mae": mae, "rmse": rmse, "energy": energy}
            return {self.validation_score: scores.pop(self.validation_score), **scores}

        return score

    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        trained = np.zeros(holes.shape[1], dtype=bool)
        trained[[target.column for target in self._before.targets]] = True
        left = np.flatnonzero(holes.any(axis=0) & ~trained)
        if len(left):
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))[~self._empty][
                self._columns.varying[left]
            ]
            warn_user(
                f"columns {', '.join(map(str, names[:10]))} were complete in training and have no model (skip_complete=True): "
                "their holes get the training mean; fit with skip_complete=False",
                OtimputeWarning,
            )
        settle_rows(work, holes, self._before.targets, self._before.models, _SETTLED, _MOST_SWEEPS)

    @staticmethod
    @cache
    def _compile() -> None:
        RoundRobinImputer(max_cycles=1, n_updates=1, random_state=0).fit([[0.0, 1.0], [1.0, np.nan], [2.0, 0.0], [3.0, 2.0]])


@dataclass(frozen=True)
class _Fitted:
    """What new rows and a warm start need."""

    empty: NDArray[np.bool_]
    columns: WorkingColumns
    models: ColumnModels
    targets: list[Target]  # in the order in which they are predicted
