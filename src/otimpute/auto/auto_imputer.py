"""One imputer for any table: several experts, weighed by what they make of hidden values."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, check_count, check_flag, check_real
from .._gpu import check_device
from .._random import generator, seed_from
from .._stored import ByName, IfThere, Kind, Plain, Record, Scalar
from .._threads import n_threads, single_blas_thread
from .._warn import warn_user
from ..baselines import GaussianMixtureImputer
from ..estimator import BaseImputer, FitProgress, HiddenValues, progress_bar
from ..exceptions import FitStoppedWarning, Message, OtimputeWarning, StoredFileError, Term
from ..table import Table, seconds_of
from ._experts import MIXTURE, Asked, add_shrunk, read_experts
from ._learn import Learned, learn
from ._left_out import LeftOut, Why
from ._model import AutoModel
from ._report import describe
from ._trial import Cells, Columns
from ._verdict import About, Verdict


class AutoImputer(BaseImputer):
    """Impute any table well: several different experts, combined by how well they fill in hidden values.

    No single method wins everywhere. Some observed values are hidden the way the table's own values are missing, all experts
    fill them in, and each gets the weight that would have been best, column by column; then the experts that count are fitted
    to the whole table. Which ones are asked by default, and how they compare with single methods, is in docs/studies/auto.md.

    ========== =====================================================================================
    mean       the column's mean, or its most frequent category; always asked
    gaussian   one Gaussian for all rows (`GaussianEMImputer`): straight relations
    shrunk     the same, leaning on independent columns; asked with it where rows are few
    mixture    mixtures of 8, 16 and 32 Gaussians (`GaussianMixtureImputer`): clusters and curves
    transport  optimal transport (`SinkhornImputer`)
    trees      extremely randomised trees (`ExtraTreesImputer`), which refine what those above made of it
    kernel     kernel ridge regression (`KernelRidgeImputer`), which does too
    ========== =====================================================================================

    Parameters
    ----------
    experts : list of names, imputers or regressors, default=None
        Who is asked: names of the table above, ``"neighbours"`` (`KNNImputer`), ``"forest"`` (`MissForestImputer`),
        ``"chain"`` (`ICEImputer`); imputers of otimpute's or scikit-learn's, such as ``["mixture", KNNImputer()]``,
        or regressors of scikit-learn's, which then predict every column from the others.
    target : {"values", "distribution"}, default="values"
        ``"values"``: single values are as near to the truth as can be, but vary less than true ones do. ``"distribution"``:
        each is a random draw around that, so that columns and their relations keep their shape; single values are further off.
    n_splits : int or None, default=None
        How many times values are hidden, 15 % of the observed ones each time (3 % in columns without holes); None is 3, and up
        to 8 for small tables.
    max_seconds : float or None, default=None
        About how long a fit may take. There are fewer trials, and experts for which there is no time are left out; the Gaussian
        always stays. Compiling on a machine's first fit is not counted.
    n_jobs : int or None, default=None
        Experts fitted at the same time; -1 uses all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where experts that are asked by name compute, if they can choose (``transport``); as in `SinkhornImputer`.
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
        What imputed values of a column must obey, as in `SinkhornImputer`.
    max_categories : int or None, default=50
        How many categories of a column are told apart, as in `SinkhornImputer`.

    Attributes
    ----------
    weights_ : dict
        By column, the weight of each expert; those of a column sum to one.
    scores_ : dict
        By column and expert, how far off hidden values were: ``"mae"`` and ``"rmse"`` in the column's units (dates: seconds),
        or ``"wrong"``, the share of wrong categories and booleans. ``"stack"`` is the combination, by weights learned from
        other hidden values than those it is scored on.
    verdict_ : str
        What to make of that, in plain words.
    judgement_ : Verdict
        The same as data: what hidden values show about each column with holes and about all of them, and who is trusted.
    left_out_ : dict
        By expert that could not be asked, why: ``why`` is ``"no time"`` or ``"failed"``, ``words`` says it for people.
    imputation_std_ : array or frame [n_rows, n_columns]
        Error bars of the table that was fitted, as a table of its kind; not stored by ``save``. Calibrated on hidden values:
        90 % of true values are within ± 1.645 of these (docs/studies/coverage.md). In the column's units (dates: seconds); for
        a category or boolean the chance that it is wrong; 0 where a value was observed, NaN where nothing is known: in columns
        with one value or none, and categories too few to try.
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
        "_model": Record((AutoModel,)),
        "weights_": Plain(),
        "scores_": Plain(),
        "verdict_": Scalar(str),
        "judgement_": IfThere(Record((Verdict,))),
        "left_out_": IfThere(ByName(Record((LeftOut,)))),
        "hidden_values_": IfThere(Record((HiddenValues,))),
    }
    _state_version: ClassVar[int] = 3

    left_out_: dict[str, LeftOut]
    weights_: dict[Any, dict[str, float]]
    scores_: dict[Any, dict[str, dict[str, float]]]

    _parameter_kinds: ClassVar[Mapping[str, Kind]] = {"experts": Asked()}

    def __init__(
        self,
        experts: Any = None,
        *,
        target: str = "values",
        n_splits: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        integers: str = "round",
        constraints: Any = None,
        max_categories: int | None = 50,
    ):
        self.experts = experts
        self.target = target
        self.n_splits = n_splits
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.integers = integers
        self.constraints = constraints
        self.max_categories = max_categories

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
        values, missing = self._present(table)
        cells, bars = self._learned().impute(values, missing) if missing.any() else (np.empty(0), np.empty(0))
        completed = self._assemble(table, self._with_empty_columns(table, cells))
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
        values, missing = self._present(self._read_new_rows(X))
        names = self._column_names()
        model = self._learned()
        found = {names[place]: each for place, each in model.chances(values, missing).items()}
        for k, place in enumerate(self._groups.tolist()):  # booleans of which only one was ever observed
            if names[place] in self.categories_ and names[place] not in found:
                only = round(float(model.columns.scaler.restore(np.zeros(1), np.array([k]))[0]))
                found[names[place]] = np.tile(np.eye(2)[only], (len(values), 1))
        certain = np.ones((len(values), 1))  # of the only category there is
        return {name: certain if len(labels) == 1 else found[name] for name, labels in self.categories_.items()}

    def _check_parameters(self) -> None:
        check_device(self.device)
        read_experts(self.experts, self.device)
        check_choice("target", self.target, ["values", "distribution"])
        if self.n_splits is not None:
            check_count("n_splits", self.n_splits, advice="pass None to derive it from the table")
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, above=0, advice="pass None for no limit")
        if self.n_jobs is not None and self.n_jobs != -1:
            check_count("n_jobs", self.n_jobs, advice="pass None for one thread, -1 for all cores")

    def _fit_table(self, X: Any) -> tuple[Table, Cells]:
        table, filled = super()._fit_table(X)
        self.imputation_std_ = self._error_bars_of(table, self._bars_of_fit)
        del self._bars_of_fit
        return table, filled

    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        for name in ("_model", "_to_learn", "hidden_values_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._seed = seed_from(self.random_state)
        if missing.any():
            learned = self._learn(values, missing)
            self._bars_of_fit = learned.bars
            return learned.cells
        # Nothing to fill: experts are asked when new rows need them, which may be never.
        self._to_learn, self._bars_of_fit = np.array(values), np.empty(0)
        self.weights_, self.scores_ = {}, {}
        self.left_out_ = {}
        self.judgement_ = Verdict(About.NOTHING_LEARNED if self._n_holes.any() else About.NOTHING_MISSING)
        self.verdict_ = str(self.judgement_)
        return np.empty(0)

    def _impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        return self._learned().impute(values, missing)[0] if missing.any() else np.empty(0)

    def _learned(self) -> AutoModel:
        """The model; of a table without holes it is learned now that there are rows to fill."""
        if "_model" not in vars(self):
            verdict = self.judgement_  # on the table that was fitted
            self._learn(self._to_learn, np.zeros(self._to_learn.shape, dtype=bool))
            self.judgement_, self.verdict_ = verdict, str(verdict)
            del self._to_learn
        return self._model

    def _state(self) -> dict[str, Any]:
        self._learned()
        return super()._state()

    def _learn(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> Learned:
        if self.max_seconds is not None:
            self._compile()
        begun = time.perf_counter()
        experts = add_shrunk(read_experts(self.experts, self.device), *values.shape)
        draws = self.target == "distribution"
        if draws:
            experts.setdefault(MIXTURE, GaussianMixtureImputer())  # draws are made with it
        with single_blas_thread(), progress_bar("Asking experts", self.verbose) as bar:

            def progress(n_asked: int, n_to_ask: int) -> None:
                for show in bar:
                    show(FitProgress(n_asked, n_to_ask, time.perf_counter() - begun, {"loss": []}))

            codes = [self._encoding.codes[place] for place in self._groups]
            is_label = np.array([code.has_labels or code.kind == "ordered" for code in codes], dtype=bool)
            learned = learn(
                experts, self, values, missing, Columns.of(values, missing, self._groups, self._scaled, is_label), codes,
                self._groups,
                draws=draws, fractions=self.integers == "float", n_splits=self.n_splits,
                limit=np.inf if self.max_seconds is None else float(self.max_seconds), seed=self._seed,
                n_threads=n_threads(self.n_jobs), progress=progress,
            )  # fmt: skip
            self._model = learned.model
            self._report(learned, values, missing)
        self._warn_of_left_out()
        return learned

    def _report(self, learned: Learned, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> None:
        names = self._column_names()
        found = describe(
            learned, values, missing, self._encoding.codes, self._groups, names, generator(self._seed, "unseen regions")
        )
        panel = learned.model.panel
        self.weights_ = {
            name: dict(zip(panel.names, row.tolist(), strict=True))
            for name, row in zip(found.names, panel.weights, strict=True)
        }
        self.scores_, self.hidden_values_, self.left_out_ = found.scores, found.hidden_values, dict(learned.left_out)
        self.judgement_, self.verdict_ = found.verdict, str(found.verdict)

    def _column_names(self) -> list[Any]:
        return list(self._encoding.names or range(self.n_features_in_))

    def _error_bars_of(self, table: Table, bars: Cells) -> Any:
        """The error bars of a table, as a table of its kind, from those of its imputed coordinates."""
        by_coordinate = np.zeros(table.missing.shape)
        by_coordinate[table.missing] = self._with_empty_columns(table, bars)
        known = ~self._empty
        if "_model" in vars(self):
            known[known] = self._model.columns.scaler.spread > 0
        by_coordinate[:, ~known] = np.nan  # nothing is known about how its values vary
        found = np.zeros(table.holes.shape)
        place = 0
        for k, code in enumerate(self._encoding.codes):
            own = by_coordinate[:, place] * seconds_of(code) if code.width else np.full(len(found), np.nan)
            found[:, k] = np.where(table.holes[:, k], own, 0.0)
            place += code.width
        return table.numbers_like_source(found, self._kept)

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
        model = self._model
        fits = np.array_equal(model.columns.group, np.unique(self._groups, return_inverse=True)[1])
        fits &= all(np.array_equal(each._groups, self._groups) for each in model.panel.experts)
        mixture = dict(zip(model.panel.names, model.panel.experts, strict=True)).get(MIXTURE)
        fits &= "hidden_values_" not in state or self.hidden_values_.rows.max(initial=-1) < self._n_rows
        if not fits or (model.draws and not isinstance(mixture, GaussianMixtureImputer)):
            raise StoredFileError("experts, weights and columns do not go together; save the imputer again")

    @staticmethod
    @cache
    def _compile() -> None:
        rows = np.random.default_rng(0).normal(size=(30, 3))
        rows[:5, 0] = np.nan
        AutoImputer(random_state=0).fit(rows)
