"""The pure function that every engine runs on every partition, and which module knows the frames of which engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._optional import require
from ..model_file import from_bytes

if TYPE_CHECKING:
    from ..estimator import BaseImputer

# Package that a frame's class comes from: the module here that has `impute(frame, imputer)`.
_ENGINES = {"ray": "ray", "pyspark": "spark", "dask": "dask", "dask_expr": "dask"}


def impute_batches(model: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Complete Arrow record batches with the imputer that ``model = imputer.to_bytes()`` holds.

    The result depends on nothing but the bytes and the rows: not on the machine's other work, on other rows, on how rows are
    spread over batches, or on what was called before. A process reads each model once.

    >>> import pyarrow as pa
    >>> from otimpute.baselines import MeanImputer
    >>> batch = pa.record_batch({"x": [1.0, None, 3.0]})
    >>> [each["x"].to_pylist() for each in impute_batches(MeanImputer().fit(batch).to_bytes(), [batch])]
    [[1.0, 2.0, 3.0]]
    """
    imputer: BaseImputer = imputer_of(model)
    return imputer.transform_batches(batches)


def impute(frame: Any, imputer: BaseImputer, **options: Any) -> Any:
    """Complete a frame of Ray Data, Spark or Dask where its rows are; the result is a lazy frame of the same engine.

    Parameters
    ----------
    frame : ray.data.Dataset, pyspark.sql.DataFrame or dask.dataframe.DataFrame
        Rows with the columns of the fit, by name; other columns come back as they are.
    imputer : BaseImputer
        A fitted imputer, sent to the workers as bytes.
    **options
        Passed on to the method of the frame that does it: ``map_batches`` of Ray (``concurrency=8``), ``mapInArrow`` of Spark,
        ``map_partitions`` of Dask.
    """
    for cls in type(frame).__mro__:
        engine = _ENGINES.get(cls.__module__.partition(".")[0])
        if engine is not None:
            return import_module(f".{engine}", __package__).impute(frame, imputer, **options)
    raise TypeError(
        f"frame must be a frame of Ray Data, Spark or Dask, got {type(frame).__module__}.{type(frame).__name__}; "
        "pass tables in memory to imputer.transform, and batches to imputer.transform_batches"
    )


def model_for(imputer: BaseImputer, schema: Any) -> bytes:
    """The imputer as bytes that complete rows of this schema; errors come before any row is read. None: not known yet."""
    if not hasattr(imputer, "transform_batches"):
        raise TypeError(f"imputer must be a fitted imputer of otimpute, got {type(imputer).__name__}")
    pa = require("pyarrow", "Arrow tables", "cli")
    no_rows = [] if schema is None else [pa.RecordBatch.from_pylist([], schema)]
    for _ in imputer.transform_batches(no_rows):
        pass
    model = imputer.to_bytes()
    imputer_of(model)  # one that needs code of the user's is refused here, not by workers
    return model


@lru_cache(maxsize=2)
def imputer_of(model: bytes) -> Any:
    """The imputer that bytes hold; a process reads each model once."""
    return from_bytes(model)
