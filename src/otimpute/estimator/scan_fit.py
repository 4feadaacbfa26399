"""Fit to a table that is read in batches: a survey of all rows, a fit to a sample of them, and sums over all of them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._archive import read_archive, write_archive
from .._optional import require
from .._stored import Whole, stored
from .._text import count, listed
from .._threads import Workers, n_threads, single_blas_thread
from ..exceptions import StoredFileError
from ..fitting import BlockModel, FitProgress, progress_bar
from ..streams import LocalParts, Scan, Survey, numbers_of
from .model_file import model_of_bytes

if TYPE_CHECKING:
    from .base import BaseImputer

_KIND = "scan checkpoint"
_SECONDS_BETWEEN = 10.0
_WITHOUT_INFLUENCE = ("callbacks", "checkpoint", "n_jobs", "verbose")
_ROWS_IN_CACHE = 1 << 14


@stored(n_rows=Whole(at_least=1), n_sample=Whole(at_least=1), n_added=Whole(), rounds=Whole())
@dataclass(frozen=True)
class ScanSummary:
    """What a fit to a table that is read in batches learned from all rows, and what from a sample."""

    n_rows: int  # of the table
    n_sample: int  # rows of the sample, those that were added among them
    n_added: int  # rows that were added so that sparse columns have enough values
    summed: list[str]  # what is a sum over all rows
    sampled: list[str]  # what was learned from the sample
    rounds: int  # steps of EM over all rows

    def __str__(self) -> str:
        added = f" ({count(self.n_added, 'row')} added for sparse columns)" if self.n_added else ""
        summed = f"From all {count(self.n_rows, 'row')}: {listed(self.summed, 20)}."
        if not self.sampled:
            return summed
        return f"{summed} From a sample of {count(self.n_sample, 'row')}{added}: {listed(self.sampled, 20)}."


class RowSums(Protocol):
    """Sums over rows from which a part of a model follows; exact, so that they are the same in any order."""

    def add(self, values: Any, missing: Any) -> None:
        """Add rows ``[n, D]``."""

    def merge(self, other: Any) -> None:
        """Add the sums of other rows."""

    def as_data(self) -> Any:
        """The same as JSON can hold it."""

    def take_over(self, data: Any) -> None:
        """What `as_data` returned."""


class SumPass:
    """One reading of all rows for the sums that an imputer fitted to a sample can make use of."""

    def __init__(self, imputer: BaseImputer, schema: Any) -> None:
        self.imputer, self.schema = imputer, schema
        self.sums = _no_sums(imputer)

    def fold(self, batches: Iterable[Any]) -> bytes:
        """The sums of a part, as bytes."""
        own = SumPass(self.imputer, self.schema)
        for batch in batches:
            own.add(batch)
        return own.to_bytes()

    def combine(self, states: Iterable[bytes]) -> bytes:
        """What `fold` would return of several parts together."""
        own = SumPass(self.imputer, self.schema)
        for state in states:
            own.merge(state)
        return own.to_bytes()

    def add(self, batch: Any) -> None:
        """Add the rows of a record batch."""
        batch = batch if batch.schema.equals(self.schema) else batch.select(self.schema.names).cast(self.schema)
        pieces = [batch.slice(begin, _ROWS_IN_CACHE) for begin in range(0, batch.num_rows, _ROWS_IN_CACHE)]
        with single_blas_thread(), Workers(n_threads(getattr(self.imputer, "n_jobs", None))) as workers:
            for sums in workers.map(self._sums_of, pieces):
                self.sums.merge(sums)  # exact, so that the number of workers changes nothing

    def _sums_of(self, batch: Any) -> RowSums:
        sums = _no_sums(self.imputer)
        sums.add(*self._arrays_of(batch))
        return sums

    def _arrays_of(self, batch: Any) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """What imputers see of rows; of numbers on the shortest way, for that is most of the work where rows are many."""
        training = self.imputer.training_table_
        if not training.encoding.is_numeric or training.empty.any() or training.derived is not None:
            return training.arrays_of(self.imputer.read_table(batch))
        pairs = [numbers_of(column, float(self.imputer._missing_values())) for column in batch.columns]
        values, missing = np.empty((batch.num_rows, len(pairs)), order="F"), np.empty((batch.num_rows, len(pairs)), bool)
        for k, (numbers, holes) in enumerate(pairs):
            values[:, k], missing[:, k] = numbers, holes
        return values, missing

    def merge(self, data: bytes) -> None:
        """Add what `fold` returned for another part."""
        other = _no_sums(self.imputer)
        other.take_over(json.loads(data))
        self.sums.merge(other)

    def to_bytes(self) -> bytes:
        """Everything, to be taken over by another pass of the same imputer."""
        return json.dumps(self.sums.as_data()).encode()

    def take_over(self, data: bytes) -> None:
        """What `to_bytes` returned."""
        self.sums.take_over(json.loads(data))


def _no_sums(imputer: BaseImputer) -> RowSums:
    sums = imputer._row_sums()
    assert sums is not None
    return sums


def fit_scan(imputer: BaseImputer, scan: Scan) -> None:
    """Fit an imputer to a table that is read in batches."""
    imputer._check_before_fit()
    imputer._refuse_rows_together("a fit to a table that is read in batches")
    schema = _checked(scan.source.schema)
    progress = _Progress(imputer, scan)
    survey = Survey(
        schema, marker=float(imputer._missing_values()), seed=_sample_seed(imputer),
        sample_rows=scan.sample_rows, min_observed=scan.min_observed,
    )  # fmt: skip
    progress.run(0, "Reading all rows", survey)
    if not survey.n_rows:
        raise ValueError("X must have at least one row, got none in any of its batches")
    places, n_added = survey.sample.drawn()
    if not progress.restore(imputer):
        rows = survey.sample.rows.take(require("pyarrow", "reading batches", "cli").array(places))
        encoding = survey.encoding(imputer.constraints, imputer.max_categories)
        imputer._fit_table(rows, encoding=imputer._known_encoding(rows, encoding))
        n_missing = np.array([facts.n_missing for facts in survey.facts])
        table = imputer.training_table_
        imputer.training_table_ = replace(table, n_rows=survey.n_rows, n_missing=n_missing, kept=table.kept)
    sums = None if isinstance(imputer._model, BlockModel) else imputer._row_sums()  # blocks see some columns only
    rounds = 0 if sums is None else scan.rounds if imputer._improves_in_rounds else min(scan.rounds, 1)
    for k in range(progress.stage_of_sums, rounds):
        one = SumPass(imputer, schema)
        progress.run(1 + k, "Summing over all rows", one, imputer)
        imputer._model = imputer._improved(one.sums)
        imputer._publish()
    imputer._note_scan(
        ScanSummary(
            survey.n_rows, len(places), n_added,
            ["counts of values", "ranges of numbers and dates", "categories", *(imputer._summed if rounds else [])],
            _sampled(imputer, survey, rounds), rounds if imputer._improves_in_rounds else 0,
        )
    )  # fmt: skip
    progress.done()


def _sampled(imputer: BaseImputer, survey: Survey, rounds: int) -> list[str]:
    texts = [facts.name for facts in survey.facts if facts.counts is None]
    return [
        *(imputer._sampled if rounds else ["the model"]),
        *([f"how frequent texts are in {listed(texts)}"] if texts else []),
    ]


def _checked(schema: Any) -> Any:
    """The schema, if its columns have names that differ; without metadata, which no row needs."""
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise ValueError(f"column names must differ, got {listed(twice)} more than once")
    if not schema.names:
        raise ValueError("X must have at least one column, got none")
    return schema.remove_metadata()


def _sample_seed(imputer: BaseImputer) -> int:
    """The sample follows from a seed that is a number; without one it is always the same."""
    seed = getattr(imputer, "random_state", None)
    return int(seed) if isinstance(seed, Integral) and not isinstance(seed, bool) else 0


class _Progress:
    """Runs passes over the parts of a source; how far they have come is in a file."""

    def __init__(self, imputer: BaseImputer, scan: Scan) -> None:
        self.source, self.path, self.verbose = scan.source, scan.checkpoint, scan.verbose
        names = [part.name for part in self.source.parts] if isinstance(self.source, LocalParts) else []
        given = {name: value for name, value in imputer.get_params().items() if name not in _WITHOUT_INFLUENCE}
        told = [type(imputer).__name__, repr(sorted(given.items(), key=str)), str(self.source.schema)]
        sizes = [scan.sample_rows, scan.min_observed, scan.rounds]
        self.identity = hashlib.sha256(json.dumps([told, names, sizes]).encode()).hexdigest()
        self.found = None if self.path is None or not self.path.exists() else self._read(self.path)
        self.before: dict[str, Any] = {}  # what finished passes left

    @property
    def stage_of_sums(self) -> int:
        """The round of sums that was under way."""
        return max(0, 0 if self.found is None else self.found[0]["stage"] - 1)

    def run(self, stage: int, title: str, state: Any, imputer: BaseImputer | None = None) -> None:
        """Let a pass see all rows; of one that was finished before, take over what it left."""
        if stage == 0 and self.found is not None and self.found[0]["stage"] > 0:
            state.take_over(self.found[1]["survey"].tobytes())
            self.before["survey"] = self.found[1]["survey"]
            return
        if not isinstance(self.source, LocalParts):
            for data in self.source.fold(state.fold, state.combine):
                state.merge(data)
        else:
            self._run_parts(stage, title, state, imputer)
        if stage == 0:
            self.before["survey"] = np.frombuffer(state.to_bytes(), np.uint8) if self.path is not None else None

    def restore(self, imputer: BaseImputer) -> bool:
        """Take over the fit to the sample if it was made before."""
        if self.found is None or "imputer" not in self.found[1]:
            return False
        restored = model_of_bytes(self.found[1]["imputer"].tobytes(), {type(imputer).__name__: type(imputer)}, {})
        given = imputer.get_params(deep=False)
        imputer.__dict__.update({name: value for name, value in restored.__dict__.items() if name not in given})
        return True

    def done(self) -> None:
        """The fit is made: the file has served."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _run_parts(self, stage: int, title: str, state: Any, imputer: BaseImputer | None) -> None:
        parts, n_done = self.source.parts, 0
        if self.found is not None and self.found[0]["stage"] == stage:
            n_done = self.found[0]["n_done"]
            state.take_over(self.found[1]["state"].tobytes())
        elif self.path is not None and imputer is not None:
            self._write(stage, 0, state, imputer)
        begun = saved = time.perf_counter()
        with progress_bar(title, self.verbose) as bar:
            for k, part in enumerate(parts[n_done:], n_done + 1):
                for batch in part.batches():
                    state.add(batch)
                now = time.perf_counter()
                for show in bar:
                    show(FitProgress(k, len(parts), now - begun, {"loss": []}))
                if self.path is not None and k < len(parts) and now - saved >= _SECONDS_BETWEEN:
                    self._write(stage, k, state, imputer)
                    saved = now

    def _write(self, stage: int, n_done: int, state: Any, imputer: BaseImputer | None) -> None:
        assert self.path is not None
        arrays = {"state": np.frombuffer(state.to_bytes(), np.uint8), **self.before}
        if imputer is not None:
            arrays["imputer"] = np.frombuffer(imputer.to_bytes(), np.uint8)
        write_archive(self.path, _KIND, {"identity": self.identity, "stage": stage, "n_done": n_done}, arrays)

    def _read(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        document, arrays = read_archive(path, _KIND)
        if document.get("identity") != self.identity:
            raise StoredFileError(
                f"{path} is of a fit with other parameters or to other files; pass another path, or delete it to begin anew"
            )
        return document, arrays
