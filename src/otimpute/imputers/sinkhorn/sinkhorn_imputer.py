"""Algorithm 1: one parameter per missing value, moved until random batches of rows look alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_count, check_flag, check_real
from ..._device import Device
from ..._random import generator
from ..._row_noise import uniform
from ..._stored import Maybe, Whole, stored
from ..._threads import n_threads
from ...estimator import TableParameters, score_cells
from ...fitting import CellFit, Cells, ColumnLayout, FitSummary, StopReason, check_callbacks, progress_bar
from ...fitting.checkpoint import NO_CHECKPOINT, Checkpoint
from ...fitting.training import TrainingOutcome
from ..batches.divergence import make_cells, make_geometry
from ..gpu.gpu_steps import GpuFit
from ..transport_imputer import Prepared, TransportImputer, TransportModel
from .cpu_steps import CpuSteps
from .descent import Descended, DescentProblem, DescentSchedule, descend, descend_on_gpu, empty_history
from .reference import Reference

_FEWEST_STEPS = 1000
_VISITS = 100  # how often every row should meet others, at least


@stored(n_jobs=Maybe(Whole(at_least=-1)))
@dataclass(frozen=True)
class SinkhornModel(TransportModel):
    """Carries new rows to where transport sends them among completed ones."""

    reference: Reference | None  # None where no column varies
    n_jobs: int | None

    def __post_init__(self) -> None:
        if (self.reference is None) != (len(self.columns) == 0):
            raise ValueError("there must be reference rows exactly where a column varies")

    def _complete(self, work: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
        if self.reference is not None:
            self.reference.impute(work, holes, n_threads(self.n_jobs))

    def draw_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """Draws of the missing entries: each row follows one of the rows that transport sends it to."""

        def complete(work: NDArray[np.float32], holes: NDArray[np.bool_], chunk: slice) -> None:
            if self.reference is not None:
                self._complete(work, holes)
                self.reference.draw(work, holes, uniform(keys[chunk], 0))

        return self._cells(values, missing, complete)


@dataclass(frozen=True)
class DescentStart:
    """A fit before its first step."""

    prepared: Prepared
    seed: int
    problem: DescentProblem
    device: Device


class SinkhornImputer(TransportImputer):
    """Impute by optimal transport: batch Sinkhorn imputation (Algorithm 1 of Muzellec et al., ICML 2020).

    Every missing value is a free parameter. Two random batches of rows should look like draws from one distribution; their
    Sinkhorn divergence says how far they are from that, and its gradient moves the missing values. The defaults were chosen
    by measurement (docs/studies/defaults.md) and go past the paper: rows are compared in a metric learned from the table,
    and the descent starts from a Gaussian model's guess. `SinkhornImputer.paper()` is the published algorithm.
    Most people need only ``random_state``, ``validation_fraction``, ``max_seconds``, ``n_jobs`` and ``verbose``.

    Parameters
    ----------
    epsilon : float or {"auto", "cost", "distance", "authors"}, default="auto"
        Entropic strength on the cost c = ½‖x − y‖² of standardised rows. ``"auto"``: 1 % of the median of c; ``"cost"``: 5 %
        of it; ``"distance"``: 5 % of the median of ‖x − y‖; ``"authors"``: the square of ``"cost"``, as in the published code.
    batch_size : int or "auto", default="auto"
        Rows per batch; automatically 128, or for fewer than 257 rows the power of two at or below half of them.
    n_pairs : int, default=1
        Pairs of batches per step.
    max_steps : int or "auto", default="auto"
        Gradient steps; automatically 1000, and more when that is too few for every row to be drawn about 100 times.
    learning_rate : float, default=1e-2
        RMSprop's step size, in standard deviations.
    step_decay : float in (0, 1], default=0.1
        The step size falls geometrically to this share of itself; 1 keeps it.
    tail_average : float in [0, 1), default=0.25
        Share of the last steps whose mean is the result; 0 returns the last iterate.
    initial : {"auto", "mean", "em"} or array [n_rows, n_columns], default="auto"
        Start of the missing values: column means, conditional means of a Gaussian model, or your own table.
        ``"auto"`` is ``"em"`` with the covariance metric and ``"mean"`` otherwise.
    noise : float, default=0.1
        Standard deviation of the noise added to the start, in standard deviations of the column.
    metric : {"auto", "covariance", "euclidean"}, default="auto"
        Rows are compared by ½‖x − y‖² of standardised columns, or by the same after whitening by the root of correlations.
        ``"auto"`` is ``"covariance"`` for up to 300 columns.
    one_sided : bool, default=False
        Draw the first batch from complete rows and the second from incomplete ones. Legitimate when holes are completely
        at random and enough rows are complete.
    scale : bool, default=True
        Standardise columns inside. Switch off only for columns that already have about unit spread: ``noise``,
        ``learning_rate`` and ``tol`` are then in the table's own units.
    tol : float, default=1e-2
        Stop when the mean imputed value moves by less than this (root mean square, in standard deviations) from one
        twentieth of the steps (at least 50) to the next; 0 never stops early.
    validation_fraction : float in [0, 1), default=0.0
        Share of the observed values hidden from the fit to score it; the scores are in ``history_``. The hidden values come
        back untouched. If the score rises during the fit, lower ``max_steps``; more steps favour the shape of the distribution.
    reference_size : int, default=2000
        Completed training rows kept to impute new rows; memory grows with its square. A fitted imputer contains these rows.
    max_seconds : float or None, default=None
        Stop after about this time and use what was reached.
    n_jobs : int or None, default=None
        Threads to prepare long tables, for the pairs of a step and for new rows; -1 uses all cores. The result is the same.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute the fit; automatically on an NVIDIA GPU where there is one and the CPU would take about 20 s or more.
        The result is the same up to rounding. A GPU needs ``pip install "otimpute[gpu]"``.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    verbose : int, default=0
        Show a progress bar (in terminals it needs rich).
    callbacks : list of functions, default=None
        Called several times a second with a ``FitProgress`` (``step``, ``max_steps``, ``seconds``, ``history``); a true return
        value stops the fit.
    checkpoint : path or None, default=None
        File in which a long fit leaves its state every half minute or so, and when it is stopped. Fitted again, on the same
        table with the same parameters, it goes on from there to the result of a fit that never stopped, and removes the file.
    missing_values : float, default=nan
        What marks a hole, besides NaN and null.
    add_indicator : bool, default=False
        Append a column per column with holes that says where they were.
    keep_empty_features : bool, default=True
        Columns without any observed value stay empty, with a warning (scikit-learn's imputers fill them with 0); False drops
        them.
    integers : {"round", "float"}, default="round"
        Whether imputed integers and booleans are rounded so that the column keeps its type, or become floats.
    constraints : dict, default=None
        What imputed values of a column must obey, by its name (its number in an array): ``"bounds"`` (a pair, None where
        open), ``"integer"`` or ``"non_negative"``, ``"categories"`` (the values to choose from). For example
        ``{"age": {"bounds": (0, 120), "integer": True}, "grade": {"categories": ["A", "B", "C"]}}``. Without a word on it, a
        column whose values (20 or more) are all ≥ 0, all ≤ 0, all from 0 to 1, or all whole is filled with such values too;
        ``{"bounds": (None, None)}`` and ``{"integer": False}`` free it.
    max_categories : int or None, default=50
        How many categories of a column are told apart. Rarer ones are pooled: learned from together, and never imputed. Text
        that hardly repeats is left alone. None uses all categories of all columns.
    columns : names, positions, callable or selector, default=None
        The columns whose missing values are imputed; None is all. Others keep theirs, and may still inform. A callable gets the
        table and returns names or one boolean per column; selectors are those of scikit-learn, narwhals and polars.
    exclude : names, positions, callable or selector, default=None
        Columns that pass through unseen: neither imputed nor used.
    identifiers : {"set aside", "use"}, default="set aside"
        What to do with columns of a frame that look like row numbers, keys or hashes. They are set aside with a warning, unless
        ``columns``, ``predictors`` or ``constraints`` name them.
    predictors : dict, boolean frame or "auto", default=None
        Which columns inform which: ``{"income": ["age", "job"]}``, ``{"income": {"not": ["tax"]}}``; ``{"not": ["outcome"]}``
        is a column that informs no other. A boolean frame has a row for each imputed column and a column for each predictor.
        ``"auto"`` limits the columns of wide tables to those that say most about them.
    groups, time : name or list of names, name, default=None
        Whose rows belong together, and what orders them: panel data.
    derive : dict or list, default=None
        Columns computed from others, ``{"bmi": "weight / (height / 100) ** 2"}``, and what holds in every row,
        ``"start <= end"``.
    applicable : dict or boolean frame, default=None
        Where a value can exist at all: ``{"pregnancies": "sex == 'f'"}``, or a boolean frame. Elsewhere cells stay empty and
        count as missing nowhere.

    Attributes
    ----------
    epsilon_ : float
        Entropic strength used.
    metric_ : str
        Metric used.
    batch_size_ : int
        Rows per batch.
    device_ : str
        Where the fit was computed.
    n_steps_ : int
        Steps taken.
    converged_ : bool
        Whether the imputed values had settled (see ``tol``).
    stop_reason_ : str
        ``"tol"``, ``"max_steps"``, ``"max_seconds"``, ``"callback"``, ``"interrupted"`` or ``"nothing missing"``.
    history_ : dict of lists
        Per twentieth of the steps: ``step``, ``learning_rate``, ``loss`` (mean divergence), ``marginal_error`` (of the inner
        loop, which is cut short on purpose), ``movement`` and, with validation, ``validation_mae``, ``validation_rmse`` in
        standard deviations.

    Notes
    -----
    ``transform`` is our extension: a new row is moved by the barycentric map onto a sample of completed training rows until
    it stands still. It treats rows alone, so ``fit(X).transform(X)`` differs from ``fit_transform(X)``, whose values were
    optimised jointly.

    Examples
    --------
    >>> import numpy as np
    >>> from otimpute import SinkhornImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> X = np.hstack([x, 2 * x, -x]) + 0.05 * rng.normal(size=(200, 3))
    >>> X_incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> imputer = SinkhornImputer(random_state=0)
    >>> X_imputed = imputer.fit_transform(X_incomplete)
    >>> missing = np.isnan(X_incomplete)
    >>> bool(np.abs(X_imputed - X)[missing].mean() < 0.25 * np.abs(X[missing]).mean())
    True
    >>> imputer.transform([[1.0, np.nan, np.nan]]).round(0)
    array([[ 1.,  2., -1.]])
    """

    _PAPER: ClassVar[dict[str, Any]] = {
        "epsilon": "authors",
        "max_steps": 3000,
        "step_decay": 1.0,
        "tail_average": 0.0,
        "initial": "mean",
        "metric": "euclidean",
        "scale": False,
        "tol": 0.0,
    }
    model_class: ClassVar[type] = SinkhornModel
    _model: SinkhornModel

    def __init__(
        self,
        *,
        epsilon: float | str = "auto",
        batch_size: int | str = "auto",
        n_pairs: int = 1,
        max_steps: int | str = "auto",
        learning_rate: float = 1e-2,
        step_decay: float = 0.1,
        tail_average: float = 0.25,
        initial: Any = "auto",
        noise: float = 0.1,
        metric: str = "auto",
        one_sided: bool = False,
        scale: bool = True,
        tol: float = 1e-2,
        validation_fraction: float = 0.0,
        reference_size: int = 2000,
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
        self.epsilon = epsilon
        self.batch_size = batch_size
        self.n_pairs = n_pairs
        self.max_steps = max_steps
        self.learning_rate = learning_rate
        self.step_decay = step_decay
        self.tail_average = tail_average
        self.initial = initial
        self.noise = noise
        self.metric = metric
        self.one_sided = one_sided
        self.scale = scale
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.reference_size = reference_size
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The published Algorithm 1: authors' ε, 3000 steps of 1e-2, mean start, no rescaling.

        Bring columns to mean 0 and variance 1 first, or pass ``scale=True``.

        >>> SinkhornImputer.paper(random_state=0).max_steps
        3000
        """
        return cls(**{**cls._PAPER, **overrides})

    def check_parameters(self) -> None:
        self._check_shared_parameters()
        check_real("learning_rate", self.learning_rate, above=0)
        check_flag("one_sided", self.one_sided)
        if self.max_steps != "auto":
            check_count("max_steps", self.max_steps, advice='pass "auto" to derive it from the table')
        check_count("reference_size", self.reference_size)
        check_real("tail_average", self.tail_average, at_least=0, below=1)

    def _train(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        deadline: float,
        checkpoint: Checkpoint,
    ) -> tuple[NDArray[np.float32], SinkhornModel, FitSummary]:
        start = self.prepare(values, missing, layout, checkpoint.seed, deadline)
        return self._finish(start, self._descend(start, checkpoint))

    def prepare(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        seed: int,
        deadline: float = math.inf,
    ) -> DescentStart:
        """Everything before the first step."""
        prepared = self._prepare(values, missing, layout, seed, deadline)
        work, hidden, free, truth = prepared.work, prepared.hidden, prepared.free, prepared.truth
        plan, batch_size = self._choose_plan(free, seed)
        geometry = make_geometry(prepared.metric, prepared.epsilon, len(prepared.columns), work.shape[1])
        is_hidden = hidden[free]
        score = (lambda mean: score_cells(truth, mean[is_hidden])) if hidden.any() else None
        schedule = self._schedule(len(work), batch_size, deadline)
        problem = DescentProblem(GpuFit(work, free, geometry, plan), schedule, batch_size, self.n_pairs, score)
        return DescentStart(prepared, seed, problem, Device(self.device if free.any() else "cpu", problem.cpu_seconds))

    @property
    def is_watched(self) -> bool:
        """Whether somebody watches or limits fits, which then run alone."""
        limits = (self.callbacks, self.checkpoint, self.max_seconds)
        return bool(self.verbose) or any(each is not None for each in limits)

    def finish(self, start: DescentStart, missing: NDArray[np.bool_], on_gpu: Callable[[], Descended] | None = None) -> CellFit:
        """Everything after the first step, which may have been taken elsewhere: ``on_gpu`` returns what it led to."""
        work, model, summary = self._finish(start, self._descend(start, NO_CHECKPOINT, on_gpu))
        return CellFit(model.columns.read_holes(work, missing, n_threads(self.n_jobs)), model, summary)

    def _descend(self, start: DescentStart, checkpoint: Checkpoint, on_gpu: Callable[[], Descended] | None = None) -> Descended:
        """Algorithm 1 on the prepared working copy."""
        problem, fit = start.problem, start.problem.fit
        if not fit.free.any():
            outcome = TrainingOutcome(0, 0, StopReason.NOTHING_MISSING, empty_history(validates=False))
            return Descended(np.empty(0), outcome)
        with progress_bar("Sinkhorn imputation", self.verbose) as bar:
            callbacks = [*bar, *check_callbacks(self.callbacks)]

            def on_cpu() -> Descended:
                cells, n_jobs = make_cells(fit.values, fit.free), n_threads(self.n_jobs)
                steps = CpuSteps(cells, fit.geometry, fit.plan, problem.batch_size, problem.n_pairs, n_jobs)
                return descend(steps, problem.schedule, [problem.score], callbacks, checkpoint)[0]

            alone = on_gpu or (lambda: descend_on_gpu([problem], callbacks, checkpoint)[0])
            descended = start.device.run(alone, on_cpu)
            bar.ended(descended.outcome.stop_reason)
        return descended

    def _finish(self, start: DescentStart, descended: Descended) -> tuple[NDArray[np.float32], SinkhornModel, FitSummary]:
        prepared, d = start.prepared, len(start.prepared.columns)
        prepared.work[:, :d][prepared.free] = descended.cells
        prepared.work[:, :d][prepared.hidden] = prepared.truth
        reference = self._build_reference(prepared, start.seed)
        chosen = prepared.chosen(start.problem.batch_size, start.device.name)
        model = SinkhornModel(prepared.columns, chosen, reference, self.n_jobs)
        return prepared.work, model, descended.outcome.summary()

    def _publish(self) -> None:
        super()._publish()
        self.n_steps_ = self.fit_summary_.n_steps

    def _schedule(self, n_rows: int, batch_size: int, deadline: float = np.inf) -> DescentSchedule:
        n_steps = self._n_steps(n_rows, batch_size, _FEWEST_STEPS, _VISITS)
        return DescentSchedule(n_steps, self.learning_rate, self.step_decay, self.tail_average, self.tol, deadline)

    def _build_reference(self, prepared: Prepared, seed: int) -> Reference | None:
        """Completed rows and their potentials, for rows to come; None when no column varies."""
        work, d = prepared.work, len(prepared.columns)
        if d == 0:
            return None
        rows = np.arange(len(work))
        if len(work) > self.reference_size:
            rows = np.sort(generator(seed, "reference").choice(len(work), self.reference_size, replace=False))
        return Reference.build(work[rows, :d].astype(np.float64), prepared.metric, generator(seed, "reference"))

    @staticmethod
    @cache
    def _compile() -> None:
        SinkhornImputer(max_steps=2, random_state=0).fit([[0.0, 1.0], [1.0, np.nan], [2.0, 0.0], [3.0, 2.0]])
