"""Ray, Spark and Dask as tests use them: start one here, cut a table into parts, read what comes back."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from faults import DieAmidBatches, DieOnce, dying_actor

REQUIRED = os.environ.get("OTIMPUTE_ENGINES") == "required"  # .ci/run installs them, and must not skip their tests


class Engine:
    """What tests need of an engine."""

    name: str
    package: str
    worker_task: str  # the name in the engine's module of what workers run
    dying: Any  # makes of it one that ends the first worker that runs it

    def start(self, folder: Path) -> None:
        """Start two workers on this machine."""

    def stop(self) -> None:
        """End them."""

    def frame(self, parts: Sequence[pa.Table]) -> Any:
        """A frame whose partitions are these tables."""

    def read(self, folder: Path) -> Any:
        """A frame of the Parquet files of a folder."""

    def write(self, frame: Any, folder: Path) -> None:
        """Compute a frame, and have the workers write it to Parquet files."""

    def each_part(self, frame: Any, task: Any) -> Any:
        """A lazy frame that passes every partition, a table of the engine's kind, through a function."""

    def table(self, frame: Any) -> pa.Table:
        """All rows, computed."""

    def schema(self, frame: Any) -> Any:
        """Names and types of the columns, for comparison."""


class Ray(Engine):
    name, package = "ray", "ray"
    worker_task, dying = "_Completer", staticmethod(dying_actor)

    def start(self, folder: Path) -> None:
        import ray

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=300 * 2**20,
            logging_level=logging.ERROR,
        )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)

    def stop(self) -> None:
        import ray

        ray.shutdown()

    def frame(self, parts: Sequence[pa.Table]) -> Any:
        import ray

        return ray.data.from_arrow(list(parts))

    def read(self, folder: Path) -> Any:
        import ray

        return ray.data.read_parquet(str(folder))

    def write(self, frame: Any, folder: Path) -> None:
        frame.write_parquet(str(folder))

    def each_part(self, frame: Any, task: Any) -> Any:
        return frame.map_batches(task, batch_format="pyarrow", batch_size=None)

    def table(self, frame: Any) -> pa.Table:
        import ray

        tables = ray.get(frame.to_arrow_refs())
        return pa.concat_tables([table for table in tables if table.num_rows] or tables)

    def schema(self, frame: Any) -> Any:
        return frame.schema().base_schema


class Spark(Engine):
    name, package = "spark", "pyspark"
    worker_task, dying = "_complete_partition", DieAmidBatches

    def start(self, folder: Path) -> None:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.timestampType": "TIMESTAMP_NTZ",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.shuffle.partitions": "4",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.log.level": "OFF",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[2, 4]")  # a task may fail three times, as on a cluster
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()

    def stop(self) -> None:
        self.session.stop()

    def frame(self, parts: Sequence[pa.Table]) -> Any:
        schema = pa.schema([_without_dictionary(field) for field in parts[0].schema])
        place = pa.field("part", pa.int32())
        numbered = pa.concat_tables(
            part.cast(schema).append_column(place, pa.repeat(k, len(part)).cast(pa.int32())) for k, part in enumerate(parts)
        )
        # One chunk: Spark ends reading at an empty one.
        frame = self.session.createDataFrame(numbered.combine_chunks())
        return frame.repartitionById(len(parts), "part").drop("part")

    def read(self, folder: Path) -> Any:
        return self.session.read.parquet(str(folder))

    def write(self, frame: Any, folder: Path) -> None:
        frame.write.parquet(str(folder))

    def each_part(self, frame: Any, task: Any) -> Any:
        return frame.mapInArrow(lambda batches: map(task, batches), frame.schema)

    def table(self, frame: Any) -> pa.Table:
        return frame.toArrow()

    def schema(self, frame: Any) -> Any:
        return frame.schema


class Dask(Engine):
    name, package = "dask", "dask"
    worker_task, dying = "_complete_partition", DieOnce

    def start(self, folder: Path) -> None:
        from dask.distributed import Client, LocalCluster

        self._cluster = LocalCluster(
            processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(folder),
            silence_logs=logging.CRITICAL,
        )  # fmt: skip
        self._client = Client(self._cluster)

    def stop(self) -> None:
        self._client.close()
        self._cluster.close()

    def frame(self, parts: Sequence[pa.Table]) -> Any:
        import dask.dataframe as dd

        return dd.from_map(_as_pandas, list(parts), meta=_as_pandas(parts[0].slice(0, 0)))

    def read(self, folder: Path) -> Any:
        import dask.dataframe as dd

        return dd.read_parquet(folder, dtype_backend="pyarrow")

    def write(self, frame: Any, folder: Path) -> None:
        frame.to_parquet(folder)

    def each_part(self, frame: Any, task: Any) -> Any:
        return frame.map_partitions(task, meta=frame._meta)

    def table(self, frame: Any) -> pa.Table:
        return pa.Table.from_pandas(frame.compute(), preserve_index=False)

    def schema(self, frame: Any) -> Any:
        return frame.dtypes.to_dict()


ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Ray, Spark, Dask)}


def cut(table: pa.Table, n_parts: int, seed: int = 0) -> list[pa.Table]:
    """The rows in another order, in so many parts; of seven parts two are empty."""
    shuffled = table.take(np.random.default_rng(seed).permutation(len(table)))
    ends = np.linspace(0, len(table), n_parts + 1).astype(int)
    if n_parts == 7:
        ends[1], ends[4] = 0, ends[3]
    return [shuffled.slice(begin, end - begin) for begin, end in pairwise(ends)]


def need(name: str) -> None:
    """Skip a test whose engine is not installed here; where it must be, fail."""
    engine = ENGINES[name]
    lacking = [engine.package] if find_spec(engine.package) is None else []
    if name == "spark" and shutil.which("java") is None:
        lacking.append("java")
    if not lacking:
        return
    message = f'needs {" and ".join(lacking)}: pip install "otimpute[{name}]"' + ", and a Java runtime" * (name == "spark")
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


def _without_dictionary(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def _as_pandas(table: pa.Table) -> Any:
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.date32(): pd.ArrowDtype(pa.date32())}
    return table.to_pandas(types_mapper=nullable.get)
