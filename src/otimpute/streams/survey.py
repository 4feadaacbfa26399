"""What is learned of a table in one reading: how many values of what kind there are, their extent, and a sample of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._archive import archive_pieces, parse_archive
from .._optional import require
from ..table import Encoding
from .column_facts import ColumnFacts
from .row_sample import RowSample, hash_rows

_KIND = "survey"


class Survey:
    """Adds up what is known of all rows; surveys of parts can be merged, in any order, to the same result."""

    def __init__(self, schema: Any, *, marker: float, seed: int, sample_rows: int, min_observed: int) -> None:
        self.schema, self.marker, self.seed = schema, marker, seed
        self.n_rows = 0
        self.facts = [ColumnFacts(name, kind) for name, kind in zip(schema.names, schema.types, strict=True)]
        self.sample = RowSample(schema, len(self.facts), sample_rows, min_observed)

    def fold(self, batches: Iterable[Any]) -> bytes:
        """The survey of a part, as bytes."""
        own = self._empty()
        for batch in batches:
            own.add(batch)
        return own.to_bytes()

    def combine(self, states: Iterable[bytes]) -> bytes:
        """What `fold` would return of several parts together."""
        own = self._empty()
        for state in states:
            own.merge(state)
        return own.to_bytes()

    def add(self, batch: Any) -> None:
        """Take note of the rows of a record batch."""
        if not batch.num_rows:
            return
        if not batch.schema.equals(self.schema):
            batch = batch.select(self.schema.names).cast(self.schema)
        read = [facts.add(column, self.marker) for facts, column in zip(self.facts, batch.columns, strict=True)]
        observed = np.column_stack([~missing for _, missing in read])
        self.n_rows += batch.num_rows
        self.sample.add(batch, hash_rows(read, batch.num_rows, self.seed), observed)

    def merge(self, data: bytes) -> None:
        """Add what `fold` returned for another part."""
        other = self._empty()
        other.take_over(data)
        self.n_rows += other.n_rows
        for mine, theirs in zip(self.facts, other.facts, strict=True):
            mine.merge(theirs)
        self.sample.merge(other.sample)

    def encoding(self, constraints: Any, max_categories: int | None) -> Encoding:
        """The code of each column, chosen from all of its values; of labels that are too many to count, from the sample."""
        rows = self.sample.rows
        return Encoding.of_facts(
            self.schema.names,
            [facts.column() for facts in self.facts],
            [facts.counts for facts in self.facts],
            rows, constraints, max_categories, self.marker,
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Everything, to be taken over by another survey of the same table."""
        self.sample.settle()
        pa = require("pyarrow", "reading batches", "cli")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            writer.write_table(_one_dictionary_each(self.sample.rows))
        rows = np.frombuffer(sink.getvalue(), np.uint8)
        document = {"n_rows": self.n_rows, "facts": [facts.as_data() for facts in self.facts]}
        return b"".join(archive_pieces(_KIND, document, {"rows": rows} | self.sample.arrays()))

    def take_over(self, data: bytes) -> None:
        """What `to_bytes` returned."""
        document, arrays = parse_archive(data, _KIND, "the survey of a part")
        pa = require("pyarrow", "reading batches", "cli")
        self.n_rows = document["n_rows"]
        for facts, each in zip(self.facts, document["facts"], strict=True):
            facts.take_over(each)
        rows = pa.ipc.open_stream(pa.py_buffer(arrays.pop("rows").tobytes())).read_all()
        self.sample.take_over(rows, **arrays)

    def _empty(self) -> Survey:
        return Survey(
            self.schema, marker=self.marker, seed=self.seed,
            sample_rows=self.sample.size, min_observed=self.sample.per_column,
        )  # fmt: skip


def _one_dictionary_each(table: Any) -> Any:
    """A stream replaces dictionaries as it goes; readers that cannot take that get one."""
    return table.unify_dictionaries().combine_chunks()
