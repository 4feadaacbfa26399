"""One imputer for any table: several experts, weighed by what they make of hidden values."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_choice, check_count, check_flag, check_jobs, check_real
from .._gpu import check_device
from .._random import generator
from .._stored import ByName, IfThere, Kind, Plain, RecordOf, Scalar
from .._threads import Workers, n_threads, single_blas_thread
from .._warn import warn_user
from ..baselines import GaussianMixtureImputer
from ..estimator import BaseImputer, FitTask, HiddenValues, ScanSummary, TableParameters
from ..exceptions import FitStoppedWarning, Message, OtimputeWarning, StoredFileError, Term
from ..fitting import CellFit, Cells, ColumnLayout, FitProgress, progress_bar
from ..table import ColumnKind, Table, seconds_of
from ._choices import choices_of, named_in
from ._experts import MIXTURE, ExpertsParameter, read_experts, suit_to_size
from ._fits import AutoFit, CompleteTable
from ._learn import learn
from ._left_out import LeftOut, Why
from ._model import AutoModel
from ._report import describe
from ._row_sums import AutoSums
from ._verdict import About, Verdict


class AutoImputer(BaseImputer):
    """Impute any table: several methods, weighted per column by their error on held-out values.

    No single method wins everywhere. Some observed values are hidden, in the way the table's own values are missing; every
    method (expert) imputes them, and gets the weight in each column that would have been best. The experts with weight are then
    fitted to the whole table. How the default experts were chosen, and how they compare with single methods, is in
    docs/studies/auto.md.

    ================== ===================================================================================
    mean               the column's mean, or its most frequent category; always included
    gaussian_em        one Gaussian for all rows (`GaussianEMImputer`): linear relations
    gaussian_em_shrunk the same with a stronger prior; added where there are few rows per column
    gaussian_mixture   mixtures of 8, 16 and 32 Gaussians (`GaussianMixtureImputer`): clusters and curves; not for more than
                       200 columns, where it adds nothing
    extra_trees        extremely randomised trees (`ExtraTreesImputer`), which refine the result of those above
    kernel_ridge       kernel ridge regression (`KernelRidgeImputer`), which does too
    ================== ===================================================================================

    Parameters
    ----------
    experts : list of names, imputers or regressors, default=None
        The methods to combine: names of the table above or of any other imputer, as the command line has them (``"sinkhorn"``,
        ``"knn"``, ``"missforest"``, …); imputers of otimpute, of scikit-learn or of your own, such as
        ``["gaussian_mixture", KNNImputer()]``; or regressors of scikit-learn, which then predict every column from the others.
    methods : dict, default=None
        By column (its name, in arrays its position), the expert that gets all the weight there, or a list of those that may get
        some: ``{"job": "extra_trees", "age": ["gaussian_em", "knn"]}``. Names as in ``experts``, and ``"trees"`` and
        ``"gaussian"`` for short; experts that are not among ``experts`` are added. It is an error if all of a column fail.
    target : {"values", "distribution"}, default="values"
        ``"values"``: imputed values are as close to the truth as possible, but vary less than true values do.
        ``"distribution"``: each is a random draw, so that columns and their relations keep their distribution; single values
        are further off.
    n_splits : int or None, default=None
        How many times values are hidden, 15 % of the observed ones each time (3 % in columns without missing values). None:
        until about 200 values of a typical column were hidden (600 for draws, and where there are categories), once in long
        tables, at most 8 times.
    max_seconds : float or None, default=None
        Approximate time limit of a fit. There are fewer splits, and experts for which there is no time are left out; the
        Gaussian always stays, and those that ``methods`` names. Compilation in a machine's first fit is not counted.
    n_jobs : int or None, default=None
        Threads; None is one, -1 all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where experts given by name compute: ``"cuda"`` is a GPU, for those that can use one (of the default experts all but the
        trees); ``"auto"`` takes one if there is one, for experts that would take the CPU about 20 s or more. New rows are
        imputed on the CPU.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    verbose : int, default=0
        Show a progress bar (in terminals it needs rich).
    missing_values : float, default=nan
        What marks a missing value, besides NaN and null.
    add_indicator : bool, default=False
        Append a column per column with missing values that says where they were.
    keep_empty_features : bool, default=True
        Columns without any observed value stay empty, with a warning; False drops them.
    integers : {"round", "float"}, default="round"
        Whether imputed integers and booleans are rounded so that the column keeps its type, or become floats.
    constraints : dict, default=None
        Constraints on the imputed values of a column, as in `SinkhornImputer`.
    max_categories : int or None, default=50
        How many categories of a column are told apart, as in `SinkhornImputer`.
    columns, exclude, identifiers, predictors, groups, time, derive, applicable
        What you know of the table, as in `SinkhornImputer`.

    Attributes
    ----------
    weights_ : dict
        By column, the weight of each expert; those of a column sum to one.
    scores_ : dict
        By column and expert, the error on hidden values: ``"mae"`` and ``"rmse"`` in the column's units (dates: seconds),
        or ``"wrong"``, the share of wrong categories and booleans. ``"stack"`` is the combination, by weights learned from
        other hidden values than those it is scored on.
    verdict_ : str
        How far to trust the imputation, in plain words.
    judgement_ : Verdict
        The same as data: what hidden values show about each column with missing values and about all of them.
    left_out_ : dict
        Experts that were left out, and why: ``why`` is ``"no time"`` or ``"failed"``, ``words`` says it for people.
    imputation_std_ : array or frame [n_rows, n_columns]
        Error bars of the table that was fitted, as a table of its kind; not stored by ``save``. Calibrated on hidden values:
        90 % of true values are within ± 1.645 of these (docs/studies/coverage.md). In the column's units (dates: seconds); for
        a category or boolean the probability that it is wrong; 0 where a value was observed, NaN where nothing is known: in
        columns with one value or none, and categories too few to try.
    hidden_values_ : HiddenValues
        The values that were hidden, and what was imputed for them.

    Notes
    -----
    Of more than 50 000 rows a sample of so many is fitted, and the others are filled in as new rows. From a table without
    missing values nothing is learned before rows with some are passed to ``transform``. A fitted imputer contains some
    completed rows.

    Examples
    --------
    >>> import numpy as np
    >>> from otimpute import AutoImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=200)
    >>> X = np.column_stack([x, x**2])
    >>> X_incomplete = X.copy()
    >>> X_incomplete[:40, 1] = np.nan
    >>> imputer = AutoImputer(random_state=0)
    >>> X_imputed = imputer.fit_transform(X_incomplete)
    >>> bool(np.abs(X_imputed - X).max() < 0.1)
    True
    >>> filled, std = imputer.transform([[0.5, np.nan]], return_std=True)
    >>> bool(abs(filled[0, 1] - 0.25) < 0.05 and std[0, 0] == 0 < std[0, 1])
    True
    >>> print(imputer.verdict_.splitlines()[0])  # doctest: +ELLIPSIS
    On 192 observed numbers that were hidden the way values are missing, the imputed ones were off by 0.0... means (0...).
    """

    _stored: ClassVar[Mapping[str, Kind]] = {
        "weights_": Plain(),
        "scores_": Plain(),
        "verdict_": Scalar(str),
        "judgement_": IfThere(RecordOf((Verdict,))),
        "left_out_": IfThere(ByName(RecordOf((LeftOut,)))),
        "hidden_values_": IfThere(RecordOf((HiddenValues,))),
    }
    _state_version: ClassVar[int] = 6
    weighs_rows: ClassVar[bool] = True
    model_class: ClassVar[type] = AutoModel

    left_out_: dict[str, LeftOut]
    weights_: dict[Any, dict[str, float]]
    scores_: dict[Any, dict[str, dict[str, float]]]

    _parameter_kinds: ClassVar[Mapping[str, Kind]] = {"experts": ExpertsParameter()}

    def __init__(
        self,
        experts: Any = None,
        *,
        methods: Any = None,
        target: str = "values",
        n_splits: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        **table: Unpack[TableParameters],
    ):
        super().__init__(**table)
        self.experts = experts
        self.methods = methods
        self.target = target
        self.n_splits = n_splits
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def transform(self, X: Any, *, return_std: bool = False) -> Any:
        """Fill the holes of rows that may be new; nothing is refitted and every row is treated alone.

        Parameters
        ----------
        X : array or frame [n_rows, n_columns]
            Rows of the same columns as in training.
        return_std : bool, default=False
            Return error bars too, as in ``imputation_std_``.
        """
        check_flag("return_std", return_std)
        table = self._read_new_rows(X)
        values, missing = self.training_table_.arrays_of(table)
        cells, bars = np.empty(0), np.empty(0)
        if missing.any():
            with Workers(n_threads(self.n_jobs)) as workers:
                cells, bars = self.model_.impute(values, missing, workers=workers, with_bars=return_std)
        completed = self._assemble(table, cells)
        return (completed, self._error_bars_of(table, bars)) if return_std else completed

    def category_probabilities(self, X: Any) -> dict[Any, NDArray[np.float64]]:
        """The chance of every category in every row, by column of categories or booleans.

        Parameters
        ----------
        X : array or frame [n_rows, n_columns]
            Rows of the same columns as in training.

        Returns
        -------
        chances : dict of arrays [n_rows, n_categories]
            By name, in the order of ``categories_[name]``. Where a value is observed, its chance is 1.
        """
        values, missing = self.training_table_.arrays_of(self._read_new_rows(X))
        model, layout = self.model_, self.training_table_.layout
        found = {layout.names[place]: each for place, each in model.chances(values, missing).items()}
        for k, place in enumerate(layout.groups[layout.own].tolist()):  # booleans of which only one was ever observed
            name = layout.names[place]
            if name in self.categories_ and name not in found:
                only = round(float(model.columns.scaler.restore(np.zeros(1), np.array([k]))[0]))
                found[name] = np.tile(np.eye(2)[only], (len(values), 1))
        certain = np.ones((len(values), 1))  # of the only category there is
        return {name: certain if len(labels) == 1 else found[name] for name, labels in self.categories_.items()}

    def check_parameters(self) -> None:
        check_device(self.device)
        self._read_experts()
        check_choice("target", self.target, ["values", "distribution"])
        if self.n_splits is not None:
            check_count("n_splits", self.n_splits, advice="pass None to derive it from the table")
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, above=0, advice="pass None for no limit")
        check_jobs(self.n_jobs)

    def _read_experts(self, *, weighted: bool = False) -> dict[str, BaseImputer]:
        experts = read_experts(self.experts, self.device, self.n_jobs, self.methods)
        cannot = [name for name, expert in experts.items() if weighted and not expert.weighs_rows]
        if cannot:
            raise ValueError(
                f"sample_weight cannot be used by these experts: {', '.join(cannot)}; name others, such as those of "
                "experts=None, or leave the weights out"
            )
        return experts

    @property
    def model_(self) -> AutoModel:
        """The model; of a complete table it is learned when there are rows to impute."""
        model = super().model_
        if isinstance(model, CompleteTable):
            fit = model.learn()
            self._model = fit.model
            self._note(fit)  # the verdict stays that of the table that was fitted
            return fit.model
        return cast("AutoModel", model)

    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        seed: int,
        start: Cells | None = None,  # noqa: ARG002
        deadline: float = math.inf,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> CellFit:
        return self._fit_wanted(values, missing, missing & layout.is_imputed, layout, seed, deadline, sample_weight)

    def fit_task(self, task: FitTask, sample_weight: NDArray[np.float64] | None = None) -> CellFit:
        return self._fit_wanted(task.values, task.missing, task.wanted, task.layout, task.seed, row_weight=sample_weight)

    def _fit_wanted(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        wanted: NDArray[np.bool_],
        layout: ColumnLayout,
        seed: int,
        deadline: float = math.inf,
        row_weight: NDArray[np.float64] | None = None,
    ) -> CellFit:
        self._read_experts(weighted=row_weight is not None)
        choices_of(self.methods, layout)  # to complain even where nothing is missing
        if wanted.any():
            return self._learn(values, missing, wanted, layout, seed, deadline, row_weight)
        later = CompleteTable(np.array(values), missing, layout, seed, clone(self), row_weight)
        return CellFit(np.zeros(int(missing.sum())), later)

    _improves_in_rounds = True
    _sampled = ("the trial of the experts", "all other experts", "error bars")

    def _row_sums(self) -> AutoSums | None:
        sums = AutoSums(self.model_)
        return sums if sums.by_place else None

    @property
    def _summed(self) -> list[str]:
        return AutoSums(self.model_).described

    def _improved(self, sums: AutoSums) -> AutoModel:
        return sums.improved(self._read_experts())

    def _note_scan(self, summary: ScanSummary) -> None:
        super()._note_scan(summary)
        self.__dict__.pop("imputation_std_", None)  # of a sample, which nobody has; a fit that was resumed has none

    def _take_over(self, fit: CellFit, table: Table) -> None:
        super()._take_over(fit, table)
        if isinstance(fit, AutoFit):
            self._note(fit)
            self.judgement_, bars = fit.findings.verdict, fit.bars
        else:
            self.weights_, self.scores_, self.left_out_ = {}, {}, {}
            about = About.NOTHING_LEARNED if self.training_table_.n_missing.any() else About.NOTHING_MISSING
            self.judgement_, bars = Verdict(about), np.zeros(len(fit.cells))
        kinds = zip(self.training_table_.layout.names, self.training_table_.encoding.codes, strict=True)
        self.judgement_.set_aside.extend(name for name, code in kinds if code.kind == ColumnKind.IDENTIFIER)
        self.verdict_ = str(self.judgement_)
        self.imputation_std_ = self._error_bars_of(table, bars)

    def _note(self, fit: AutoFit) -> None:
        """Keep what there is to know about the experts."""
        self.weights_, self.scores_, self.hidden_values_ = fit.weights, fit.findings.scores, fit.findings.hidden_values
        self.left_out_ = dict(fit.findings.verdict.left_out)
        self._warn_of_left_out()

    def _state(self) -> dict[str, Any]:
        _ = self.model_  # a file holds what was learned
        return super()._state()

    def _learn(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        wanted: NDArray[np.bool_],
        layout: ColumnLayout,
        seed: int,
        deadline: float = math.inf,
        row_weight: NDArray[np.float64] | None = None,
    ) -> AutoFit:
        if self.max_seconds is not None:
            self._compile(self.device)
        begun = time.perf_counter()
        limit = min(math.inf if self.max_seconds is None else float(self.max_seconds), deadline - begun)
        experts, choices = self._read_experts(weighted=row_weight is not None), choices_of(self.methods, layout)
        draws = self.target == "distribution"
        if draws:
            experts.setdefault(MIXTURE, GaussianMixtureImputer(n_jobs=self.n_jobs, device=self.device))  # to draw with
        asked_for = {*(experts if self.experts is not None else ()), *named_in(choices), *((MIXTURE,) if draws else ())}
        experts = suit_to_size(experts, len(values), layout, asked_for)
        n_workers = n_threads(self.n_jobs)
        with single_blas_thread(), Workers(n_workers), progress_bar("Comparing methods", self.verbose) as bar:

            def progress(n_asked: int, n_to_ask: int) -> None:
                for show in bar:
                    show(FitProgress(n_asked, n_to_ask, time.perf_counter() - begun, {"loss": []}))

            learned = learn(
                experts, layout, values, missing,
                draws=draws, fractions=self.integers == "float", n_splits=self.n_splits,
                limit=limit, seed=seed, n_threads=n_workers, progress=progress,
                wanted=wanted, row_weight=row_weight, choices=choices,
            )  # fmt: skip
            own = layout.own
            findings = describe(
                learned, values[:, own], missing[:, own], wanted[:, own], layout, generator(seed, "unseen regions")
            )
        return AutoFit(learned.cells, learned.model, bars=learned.bars, findings=findings)

    def _error_bars_of(self, table: Table, bars: Cells) -> Any:
        """The error bars of a table, as a table of its kind, from those of its imputed coordinates."""
        training = self.training_table_
        by_coordinate = np.zeros(table.missing.shape)
        by_coordinate[table.missing] = training.with_empty_columns(table, bars)
        known = ~training.empty
        if isinstance(self._model, AutoModel):
            known[known] = self._model.columns.scaler.spread[training.layout.own] > 0
        by_coordinate[:, ~known] = np.nan  # nothing is known about how its values vary
        found = np.zeros(table.holes.shape)
        place = 0
        for k, code in enumerate(table.codes):
            own = by_coordinate[:, place] * seconds_of(code) if code.width else np.full(len(found), np.nan)
            found[:, k] = np.where(table.holes[:, k], own, 0.0)
            place += code.width
        return table.numbers_like_source(found, training.kept)

    def _warn_of_left_out(self) -> None:
        late = [name for name, each in self.left_out_.items() if each.why is Why.NO_TIME]
        if late:
            then = f" left no time for {', '.join(late)}; the imputer holds what was reached"
            warn_user(Message(Term("max_seconds", self.max_seconds), then), FitStoppedWarning)
        for name, each in self.left_out_.items():
            if name not in late:
                warn_user(f"the expert {name!r} is left out: {each}", OtimputeWarning)

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        fits = np.array_equal(self.model_.columns.group, np.unique(self.training_table_.layout.groups, return_inverse=True)[1])
        fits &= "hidden_values_" not in state or self.hidden_values_.rows.max(initial=-1) < self.training_table_.n_rows
        if not fits:
            raise StoredFileError("experts, weights and columns do not go together; save the imputer again")

    @staticmethod
    @cache
    def _compile(device: str) -> None:
        rows = np.random.default_rng(0).normal(size=(30, 3))
        rows[:5, 0] = np.nan
        for where in ("cpu", "cuda") if device == "cuda" else ("cpu",):  # a GPU has to be started too; new rows need the CPU
            AutoImputer(random_state=0, device=where).fit(rows)
