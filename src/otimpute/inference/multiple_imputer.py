"""Several completed tables from one with missing values, for inference that knows what is unknown."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._checks import check_count, check_jobs
from .._random import generator, seed_from
from .._stored import Array, Kind, ListOf, Maybe
from .._threads import Workers, n_threads
from ..baselines import ChainedImputer
from ..baselines.chained import ChainedFit
from ..estimator import BaseImputer, FitTask, Fitted, Storable, Unfitted
from ..exceptions import InPython, Message, OtimputeWarning, StoredFileError, Term
from ..fitting import CellFit, FitProgress, progress_bar
from ..table import ColumnKind, Family, Table
from .completed_tables import CompletedTables
from .diagnostics import Diagnostics, diagnose, traces_by_column
from .draws import DRAWING, check_draws, draw_source

_FEWEST_TABLES = 2


class MultipleImputer(Storable, BaseEstimator):  # type: ignore[misc]
    """Impute a table several times, so that an analysis of all tables knows how uncertain the missing values are.

    Imputed values are estimates, and an analysis that takes them for data claims too much. Here every table has other draws of
    the missing values, from another draw of the model behind them; `otimpute.pool` puts the results of an analysis of each
    together by Rubin's rules. Coverage of its intervals is measured in docs/studies/multiple_imputation.md.

    Parameters
    ----------
    imputer : imputer or None, default=None
        What draws missing values. None is `ChainedImputer()`, which is proper: its parameters, residuals and categories are all
        drawn. Others are fitted to a bootstrap sample of the rows for each table, and are less well calibrated
        (docs/guide/multiple-imputation.md): ``GaussianEMImputer()``, which is what Amelia does, ``GaussianMixtureImputer()``
        and ``SinkhornImputer()``.
    m : int, default=20
        How many tables.
    delta : dict, default=None
        How missing values differ from what observed ones suggest, by column, as in `ChainedImputer`: for sensitivity analyses.
    n_jobs : int or None, default=None
        How many tables are made at a time; None is one, -1 as many as there are cores. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Same seed, same tables.
    verbose : int, default=0
        Show a progress bar while tables are made (in terminals it needs rich).

    Attributes
    ----------
    imputers_ : list of imputers
        The fitted imputer behind each table.

    Examples
    --------
    >>> import numpy as np
    >>> import otimpute
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> X = np.column_stack([x, 0.5 * x + rng.normal(size=200)])
    >>> X[:80, 1] = np.nan
    >>> imputer = otimpute.MultipleImputer(m=10, random_state=0).fit(X)
    >>> def mean(table):
    ...     return {"mean": table[:, 1].mean()}, table[:, 1].var(ddof=1) / len(table)
    >>> pooled = otimpute.pool(imputer, mean, df_complete=199)
    >>> bool(pooled.std_error[0] > np.nanstd(X[:, 1]) / np.sqrt(200))  # more than if nothing were missing
    True
    """

    _stored: ClassVar[Mapping[str, Kind]] = {"imputers_": ListOf(Fitted(DRAWING)), "_cells": Array("M N", np.float64)}
    _parameter_kinds: ClassVar[Mapping[str, Kind]] = {"imputer": Maybe(Unfitted(DRAWING))}

    imputers_: list[BaseImputer]
    _cells: NDArray[np.float64]  # [m, N]: what is imputed

    def __init__(
        self,
        imputer: Any = None,
        m: int = 20,
        *,
        delta: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.imputer = imputer
        self.m = m
        self.delta = delta
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Draw the missing values of a table ``m`` times.

        Parameters
        ----------
        X : array or frame [n_rows, n_columns]
            NaN, null and ``missing_values`` of the imputer mark missing values.
        y : ignored
        """
        base = self._checked_imputer()
        with warnings.catch_warnings():  # about columns that are not imputed, which is an error here
            warnings.simplefilter("ignore", OtimputeWarning)
            task = base.begin_fit(X)
        _refuse_what_cannot_be_imputed(base, task)
        seed = seed_from(self.random_state)
        source = draw_source(base, task, seed)
        seeds = generator(seed, "tables").integers(2**63, size=self.m).tolist()
        begun = time.perf_counter()
        fits: list[CellFit] = []
        n_at_once = n_threads(self.n_jobs)
        with Workers(n_at_once) as workers, progress_bar("Drawing tables", self.verbose) as bar:
            for begin in range(0, self.m, n_at_once):
                fits += workers.map(source.draw, seeds[begin : begin + n_at_once])
                for show in bar:
                    show(FitProgress(len(fits), self.m, time.perf_counter() - begun, {"loss": []}))
        self.imputers_ = [_fitted(base, task, fit) for fit in fits]
        self._cells = np.array([fit.cells for fit in fits])
        self._traces = traces_by_column(task.table, [fit for fit in fits if isinstance(fit, ChainedFit)])
        self._task, self._original = task, X
        return self

    def fit_transform(self, X: Any, y: Any = None) -> CompletedTables:
        """Draw the missing values of a table and return the completed tables."""
        return self.fit(X, y).tables_

    def transform(self, X: Any) -> CompletedTables:
        """Complete rows that may be new, ``m`` times; nothing is refitted and every row is treated alone.

        Parameters
        ----------
        X : array or frame [n_rows, n_columns]
            Rows of the same columns as in ``fit``.
        """
        check_is_fitted(self)
        imputers = self.imputers_
        return CompletedTables(len(imputers), lambda k: imputers[k].transform(X), X, n_threads(self.n_jobs))

    @property
    def tables_(self) -> CompletedTables:
        """The completed tables, of the same kind as ``X``: a sequence that makes each when it is asked for."""
        check_is_fitted(self)
        if not hasattr(self, "_task"):
            raise AttributeError(
                "a model file holds what was imputed, not the table itself: call complete(X) with the table that was fitted"
            )
        return self._tables(self._task.table, self._original)

    def complete(self, X: Any) -> CompletedTables:
        """The completed tables of the table ``X`` that was fitted, which a model file does not hold."""
        check_is_fitted(self)
        first = self.imputers_[0]
        table = first.read_table(X)
        if not first.training_table_.rows.are_all_of(table.values, table.missing):
            raise ValueError("X is not the table that was fitted; pass other rows to transform")
        return self._tables(table, X)

    def diagnostics(self, X: Any = None) -> Diagnostics:
        """What the draws look like beside observed values, how much is unknown, and whether anything needs attention.

        Parameters
        ----------
        X : array or frame, default=None
            The table that was fitted, which a model file does not hold; without a model file it is not needed.

        Returns
        -------
        Diagnostics
            Plain data by column, with ``summary()``.
        """
        check_is_fitted(self)
        tables = self.tables_ if X is None else self.complete(X)
        first = self.imputers_[0]
        table = self._task.table if X is None else first.read_table(X)
        training = first.training_table_
        cells = np.array([training.with_empty_columns(table, each) for each in self._cells])
        return diagnose(
            table, [str(name) for name in training.layout.names], training.encoding.groups, cells,
            integers=first.integers, traces=getattr(self, "_traces", {}), frames=type(tables[0]).__module__.partition(".")[0],
        )  # fmt: skip

    def _tables(self, table: Table, original: Any) -> CompletedTables:
        return CompletedTables(len(self.imputers_), lambda k: self.imputers_[k].complete_cells(table, self._cells[k]), original)

    def _checked_imputer(self) -> BaseImputer:
        check_count(
            "m", self.m, at_least=_FEWEST_TABLES, advice="one table cannot show how much results vary; 20 is a good number"
        )
        check_jobs(self.n_jobs)
        base = ChainedImputer() if self.imputer is None else self.imputer
        check_draws(base)
        base = clone(base)
        if self.delta is not None:
            if not isinstance(base, ChainedImputer):
                raise ValueError(
                    f"delta needs the default imputer or a ChainedImputer, got {type(base).__name__}; pass imputer=None"
                )
            if base.delta is not None:
                raise ValueError("delta is given twice, to MultipleImputer and to its ChainedImputer; give it once")
            base.set_params(delta=self.delta)
        return base

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        n_cells = {int(each.training_table_.n_missing.sum()) for each in self.imputers_}
        if not len(self.imputers_) == len(self._cells) >= _FEWEST_TABLES or len(n_cells) != 1:
            raise StoredFileError("the imputers of several tables do not go together; save the imputer again")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "imputers_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _fitted(base: BaseImputer, task: FitTask, fit: CellFit) -> BaseImputer:
    """An imputer of its own for one draw; what is known of the table is shared by all of them."""
    imputer = copy.copy(base)
    imputer.end_fit(task, fit)
    return imputer


def _refuse_what_cannot_be_imputed(base: BaseImputer, task: FitTask) -> None:
    """Raise where nothing is missing, or where a column would keep its missing values."""
    holes, names = task.table.holes, task.layout.names
    if not holes.any():
        raise ValueError(
            Message(
                InPython("X has no missing values", "nothing is missing"),
                ", so all tables would be the same; analyse it as it is",
            )
        )
    for name in getattr(base, "delta", None) or {}:
        if name in names and not holes[:, list(names).index(name)].any():
            said = f" is for column {name!r}, which has no missing values, so nothing would be shifted; leave it out"
            raise ValueError(Message(Term("delta"), said))
    for k, code in enumerate(task.table.codes):
        if code.kind == ColumnKind.DERIVED:  # computed from what is drawn
            continue
        if holes[:, k].all():
            raise ValueError(f"column {names[k]!r} has no observed value, so nothing can be drawn for it; drop it")
        if holes[:, k].any() and code.family == Family.ANY:
            raise ValueError(
                Message(
                    f"column {names[k]!r} has missing values that cannot be imputed: it holds texts that rarely repeat, or "
                    "values that are neither numbers, categories nor dates; convert it, ",
                    InPython(
                        f"drop it, or pass imputer={type(base).__name__}(max_categories=None) to use all texts",
                        f"or pass --exclude {names[k]}",
                    ),
                )
            )
