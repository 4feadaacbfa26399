"""Spark: executors complete record batches with ``mapInArrow``; each machine gets the model once, by broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .._optional import require
from .contract import impute_batches, model_for

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..streams import Fold

_PARTS_PER_CORE = 2  # of a fold: enough to keep cores busy, few enough for their results to fit into the driver


def impute(frame: Any, imputer: BaseImputer, **options: Any) -> Any:
    """A frame that imputes the missing values of another one when its rows are asked for."""
    context = _context_of(frame)
    model = context.broadcast(model_for(imputer, _arrow_schema(frame)))
    return frame.mapInArrow(partial(_complete_partition, model), frame.schema, **options)


def _complete_partition(model: Any, batches: Iterable[Any]) -> Iterator[Any]:
    yield from impute_batches(model.value, batches)


def source(frame: Any) -> SparkFrame:
    """The rows of a frame as parts that can be read again and again."""
    _context_of(frame)
    return SparkFrame(frame)


class SparkFrame:
    """A frame whose partitions are read where they are: what goes to the driver is what a fold makes of them."""

    def __init__(self, frame: Any):
        self._frame = frame
        self.schema = _arrow_schema(frame)

    def fold(self, fold: Fold) -> Iterator[bytes]:
        """What ``fold`` makes of some partitions after the other, at once at the end."""
        n_parts = _PARTS_PER_CORE * _context_of(self._frame).defaultParallelism
        states = self._frame.coalesce(n_parts).mapInArrow(partial(_state_of_partition, fold), "state binary")
        return (bytes(row.state) for row in states.collect())


def _state_of_partition(fold: Fold, batches: Iterable[Any]) -> Iterator[Any]:
    pa = require("pyarrow", "Arrow tables", "cli")
    yield pa.record_batch({"state": pa.array([fold(batches)], pa.binary())})


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
