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
from .._row_noise import keys_by_content, keys_by_place
from .._stored import Array, Kind, Plain, Record, Scalar, Whole
from .._threads import n_threads, single_blas_thread
from .._warn import warn_user
from ..baselines import GaussianMixtureImputer
from ..estimator import BaseImputer, FitProgress, progress_bar
from ..exceptions import FitStoppedWarning, OtimputeWarning, StoredFileError
from ..table import Table, seconds_of
from ._error_bars import ErrorBars
from ._experts import MIXTURE, OUT_OF_TIME, Asked, read_experts
from ._panel import Panel, disagreement, fit_panel
from ._report import STACK, Findings, score_columns, verdict
from ._trial import Cells, Columns, Trial, column_weights, sample_rows, try_experts
from ._weights import combine

_MOST_ROWS = 50_000  # that experts are fitted on; further rows are new ones to them
_CHUNK = 65_536  # new rows handled at a time
_FOR_TRIAL = 0.6  # of the time there is


class AutoImputer(BaseImputer):
    """Impute any table well: several different experts, combined by how well they fill in hidden values.

    No single method wins everywhere. Some observed values are hidden, all experts fill them in, and each gets the weight that
    would have been best, column by column; then the experts that count are fitted to the whole table. Which ones are asked by
    default, and how they compare with single methods, is in docs/studies/auto.md.

    ========== =====================================================================================
    mean       the column's mean, or its most frequent category; always asked
    gaussian   one Gaussian for all rows (`GaussianEMImputer`): straight relations
    mixture    mixtures of 8, 16 and 32 Gaussians (`GaussianMixtureImputer`): clusters and curves
    transport  optimal transport (`SinkhornImputer`)
    trees      extremely randomised trees (`ExtraTreesImputer`), which refine what those above made of it
    kernel     kernel ridge regression (`KernelRidgeImputer`), which does too
    ========== =====================================================================================

    Parameters
    ----------
    experts : list of names or imputers, default=None
        Who is asked: names of the table above, ``"neighbours"`` (`KNNImputer`), ``"forest"`` (`MissForestImputer`),
        ``"chain"`` (`ICEImputer`), or imputers of otimpute's, such as ``["mixture", KNNImputer(n_neighbors=3)]``.
    target : {"values", "distribution"}, default="values"
        ``"values"``: single values are as near to the truth as can be, but vary less than true ones do. ``"distribution"``:
        each is a random draw around that, so that columns and their relations keep their shape; single values are further off.
    n_splits : int or None, default=None
        How many times values are hidden, 15 % of the observed ones each time (3 % in columns without holes); None is 3, and up
        to 8 for small tables.
    max_seconds : float or None, default=None
        Fewer trials are made, and experts for which there is no time are left out; cheap ones are asked first.
    n_jobs : int or None, default=None
        Experts fitted at the same time; -1 uses all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where experts that are asked by name compute, if they can choose (``transport``); as in `SinkhornImputer`.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same result.
    verbose : int, default=0
        Show a progress bar (in terminals it needs rich).
    missing_values, add_indicator, keep_empty_features, integers, constraints, max_categories
        As in `SinkhornImputer`.

    Attributes
    ----------
    weights_ : dict
        By column, the weight of each expert; those of a column sum to one.
    scores_ : dict
        By column and expert, how far off hidden values were: ``"mae"`` and ``"rmse"`` in the column's units (dates: seconds),
        or ``"wrong"``, the share of wrong categories. ``"stack"`` is the combination, by weights learned from other hidden
        values than those it is scored on.
    verdict_ : str
        What to make of that, in plain words.
    imputation_std_ : array [n_rows, n_columns]
        Error bars of the table that was fitted; not stored by ``save``. Calibrated on hidden values: 90 % of true values are
        within ± 1.645 of these, as far as hidden ones are like missing ones. In the column's units (dates: seconds); for a
        category the chance that it is wrong; 0 where a value was observed, NaN where nothing is known: in columns with one
        value or none, and categories too few to try.

    Notes
    -----
    Of more than 50 000 rows a sample of so many is fitted, and the others are filled in as new rows. A fitted imputer contains
    some completed rows.

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
    On 192 observed numbers that were hidden for a trial, the imputed ones were off by 0.0... column means (0...).
    """

    _stored: ClassVar[Mapping[str, Kind]] = {
        "_columns": Record((Columns,)),
        "_panel": Record((Panel,)),
        "_error_bars": Record((ErrorBars,)),
        "_draw_scale": Array("G", np.float64, at_least=0),
        "_chance_wrong": Array("table", np.float64, nan=True),
        "_seed": Whole(),
        "weights_": Plain(),
        "scores_": Plain(),
        "verdict_": Scalar(str),
    }

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
        cells, spread = self._impute(*self._present(table))
        completed = self._assemble(table, self._with_empty_columns(table, cells))
        return (completed, self._error_bars_of(table, spread)) if return_std else completed

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
        self.imputation_std_ = self._error_bars_of(table, self.__dict__.pop("_spread"))
        return table, filled

    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        if self.max_seconds is not None:
            self._compile()
        seed, begun, threads = seed_from(self.random_state), time.perf_counter(), n_threads(self.n_jobs)
        limit = np.inf if self.max_seconds is None else float(self.max_seconds)
        experts = read_experts(self.experts, self.device)
        if self.target == "distribution":
            experts.setdefault(MIXTURE, GaussianMixtureImputer())  # draws are made with it
        columns = Columns.of(values, missing, self._groups, self._scaled)
        values = columns.pull_in(values, missing)
        with single_blas_thread(), progress_bar("Asking experts", self.verbose) as bar:

            def progress(n_asked: int, n_to_ask: int) -> None:
                for show in bar:
                    show(FitProgress(n_asked, n_to_ask, time.perf_counter() - begun, {"loss": []}))

            trial = try_experts(
                experts, self, values, missing, columns, n_splits=self.n_splits, seed=seed, n_threads=threads,
                deadline=begun + _FOR_TRIAL * limit, progress=progress,
            )  # fmt: skip
            weights, crossed, no_better = column_weights(trial, columns)
            rows = sample_rows(missing, _MOST_ROWS, generator(seed, "rows to fit"))
            self._columns, self._seed = columns, seed
            self._panel, guesses, failed = fit_panel(
                experts, self, values[rows], missing[rows], columns, trial, weights,
                needed=(MIXTURE,) if self.target == "distribution" else (),
                seed=seed, n_threads=threads, deadline=begun + limit,
            )  # fmt: skip
            left_out = {**trial.left_out, **failed}
            self._warn_of_left_out(left_out)
            self._report(trial, crossed, weights, no_better, missing, left_out)
            keys = keys_by_place(len(values), seed)
            self._draw_scale = self._scale_draws(trial, crossed, values[rows], missing[rows], keys[rows])
            return self._combine_all(values, missing, rows, guesses, keys)

    def _combine_all(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        rows: NDArray[np.int64],
        guesses: Cells,
        keys: NDArray[np.uint64],
    ) -> NDArray[np.float64]:
        """Imputed entries of the whole table, from the guesses for the fitted ``rows``; the others are new rows."""
        fitted, spread = self._combine(values[rows], missing[rows], guesses, keys[rows])
        if len(rows) == len(values):
            self._spread = spread
            return fitted
        cells, self._spread = np.empty(int(missing.sum())), np.empty(int(missing.sum()))
        is_fitted = np.zeros(len(values), dtype=bool)
        is_fitted[rows] = True
        of_fitted = is_fitted[np.nonzero(missing)[0]]
        cells[of_fitted], self._spread[of_fitted] = fitted, spread
        others = ~is_fitted
        cells[~of_fitted], self._spread[~of_fitted] = self._impute(values[others], missing[others], keys[others])
        return cells

    def _impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        return self._impute(values, missing)[0]

    def _impute(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64] | None = None
    ) -> tuple[Cells, Cells]:
        """Imputed entries of new rows, and how far off they may be, both row by row."""
        parts = [(np.empty(0), np.empty(0))]
        for begin in range(0, len(values), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            rows, holes = self._columns.pull_in(values[chunk], missing[chunk]), missing[chunk]
            own = keys_by_content(rows, holes, self._seed) if keys is None else keys[chunk]
            with single_blas_thread():
                guesses = self._panel.guess(rows, holes, self._columns)
                parts.append(self._combine(rows, holes, guesses, own))
        cells, spread = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cells, spread

    def _combine(
        self, values: NDArray[np.floating], missing: NDArray[np.bool_], guesses: Cells, keys: NDArray[np.uint64]
    ) -> tuple[Cells, Cells]:
        column = np.nonzero(missing)[1]
        group = self._columns.group[column]
        weights = self._panel.weights[group]
        z = combine(guesses, weights)
        if self.target == "distribution":
            z = z + self._draw_scale[group] * self._draw(values, missing, keys)
            z = np.clip(z, self._columns.low[column], self._columns.high[column])
        spread = self._error_bars.at(disagreement(guesses, weights), group) * self._columns.scaler.unit[column]
        return self._columns.scaler.restore(z, column), spread

    def _draw(self, values: NDArray[np.floating], missing: NDArray[np.bool_], keys: NDArray[np.uint64]) -> Cells:
        """How far from expected the missing entries may turn out to be, at random, as the mixture has it."""
        mixture = self._panel.experts[self._panel.names.index(MIXTURE)]
        unit = self._columns.scaler.unit[np.nonzero(missing)[1]]
        return np.asarray(mixture.draw_residuals(values, missing, keys) / np.where(unit > 0, unit, np.inf))

    def _scale_draws(
        self,
        trial: Trial,
        crossed: Cells,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        keys: NDArray[np.uint64],
    ) -> Cells:
        """By column, the factor that keeps draws from varying more than the combination was wrong in the trial.

        Where the mixture is a poor expert, as in tables of nearly the same column many times, its draws would be too wild.
        """
        scale = np.ones(self._columns.n_groups)
        if self.target == "values":
            return scale
        drawn, column = self._draw(values, missing, keys), np.nonzero(missing)[1]
        for g in range(len(scale)):
            hidden, mine = self._columns.group[trial.column] == g, self._columns.group[column] == g
            if hidden.any() and mine.any():
                wrong, wild = ((crossed - trial.truth)[hidden] ** 2).mean(), (drawn[mine] ** 2).mean()
                scale[g] = np.sqrt(min(1.0, wrong / max(wild, 1e-12)))
        return scale

    def _report(
        self,
        trial: Trial,
        crossed: Cells,
        weights: Cells,
        no_better: NDArray[np.bool_],
        missing: NDArray[np.bool_],
        left_out: Mapping[str, str],
    ) -> None:
        columns, group = self._columns, self._columns.group[trial.column]
        errors, apart = crossed - trial.truth, disagreement(trial.guesses, weights[group])
        self._error_bars = ErrorBars.fit(errors, apart, group, columns.n_groups)
        names = list(self._encoding.names or range(self.n_features_in_))
        places = list(dict.fromkeys(self._groups.tolist()))
        present = [names[place] for place in places]
        self.weights_ = {
            name: dict(zip(self._panel.names, row.tolist(), strict=True))
            for name, row in zip(present, self._panel.weights, strict=True)
        }
        self.scores_ = score_columns(trial, crossed, columns, self._encoding, self._groups, names)
        self._chance_wrong = np.full(self.n_features_in_, np.nan)
        for g, place in enumerate(places):
            wrong = self.scores_.get(names[place], {}).get(STACK, {}).get("wrong")
            if wrong is not None:  # never quite 0 or 1: it is a share of so many
                n_hidden = np.count_nonzero(group == g) / np.count_nonzero(columns.group == g)
                self._chance_wrong[place] = (wrong * n_hidden + 1) / (n_hidden + 2)
        with_holes = np.zeros(columns.n_groups, dtype=bool)
        np.logical_or.at(with_holes, columns.group, missing.any(axis=0))
        is_category = np.array([self._encoding.codes[place].is_scaled for place in places], dtype=bool)
        found = Findings(
            trial, crossed, no_better, with_holes, is_category, present, self._panel.names, self._panel.weights, left_out,
            draws=self.target == "distribution",
        )  # fmt: skip
        any_hole = bool(self._n_holes.any())
        self.verdict_ = verdict(found, columns, self.scores_) if any_hole else "Nothing was missing."

    def _error_bars_of(self, table: Table, spread: Cells) -> NDArray[np.float64]:
        """The table's error bars ``[n_rows, n_columns]`` from those of its imputed coordinates."""
        by_coordinate = np.zeros(table.missing.shape)
        by_coordinate[table.missing] = self._with_empty_columns(table, spread)
        knows = ~self._empty
        knows[knows] = self._columns.scaler.spread > 0
        by_coordinate[:, ~knows] = np.nan  # nothing is known about how its values vary
        bars = np.zeros(table.holes.shape)
        place = 0
        for k, code in enumerate(self._encoding.codes):
            if code.is_scaled:
                bars[table.holes[:, k], k] = self._chance_wrong[k]
            elif code.width:
                bars[:, k] = np.where(table.holes[:, k], by_coordinate[:, place] * seconds_of(code), 0.0)
            place += code.width
        return bars

    def _warn_of_left_out(self, left_out: Mapping[str, str]) -> None:
        late = [name for name, why in left_out.items() if why == OUT_OF_TIME]
        if late:
            warn_user(
                f"max_seconds={self.max_seconds} left no time for {', '.join(late)}; the imputer holds what was reached",
                FitStoppedWarning,
            )
        for name, why in left_out.items():
            if why != OUT_OF_TIME:
                warn_user(f"the expert {name!r} is left out: {why}", OtimputeWarning)

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        n_groups = self._columns.n_groups
        fits = {len(self._panel.weights), len(self._error_bars.base), len(self._draw_scale)} == {n_groups}
        fits &= np.array_equal(self._columns.group, np.unique(self._groups, return_inverse=True)[1])
        fits &= all(np.array_equal(each._groups, self._groups) for each in self._panel.experts)
        mixture = dict(zip(self._panel.names, self._panel.experts, strict=True)).get(MIXTURE)
        if not fits or (self.target == "distribution" and not isinstance(mixture, GaussianMixtureImputer)):
            raise StoredFileError("experts, weights and columns do not go together; save the imputer again")

    @staticmethod
    @cache
    def _compile() -> None:
        rows = np.random.default_rng(0).normal(size=(30, 3))
        rows[:5, 0] = np.nan
        AutoImputer(random_state=0).fit(rows)
