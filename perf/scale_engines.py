"""Rows a second and core on Ray, Spark and Dask beside local `transform_batches`, in one run.

    python perf/scale_engines.py [ray spark dask] [--rows 1600000] [--repeats 2] [--json FILE]

Each engine reads the same Parquet files, imputes them on two cores, and throws the rows away. Each is run on some files and on
four times as many: what the others take more is what rows cost, without the start of workers, which is told beside it. Core
seconds are those of all processes of the engine, the JVM and the driver among them: they depend less than the clock on the wall
on what else the machine does, and local runs in turn with the engine. Ray starts actors in every run, and their start takes
longer than the rows: its own statistics of blocks are used instead, processor seconds and the time to write blocks.

"reading" is what the engine takes to read the rows, "nothing" what it takes to pass them through a Python function that returns
them. "without reading" is what is left of local speed when reading is taken off both: engines read Parquet files more slowly
than pyarrow, whatever is done to the rows then. The `AutoImputer` has its defaults and is fitted to 20,000 rows of the table.
Spark's own `Imputer` (means) is the floor that its users know.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import scale_data
from sklearn.base import BaseEstimator

from otimpute import AutoImputer
from otimpute.baselines import MeanImputer
from otimpute.distributed import impute, impute_batches

N_COLUMNS, N_FILES, N_WORKERS = 20, 16, 2
ENGINES = ("ray", "spark", "dask")


def write_files(folder: Path, n_rows: int) -> pa.Table:
    """The table of perf/scale_data.py in files of as many rows: all, and few; returns some rows to fit to."""
    files = sorted(scale_data.make(folder / "all", n_rows, N_COLUMNS, rows_per_file=n_rows // N_FILES).iterdir())
    (folder / "few").mkdir()
    for file in files[: N_FILES // 4]:
        (folder / "few" / file.name).hardlink_to(file)
    return pq.read_table(files[-1]).slice(0, 20_000)


class Clock:
    """Core seconds of this process and all that it started, those that have ended among them, and seconds."""

    def __enter__(self) -> Clock:
        self._seconds: dict[int, float] = {}
        self._watching = 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look_often)
        self._look()
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def now(self) -> np.ndarray:
        self._look()
        return np.array([sum(self._seconds.values()) - self._watching, time.perf_counter()])

    def _look_often(self) -> None:
        begun = time.thread_time()
        while not self._over.wait(0.2):
            self._look()
            self._watching = time.thread_time() - begun

    def _look(self) -> None:
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            try:
                self._seconds[process.pid] = sum(process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue


def local(pool: ProcessPoolExecutor, folder: str, imputer: Any) -> None:
    """The rows of a folder by as many processes as engines have workers, so that cores are as busy in both cases."""
    files = sorted(map(str, Path(folder).iterdir()))
    model = imputer if isinstance(imputer, str) else imputer.to_bytes()
    list(pool.map(local_files, [files[k::N_WORKERS] for k in range(N_WORKERS)], [model] * N_WORKERS))


def local_files(files: list[str], model: bytes | str) -> None:
    pa.set_cpu_count(1)
    batches = pa.dataset.dataset(files).to_batches(use_threads=False)
    for _ in batches if isinstance(model, str) else impute_batches(model, batches):
        pass


@contextmanager
def ray(n_workers: int = N_WORKERS) -> Iterator[Callable[..., None]]:
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.use_datasource_v2 = False  # joins small files, so that there would be a block or two for two workers
    context.wait_for_min_actors_s = 60  # so that two workers are two from the first block on
    logging.getLogger("ray.data").setLevel(logging.ERROR)

    def run(folder: str, imputer: Any, n_workers: int = n_workers) -> Any:
        frame = ray.data.read_parquet(folder, override_num_blocks=N_FILES)
        if imputer == "nothing":
            frame = frame.map_batches(nothing, batch_format="pyarrow", batch_size=None, concurrency=n_workers)
        elif imputer != "reading":
            frame = impute(frame, imputer, concurrency=n_workers)
        bundles = frame.iter_internal_ref_bundles()  # the rows stay where they are
        stats = [block.metadata.exec_stats for bundle in bundles for block in bundle.blocks]
        cores = sum(each.cpu_time_s + (each.block_ser_time_s or 0) for each in stats)
        begun, ended = min(each.start_time_s for each in stats), max(each.start_time_s + each.wall_time_s for each in stats)
        return np.array([cores, ended - begun])

    yield run
    ray.shutdown()


@contextmanager
def spark() -> Iterator[Callable[..., None]]:
    from pyspark.ml.feature import Imputer
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.files.minPartitionNum", N_FILES)  # as many rows for each of the two
    session = builder.config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    names = [f"c{j}" for j in range(N_COLUMNS)]

    def run(folder: str, imputer: Any) -> None:
        frame = session.read.parquet(folder)
        if isinstance(imputer, str):
            filled = frame.mapInArrow(nothing, frame.schema) if imputer == "nothing" else frame
        else:
            filled = run.own.transform(frame) if imputer is run.own else impute(frame, imputer)  # type: ignore[attr-defined]
        filled.write.format("noop").mode("overwrite").save()

    def fit_own(folder: str) -> None:
        run.own = Imputer(inputCols=names, outputCols=names).fit(session.read.parquet(folder))  # type: ignore[attr-defined]

    run.fit_own = fit_own  # type: ignore[attr-defined]
    yield run
    session.stop()


@contextmanager
def dask() -> Iterator[Callable[..., None]]:
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):

        def run(folder: str, imputer: Any) -> None:
            frame = dd.read_parquet(folder)
            if isinstance(imputer, str):
                filled = frame.map_partitions(nothing, meta=frame._meta) if imputer == "nothing" else frame
            else:
                filled = impute(frame, imputer)
            filled.map_partitions(len).sum().compute()

        yield run


def nothing(batches: Any) -> Any:
    """What a Python function costs that returns the rows as they are."""
    return batches


def taken(run: Callable[..., Any], folder: Path, n_rows: int, *args: Any) -> np.ndarray:
    """Core seconds and seconds that a run takes at its start, and per row."""
    told, times = [], []
    with Clock() as clock:
        times.append(clock.now())
        for name in ("few", "all"):
            told.append(run(str(folder / name), *args))
            times.append(clock.now())
    few, everything = np.diff(times, axis=0) if told[0] is None else told
    rows = everything - few  # which is three quarters of them: the start of workers is in both
    return np.array([np.diff(times, axis=0)[1] - rows * 4 / 3, rows / (n_rows * 3 / 4)])


def measure(engines: list[str], n_rows: int, repeats: int) -> Iterator[dict[str, Any]]:
    """A line per engine and imputer."""
    processes = ProcessPoolExecutor(N_WORKERS, get_context("spawn"))
    with tempfile.TemporaryDirectory() as temporary, processes as pool:
        folder, run_local = Path(temporary), partial(local, pool)
        sample = write_files(folder, n_rows)
        imputers = {"reading": "reading", "nothing": "nothing", "mean": MeanImputer(), "auto": AutoImputer(random_state=0)}
        for imputer in imputers.values():
            if not isinstance(imputer, str):
                imputer.fit(sample)
            run_local(str(folder / "few"), imputer)  # compiled
        for engine in engines:
            with {"ray": ray, "spark": spark, "dask": dask}[engine]() as run:
                cases = [(name, imputer, ()) for name, imputer in imputers.items()]
                if engine == "ray":
                    cases += [("auto, 1 worker", imputers["auto"], (1,))]
                if engine == "spark":
                    run.fit_own(str(folder / "all"))  # type: ignore[attr-defined]
                    cases += [("Spark's own mean", run.own, ())]  # type: ignore[attr-defined]
                run(str(folder / "all"), imputers["auto"])  # started; the JVM compiles in its first half minute
                for name, imputer, args in cases:
                    alike = "reading" if name not in imputers and engine == "spark" else imputer
                    pairs = np.array(
                        [
                            (taken(run_local, folder, n_rows, alike), taken(run, folder, n_rows, imputer, *args))
                            for _ in range(repeats)
                        ]
                    )  # [repeats, local or engine, start or rows, core seconds or seconds]
                    here, there = np.median(pairs[:, :, 1], axis=0)
                    line = {
                        "engine": engine, "imputer": name, "local_us": 1e6 * here[0], "us": 1e6 * there[0],
                        "rows_per_second": 1 / there[1], "start_core_seconds": float(np.median(pairs[:, 1, 0, 0])),
                    }  # fmt: skip
                    if name == "reading":
                        floor, reading = line["us"], line["local_us"]
                    done = line["us"] - floor
                    without = (line["local_us"] - reading) / done if isinstance(alike, BaseEstimator) else float("nan")
                    yield line | {"of_local": line["local_us"] / line["us"], "without_reading": without}


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=list(ENGINES), metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument("--rows", type=int, default=1_600_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(args)
    warnings.simplefilter("ignore")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.rows} rows of {N_COLUMNS} numbers")
    print("microseconds of a core per row; a second is one on the wall")
    print(
        f"{'engine':13}{'imputer':18}{'local':>8}{'engine':>8}{'of local':>10}{'without reading':>17}"
        f"{'rows/s':>10}{'start, s':>10}"
    )
    lines: list[dict[str, Any]] = []
    for line in measure(given.engines, given.rows, given.repeats):
        print(
            f"{line['engine']:13}{line['imputer']:18}{line['local_us']:>8.2f}{line['us']:>8.2f}{line['of_local']:>10.0%}"
            f"{line['without_reading']:>17.0%}{line['rows_per_second']:>10.0f}{line['start_core_seconds']:>10.1f}",
            flush=True,
        )
        lines.append(line)
        if line["imputer"] == "auto, 1 worker":
            ratio = lines[-2]["rows_per_second"] / line["rows_per_second"]
            print(f"{line['engine']}: two workers are {ratio:.2f} times as fast as one")
    if given.json:
        given.json.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
