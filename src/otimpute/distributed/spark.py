"""Spark: executors complete record batches with ``mapInArrow``; each machine gets the model once, by broadcast."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .._optional import require
from .contract import impute_batches, model_for
from .files import FileOutcome, FileTask, impute_file
from .parts import COMBINED, batch_of_states, regrouped
from .remote_files import outcomes

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..streams import Combine, Fold

_PURPOSE = "frames of Spark"
_ATTEMPTS = 3  # of a task whose worker died
_PARTS_PER_CORE = 4  # of a fold: enough to keep cores busy


def impute(frame: Any, imputer: BaseImputer, **options: Any) -> Any:
    """A frame that imputes the missing values of another one when its rows are asked for."""
    context = _context_of(frame)
    model = context.broadcast(model_for(imputer, _arrow_schema(frame)))
    return frame.mapInArrow(partial(_complete_partition, model), frame.schema, **options)


def _complete_partition(model: Any, batches: Iterable[Any]) -> Iterator[Any]:
    yield from impute_batches(model.value, regrouped(batches))


def source(frame: Any) -> SparkFrame:
    """The rows of a frame as parts that can be read again and again."""
    _context_of(frame)
    return SparkFrame(frame)


class SparkFrame:
    """A frame whose partitions are read where they are: what goes to the driver is what a fold makes of them."""

    def __init__(self, frame: Any):
        self._frame = frame
        self.schema = _arrow_schema(frame)

    def fold(self, fold: Fold, combine: Combine) -> Iterator[bytes]:
        """What ``fold`` makes of the partitions; executors combine what there is of several."""
        n_parts = _PARTS_PER_CORE * _context_of(self._frame).defaultParallelism
        states = self._frame.coalesce(n_parts).mapInArrow(partial(_state_of_partition, fold), "state binary")
        while n_parts > COMBINED:
            n_parts = math.ceil(n_parts / COMBINED)
            states = states.repartition(n_parts).mapInArrow(partial(_combined_partition, combine), "state binary")
        return (bytes(row.state) for row in states.collect())


def _state_of_partition(fold: Fold, batches: Iterable[Any]) -> Iterator[Any]:
    yield batch_of_states([fold(regrouped(batches))])


def _combined_partition(combine: Combine, batches: Iterable[Any]) -> Iterator[Any]:
    yield batch_of_states([combine(state for batch in batches for state in batch["state"].to_pylist())])


def run_files(tasks: Sequence[FileTask], model: bytes, n_workers: int | None = None) -> Iterator[FileOutcome]:
    """Complete files in Spark's executors, or on this machine if no master is set; outcomes come as they are ready."""
    sql = require("pyspark.sql", _PURPOSE, "spark")
    session = sql.SparkSession.getActiveSession()
    is_ours = session is None
    if is_ours:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # what has otimpute installed
        session = _own_session(sql, n_workers)
    context, tag = session.sparkContext, f"otimpute-{uuid4().hex}"
    try:
        data = context.broadcast(model)

        def complete(task: FileTask) -> Any:
            context.addJobTag(tag)
            (outcome,) = context.parallelize([task], 1).map(partial(_complete_file, data)).collect()
            return outcome

        n_at_once = n_workers or context.defaultParallelism
        yield from outcomes(complete, tasks, n_at_once, stop=lambda: context.cancelJobsWithTag(tag))
    finally:
        if is_ours:
            session.stop()


def _own_session(sql: Any, n_workers: int | None) -> Any:
    """A session as the environment configures it; on this machine if nothing is said."""
    pyspark = require("pyspark", _PURPOSE, "spark")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    if not pyspark.SparkConf().contains("spark.master"):
        settings["spark.master"] = f"local[{n_workers or '*'}, {_ATTEMPTS}]"
    builder = sql.SparkSession.builder.appName("otimpute")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _complete_file(model: Any, task: FileTask) -> FileOutcome:
    return impute_file(model.value, task)


def _arrow_schema(frame: Any) -> Any:
    """What the columns are in the batches that workers get; no row is read for that."""
    return frame.limit(0).toArrow().schema


def _context_of(frame: Any) -> Any:
    if ".connect." in type(frame).__module__:
        raise TypeError(
            "frame belongs to a session of Spark Connect, which cannot send a model to all executors; "
            "pass a frame of a session that runs in its driver"
        )
    return frame.sparkSession.sparkContext
