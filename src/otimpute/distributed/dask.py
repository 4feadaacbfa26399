"""Dask: workers complete partitions, which are pandas frames; the model is one task of the graph, which all others need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from .._optional import require
from .contract import imputer_of, model_for
from .files import FileOutcome, FileTask, impute_file
from .local import n_cores
from .memory import memory_kept
from .parts import COMBINED, batches_of, merged_schema, schema_state
from .remote_files import outcomes

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..streams import Combine, Fold

_PURPOSE = "frames of Dask"


def impute(frame: Any, imputer: BaseImputer, **options: Any) -> Any:
    """A frame that imputes the missing values of another one when its rows are asked for."""
    dask = require("dask", _PURPOSE, "dask")
    model = dask.delayed(model_for(imputer, _declared_schema(frame)), pure=True)
    return frame.map_partitions(_complete_partition, model, meta=frame._meta, **options)


def _complete_partition(rows: Any, model: bytes) -> Any:
    """The rows with their index and types; columns that the model does not know stay as they are."""
    if not len(rows):
        return rows
    imputer = imputer_of(model)
    names = imputer.training_table_.encoding.names
    absent = {name: None for name in names if name not in rows}  # columns without use for the model
    with memory_kept():
        filled = imputer.transform(rows.assign(**absent)[list(names)])
    return rows.assign(**{name: filled[name] for name in filled if name in rows})


def source(frame: Any) -> DaskFrame:
    """The rows of a frame as parts that can be read again and again."""
    return DaskFrame(frame)


class DaskFrame:
    """A frame whose partitions are read where they are: what goes to the driver is what a fold makes of them."""

    def __init__(self, frame: Any):
        self._frame = frame
        self._schema: Any = None

    @property
    def schema(self) -> Any:
        """What all partitions can be cast to: pandas says neither what objects are nor how categories are stored."""
        if self._schema is None:
            self._schema = merged_schema(self._states(_schema_of_partition))
        return self._schema

    def fold(self, fold: Fold, combine: Combine) -> Iterator[bytes]:
        """What ``fold`` makes of the partitions; workers combine what there is of several."""
        return self._states(partial(_fold_partition, fold, self.schema), combine)

    def _states(self, make_state: Any, combine: Combine | None = None) -> Iterator[bytes]:
        dask = require("dask", _PURPOSE, "dask")
        task, apply = dask.delayed(make_state), dask.delayed(_apply)  # one task that all others need, as it may be large
        states = [apply(task, rows) for rows in self._frame.to_delayed()]
        while combine is not None and len(states) > COMBINED:
            task = dask.delayed(combine)
            states = [apply(task, states[begin : begin + COMBINED]) for begin in range(0, len(states), COMBINED)]
        client = _client_in_use()
        if client is not None:
            ready = require("dask.distributed", _PURPOSE, "dask").as_completed(client.compute(states))
            yield from (each.result() for each in ready)
            return
        for begin in range(0, len(states), n_cores()):  # in threads here, so that no more states than that are in memory
            yield from dask.compute(*states[begin : begin + n_cores()])


def _apply(make_state: Any, rows: Any) -> Any:
    return make_state(rows)


def _fold_partition(fold: Fold, schema: Any, rows: Any) -> bytes:
    with memory_kept():
        state: bytes = fold(batches_of(_arrow_table(rows).cast(schema)))
    return state


def _schema_of_partition(rows: Any) -> bytes:
    return schema_state(_arrow_table(rows))


def run_files(tasks: Sequence[FileTask], model: bytes, n_workers: int | None = None) -> Iterator[FileOutcome]:
    """Complete files in Dask's workers, where DASK_SCHEDULER_ADDRESS says, or else on this machine; outcomes come as ready."""
    with ExitStack() as ours:
        client = _client_in_use() or ours.enter_context(_own_client(n_workers))
        data = client.scatter(model, broadcast=True, hash=False)
        begun: set[Any] = set()

        def complete(task: FileTask) -> Any:
            waiting = client.submit(_complete_file, data, task, pure=False)
            begun.add(waiting)
            try:
                return waiting.result()
            finally:
                begun.discard(waiting)

        n_at_once = n_workers or sum(client.nthreads().values())
        yield from outcomes(complete, tasks, n_at_once, stop=lambda: client.cancel(list(begun)))


def _client_in_use() -> Any:
    try:
        return require("dask.distributed", _PURPOSE, "dask").default_client()
    except ValueError:  # there is none
        return None


@contextmanager
def _own_client(n_workers: int | None) -> Iterator[Any]:
    """A client of the scheduler that the environment names, or of workers on this machine."""
    dask, distributed = require("dask", _PURPOSE, "dask"), require("dask.distributed", _PURPOSE, "dask")
    with ExitStack() as ours:
        address = dask.config.get("scheduler-address", None)
        if address is None:
            here = distributed.LocalCluster(n_workers=n_workers or n_cores(), threads_per_worker=1, dashboard_address=None)
            address = ours.enter_context(here)
        yield ours.enter_context(distributed.Client(address, set_as_default=False))


def _complete_file(model: bytes, task: FileTask) -> FileOutcome:
    with memory_kept():
        return impute_file(model, task)


def _declared_schema(frame: Any) -> Any:
    """The schema, if it can be told before any row is read."""
    schema = _arrow_table(frame._meta).schema
    is_null = require("pyarrow", "Arrow tables", "cli").types.is_null
    return None if any(is_null(field.type) for field in schema) else schema  # that of objects depends on what they are


def _arrow_table(rows: Any) -> Any:
    return require("pyarrow", "Arrow tables", "cli").Table.from_pandas(rows, preserve_index=False)
