"""How good the imputation of a table with columns of any kind is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .distributional import MOST_ROWS, energy_distance, wasserstein2

_MICROSECONDS_PER_DAY = 86_400e6


@dataclass(frozen=True)
class ColumnScore:
    """How well the missing values of one column were found; what does not apply, or has no value to be judged by, is None."""

    name: str
    kind: str  # numbers, times (errors are in days), categories (and booleans), other (not scored)
    n_cells: int  # that were missing and whose truth is known
    n_unfilled: int = 0  # of these; errors leave them out, and in categories they count as wrong
    mae: float | None = None
    rmse: float | None = None
    spread: float | None = None  # standard deviation of the true values
    accuracy: float | None = None
    # The simplest fill, mean or most frequent of the values that were there: its RMSE, or its accuracy.
    simplest: float | None = None

    @property
    def scaled_mae(self) -> float | None:
        """In standard deviations of the column; None where it has none."""
        return self.mae / self.spread if self.mae is not None and self.spread else None

    @property
    def scaled_rmse(self) -> float | None:
        """In standard deviations of the column; None where it has none."""
        return self.rmse / self.spread if self.rmse is not None and self.spread else None


@dataclass(frozen=True)
class TableScore:
    """The scores of all columns, and together: errors in standard deviations, accuracy, and distances between the rows."""

    columns: list[ColumnScore]
    mae: float | None
    rmse: float | None
    accuracy: float | None
    # Of standardised numbers and times, over rows that have all of them; None above `MOST_ROWS` rows, or without POT.
    energy_distance: float | None
    wasserstein2: float | None


def score_table(X_true: Any, X_imputed: Any, missing: ArrayLike) -> TableScore:
    """Compare a table whose holes were filled with the truth, column by column and as a whole.

    Parameters
    ----------
    X_true, X_imputed : frame
        Tables of pandas, polars or pyarrow with the same columns and rows. Numbers, dates and times get errors; booleans,
        text and categories the share that is right.
    missing : bool array [n, d]
        True where a value was missing. Cells without a true value do not count.

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
    """Over all cells of the columns that have this score."""
    n_cells, total = 0, 0.0
    for score in columns:
        value = part(score)
        if value is not None:
            n = score.n_cells if score.kind == "categories" else score.n_cells - score.n_unfilled
            n_cells, total = n_cells + n, total + n * value
    return total / n_cells if n_cells else None


def _score(truth: nw.Series[Any], filled: nw.Series[Any], holes: NDArray[np.bool_]) -> ColumnScore:
    kind = _kind(truth.dtype)
    if kind in ("numbers", "times"):
        return _score_numbers(truth.name, kind, _numbers(truth), _numbers(filled), holes)
    known = ~truth.is_null().to_numpy()
    scored, unfilled = holes & known, filled.is_null().to_numpy()
    n_cells, n_unfilled = int(scored.sum()), int((scored & unfilled).sum())
    if kind == "other" or not n_cells:
        return ColumnScore(truth.name, kind, n_cells, n_unfilled)
    true, guess = _text(truth), _text(filled)
    accuracy = float(((true == guess) & ~unfilled)[scored].mean())
    values, counts = np.unique(true[known & ~holes], return_counts=True)
    simplest = float((true[scored] == values[counts.argmax()]).mean()) if len(values) else None
    return ColumnScore(truth.name, kind, n_cells, n_unfilled, accuracy=accuracy, simplest=simplest)


def _score_numbers(
    name: str, kind: str, true: NDArray[np.float64], guess: NDArray[np.float64], holes: NDArray[np.bool_]
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


def _kind(dtype: Any) -> str:
    if dtype.is_numeric():
        return "numbers"
    if dtype == nw.Date or dtype == nw.Datetime:
        return "times"
    return "categories" if dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum) else "other"


def _numbers(column: nw.Series[Any]) -> NDArray[np.float64]:
    """Numbers, or days; NaN where there is none."""
    absent = column.is_null().to_numpy()
    if _kind(column.dtype) == "times":
        moments = column.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]")
        return np.where(absent, np.nan, moments.astype(np.int64) / _MICROSECONDS_PER_DAY)
    if _kind(column.dtype) != "numbers" and column.dtype != nw.Boolean:
        raise ValueError(f"column {column.name!r} must hold numbers where the truth does, got {column.dtype}")
    # Arrow refuses to make floats of integers that no float equals, as it must where nulls are among them.
    whole = column if column.dtype.is_float() else column.fill_null(False if column.dtype == nw.Boolean else 0)
    return np.where(absent, np.nan, np.asarray(whole.to_numpy(), dtype=np.float64))


def _text(column: nw.Series[Any]) -> NDArray[np.str_]:
    return np.asarray(column.cast(nw.String).fill_null("").to_numpy(), dtype=str)


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.square(values).mean()))
