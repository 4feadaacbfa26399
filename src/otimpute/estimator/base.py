"""What all imputers share: the scikit-learn contract, tables in and out, empty columns, indicators."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from .._checks import check_choice, check_count, check_flag
from .._stored import Array, IfThere, Kind, Labels, ListOf, Record, Scalar, Whole
from .._warn import warn_user
from ..exceptions import EmptyColumnWarning, OtimputeWarning, StoredFileError
from ..table import Encoding, Table, as_frame, with_fields_of
from .model_file import Storable
from .notebook import fit_card
from .training_rows import TrainingRows

Cells = NDArray[np.float64]


class BaseImputer(Storable, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of imputers. A subclass stores its parameters in ``__init__`` and fills holes in two methods.

    `_fit_cells` learns from a table and returns its imputed entries; `_impute_cells` imputes other rows without refitting.
    Both see only columns that had an observed value in training, and return entries row by row.
    """

    # Declared by every subclass's constructor.
    missing_values: float
    add_indicator: bool
    keep_empty_features: bool
    integers: str
    constraints: Any
    max_categories: int | None

    # Of each column that `_fit_cells` gets: the column of the table it encodes (those of one category share theirs), and
    # whether it comes in units of its own and must not be standardised.
    _groups: NDArray[np.int64]
    _scaled: NDArray[np.bool_]

    # What the imputer was fitted to, for people.
    _n_rows: int
    _n_holes: NDArray[np.int64]  # by column of the table
    _training_rows: TrainingRows  # of those fitted to a table, not by another imputer

    # What means a missing value in the columns of the file that the table was read from, if there was one; for `apply`.
    file_gaps_: list[list[str]]

    _stored: ClassVar[Mapping[str, Kind]] = {
        "n_features_in_": Whole(at_least=1, size="table"),
        "feature_names_in_": IfThere(Labels("table")),
        "indicator_columns_": Array("I", np.int64, index_of="table"),
        "_encoding": Record((Encoding,)),
        "_empty": Array("coordinates", np.bool_),
        "_kept": Array("table", np.bool_),
        "_groups": Array("columns", np.int64, index_of="table"),
        "_scaled": Array("columns", np.bool_),
        "_n_rows": Whole(at_least=1),
        "_n_holes": Array("table", np.int64, at_least=0),
        "_training_rows": IfThere(Record((TrainingRows,))),
        "file_gaps_": IfThere(ListOf(ListOf(Scalar(str)))),
    }

    @abstractmethod
    def _fit_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> Cells: ...

    @abstractmethod
    def _impute_cells(self, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> Cells: ...

    @abstractmethod
    def _check_parameters(self) -> None: ...

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn to impute from a table with holes.

        Parameters
        ----------
        X : array or frame [n_rows, n_columns]
            NaN, null and ``missing_values`` mark the holes.
        y : ignored
        """
        self._fit_table(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: ARG002
        """Learn from a table and return it with its holes filled, as the same kind of table."""
        table, filled = self._fit_table(X)
        return self._assemble(table, filled)

    def transform(self, X: Any) -> Any:
        """Fill the holes of rows that may be new; nothing is refitted and every row is treated alone."""
        table = self._read_new_rows(X)
        filled = self._impute_cells(*self._present(table))
        return self._assemble(table, self._with_empty_columns(table, filled))

    def _read_new_rows(self, X: Any) -> Table:
        check_is_fitted(self)
        table = self._read(X, reset=False)
        self._warn_of_columns_left_alone(table, self._n_holes > 0)
        return table

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that come out."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        indicators = [f"missingindicator_{name}" for name in names[self.indicator_columns_]]
        return np.asarray([*names[self._kept], *indicators], dtype=object)

    def _fit_table(self, X: Any) -> tuple[Table, Cells]:
        check_choice("integers", self.integers, ["round", "float"])
        check_flag("add_indicator", self.add_indicator)
        check_flag("keep_empty_features", self.keep_empty_features)
        if self.max_categories is not None:
            check_count("max_categories", self.max_categories, advice="pass None to use all categories of all columns")
        self._check_parameters()
        begun = time.perf_counter()
        if hasattr(self, "file_gaps_"):
            del self.file_gaps_
        self._is_fitted = False  # a fit that fails must not leave half of a new state beside half of an old one
        table = self._read(X, reset=True)
        # Without a value: of the coordinates, which no imputer sees; and of the columns, which may be dropped.
        self._empty: NDArray[np.bool_] = np.asarray(table.missing.all(axis=0))
        without_value = np.asarray(table.holes.all(axis=0))
        self._kept: NDArray[np.bool_] = np.asarray(~without_value | bool(self.keep_empty_features))
        self.indicator_columns_ = np.flatnonzero(table.holes.any(axis=0)) if self.add_indicator else np.arange(0)
        self._warn_of_empty_columns(without_value)
        self._warn_of_columns_left_alone(table, without_value)
        self._n_rows, self._n_holes = len(table.holes), np.count_nonzero(table.holes, axis=0)
        self._training_rows = TrainingRows.of(table.values, table.missing)
        self._check_indicator_names()
        self._groups = self._encoding.groups[~self._empty]
        self._scaled = self._encoding.scaled[~self._empty]
        filled = self._fit_cells(*self._present(table))
        self._is_fitted, self._fit_seconds = True, time.perf_counter() - begun
        return table, self._with_empty_columns(table, filled)

    def _adopt(self, other: BaseImputer) -> None:
        """See tables as another imputer does, so as to fill coordinates for it."""
        shared = (
            "n_features_in_", "feature_names_in_", "_encoding", "_empty", "_kept", "_groups", "_scaled", "_n_rows", "_n_holes",
        )  # fmt: skip
        for name in shared:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        self.indicator_columns_ = np.arange(0)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_is_fitted", False)

    def _restore_state(self, state: dict[str, Any], sizes: dict[str, int]) -> None:
        super()._restore_state(state, sizes)
        encoding, empty = self._encoding, self._empty
        if (len(encoding.codes), len(encoding.groups)) != (self.n_features_in_, len(empty)):
            raise StoredFileError("state._encoding has other columns than the table; save the imputer again")
        if not (
            np.array_equal(self._groups, encoding.groups[~empty]) and np.array_equal(self._scaled, encoding.scaled[~empty])
        ):
            raise StoredFileError("state._groups and state._encoding name different columns; save the imputer again")
        gaps = state.get("file_gaps_")
        if gaps is not None and len(gaps) != len(encoding.codes):
            raise StoredFileError("state.file_gaps_ has other columns than the table; save the imputer again")
        self._is_fitted = True

    def _warn_of_empty_columns(self, without_value: NDArray[np.bool_]) -> None:
        if not without_value.any():
            return
        fate = "stay empty; set keep_empty_features=False to drop them"
        if not self.keep_empty_features:
            fate = "are dropped; set keep_empty_features=True to keep them, empty"
        warn_user(f"no observed value in columns {self._names(np.flatnonzero(without_value))}: they {fate}", EmptyColumnWarning)

    def _warn_of_columns_left_alone(self, table: Table, known: NDArray[np.bool_]) -> None:
        idle = np.array([code.family == "any" for code in self._encoding.codes])
        with_holes = np.flatnonzero(idle & table.holes.any(axis=0) & ~known)
        if len(with_holes):
            warn_user(
                f"columns {self._names(with_holes)} are left alone, their holes stay: they hold texts that hardly repeat, or "
                "values that are neither numbers, categories nor dates; pass max_categories=None to use all texts, convert "
                "the columns, or drop them",
                OtimputeWarning,
            )

    def _names(self, columns: NDArray[np.int64]) -> str:
        """Names of columns of the table, the first ten of them, for people."""
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))[columns]
        return ", ".join(map(str, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")

    def _check_indicator_names(self) -> None:
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        taken = {f"missingindicator_{names[k]}" for k in self.indicator_columns_ if names} & set(names)
        if taken:
            raise ValueError(
                f"add_indicator=True would add a column {sorted(taken)[0]!r}, which X already has; rename that column"
            )

    def _present(self, table: Table) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """The columns that had a value in training; no copy is made when all had."""
        if not self._empty.any():
            return table.values, table.missing
        return table.values[:, ~self._empty], table.missing[:, ~self._empty]

    def _with_empty_columns(self, table: Table, filled: Cells) -> Cells:
        """What was ``filled`` with 0 where a column had no value in training, which is not written; a place for every hole."""
        if not self._empty.any():
            return filled
        cells = np.zeros(int(table.missing.sum()))
        cells[~self._empty[np.nonzero(table.missing)[1]]] = filled
        return cells

    def _read(self, X: Any, *, reset: bool) -> Table:
        if isinstance(X, np.ma.MaskedArray):
            raise TypeError("X is a masked array, whose mask would be lost; pass X.astype(float).filled(np.nan)")
        if type(X).__name__ == "RecordBatch":
            raise TypeError("X is a batch of an Arrow table; pass pyarrow.Table.from_batches([X])")
        frame = as_frame(X)
        if frame is None:
            array = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
            if array.dtype.kind == "O":  # lists with None
                array = array.astype(np.float64)
            if reset and not self._keeps_encoding():
                self._encoding = Encoding.of_array(array, self.constraints, self._missing_values())
            return self._encoding.read_array(array, self._missing_values())
        for axis, what in ((0, "row"), (1, "column")):
            if frame.shape[axis] == 0:
                raise ValueError(f"X must have at least one {what}, got shape {frame.shape}")
        validate_data(self, X, reset=reset, skip_check_array=True)
        if any(name is None or name != name for name in frame.columns):
            raise ValueError("X has a column whose name is None or NaN; give it a name")
        if reset and not self._keeps_encoding():
            self._encoding = Encoding.of_frame(frame, self.constraints, self.max_categories, self._missing_values())
        return self._encoding.read_frame(frame, self._missing_values())

    def _keeps_encoding(self) -> bool:
        """Whether a fit continues one whose columns have their codes already."""
        return False

    @property
    def column_kinds_(self) -> dict[str, str]:
        """What each column holds: number, integer, boolean, ordered, category, date/time, text, empty or other.

        Numbers come with the bounds that imputed ones keep to, such as "number ≥ 0".
        """
        check_is_fitted(self)
        return self._encoding.descriptions

    @property
    def categories_(self) -> dict[str, list[Any]]:
        """The categories of the columns of categories and booleans, by name."""
        check_is_fitted(self)
        return self._encoding.categories

    def _missing_values(self) -> Any:
        value = self.missing_values
        if value is None:
            return float("nan")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"missing_values must be a number or NaN, got {value!r}")
        return value

    def _assemble(self, table: Table, filled: Cells) -> Any:
        completed = table.complete(filled, self._kept, self.integers, self.indicator_columns_)
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
        return completed.to_native()

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
