"""The table an imputer works on: the columns that vary, standardised, in float32, padded for the compiled steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._stored import Array, stored
from ..._threads import each_in_threads
from ..._warn import warn_user
from ...exceptions import Message, OtimputeWarning, Term
from ...fitting import ColumnLayout
from ...table import Standardiser

# Rows handled at a time where a temporary in float64 is needed: keeps memory near the size of the table itself.
CHUNK = 65_536
_LARGEST_UNSCALED = 1e6
_WIDEST_SPREADS = 0.1, 10.0  # of columns that are not rescaled


def chunks_of(n_rows: int) -> list[slice]:
    """All rows, some at a time; at least one chunk."""
    return [slice(begin, begin + CHUNK) for begin in range(0, max(n_rows, 1), CHUNK)]


def chunks_of_cells(mask: NDArray[np.bool_]) -> list[tuple[slice, slice]]:
    """The same chunks of rows, and where the cells in the mask are among all of them, row by row.

    >>> chunks_of_cells(np.array([[True, False], [True, True]]))
    [(slice(0, 65536, None), slice(0, 3, None))]
    """
    chunks = chunks_of(len(mask))
    ends = np.cumsum([0, *(np.count_nonzero(mask[chunk]) for chunk in chunks)]).tolist()
    return [(chunk, slice(*ends[k : k + 2])) for k, chunk in enumerate(chunks)]


def padded_width(n_columns: int) -> int:
    """Columns, one of ones (it sums the weights of a projection on the side), and zeros up to a multiple of eight.

    >>> padded_width(7), padded_width(8)
    (8, 16)
    """
    return -(-(n_columns + 1) // 8) * 8


@stored(varying="varying", layout_groups=Array("columns", at_least=0), scaled="varying")
@dataclass(frozen=True)
class WorkingColumns:
    """How the columns of an array map to those of its working copy, learned in training."""

    scaler: Standardiser
    varying: NDArray[np.int64]  # columns with more than one distinct value
    layout_groups: NDArray[np.int64]  # of all columns of the array, the column of the user's table each belongs to
    scaled: NDArray[np.bool_]  # of the working copy's columns, those that came in units of their own

    def __post_init__(self) -> None:
        if not np.array_equal(self.varying, np.flatnonzero(self.scaler.spread > 0)):
            raise ValueError("the columns that vary must be those with a spread")

    @classmethod
    def fit(
        cls,
        values: NDArray[np.floating],
        missing: NDArray[np.bool_],
        layout: ColumnLayout,
        *,
        rescale: bool,
        n_threads: int = 1,
    ) -> WorkingColumns:
        """Learn scales from the observed entries of an array."""
        scaler = Standardiser.fit(values, missing, rescale=rescale, scaled=layout.scaled, n_threads=n_threads)
        varying = np.flatnonzero(scaler.spread > 0)
        return cls(scaler, varying, layout.groups, layout.scaled[varying])

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Of the working copy's columns, the column of the user's table each belongs to."""
        return self.layout_groups[self.varying]

    def __len__(self) -> int:
        return len(self.varying)

    def holes(self, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where the working copy has holes."""
        return missing if len(self) == missing.shape[1] else missing[:, self.varying]

    def copy_of(self, values: NDArray[np.floating], holes: NDArray[np.bool_], n_threads: int = 1) -> NDArray[np.float32]:
        """The working copy ``[n, width]``, with 0 (the mean) in the holes."""
        d = len(self)
        work = np.zeros((len(values), padded_width(d)), dtype=np.float32)

        def copy_chunk(chunk: slice) -> None:
            z = self.scaler.apply(values[chunk], self.varying)
            z[holes[chunk]] = 0
            largest = np.abs(z).max(initial=0)
            if largest > _LARGEST_UNSCALED:
                raise ValueError(
                    Message(
                        "with ",
                        Term("scale", False),
                        f" values must lie within {_LARGEST_UNSCALED:g} of their column's mean, "
                        f"got a distance of {largest:.3g}; pass ",
                        Term("scale", True),
                    )
                )
            work[chunk, :d] = z

        each_in_threads(copy_chunk, chunks_of(len(values)), n_threads)
        work[:, d] = 1
        return work

    def read_holes(self, work: NDArray[np.float32], missing: NDArray[np.bool_], n_threads: int = 1) -> NDArray[np.float64]:
        """The missing entries in original units, row by row; columns that do not vary get their one value."""
        varies = self.scaler.spread > 0
        chunks = chunks_of_cells(missing)
        entries = np.empty(chunks[-1][1].stop)

        def read_chunk(chunk: tuple[slice, slice]) -> None:
            rows, cells = chunk
            column = np.nonzero(missing[rows])[1]
            z = np.zeros(len(column), dtype=np.float32)
            z[varies[column]] = work[rows, : len(self)][self.holes(missing[rows])]
            entries[cells] = self.scaler.restore(z, column)

        each_in_threads(read_chunk, chunks, n_threads)
        return entries

    def start_from(
        self, start: NDArray[np.floating], holes: NDArray[np.bool_], present: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """A user's starting table in the units of the working copy; ``present`` are the columns that had a value."""
        if start.shape != (len(holes), len(present)):
            raise ValueError(f"initial must be a table of shape {(len(holes), len(present))}, got {start.shape}")
        start = self.scaler.apply(start[:, present], self.varying)
        if not np.isfinite(start[holes]).all():
            raise ValueError("initial must be finite wherever a value is missing")
        return start


def warn_of_spreads(table: NDArray[np.float32], holes: NDArray[np.bool_]) -> None:
    """Say so where columns that were not rescaled are far from unit spread."""
    spreads = [float(column[~hole].std()) for column, hole in zip(table.T, holes.T, strict=True)]
    if spreads and (min(spreads) < _WIDEST_SPREADS[0] or max(spreads) > _WIDEST_SPREADS[1]):
        warn_user(
            Message(
                "with ",
                Term("scale", False),
                " columns should have about unit spread, "
                f"got {min(spreads):.3g} to {max(spreads):.3g}; standardise them first, or pass ",
                Term("scale", True),
            ),
            OtimputeWarning,
        )
