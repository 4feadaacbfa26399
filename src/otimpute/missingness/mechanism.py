"""A mechanism computes for every entry of a table the probability of being hidden, then hides entries independently.

The order of the random draws does not depend on the values of the table. So, with the same seed, the missing entries of two
tables differ only where the values used by the mechanism differ, and a higher rate hides all entries that a lower rate hides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._checks import check_real
from .._random import generator_from
from ..table import Encoding, Table, as_frame


@dataclass(frozen=True)
class Mechanism(ABC):
    """Base class of all mechanisms.

    A subclass is a frozen dataclass whose ``probabilities(X, rng)`` returns the probability of each entry to be hidden.
    """

    rate: float

    def __post_init__(self) -> None:
        check_real("rate", self.rate, at_least=0, below=1)

    def sample(self, X: Any, random_state: Any = None) -> NDArray[np.bool_]:
        """Draw which entries of the complete table ``X`` to hide: True where missing.

        ``random_state`` is a seed or a NumPy generator.
        """
        values, rng = np.asarray(_read_complete(X).values, dtype=np.float64), generator_from(random_state, "holes")
        probabilities = self.probabilities(values, rng)
        return np.asarray(rng.random(values.shape) < probabilities)

    @abstractmethod
    def probabilities(self, X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the probability of each entry to be hidden; the number of draws from ``rng`` may depend only on X's shape."""


def hide(X: Any, mechanism: Mechanism, random_state: Any = None) -> tuple[Any, NDArray[np.bool_]]:
    """Hide values of a complete table.

    Parameters
    ----------
    X : array or frame [n, d]
        Numbers or booleans without missing values; never changed.
    mechanism : Mechanism
        The mechanism that chooses the values to hide, such as ``MCAR(0.3)``.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. None hides different values each time.

    Returns
    -------
    X_incomplete : array or frame
        For an array, a float64 copy with NaN where missing; for a frame, the same kind of frame with nulls. Columns of a frame
        keep their type, except that pandas' plain integers and booleans, which cannot be null, become floats.
    missing : bool array [n, d]
        True where a value was hidden.

    Examples
    --------
    >>> from otimpute.missingness import MCAR, hide
    >>> X_incomplete, missing = hide([[1, 2, 3], [4, 5, 6]], MCAR(0.5), 0)
    >>> X_incomplete
    array([[nan,  2., nan],
           [nan, nan,  6.]])
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a Mechanism such as MCAR(0.3), got {mechanism!r}")
    table = _read_complete(X)
    missing = mechanism.sample(table.numbers(), random_state)
    if table.is_frame:
        return _hide_in_frame(table.source, missing), missing
    return np.where(missing, np.nan, table.values), missing


def draw_columns(d: int, fraction: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a ``fraction`` of ``d`` columns, rounded down but at least one, in random order."""
    # 0.29 · 100 is 28.999… in floats, but should count as 29.
    return rng.choice(d, size=max(1, int(fraction * d + 1e-9)), replace=False)


def _read_complete(X: Any) -> Table:
    frame = as_frame(X)
    if frame is None:
        array = _as_array(X)
        table = Encoding.of_array(array).read_array(array, np.nan)
    else:
        table = Encoding.of_frame(frame).read_frame(frame, np.nan)
    if not table.holes.size:
        raise ValueError(f"X must have at least one row and one column, got shape {table.holes.shape}")
    if table.holes.any():
        raise ValueError(
            f"X must be complete, so that the true values are known, got {table.holes.sum()} missing values; "
            "drop the rows or columns that contain them"
        )
    return table


def _as_array(X: Any) -> NDArray[np.float64]:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table of two dimensions, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"X must hold numbers or booleans, got dtype {array.dtype}; encode its values as numbers")
    return np.where(np.ma.getmaskarray(X), np.nan, array) if np.ma.is_masked(X) else array.astype(np.float64, copy=False)


def _hide_in_frame(frame: nw.DataFrame[Any], missing: NDArray[np.bool_]) -> Any:
    index = nw.maybe_get_index(frame)
    pierced = []
    for k, name in enumerate(frame.columns):
        if missing[:, k].any():
            kept = nw.new_series("kept", ~missing[:, k], dtype=nw.Boolean(), backend=frame.implementation)
            if index is not None:  # align rows by position, not by index
                kept = nw.maybe_set_index(kept, index=index)
            pierced.append(nw.when(kept).then(nw.col(name)).alias(name))
    incomplete = frame.clone().with_columns(*pierced)
    # pandas turns plain booleans with missing values into objects.
    plain = [name for name, dtype in frame.schema.items() if dtype == nw.Boolean]
    objects = [nw.col(name).cast(nw.Float64) for name in plain if incomplete[name].dtype == nw.Object]
    return incomplete.with_columns(*objects).to_native()
