"""A sample of rows that depends on nothing but the rows: those whose hashes are smallest, and how often each occurs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compile import compiled
from .._optional import require
from .._splitmix import GOLDEN, mix

_mix = compiled(mix)
_HOLE = np.uint64(0x5BF0363546290F)  # stands for what is not known
_ROOM = 2  # times as many rows as are kept are gathered before the others are let go


class RowSample:
    """The rows with the ``size`` smallest hashes of all, and the ``per_column`` smallest of those with a value of each column.

    Equal rows have equal hashes and are kept once, with their number. A row that is not among the smallest in some part is not
    among them in all, so that samples of parts can be merged, and what comes out is the same for any partitioning and order.
    """

    def __init__(self, schema: Any, n_columns: int, size: int, per_column: int) -> None:
        self.size, self.per_column = size, per_column
        self.rows = schema.empty_table()
        self.keys = np.empty(0, np.uint64)
        self.counts = np.empty(0, np.int64)
        self.observed = np.empty((0, n_columns), dtype=bool)
        self._limits = np.full(n_columns + 1, np.iinfo(np.uint64).max)  # of all rows, and of those with a value of a column
        self._gathered: list[tuple[Any, NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]] = []

    def add(self, batch: Any, keys: NDArray[np.uint64], observed: NDArray[np.bool_]) -> None:
        """Take what belongs to the sample of a batch of rows, whose hashes are ``keys [n]``."""
        wanted = keys <= self._limits[0]
        for k in np.flatnonzero(self._limits[1:] > self._limits[0]).tolist():
            wanted |= observed[:, k] & (keys <= self._limits[1 + k])
        if not wanted.any():
            return
        places = np.flatnonzero(wanted)
        pa = require("pyarrow", "reading batches", "cli")
        some = pa.Table.from_batches([batch]).take(pa.array(places))
        self._gather(some, keys[places], np.ones(len(places), np.int64), observed[places])

    def merge(self, other: RowSample) -> None:
        """Add what another one has seen."""
        other.settle()
        if len(other.keys):
            self._gather(other.rows, other.keys, other.counts, other.observed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is known of the rows."""
        return {"keys": self.keys, "counts": self.counts, "observed": self.observed}

    def take_over(self, rows: Any, keys: NDArray[np.uint64], counts: NDArray[np.int64], observed: NDArray[np.bool_]) -> None:
        """Rows and what `arrays` returned, of a sample that was settled."""
        self._gather(rows, keys, counts, observed)
        self.settle()

    def settle(self) -> None:
        """Let go of all rows that do not belong to the sample."""
        if not self._gathered:
            return
        parts = [(self.rows, self.keys, self.counts, self.observed), *self._gathered]
        self._gathered = []
        tables, all_keys, all_counts, all_observed = zip(*parts, strict=True)
        keys, first, own = np.unique(np.concatenate(all_keys), return_index=True, return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, own, np.concatenate(all_counts))
        observed = np.concatenate(all_observed)[first]
        kept = np.zeros(len(keys), dtype=bool)
        for k, size in enumerate([self.size, *[self.per_column] * observed.shape[1]]):
            places = np.arange(len(keys)) if k == 0 else np.flatnonzero(observed[:, k - 1])
            kept[places[:size]] = True  # keys are sorted
            if len(places) > size:
                self._limits[k] = keys[places[size - 1]]
        pa = require("pyarrow", "reading batches", "cli")
        self.rows = pa.concat_tables(tables).take(pa.array(first[kept])).combine_chunks()
        self.keys, self.counts, self.observed = keys[kept], counts[kept], observed[kept]

    def drawn(self) -> tuple[NDArray[np.int64], int]:
        """Places in ``rows`` of those of the sample, some more than once; how many were added for sparse columns.

        Up to ``size`` rows are all of them. Of more, each row has the same chance.
        """
        self.settle()
        most = np.arange(len(self.keys)) < self.size
        counts = np.where(most, self.counts, 0)
        copies = counts
        if counts.sum() > self.size:
            upto = np.append(0, np.cumsum(counts)) * self.size // counts.sum()  # as often as its share says, rounded in turn
            copies = np.diff(upto)
        added = np.zeros(len(copies), dtype=bool)
        for column in self.observed.T:
            lacking = self.per_column - int(copies[column].sum() + (added & column & (copies == 0)).sum())
            spare = np.flatnonzero(column & (copies == 0) & ~added)
            added[spare[: max(lacking, 0)]] = True
        return np.repeat(np.arange(len(copies)), np.where(added, 1, copies)), int(added.sum())

    def _gather(self, rows: Any, keys: NDArray[np.uint64], counts: NDArray[np.int64], observed: NDArray[np.bool_]) -> None:
        self._gathered.append((rows, keys, counts, observed))
        if sum(len(each[1]) for each in self._gathered) > max(self.size, len(self.keys)) * (_ROOM - 1):
            self.settle()


def hash_rows(columns: list[tuple[NDArray[np.uint64], NDArray[np.bool_]]], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """A hash of each row, from the bits ``[n]`` of its values and where they are missing, column by column."""
    keys = np.full(n_rows, seed, dtype=np.uint64)
    for bits, missing in columns:
        _stir(keys, bits, missing)
    return keys


def bits_of_labels(labels: Any) -> NDArray[np.uint64]:
    """Bits of every label of an Arrow array, by its text: 0 for a missing one."""
    pc = require("pyarrow.compute", "reading batches", "cli")
    encoded = labels if hasattr(labels, "dictionary") else pc.dictionary_encode(labels)
    texts = map(str, encoded.dictionary.to_pylist())
    known = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts]
    indices = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*known, 0], np.uint64)[indices])


@compiled
def _stir(keys, bits, missing):  # type: ignore[no-untyped-def]
    for i in range(keys.shape[0]):
        keys[i] = _mix((keys[i] ^ (_HOLE if missing[i] else bits[i])) + GOLDEN)
