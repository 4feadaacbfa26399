"""Base class of imputers: scikit-learn interface, reading and writing tables, empty columns, indicators."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from .._random import seed_from
from .._stored import Array, IfThere, Kind, Labels, ListOf, RecordOf, Scalar, Whole
from .._warn import warn_user
from ..exceptions import EmptyColumnWarning, InPython, Message, OtimputeWarning, StoredFileError
from ..fitting import BlockModel, CellFit, CellModel, Cells, ColumnLayout, FitSummary, ModelOf, fit_within_predictors
from ..knowledge import PanelColumns
from ..streams import scan_of
from ..table import ColumnKind, Encoding, Family, Table, as_frame, with_fields_of
from .in_batches import ReadsInBatches
from .known_table import KnowsItsTable
from .model_file import Storable
from .notebook import fit_card
from .record_batches import batch_of_table, is_batch, table_of_batch
from .row_weights import read_row_weights
from .scan_fit import ScanSummary, fit_scan
from .training_table import TrainingTable

_SET_BY_READING = {"n_features_in_", "feature_names_in_"}
_MOST_NAMED = 10


@dataclass(frozen=True)
class FitTask:
    """A table that has been read and is to be fitted."""

    table: Table
    values: NDArray[np.floating]  # this and the next three are what `fit_cells` takes
    missing: NDArray[np.bool_]
    layout: ColumnLayout
    wanted: NDArray[np.bool_]  # which of the missing entries are to be imputed
    seed: int
    begun: float  # in terms of time.perf_counter()


class BaseImputer(KnowsItsTable, ReadsInBatches, Storable, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of imputers: it reads and writes tables; subclasses impute arrays of numbers.

    A subclass stores its parameters in ``__init__``, checks them in `check_parameters` and learns in `fit_cells`; that is all
    it takes to be used on any table, as an expert of `AutoImputer`, in benchmarks and in reports (docs/guide/extend.md).
    """

    refines: ClassVar[bool] = False  # whether `fit_cells` makes use of a start
    weighs_rows: ClassVar[bool] = False  # whether `fit_cells` takes ``sample_weight``
    uses_predictors: ClassVar[bool] = True  # whether other columns have a say in what is imputed
    ends_early: ClassVar[bool] = False  # whether `fit_cells` returns what it has even if the deadline was over before it began

    indicator_columns_: NDArray[np.int64]
    training_table_: TrainingTable
    fit_summary_: FitSummary
    _model: CellModel

    model_class: ClassVar[type]  # what `fit_cells` returns as the model; imputers that can be saved declare it

    # What means a missing value in the columns of the file that the table was read from, if there was one; for `apply`.
    file_gaps_: list[list[str]]

    _stored: ClassVar[Mapping[str, Kind]] = {
        "n_features_in_": Whole(at_least=1, size="table"),
        "feature_names_in_": IfThere(Labels("table")),
        "indicator_columns_": Array("I", np.int64, index_of="table"),
        "training_table_": RecordOf((TrainingTable,)),
        "fit_summary_": RecordOf((FitSummary,)),
        "file_gaps_": IfThere(ListOf(ListOf(Scalar(str)))),
        "scan_summary_": IfThere(RecordOf((ScanSummary,))),
    }

    @classmethod
    def _kinds(cls) -> dict[str, Kind]:
        own = {"_model": ModelOf(RecordOf((cls.model_class,)))} if hasattr(cls, "model_class") else {}
        return {**super()._kinds(), **own}

    @abstractmethod
    def check_parameters(self) -> None:
        """Raise TypeError or ValueError if a parameter cannot be used."""

    @abstractmethod
    def fit_cells(
        self,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        seed: int,
        start: Cells | None = None,
        deadline: float = math.inf,
    ) -> CellFit:
        """Learn from an array of numbers, and impute its missing entries; the imputer itself stays as it is.

        Parameters
        ----------
        values : array [n, D]
            Every column has an observed entry; what stands in missing entries is ignored.
        missing : array of bool [n, D]
            Where entries are missing.
        layout : ColumnLayout
            What the columns stand for.
        seed : int
            Decides everything that is random.
        start : array [N] or None
            A first guess at the missing entries, for imputers that refine one.
        deadline : float
            When to be done, in terms of ``time.perf_counter()``: a fit then ends with what it has, or raises OutOfTime.

        Imputers that set ``weighs_rows`` take another keyword, which is passed only if rows do not all count alike:
        ``sample_weight``, an array [n] of how many times each row counts, 1 on average over those that count at all. Nothing is
        learned from rows of weight 0, but they are imputed; every column is observed in a row of more.
        """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Learn to impute from a table with missing values.

        Parameters
        ----------
        X : array or frame [n_rows, n_columns]
            NaN, null and ``missing_values`` mark missing values. Or what is read in batches, such as a pyarrow Dataset or a
            polars LazyFrame: see ``otimpute.scan``.
        y : ignored
        sample_weight : array [n_rows], default=None
            How many times each row counts, for imputers that weigh rows. Only ratios matter; from rows of weight 0 nothing is
            learned, but they are imputed.
        """
        scan = scan_of(X)
        if scan is None:
            self._fit_table(X, sample_weight)
        elif sample_weight is None:
            fit_scan(self, scan)
        else:
            raise ValueError("sample_weight is for tables in memory, and X is read in batches; leave the weights out")
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:  # noqa: ARG002
        """Learn from a table and return it with its missing values imputed, as the same kind of table; see `fit`."""
        if scan_of(X) is not None:
            raise TypeError(
                "X is read in batches, and would come back as a whole; pass it to fit, and its batches to transform_batches"
            )
        return self.complete_table(*self._fit_table(X, sample_weight))

    def transform(self, X: Any) -> Any:
        """Impute missing values of rows that may be new; nothing is refitted and every row is treated alone."""
        table = self._read_new_rows(X)
        cells = self.model_.impute_cells(*self.training_table_.arrays_of(table))
        return self._assemble(table, cells)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that come out."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        indicators = [f"missingindicator_{name}" for name in names[self.indicator_columns_]]
        return np.asarray([*names[self.training_table_.kept], *indicators], dtype=object)

    @property
    def model_(self) -> CellModel:
        """What imputes the coordinates of new rows."""
        check_is_fitted(self)
        return self._model

    @property
    def column_kinds_(self) -> dict[str, str]:
        """What each column holds: number, integer, boolean, ordered, category, date/time, text, empty or other.

        Numbers come with the bounds that imputed ones keep to, such as "number ≥ 0".
        """
        check_is_fitted(self)
        return self.training_table_.encoding.descriptions

    @property
    def categories_(self) -> dict[str, list[Any]]:
        """The categories of the columns of categories and booleans, by name."""
        check_is_fitted(self)
        return self.training_table_.encoding.categories

    def read_table(self, X: Any) -> Table:
        """A table with the columns of the fit, as the imputer sees it; the imputer stays as it is."""
        check_is_fitted(self)
        training = self.training_table_
        table = self._read_known(self._validated(X, reset=False), training.encoding, training.derived)
        self._check_rows_are_known(table)
        return replace(self._narrowed(table, training.roles), is_batch=is_batch(X))

    def _fit_table(self, X: Any, sample_weight: Any = None, encoding: Encoding | None = None) -> tuple[FitTask, CellFit]:
        task = self.begin_fit(X, encoding)
        fit = self.fit_task(task, read_row_weights(sample_weight, task.missing, task.layout, self))
        self.end_fit(task, fit)
        return task, fit

    def fit_task(self, task: FitTask, sample_weight: NDArray[np.float64] | None = None) -> CellFit:
        """Learn from a table that was read, every column from those that may inform it."""
        return fit_within_predictors(self, task.values, task.missing, task.layout, seed=task.seed, sample_weight=sample_weight)

    def begin_fit(self, X: Any, encoding: Encoding | None = None) -> FitTask:
        """Read a table to fit to: the first part of `fit`, for those who fit several imputers together.

        An ``encoding`` is that of a table of which ``X`` is a sample; by default it is chosen from ``X``.
        """
        self._check_before_fit()
        begun = time.perf_counter()
        kept = self._encoding_to_keep() if encoding is None else encoding
        self._is_fitted = False  # a fit that fails must not leave half of a new state beside half of an old one
        read = self._validated(X, reset=True)
        derived = self._derived_from(read)
        encoding = self._choose_encoding(read, derived) if kept is None else kept
        table = self._read_known(read, encoding, derived)
        roles = self._wishes.roles(read, table)
        self._warn_of_inapplicable(table)
        table = replace(self._narrowed(table, roles), is_batch=is_batch(X))
        for name in [each for each in vars(self) if each.endswith("_") and each not in _SET_BY_READING]:
            delattr(self, name)  # of an earlier fit
        panel_columns = PanelColumns.named(self.groups, self.time, encoding.names or range(len(encoding.codes)), encoding.codes)
        keep_empty = bool(self.keep_empty_features)
        self.training_table_ = TrainingTable.of(
            encoding, table, roles, keep_empty=keep_empty, panel_columns=panel_columns, derived=derived
        )
        self.indicator_columns_ = np.flatnonzero(table.absent.any(axis=0)) if self.add_indicator else np.arange(0)
        kinds = np.array([code.kind for code in table.codes])
        without_value = (kinds == ColumnKind.EMPTY) & table.holes.any(axis=0)
        without_value |= (kinds != ColumnKind.DERIVED) & table.holes.all(axis=0)
        self._warn_of_identifiers(table)
        self._warn_of_empty_columns(without_value)
        self._warn_of_columns_left_alone(table, without_value)
        self._check_indicator_names()
        training = self.training_table_
        arrays, seed = training.arrays_of(table), seed_from(getattr(self, "random_state", None))
        return FitTask(table, *arrays, training.layout, training.wanted_of(table), seed, begun)

    def end_fit(self, task: FitTask, fit: CellFit) -> None:
        """Take over what was learned: the last part of `fit`."""
        self._is_fitted, self._fit_seconds = True, time.perf_counter() - task.begun
        self._take_over(fit, task.table)

    def complete_table(self, task: FitTask, fit: CellFit) -> Any:
        """The table that was fitted with its missing values imputed."""
        return self.complete_cells(task.table, fit.cells)

    def complete_cells(self, table: Table, cells: Cells) -> Any:
        """A table that was read, with these values in its missing coordinates, as the kind of table that it came as."""
        return self._assemble(table, cells)

    def _take_over(self, fit: CellFit, table: Table) -> None:  # noqa: ARG002
        """Keep what was learned from a table."""
        self._model, self.fit_summary_ = fit.model, fit.summary
        self._publish_one()
        fit.summary.warn_if_stopped(self._how_to_resume())

    def _publish_one(self) -> None:
        if not isinstance(self._model, BlockModel):  # several fits have several of all that
            self._publish()

    def _check_before_fit(self) -> None:
        self._check_table_parameters()
        self.check_parameters()

    def _publish(self) -> None:
        """Set the documented attributes, from the model and the summary of the fit."""

    def _how_to_resume(self) -> str:
        """What to say of a fit that was stopped and can go on."""
        return ""

    def _encoding_to_keep(self) -> Encoding | None:
        """The encoding of an earlier fit that this one continues."""
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_is_fitted", False)

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        n_columns, n_coordinates = len(self.training_table_.encoding.codes), len(self.training_table_.layout)
        if n_columns != self.n_features_in_ or sizes.get("columns", n_coordinates) != n_coordinates:
            raise StoredFileError("the encoding has other columns than the table; save the imputer again")
        gaps = state.get("file_gaps_")
        if gaps is not None and len(gaps) != n_columns:
            raise StoredFileError("state.file_gaps_ has other columns than the table; save the imputer again")
        self._is_fitted = True
        self._publish_one()

    def _read_new_rows(self, X: Any) -> Table:
        table = self.read_table(X)
        self._warn_of_columns_left_alone(table, self.training_table_.n_missing > 0)
        return table

    def _columns_said(self, table: Table, ask: Callable[[Any, NDArray[np.bool_]], NDArray[np.int64]]) -> NDArray[np.int64]:
        """The columns that ``ask`` names, given a model and what is to be imputed in new rows; also where there are several."""
        wanted, model = self.training_table_.wanted_of(table), self.model_
        if isinstance(model, BlockModel):
            return model.columns_said(lambda each, block: ask(each, block.of(wanted)))
        return ask(model, wanted)

    def _warn_of_empty_columns(self, without_value: NDArray[np.bool_]) -> None:
        if not without_value.any():
            return
        fate = "stay empty; set keep_empty_features=False to drop them"
        if not self.keep_empty_features:
            fate = "are dropped; set keep_empty_features=True to keep them, empty"
        warn_user(f"no observed value in columns {self._names(np.flatnonzero(without_value))}: they {fate}", EmptyColumnWarning)

    def _warn_of_identifiers(self, table: Table) -> None:
        found = np.flatnonzero([code.kind == ColumnKind.IDENTIFIER for code in table.codes])
        if len(found):
            advice = InPython(
                "; name them in columns or pass identifiers='use' to use them, in exclude to say nothing",
                "; pass --identifiers use to use them, --exclude to say nothing",
            )
            said = f"set aside what looks like an identifier: {self._names(found)}"
            warn_user(Message(said, advice), OtimputeWarning)

    def _warn_of_columns_left_alone(self, table: Table, known: NDArray[np.bool_]) -> None:
        idle = np.array([code.family == Family.ANY and code.kind != ColumnKind.DERIVED for code in table.codes])
        with_holes = np.flatnonzero(idle & table.holes.any(axis=0) & ~known)
        if len(with_holes):
            warn_user(
                Message(
                    f"columns {self._names(with_holes)} are not imputed: they hold texts that rarely repeat, "
                    "or values that are neither numbers, categories nor dates; ",
                    InPython("pass max_categories=None to use all texts, "),
                    "convert the columns, or drop them",
                ),
                OtimputeWarning,
            )

    def _names(self, columns: NDArray[np.int64]) -> str:
        """Names of columns of the table, the first ten of them, for people."""
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))[columns]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return ", ".join(map(str, names[:_MOST_NAMED])) + more

    def _check_indicator_names(self) -> None:
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        taken = {f"missingindicator_{names[k]}" for k in self.indicator_columns_ if names} & set(names)
        if taken:
            raise ValueError(
                f"add_indicator=True would add a column {sorted(taken)[0]!r}, which X already has; rename that column"
            )

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """A frame, or an array of numbers, that has rows and columns; with ``reset`` its columns are what others must have."""
        if isinstance(X, np.ma.MaskedArray):
            raise TypeError("X is a masked array, whose mask would be lost; pass X.astype(float).filled(np.nan)")
        X = table_of_batch(X) if is_batch(X) else X
        frame = as_frame(X)
        if frame is None:
            array = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
            return array.astype(np.float64) if array.dtype.kind == "O" else array  # lists with None
        for axis, what in ((0, "row"), (1, "column")):
            if frame.shape[axis] == 0:
                raise ValueError(f"X must have at least one {what}, got shape {frame.shape}")
        validate_data(self, X, reset=reset, skip_check_array=True)
        if any(name is None or name != name for name in frame.columns):
            raise ValueError("X has a column whose name is None or NaN; give it a name")
        return frame

    def _assemble(self, table: Table, cells: Cells) -> Any:
        cells = self.training_table_.with_empty_columns(table, cells)
        completed = self._complete(table, cells)
        if not isinstance(completed, nw.DataFrame):
            return completed
        wanted = _get_output_config("transform", self)["dense"]
        if completed.implementation.is_pyarrow() and table.is_frame:
            completed = with_fields_of(table.source, completed)
        if wanted == "pandas" and not completed.implementation.is_pandas():
            if completed.implementation.is_pyarrow():  # an index that its metadata names would be taken out of the columns
                return completed.to_native().replace_schema_metadata(None).to_pandas()
            return completed.to_pandas()
        if wanted == "polars" and not completed.implementation.is_polars():
            return completed.to_polars()
        return batch_of_table(completed.to_native()) if table.is_batch else completed.to_native()

    def _repr_html_inner(self) -> str:  # scikit-learn's `_repr_html_`
        return fit_card(self) + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = fit_card(self) + bundle["text/html"]
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags
