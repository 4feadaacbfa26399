"""Ray Data: actors complete the blocks of a dataset; each reads the model once, from the object store of its machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .._optional import require
from .contract import impute_batches, model_for
from .files import FileOutcome, FileTask, impute_file
from .parts import COMBINED, batch_of_states, batches_of, merged_schema, schema_state
from .remote_files import outcomes

if TYPE_CHECKING:
    from ..estimator import BaseImputer
    from ..streams import Combine, Fold

_PURPOSE = "datasets of Ray"
_LEVELS = 2  # of combining: the number of blocks is not known before they are read
_ATTEMPTS = 3  # of a file whose worker died
_BY_BLOCK = {"batch_format": "pyarrow", "batch_size": None}


def impute(dataset: Any, imputer: BaseImputer, **options: Any) -> Any:
    """A dataset that imputes the missing values of another one when its rows are asked for."""
    ray = require("ray", _PURPOSE, "ray")
    model = model_for(imputer, _known_schema(dataset))  # a schema that Ray does not know yet is checked by the workers
    if not {"compute", "concurrency"} & options.keys():
        options["compute"] = require("ray.data", _PURPOSE, "ray").ActorPoolStrategy(min_size=1)  # grows with the work
    return dataset.map_batches(
        _Completer, fn_constructor_args=(ray.put(model),), **_BY_BLOCK, udf_modifying_row_count=False, **options
    )


class _Completer:
    """What an actor does: it holds the model, and completes blocks."""

    def __init__(self, model: Any):
        self._model = require("ray", _PURPOSE, "ray").get(model)

    def __call__(self, block: Any) -> Any:
        pa = require("pyarrow", "Arrow tables", "cli")
        return pa.Table.from_batches(impute_batches(self._model, batches_of(block)), block.schema)


def source(dataset: Any) -> RayDataset:
    """The rows of a dataset as parts that can be read again and again."""
    return RayDataset(dataset)


class RayDataset:
    """A dataset whose blocks are read where they are: what goes to the driver is what a fold makes of them."""

    def __init__(self, dataset: Any):
        self._dataset = dataset
        self._schema: Any = None

    @property
    def schema(self) -> Any:
        """That of the blocks; where Ray does not know it, it is put together from all of them."""
        if self._schema is None:
            self._schema = _known_schema(self._dataset) or merged_schema(self._states(schema_state))
        return self._schema

    def fold(self, fold: Fold, combine: Combine) -> Iterator[bytes]:
        """What ``fold`` makes of the blocks; workers combine what there is of several."""
        return self._states(partial(_fold_block, fold, self.schema), combine)

    def _states(self, make_state: Any, combine: Combine | None = None) -> Iterator[bytes]:
        states = self._dataset.map_batches(partial(_state_of_block, make_state), **_BY_BLOCK)
        if combine is not None:
            for _ in range(_LEVELS):
                states = states.map_batches(partial(_combined, combine), batch_format="pyarrow", batch_size=COMBINED)
        for batch in states.iter_batches(batch_format="pyarrow", batch_size=None):
            yield from batch["state"].to_pylist()


def run_files(tasks: Sequence[FileTask], model: bytes, n_workers: int | None = None) -> Iterator[FileOutcome]:
    """Complete files in Ray's workers, where RAY_ADDRESS says, or else on this machine; outcomes come as they are ready."""
    ray = require("ray", _PURPOSE, "ray")
    is_ours = not ray.is_initialized()
    if is_ours:
        n_cores = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": n_workers}
        ray.init(**n_cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        data = ray.put(model)
        work = ray.remote(max_retries=_ATTEMPTS - 1)(_complete_file)
        n_at_once = n_workers or int(ray.cluster_resources().get("CPU", 1))
        begun: set[Any] = set()

        def complete(task: FileTask) -> Any:
            waiting = work.remote(data, task)
            begun.add(waiting)
            try:
                return ray.get(waiting)
            finally:
                begun.discard(waiting)

        yield from outcomes(complete, tasks, n_at_once, stop=lambda: [ray.cancel(each) for each in list(begun)])
    finally:
        if is_ours:
            ray.shutdown()


def _complete_file(model: bytes, task: FileTask) -> FileOutcome:
    return impute_file(model, task)


def _known_schema(dataset: Any) -> Any:
    pa = require("pyarrow", "Arrow tables", "cli")
    schema = getattr(dataset.schema(fetch_if_missing=False), "base_schema", None)
    return schema if isinstance(schema, pa.Schema) else None  # that of pandas blocks does not say what objects are


def _fold_block(fold: Fold, schema: Any, block: Any) -> bytes:
    state: bytes = fold(batches_of(block.cast(schema)))
    return state


def _state_of_block(make_state: Any, block: Any) -> Any:
    return _table_of([make_state(block)])


def _combined(combine: Combine, states: Any) -> Any:
    return _table_of([combine(states["state"].to_pylist())])


def _table_of(states: list[bytes]) -> Any:
    return require("pyarrow", "Arrow tables", "cli").Table.from_batches([batch_of_states(states)])
