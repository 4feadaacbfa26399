"""Algorithm 3: one model per column, trained in turn until random batches of rows look alike."""

from __future__ import annotations

import copy
from contextlib import closing
from functools import cache
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice, check_count, check_flag, check_real
from ..._random import generator
from ..._threads import n_threads
from ..._torch import torch_session
from ..._warn import warn_user
from ...estimator import TableParameters
from ...exceptions import OtimputeWarning
from ...fitting import ColumnLayout, FitSummary, check_callbacks, progress_bar
from ...fitting.checkpoint import Checkpoint
from ...fitting.training import TrainingOutcome
from ...table import Table
from ..batches.pair_threads import PairThreads
from ..transport_imputer import Prepared, TransportImputer
from .cycles import (
    ColumnModels,
    ColumnOrder,
    CycleSchedule,
    run_cycles,
    settle_rows,
    warn_of_held_predictions,
)
from .hidden_scores import scores_of_hidden
from .module_models import check_model
from .named_models import check_methods
from .round_robin_model import RoundRobinModel, load_modules, make_models
from .trained_columns import TrainedColumn, choose_columns_to_train

# Cycles and step size by the start of the models (docs/studies/round-robin.md).
_FROM_REGRESSIONS = 5, 1e-3
_FROM_SCRATCH = 20, 1e-2


class RoundRobinImputer(TransportImputer):
    """Impute by models trained with optimal transport, one column after the other (Algorithm 3 of Muzellec et al., ICML 2020).

    Each column has a model that predicts it from the others. Two random batches of completed rows should look like draws from
    one distribution; the gradient of their Sinkhorn divergence with respect to the predictions trains the models in turn.
    Unlike `SinkhornImputer` this leaves models behind, which complete new rows without any training row at hand.
    The defaults were chosen by measurement (docs/studies/round-robin.md): rows are compared in a metric learned from the
    table, and the models start as the regressions of a Gaussian model. `RoundRobinImputer.paper(model)` is the published
    algorithm. Most people need only ``model``, ``random_state``, ``validation_fraction``, ``max_seconds`` and ``verbose``.

    Parameters
    ----------
    model : {"linear", "mlp"} or function, default="linear"
        Linear models, the paper's networks (d − 1 → 2 (d − 1) → d − 1 → 1, ReLU), or a function that takes the number of inputs
        and returns a torch module that maps ``[rows, inputs]`` to one number a row. Only the last needs torch.
    methods : dict, default=None
        By column (its name, in arrays its position), ``"linear"`` or ``"mlp"`` where it is to have another model than the
        others: ``{"age": "mlp"}``.
    max_cycles : int or "auto", default="auto"
        Times each column is visited, at most; automatically 5 from a Gaussian start or a warm one, 20 from random weights.
    n_updates : int, default=15
        Updates of a column's model (K in the paper) at each visit, by Adam.
    n_pairs : int, default=5
        Pairs of batches per update.
    batches : {"all", "observed-all", "observed-missing"}, default="all"
        Which rows the two batches of a pair are drawn from: both from all rows; the first from rows where the column is
        observed, the second from all, or from those where it is missing, as the paper has it. Models learn in the second
        only. The last is legitimate only when holes are completely at random (MCAR): otherwise the two groups differ by
        nature, and the models learn to hide that. It keeps the spread of imputed values best, and costs RMSE.
    order : {"increasing", "random", "given"}, default="increasing"
        Order of the columns: by their number of holes, anew at random in each cycle, or as in the table.
    validation_fraction : float in [0, 1), default=0.0
        Fraction of the observed values to hide from the fit to score it after each cycle; the scores are in ``history_``. The
        fit then stops when they no longer fall and returns to the models of the best cycle. The hidden values are not changed
        in the result.
    validation_score : {"rmse", "mae", "energy"}, default="rmse"
        The score on hidden values that decides.
    patience : int, default=2
        Stop after this many cycles without a better score.
    skip_complete : bool, default=False
        Whether to train no models for complete columns; missing values in new rows then get the training mean, with a warning.
        By default their models are trained on hidden observed values, so that new rows may have missing values anywhere.
    initial_weights : {"gaussian", "random"}, default="gaussian"
        Start of the built-in models: regressions of a Gaussian model of the table, or random as torch's layers start. Modules
        of your own start as your function made them, which counts as random.
    learning_rate : float or "auto", default="auto"
        Adam's step size; automatically 1e-3 from a Gaussian start or a warm one, 1e-2 from random weights.
    step_decay : float in (0, 1], default=1.0
        The step size falls geometrically, cycle by cycle, to about this share of itself.
    l2 : float, default=1e-5
        Weight of half the squared parameters in the loss.
    epsilon : float or {"auto", "cost", "distance", "authors"}, default="auto"
        Entropic regularisation of the cost c = ½‖x − y‖² of standardised rows. ``"auto"``: 1 % of the median of c; ``"cost"``:
        5 % of it; ``"distance"``: 5 % of the median of ‖x − y‖; ``"authors"``: the square of ``"cost"``, as in the published
        code.
    batch_size : int or "auto", default="auto"
        Number of rows per batch; "auto" means 128, or for fewer than 257 rows the power of two at or below half of them. Never
        more than the smaller of the two groups of rows.
    initial : {"auto", "mean", "em"} or array [n_rows, n_columns], default="auto"
        Start of the missing values: column means, conditional means of a Gaussian model, or your own table.
        ``"auto"`` is ``"em"`` with the covariance metric and ``"mean"`` otherwise.
    noise : float, default=0.0
        Standard deviation of the noise added to the start, in standard deviations of the column.
    metric : {"auto", "covariance", "euclidean"}, default="auto"
        Rows are compared by ½‖x − y‖² of standardised columns, or by the same after whitening by the root of correlations.
        ``"auto"`` is ``"covariance"`` for up to 300 columns.
    scale : bool, default=True
        Whether to standardise columns internally. Disable only if columns already have about unit spread.
    tol : float, default=1e-3
        Stop when a whole cycle changes no imputed value by more than this share of the largest observed one; 0 never does.
    warm_start : bool, default=False
        Whether another ``fit`` continues from the fitted models and scales, possibly on another table of the same columns.
    max_seconds : float or None, default=None
        Stop after about this time and keep the result so far.
    n_jobs : int or None, default=None
        Number of threads to prepare long tables and for the pairs of an update; -1 uses all cores. The result does not depend
        on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device to compare batches on; "auto" uses an NVIDIA GPU if there is one and the CPU would take about 20 s or more.
        The models stay on the CPU. The result is the same up to rounding. A GPU needs ``pip install "otimpute[gpu]"``.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. Pass an int for reproducible results.
    verbose : int, default=0
        If positive, show a progress bar (needs rich in terminals).
    callbacks : list of functions, default=None
        Called several times a second with a ``FitProgress`` (``step``, ``max_steps``, ``seconds``, ``history``; a step is an
        update); a true return value stops the fit.
    checkpoint : path or None, default=None
        File in which a long fit saves its state about every half minute, and when it is stopped. Another fit on the same table
        with the same parameters resumes from it, gives the result of an uninterrupted fit, and removes the file. A
        function as ``model`` must be the same again.
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        As in `SinkhornImputer`.

    Attributes
    ----------
    epsilon_ : float
        Entropic regularisation used.
    metric_ : str
        Metric used.
    batch_size_ : int
        Rows per batch.
    device_ : str
        Device that compared the batches.
    n_cycles_ : int
        Number of complete cycles.
    best_cycle_ : int
        The cycle whose models are kept: the last one, or with validation the best one.
    converged_ : bool
        Whether the imputed values had converged (see ``tol``).
    stop_reason_ : str
        ``"tol"``, ``"max_cycles"``, ``"validation"``, ``"max_seconds"``, ``"callback"``, ``"interrupted"`` or
        ``"nothing to train"``.
    history_ : dict of lists
        Before the first cycle and after each: ``cycle``, ``loss`` (mean divergence of ten pairs of batches, drawn as in
        training but the same each time), ``movement`` (largest change of an imputed value) and, with validation,
        ``validation_mae``, ``validation_rmse`` and ``validation_energy``, in standard deviations.

    Notes
    -----
    ``transform`` starts from the training means and applies the models in the order of the last cycle until a row
    converges. It treats every row separately and refits nothing.

    A fit by transport is no regression. Least squares is content with conditional means; the divergence compares
    distributions, and to resemble rows that have noise in them predictions must spread as those do. With two columns and
    ``"observed-missing"`` the slope therefore tends to the ratio of the spreads, not to the slope of least squares. The loss
    of ``"all"`` compares a completed table with itself: as batches grow it tends to 0 whatever the imputation. It teaches
    because batches are small, but more gently (slopes stay near least squares); do not read it as a measure of quality.
    Predictions are held within one observed range beyond the observed values, so that no chain of models runs away.

    Examples
    --------
    >>> import numpy as np
    >>> from otimpute import RoundRobinImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> X = np.hstack([x, 2 * x, -x]) + 0.05 * rng.normal(size=(200, 3))
    >>> X_incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> imputer = RoundRobinImputer(random_state=0)
    >>> X_imputed = imputer.fit_transform(X_incomplete)
    >>> missing = np.isnan(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[missing].mean() < 0.25 * np.abs(X[missing]).mean())
    True
    >>> imputer.transform([[1.0, np.nan, np.nan]]).round(0)
    array([[ 1.,  2., -1.]])
    """

    _PAPER: ClassVar[dict[str, Any]] = {
        "batches": "observed-missing", "epsilon": "authors", "initial": "mean", "initial_weights": "random",
        "learning_rate": 1e-2, "max_cycles": 10, "metric": "euclidean", "n_pairs": 10, "n_updates": 15, "noise": 0.1,
        "order": "random", "scale": False, "skip_complete": True, "step_decay": 1.0, "tol": 1e-3,
    }  # fmt: skip
    model_class: ClassVar[type] = RoundRobinModel
    _model: RoundRobinModel
    _given_at_load = "model"
    _state_version: ClassVar[int] = 3

    def __init__(
        self,
        model: Any = "linear",
        *,
        methods: Any = None,
        max_cycles: int | str = "auto",
        n_updates: int = 15,
        n_pairs: int = 5,
        batches: str = "all",
        order: str = "increasing",
        validation_fraction: float = 0.0,
        validation_score: str = "rmse",
        patience: int = 2,
        skip_complete: bool = False,
        initial_weights: str = "gaussian",
        learning_rate: float | str = "auto",
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
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        checkpoint: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.model = model
        self.methods = methods
        self.max_cycles = max_cycles
        self.n_updates = n_updates
        self.n_pairs = n_pairs
        self.batches = batches
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
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @classmethod
    def paper(cls, model: Any = "linear", **overrides: Any) -> Self:
        """The published Algorithm 3: authors' ε, random start, observed against missing rows, 10 cycles of 15 updates of 1e-2.

        Bring columns to mean 0 and variance 1 first, or pass ``scale=True``.

        >>> RoundRobinImputer.paper("mlp", random_state=0).n_pairs
        10
        """
        return cls(model, **{**cls._PAPER, **overrides})

    def check_parameters(self) -> None:
        self._check_shared_parameters()
        check_model(self.model)
        check_methods(self.methods)
        if self.max_cycles != "auto":
            check_count("max_cycles", self.max_cycles, advice='pass "auto" to let the start decide')
        if self.learning_rate != "auto":
            check_real("learning_rate", self.learning_rate, above=0, advice='pass "auto" to let the start decide')
        check_count("n_updates", self.n_updates)
        check_count("patience", self.patience)
        check_choice("batches", self.batches, ["all", "observed-all", "observed-missing"])
        check_choice("order", self.order, ["increasing", "random", "given"])
        check_choice("validation_score", self.validation_score, ["mae", "rmse", "energy"])
        check_choice("initial_weights", self.initial_weights, ["gaussian", "random"])
        check_real("l2", self.l2, at_least=0)
        check_flag("skip_complete", self.skip_complete)
        check_flag("warm_start", self.warm_start)

    def _train(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        deadline: float,
        checkpoint: Checkpoint,
    ) -> tuple[NDArray[np.float32], RoundRobinModel, FitSummary]:
        seed = checkpoint.seed
        before: RoundRobinModel | None = self._model_to_continue(self._what_to_train(), layout)
        from_regressions = before is None and self.initial_weights == "gaussian" and not callable(self.model)
        columns = None if before is None else before.columns
        prepared = self._prepare(values, missing, layout, seed, deadline, columns=columns, wants_model=from_regressions)
        columns, work, d = prepared.columns, prepared.work, len(prepared.columns)
        batch_size = self._choose_batch_size(len(work), len(work))
        trained_columns = choose_columns_to_train(
            prepared.free, prepared.observed_ranges(),
            batch_size=batch_size, batches=self.batches, skip_complete=self.skip_complete, seed=seed,
        )  # fmt: skip
        schedule = self._schedule(prepared, before is not None or from_regressions, deadline)
        # Is the table what the models predict? Regressions and start of a Gaussian model agree.
        start_counts = before is not None or (from_regressions and prepared.starts_from_model)
        with torch_session(seed, callable(self.model) and d > 1):
            if before is None:
                models = make_models(
                    self.model, self.methods, self.initial_weights, layout, columns.varying, prepared.model, work[:, :d], seed
                )
            else:
                models = copy.deepcopy(before.models)  # a fit that fails must not spoil what the last one learned
                work[:, :d][prepared.free] = 0
                settle_rows(work, prepared.free, [t.target for t in trained_columns], models)
            outcome, order, device = self._run(
                prepared, trained_columns, models, schedule, batch_size, start_counts, checkpoint
            )
        targets = [trained_columns[place].target._replace(free=np.empty(0, dtype=bool)) for place in order]
        chosen = prepared.chosen(batch_size, device)
        return work, RoundRobinModel.of(columns, chosen, targets, models), outcome.summary("cycle")

    def _what_to_train(self) -> Any:
        return (self.model, dict(self.methods)) if self.methods else self.model

    def _spared_from_hiding(self, holes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        # No batch here needs complete rows; but a column hidden from would no longer be complete.
        return np.asarray(~holes.any(axis=0, keepdims=True) & self.skip_complete)

    def _schedule(self, prepared: Prepared, starts_well: bool, deadline: float) -> CycleSchedule:
        max_cycles, learning_rate = _FROM_REGRESSIONS if starts_well else _FROM_SCRATCH
        largest = float(np.abs(prepared.work[:, : len(prepared.columns)][~prepared.free]).max(initial=0))
        return CycleSchedule(
            max_cycles if self.max_cycles == "auto" else int(self.max_cycles),
            self.n_updates,
            learning_rate if self.learning_rate == "auto" else float(self.learning_rate),
            self.step_decay,
            self.l2,
            self.tol * largest,
            self.patience,
            deadline,
        )

    def _run(
        self,
        prepared: Prepared,
        trained_columns: list[TrainedColumn],
        models: ColumnModels,
        schedule: CycleSchedule,
        batch_size: int,
        start_counts: bool,
        checkpoint: Checkpoint,
    ) -> tuple[TrainingOutcome, NDArray[np.int64], str]:
        """Algorithm 3 on the prepared working copy, in place; also the last order of the trained_columns, and the device."""
        work, d, seed = prepared.work, len(prepared.columns), checkpoint.seed
        order = ColumnOrder(
            self.order, [len(trained_column.rows) for trained_column in trained_columns], generator(seed, "order")
        )
        score = scores_of_hidden(prepared, self.validation_score, seed) if prepared.hidden.any() else None
        n_updates = schedule.max_cycles * schedule.n_updates * len(trained_columns)
        with (
            progress_bar("round-robin imputation", self.verbose) as bar,
            closing(PairThreads(self.n_pairs, n_threads(self.n_jobs))) as threads,
        ):
            batches = self._make_batches(prepared, work, threads, batch_size, n_updates)
            callbacks = [*bar, *check_callbacks(self.callbacks)]
            outcome = run_cycles(trained_columns, order, models, batches, schedule, score, start_counts, callbacks, checkpoint)
            bar.ended(outcome.stop_reason)
        if prepared.hidden.any():
            # What was hidden is known after all: the models see it when they predict the rest.
            work[:, :d][prepared.hidden] = prepared.truth
            targets = [trained_columns[place].target for place in order.current]
            settle_rows(work, prepared.holes, targets, models, max_cycles=1)
        warn_of_held_predictions(work, trained_columns)
        return outcome, order.current, batches.device.name

    def _publish(self) -> None:
        super()._publish()
        self._made_of = self._what_to_train()
        self.n_cycles_, self.best_cycle_ = self.fit_summary_.n_steps, self.fit_summary_.best_step

    def _read_new_rows(self, X: Any) -> Table:
        table = super()._read_new_rows(X)
        left = self._columns_said(table, lambda model, wanted: model.without_model(wanted))
        if len(left):
            advice = "fit with skip_complete=False" if self.skip_complete else "fit on more rows"
            warn_user(
                f"columns {self.training_table_.layout.describe(left)} were complete in training and have no model: "
                f"their missing values get the training mean; {advice}",
                OtimputeWarning,
            )
        return table

    def _with_modules(self, model: RoundRobinModel, layout: ColumnLayout) -> RoundRobinModel:  # noqa: ARG002
        return load_modules(model, self.model)

    @staticmethod
    @cache
    def _compile() -> None:
        RoundRobinImputer(max_cycles=1, n_updates=1, random_state=0).fit([[0.0, 1.0], [1.0, np.nan], [2.0, 0.0], [3.0, 2.0]])
