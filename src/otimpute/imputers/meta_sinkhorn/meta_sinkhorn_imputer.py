"""Algorithm 2: any differentiable completer, trained until random batches of completed rows look alike."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice, check_count, check_flag, check_real
from ..._stored import NamedArrays, Place, stored
from ..._threads import n_threads
from ..._torch import take_weights, torch_for, torch_session, weights_of
from ..._warn import warn_user
from ...estimator import TableParameters, score_cells
from ...exceptions import OtimputeWarning, StoredFileError
from ...fitting import ColumnLayout, FitSummary, check_callbacks, progress_bar
from ...fitting.checkpoint import Checkpoint
from ...gaussian import GaussianModel
from ...table import Table
from ..batches.divergence import BatchPlan
from ..batches.pair_threads import PairThreads
from ..preparation.initial_fill import fill_from_model
from ..transport_imputer import Prepared, TransportImputer, TransportModel
from .completer import Completer
from .completer_training import MetaSchedule, run_meta_steps

_FEWEST_STEPS = 1000
_VISITS = 10  # how often every row should meet others, at least


class _CompleterWeights(NamedArrays):
    """A `Completer`, of which the weights are stored."""

    def pack(self, value: Any, place: Place) -> Any:
        return super().pack(weights_of(value.module, "completer"), place)


@stored(completer=_CompleterWeights(), learned="varying", used="U")
@dataclass(frozen=True)
class MetaSinkhornModel(TransportModel):
    """Shows new rows, with a first guess, to a trained completer."""

    completer: Any  # a Completer; as it comes out of a file, its weights
    guess: GaussianModel | None  # None where the first guess is the mean
    learned: NDArray[np.bool_]  # [d]: columns that had a hole in training
    used: NDArray[np.bool_]  # of all coordinates and helpers that the completer is shown, those that had a value
    is_built_in: bool  # whether the completer is ours

    def __post_init__(self) -> None:
        if self.used.sum() != len(self.columns.layout_groups):
            raise ValueError("the columns that had a value must be those of the table")
        if self.is_built_in and not isinstance(self.completer, Completer):
            object.__setattr__(self, "completer", self.revived(None).completer)

    @property
    def needs_code(self) -> bool:
        """Whether the completer is a user's."""
        return not self.is_built_in

    def revived(self, made_of: Any) -> MetaSinkhornModel:
        """With a completer that has the weights of a file."""
        with torch_session(0):
            completer = Completer.make(made_of, self.used, self.columns.varying)
        take_weights(completer.module, self.completer, "completer")
        return replace(self, completer=completer)

    def untaught(self, missing: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The columns with missing entries that had none in training."""
        return self.columns.varying[self.columns.holes(missing).any(axis=0) & ~self.learned]

    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        _first_guess(work, holes, self.guess)
        self.completer.fill(work, holes)


def _first_guess(work: NDArray[np.float32], holes: NDArray[np.bool_], guess: GaussianModel | None) -> None:
    """What a completer starts from: column means, or the conditional means of a Gaussian model."""
    work[:, : holes.shape[1]][holes] = 0
    if guess is not None:
        fill_from_model(work, holes, guess)


class MetaSinkhornImputer(TransportImputer):
    """Impute missing values by any torch module, trained with optimal transport (Algorithm 2 of Muzellec et al., ICML 2020).

    A *completer* is a torch module that takes ``(values, missing)`` and returns the rows completed. Two random batches of
    completed rows should look like draws from one distribution; the gradient of their Sinkhorn divergence trains the module.
    The divergence is computed by the same compiled kernels as in `SinkhornImputer`, only the module by torch, which this
    class needs: ``pip install "otimpute[torch]"``.

    Parameters
    ----------
    completer : torch.nn.Module, function or None, default=None
        Called with ``values [rows, columns]`` (standardised, with initial values where missing) and ``missing [rows, columns]``
        (bool), it returns completed rows: ``torch.where(missing, prediction, values)``. The columns are those of the table; a
        category with k labels has k − 1 of them. Instead of a module you can pass a function (or class) that creates one from
        the number of columns. A module is copied, not changed. None means a network with two hidden layers on values and
        indicators, which corrects the first guess.
    max_steps : int or "auto", default="auto"
        Number of updates; "auto" means 1000, or more if needed to draw every row about 10 times.
    n_pairs : int, default=2
        Number of pairs of batches per step.
    one_sided : bool, default=False
        Draw the first batch from complete rows and the second from incomplete ones. Valid only if values are missing
        completely at random and enough rows are complete.
    validation_fraction : float in [0, 1) or "auto", default="auto"
        Fraction of the observed values to hide from the fit to score it; the scores are in ``history_``. The fit then stops
        when they no longer fall and returns to the best parameters (by RMSE). The hidden values are not changed in the result.
        "auto" hides a tenth, or none if the table has fewer than 50 rows: networks overfit on some tables.
    patience : int, default=5
        Stop after this many twentieths of the steps without a better score.
    learning_rate : float, default=3e-3
        Step size of Adam.
    step_decay : float in (0, 1], default=0.1
        The step size falls geometrically to this share of itself; 1 keeps it.
    l2 : float, default=1e-5
        Weight of half the squared parameters in the loss.
    epsilon : float or {"auto", "cost", "distance", "authors"}, default="auto"
        Entropic regularisation of the cost c = ½‖x − y‖² of standardised rows. ``"auto"``: 1 % of the median of c; ``"cost"``:
        5 % of it; ``"distance"``: 5 % of the median of ‖x − y‖; ``"authors"``: the square of ``"cost"``, as in the published
        code.
    batch_size : int or "auto", default="auto"
        Number of rows per batch; "auto" means 128, or for fewer than 257 rows the power of two at or below half of them.
    initial : {"auto", "mean", "em"}, default="auto"
        The first guess a completer is shown, in training and in new rows: column means, or the conditional means of a Gaussian
        model. ``"auto"`` is ``"em"`` with the covariance metric and ``"mean"`` otherwise.
    metric : {"auto", "covariance", "euclidean"}, default="auto"
        Rows are compared by ½‖x − y‖² of standardised columns, or by the same after whitening by the root of correlations.
        ``"auto"`` is ``"covariance"`` for up to 300 columns.
    scale : bool, default=True
        Whether to standardise columns internally. Disable only if columns already have about unit spread.
    tol : float, default=1e-3
        Stop when imputed values move by less than this (root mean square, in standard deviations) from one twentieth of the
        steps (at least 10) to the next; 0 never stops early.
    warm_start : bool, default=False
        Whether another ``fit`` continues from the trained completer, possibly on another table of the same columns.
    max_seconds : float or None, default=None
        Stop after about this time and keep the result so far.
    n_jobs : int or None, default=None
        Number of threads to prepare long tables and for the pairs of a step; -1 uses all cores. The result does not depend on
        it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device to compare batches on; "auto" uses an NVIDIA GPU if there is one and the CPU would take about 20 s or more.
        The completer stays on the CPU. The result is the same up to rounding. A GPU needs ``pip install "otimpute[gpu]"``.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. Pass an int for reproducible results; torch's global random state is not changed.
    verbose : int, default=0
        If positive, show a progress bar (needs rich in terminals).
    callbacks : list of functions, default=None
        Called after every step with a ``FitProgress`` (``step``, ``max_steps``, ``seconds``, ``history``); a true return value
        stops the fit.
    checkpoint : path or None, default=None
        File in which a long fit saves its state about every half minute, and when it is stopped. Another fit on the same table
        with the same parameters resumes from it, gives the result of an uninterrupted fit, and removes the file. A
        ``completer`` must be the same again.
    missing_values : float, default=nan
        The placeholder of missing values, besides NaN and null.
    add_indicator : bool, default=False
        Append an indicator column for each column with missing values.
    keep_empty_features : bool, default=True
        Columns without any observed value stay empty, with a warning; False drops them.
    integers : {"round", "float"}, default="round"
        Whether imputed integers and booleans are rounded so that the column keeps its type, or become floats.
    constraints : dict, default=None
        Constraints on imputed values by column, as in `SinkhornImputer`.
    max_categories : int or None, default=50
        Maximum number of categories used per column, as in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        What you know of the table, as in `SinkhornImputer`.

    Attributes
    ----------
    completer_ : torch.nn.Module
        The trained completer.
    epsilon_ : float
        Entropic regularisation used.
    metric_ : str
        Metric used.
    batch_size_ : int
        Rows per batch.
    device_ : str
        Device that compared the batches.
    n_steps_ : int
        Number of steps performed.
    best_step_ : int
        The step whose parameters are kept: the last one, or with validation the best one.
    converged_ : bool
        Whether the imputed values had converged (see ``tol``).
    stop_reason_ : str
        ``"tol"``, ``"max_steps"``, ``"validation"``, ``"max_seconds"``, ``"callback"``, ``"interrupted"`` or
        ``"nothing missing"``.
    history_ : dict of lists
        At the start and per twentieth of the steps: ``step``, ``learning_rate``, ``loss`` (mean divergence of ten pairs of
        batches, drawn as in training but the same each time), ``movement`` and, with validation, ``validation_mae`` and
        ``validation_rmse``, in standard deviations.

    Notes
    -----
    ``transform`` shows new rows to the trained completer, nothing is refitted. The loss compares a completed table with
    itself: as batches grow it tends to 0 whatever the imputation, so it teaches, but does not measure quality.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from otimpute import MetaSinkhornImputer
    >>> class Linear(torch.nn.Module):
    ...     def __init__(self, n_columns):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(n_columns, n_columns)
    ...     def forward(self, values, missing):
    ...         return torch.where(missing, self.layer(values), values)
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> X = np.hstack([x, 2 * x, -x]) + 0.05 * rng.normal(size=(200, 3))
    >>> X_incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> imputer = MetaSinkhornImputer(Linear(3), learning_rate=1e-2, random_state=0)
    >>> X_imputed = imputer.fit_transform(X_incomplete)
    >>> missing = np.isnan(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[missing].mean() < 0.25 * np.abs(X[missing]).mean())
    True
    """

    model_class: ClassVar[type] = MetaSinkhornModel
    _model: MetaSinkhornModel
    _given_at_load = "completer"
    _validates_by_default = True
    noise: float = 0.0  # a completer starts from the same guess in new rows, so there is no noise to add

    def __init__(
        self,
        completer: Any = None,
        *,
        max_steps: int | str = "auto",
        n_pairs: int = 2,
        one_sided: bool = False,
        validation_fraction: float | str = "auto",
        patience: int = 5,
        learning_rate: float = 3e-3,
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
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        checkpoint: Any = None,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
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
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    def check_parameters(self) -> None:
        torch_for("MetaSinkhornImputer")
        self._check_shared_parameters()
        check_real("learning_rate", self.learning_rate, above=0)
        check_flag("one_sided", self.one_sided)
        check_choice("initial", self.initial, ["auto", "mean", "em"])
        if self.max_steps != "auto":
            check_count("max_steps", self.max_steps, advice='pass "auto" to derive it from the table')
        check_count("patience", self.patience)
        check_real("l2", self.l2, at_least=0)
        check_flag("warm_start", self.warm_start)

    def _train(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        deadline: float,
        checkpoint: Checkpoint,
    ) -> tuple[NDArray[np.float32], MetaSinkhornModel, FitSummary]:
        seed = checkpoint.seed
        before: MetaSinkhornModel | None = self._model_to_continue(self.completer, layout)
        columns = None if before is None else before.columns
        prepared = self._prepare(values, missing, layout, seed, deadline, columns=columns)
        plan, batch_size = self._choose_plan(prepared.free, seed)
        schedule = self._schedule(len(prepared.work), batch_size, deadline)
        with torch_session(seed):
            if before is None:
                completer = Completer.make(self.completer, layout.used, prepared.columns.varying)
                guess = prepared.model if prepared.starts_from_model else None
            else:
                # A copy, for a fit that fails must not spoil what the last one learned.
                completer, guess = copy.deepcopy(before.completer), before.guess
                _first_guess(prepared.work, prepared.free, guess)
            summary, device = self._descend(prepared, completer, guess, plan, batch_size, schedule, checkpoint)
        learned = np.asarray(prepared.free.any(axis=0))
        model = MetaSinkhornModel(
            prepared.columns,
            prepared.chosen(batch_size, device),
            completer,
            guess,
            learned,
            layout.used,
            self.completer is None,
        )
        return prepared.work, model, summary

    def _descend(
        self,
        prepared: Prepared,
        completer: Completer,
        guess: GaussianModel | None,
        plan: BatchPlan,
        batch_size: int,
        schedule: MetaSchedule,
        checkpoint: Checkpoint,
    ) -> tuple[FitSummary, str]:
        """Algorithm 2 on the prepared working copy, in place; and the device it ran on."""
        work, hidden, free = prepared.work, prepared.hidden, prepared.free
        d = len(prepared.columns)
        threads = PairThreads(self.n_pairs, n_threads(self.n_jobs))
        batches = self._make_batches(prepared, work.copy(), threads, batch_size, schedule.n_steps)
        try:
            with progress_bar("meta Sinkhorn imputation", self.verbose) as bar:
                outcome = run_meta_steps(
                    completer,
                    work,
                    free,
                    batches,
                    plan,
                    schedule,
                    batch_size,
                    (lambda: score_cells(prepared.truth, batches.cells.values[:, :d][hidden])) if hidden.any() else None,
                    [*bar, *check_callbacks(self.callbacks)],
                    checkpoint,
                )
                bar.ended(outcome.stop_reason)
        finally:
            threads.close()
        # What was hidden is known after all: the guess and the completer see it when they fill the rest.
        if hidden.any():
            work[:, :d][hidden] = prepared.truth
            _first_guess(work, prepared.holes, guess)
        completer.fill(work, prepared.holes)
        return outcome.summary(), batches.device.name

    def _schedule(self, n_rows: int, batch_size: int, deadline: float) -> MetaSchedule:
        n_steps = self._n_steps(n_rows, batch_size, _FEWEST_STEPS, _VISITS)
        return MetaSchedule(n_steps, self.learning_rate, self.step_decay, self.l2, self.tol, self.patience, deadline)

    def _publish(self) -> None:
        super()._publish()
        self._made_of, self.completer_ = self.completer, self._model.completer.module
        self.n_steps_, self.best_step_ = self.fit_summary_.n_steps, self.fit_summary_.best_step

    def _read_new_rows(self, X: Any) -> Table:
        table = super()._read_new_rows(X)
        untaught = self._columns_said(table, lambda model, wanted: model.untaught(wanted))
        if len(untaught) and self.completer is not None:  # ours only corrects a guess, and begins with no correction
            warn_user(
                f"columns {self.training_table_.layout.describe(untaught)} with missing values were complete in training, so "
                "the completer never learned to impute them; fit on rows with missing values there too",
                OtimputeWarning,
            )
        return table

    def _with_modules(self, model: MetaSinkhornModel, layout: ColumnLayout) -> MetaSinkhornModel:
        if model.is_built_in != (self.completer is None) or not np.array_equal(model.used, layout.used):
            raise StoredFileError("the completer is of other columns, or of another make; save the imputer again")
        return model if model.is_built_in else model.revived(self.completer)

    @staticmethod
    @cache
    def _compile() -> None:
        MetaSinkhornImputer(max_steps=1, random_state=0).fit([[0.0, 1.0], [1.0, np.nan], [2.0, 0.0], [3.0, 2.0]])
