"""Algorithm 2: any differentiable completer, trained until random batches of completed rows look alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_flag, check_real
from .._threads import n_threads
from ..estimator import check_callbacks, progress_bar, score_cells
from ..gaussian import GaussianModel
from ._batches import Plan, make_geometry
from ._completer import Completer
from ._descent import make_cells
from ._initial_fill import fill_from_model
from ._meta_steps import MetaSchedule, run_meta_steps
from ._modules import torch_for, torch_session
from ._pair_threads import Batches, PairThreads
from ._pairs import ALL_ROWS, one_sided_pools
from ._transport_imputer import N_CROSS_ITERATIONS, N_SELF_ITERATIONS, Prepared, TransportImputer, warn_if_stopped
from ._working_copy import WorkingColumns

_FEWEST_STEPS = 500
_VISITS = 50  # how often every row should meet others, at least


class MetaSinkhornImputer(TransportImputer):
    """TODO."""

    noise: float = 0.0  # a completer starts from the same guess in new rows, so there is no noise to add

    def __init__(
        self,
        completer: Any = None,
        *,
        max_steps: int | str = "auto",
        n_pairs: int = 2,
        one_sided: bool = False,
        validation_fraction: float = 0.0,
        patience: int = 5,
        learning_rate: float = 1e-3,
        step_decay: float = 0.1,
        l2: float = 1e-5,
        epsilon: float | str = "auto",
        batch_size: int | str = "auto",
        initial: str = "auto",
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
        self.completer = completer
        self.max_steps = max_steps
        self.n_pairs = n_pairs
        self.one_sided = one_sided
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.learning_rate = learning_rate
        self.step_decay = step_decay
        self.l2 = l2
        self.epsilon = epsilon
        self.batch_size = batch_size
        self.initial = initial
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

    def _check_parameters(self) -> None:
        torch_for("MetaSinkhornImputer")
        self._check_shared_parameters()
        check_choice("initial", self.initial, ["auto", "mean", "em"])
        if self.max_steps != "auto":
            check_count("max_steps", self.max_steps, advice='pass "auto" to derive it from the table')
        check_count("patience", self.patience)
        check_real("l2", self.l2, at_least=0)
        check_flag("warm_start", self.warm_start)

    def _train(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], seed: int, deadline: float
    ) -> NDArray[np.float32]:
        before = self._fitted_before()
        prepared = self._prepare(values, missing, seed, deadline, columns=None if before is None else before.columns)
        guess = prepared.model if self._starts_from_model() else None
        with torch_session(seed):
            if before is None:
                completer = self._make_completer()
            else:
                completer, guess = before.completer, before.guess
                self._first_guess(prepared.work, prepared.free, guess)
            self._descend(prepared, completer, seed, deadline)
        self.completer_ = completer.module
        self._before = _Fitted(self._empty, self._columns, completer, guess)
        return prepared.work

    def _make_completer(self) -> Completer:
        module = self.completer
        if module is None:
            from .joint_completer import JointCompleter

            module = JointCompleter(self.n_features_in_)
        return Completer(module, self.n_features_in_, self._places(), self._empty)

    def _first_guess(self, work: NDArray[np.float32], holes: NDArray[np.bool_], guess: GaussianModel | None) -> None:
        """What a completer starts from: column means, or the conditional means of a Gaussian model."""
        work[:, : holes.shape[1]][holes] = 0
        if guess is not None:
            fill_from_model(work, holes, guess)

    def _descend(self, prepared: Prepared, completer: Completer, seed: int, deadline: float) -> None:
        """Algorithm 2 on the prepared working copy, in place."""
        work, hidden, free = prepared.work, prepared.hidden, prepared.free
        d = len(self._columns)
        x_rows, y_rows = one_sided_pools(free) if self.one_sided else (ALL_ROWS, ALL_ROWS)
        self.batch_size_ = self._choose_batch_size(len(work), min(len(x_rows) or len(work), len(y_rows) or len(work)))
        threads = PairThreads(self.n_pairs, n_threads(self.n_jobs))
        batches = Batches(
            make_cells(work.copy(), free), make_geometry(self._metric, self.epsilon_, 1.0, d, work.shape[1]), threads
        )
        try:
            with progress_bar("meta Sinkhorn imputation", self.verbose) as bar:
                outcome = run_meta_steps(
                    completer,
                    work,
                    free,
                    batches,
                    Plan(seed, x_rows, y_rows, N_CROSS_ITERATIONS, N_SELF_ITERATIONS),
                    self._schedule(len(work), deadline),
                    self.batch_size_,
                    lambda: batches.evaluate(self.batch_size_, seed),
                    (lambda: score_cells(prepared.truth, batches.cells.values[:, :d][hidden])) if hidden.any() else None,
                    [*bar, *check_callbacks(self.callbacks)],
                )
        finally:
            threads.close()
        # What was hidden is known after all: the guess and the completer see it when they fill the rest.
        if hidden.any():
            work[:, :d][hidden] = prepared.truth
            self._first_guess(work, prepared.holes, prepared.model if self._starts_from_model() else None)
        completer.fill(work, prepared.holes)
        self.n_steps_ = outcome.n_steps
        self.best_step_ = outcome.best_step
        self.stop_reason_ = outcome.stop_reason
        self.converged_ = outcome.converged
        self.history_ = outcome.history
        warn_if_stopped(outcome.stop_reason, f"{outcome.n_steps} steps")

    def _schedule(self, n_rows: int, deadline: float) -> MetaSchedule:
        n_steps = int(self.max_steps) if self.max_steps != "auto" else 0
        if self.max_steps == "auto":
            n_steps = max(_FEWEST_STEPS, -(-_VISITS * n_rows // (2 * self.batch_size_ * self.n_pairs)))
        return MetaSchedule(n_steps, self.learning_rate, self.step_decay, self.l2, self.tol, self.patience, deadline)

    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        self._first_guess(work, holes, self._before.guess)
        with torch_session(0):
            self._before.completer.fill(work, holes)

    @staticmethod
    @cache
    def _compile() -> None:
        MetaSinkhornImputer(max_steps=1, random_state=0).fit([[0.0, 1.0], [1.0, np.nan], [2.0, 0.0], [3.0, 2.0]])


@dataclass(frozen=True)
class _Fitted:
    """What new rows and a warm start need."""

    empty: NDArray[np.bool_]
    columns: WorkingColumns
    completer: Completer
    guess: GaussianModel | None
