"""Scores of the imputation of a table with columns of mixed types."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._text import Keyword
from .distributional import MOST_ROWS, energy_distance, wasserstein2

_MICROSECONDS_PER_DAY = 86_400e6


class ScoreKind(Keyword):
    """How a column is scored; as text it is what people and JSON see."""

    NUMBERS = "numbers"
    TIMES = "times"  # errors are in days
    CATEGORIES = "categories"  # and booleans
    OTHER = "other"  # not scored


@dataclass(frozen=True)
class ColumnScore:
    """Scores of the imputed values of one column; None where a score does not apply or there is nothing to score."""

    name: str
    kind: ScoreKind
    n_cells: int  # missing cells whose true value is known
    n_unfilled: int = 0  # of these, not imputed: left out of errors; categories count them as wrong
    mae: float | None = None
    rmse: float | None = None
    spread: float | None = None  # standard deviation of the true values
    accuracy: float | None = None
    # RMSE or accuracy of imputing the mean or the most frequent observed value.
    simplest: float | None = None

    @property
    def scaled_mae(self) -> float | None:
        """MAE in standard deviations of the column; None if it has none."""
        return self.mae / self.spread if self.mae is not None and self.spread else None

    @property
    def scaled_rmse(self) -> float | None:
        """RMSE in standard deviations of the column; None if it has none."""
        return self.rmse / self.spread if self.rmse is not None and self.spread else None


@dataclass(frozen=True)
class TableScore:
    """Scores of each column, and of the whole table: errors in standard deviations, accuracy, distances of distributions."""

    columns: list[ColumnScore]
    mae: float | None
    rmse: float | None
    accuracy: float | None
    # Of standardised numbers and times, over rows with none unknown; None with more than `MOST_ROWS` rows, or without POT.
    energy_distance: float | None
    wasserstein2: float | None


def score_table(X_true: Any, X_imputed: Any, missing: ArrayLike) -> TableScore:
    """Compare an imputed table with the true one, column by column and as a whole.

    Parameters
    ----------
    X_true, X_imputed : frame
        Tables of pandas, polars or pyarrow with the same columns and rows. Numbers, dates and times are scored by errors;
        booleans, text and categories by accuracy.
    missing : bool array [n, d]
        True where a value was missing. Cells without a true value are ignored.

    Examples
    --------
    >>> import pyarrow as pa
    >>> truth = pa.table({"x": [1.0, 2.0, 3.0, 6.0], "c": ["a", "a", "b", "b"]})
    >>> imputed = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "c": ["a", "b", "b", "a"]})
    >>> missing = [[False, False], [False, True], [False, True], [True, False]]
    >>> [(score.name, score.n_cells, score.rmse, score.accuracy) for score in score_table(truth, imputed, missing).columns]
    [('x', 1, 2.0, None), ('c', 2, None, 0.5)]
    """
    true, imputed = nw.from_native(X_true, eager_only=True), nw.from_native(X_imputed, eager_only=True)
    holes = np.asarray(missing)
    if true.shape != imputed.shape or true.columns != imputed.columns or holes.shape != true.shape:
        raise ValueError(
            f"X_true, X_imputed and missing must have the same columns and rows, got shapes {true.shape}, {imputed.shape} and "
            f"{holes.shape}, columns {true.columns[:10]} and {imputed.columns[:10]}"
        )
    columns = [
        _score(truth, filled, holes[:, k])
        for k, (truth, filled) in enumerate(zip(true.iter_columns(), imputed.iter_columns(), strict=True))
    ]
    energy, transport = _distances(true, imputed, holes, [score.name for score in columns if score.spread])
    squares = _average(columns, lambda score: None if score.scaled_rmse is None else score.scaled_rmse**2)
    return TableScore(
        columns,
        mae=_average(columns, lambda score: score.scaled_mae),
        rmse=None if squares is None else math.sqrt(squares),
        accuracy=_average(columns, lambda score: score.accuracy),
        energy_distance=energy,
        wasserstein2=transport,
    )


def _average(columns: list[ColumnScore], part: Callable[[ColumnScore], float | None]) -> float | None:
    """Average over all cells of the columns that have this score."""
    n_cells, total = 0, 0.0
    for score in columns:
        value = part(score)
        if value is not None:
            n = score.n_cells if score.kind == ScoreKind.CATEGORIES else score.n_cells - score.n_unfilled
            n_cells, total = n_cells + n, total + n * value
    return total / n_cells if n_cells else None


def _score(truth: nw.Series[Any], filled: nw.Series[Any], holes: NDArray[np.bool_]) -> ColumnScore:
    kind = _kind(truth.dtype)
    if kind in (ScoreKind.NUMBERS, ScoreKind.TIMES):
        return _score_numbers(truth.name, kind, _numbers(truth), _numbers(filled), holes)
    known = ~truth.is_null().to_numpy()
    scored, unfilled = holes & known, filled.is_null().to_numpy()
    n_cells, n_unfilled = int(scored.sum()), int((scored & unfilled).sum())
    if kind == ScoreKind.OTHER or not n_cells:
        return ColumnScore(truth.name, kind, n_cells, n_unfilled)
    true, guess = _text(truth), _text(filled)
    accuracy = float(((true == guess) & ~unfilled)[scored].mean())
    values, counts = np.unique(true[known & ~holes], return_counts=True)
    simplest = float((true[scored] == values[counts.argmax()]).mean()) if len(values) else None
    return ColumnScore(truth.name, kind, n_cells, n_unfilled, accuracy=accuracy, simplest=simplest)


def _score_numbers(
    name: str, kind: ScoreKind, true: NDArray[np.float64], guess: NDArray[np.float64], holes: NDArray[np.bool_]
) -> ColumnScore:
    known = np.isfinite(true)
    scored, filled = holes & known, np.isfinite(guess)
    n_cells, n_unfilled = int(scored.sum()), int((scored & ~filled).sum())
    if n_cells == n_unfilled:
        return ColumnScore(name, kind, n_cells, n_unfilled)
    error, seen = (guess - true)[scored & filled], true[known & ~holes]
    return ColumnScore(
        name, kind, n_cells, n_unfilled, float(np.abs(error).mean()), _rms(error), float(true[known].std()),
        simplest=_rms(true[scored & filled] - seen.mean()) if len(seen) else None,
    )  # fmt: skip


def _distances(
    true: nw.DataFrame[Any], imputed: nw.DataFrame[Any], holes: NDArray[np.bool_], names: list[str]
) -> tuple[float | None, float | None]:
    if not names:
        return None, None
    x, y = (np.column_stack([_numbers(frame[name]) for name in names]) for frame in (true, imputed))
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    spread = np.nanstd(np.where(np.isfinite(x), x, np.nan), axis=0)
    x, y = x[whole] / spread, y[whole] / spread
    missing = holes[whole][:, [true.columns.index(name) for name in names]]
    if not 0 < missing.any(axis=1).sum() <= MOST_ROWS:
        return None, None
    transport = wasserstein2(x, y, missing) if find_spec("ot") else None
    return energy_distance(x, y, missing), transport


def _kind(dtype: Any) -> ScoreKind:
    if dtype.is_numeric():
        return ScoreKind.NUMBERS
    if dtype == nw.Date or dtype == nw.Datetime:
        return ScoreKind.TIMES
    return ScoreKind.CATEGORIES if dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum) else ScoreKind.OTHER


def _numbers(column: nw.Series[Any]) -> NDArray[np.float64]:
    """Return numbers, or times in days; NaN where there is none."""
    absent = column.is_null().to_numpy()
    if _kind(column.dtype) == ScoreKind.TIMES:
        moments = column.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]")
        return np.where(absent, np.nan, moments.astype(np.int64) / _MICROSECONDS_PER_DAY)
    if _kind(column.dtype) != ScoreKind.NUMBERS and column.dtype != nw.Boolean:
        raise ValueError(f"column {column.name!r} must hold numbers, as it does in X_true, got {column.dtype}")
    # Arrow does not convert integers with nulls to floats if a float cannot represent them exactly.
    whole = column if column.dtype.is_float() else column.fill_null(False if column.dtype == nw.Boolean else 0)
    return np.where(absent, np.nan, np.asarray(whole.to_numpy(), dtype=np.float64))


def _text(column: nw.Series[Any]) -> NDArray[np.str_]:
    return np.asarray(column.cast(nw.String).fill_null("").to_numpy(), dtype=str)


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.square(values).mean()))
