"""Fits to tables that are read in batches: sums of all rows, a sample of some, the same for any partitioning and order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import otimpute
from otimpute import AutoImputer
from otimpute.baselines import ExtraTreesImputer, GaussianEMImputer, MeanImputer
from otimpute.exceptions import StoredFileError
from otimpute.streams import BatchSource


def mixed(n: int, seed: int = 0) -> pa.Table:
    """Numbers, whole numbers, booleans, texts, dates; a column that is nearly empty."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    day = (rng.integers(0, 900, n) * 86_400_000_000).astype("M8[us]")
    table = {
        "x": x,
        "y": x + rng.normal(size=n),
        "count": rng.poisson(4, n),
        "flag": rng.random(n) < 0.5,
        "colour": np.where(x > 0, "red", rng.choice(["green", "blue"], n)),
        "day": day,
        "rare": rng.normal(size=n),
    }
    holes = {name: rng.random(n) < (0.99 if name == "rare" else 0.2) for name in table}
    columns = {name: pa.array(values, mask=holes[name]) for name, values in table.items()}
    rare = columns["colour"].to_pylist()
    rare[n // 2] = "a colour that occurs once"
    return pa.table(columns | {"colour": pa.array(rare)})


def write(table: pa.Table, folder: Path, n_parts: int, rows_per_group: int = 700) -> ds.Dataset:
    folder.mkdir()
    cuts = np.linspace(0, len(table), n_parts + 1).astype(int)
    for k, (begin, end) in enumerate(pairwise(cuts.tolist())):
        pq.write_table(table.slice(begin, end - begin), folder / f"{k}.parquet", row_group_size=rows_per_group)
    return ds.dataset(folder)


@dataclass
class Elsewhere:
    """An engine: parts are folded on their own, their results come in another order, and some are combined."""

    parts: list[pa.Table]

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].schema

    def fold(self, fold: Any, combine: Any) -> Iterator[bytes]:
        *rest, last = [fold(part.to_batches(max_chunksize=333)) for part in self.parts]
        return iter([last, combine(rest)] if len(rest) > 1 else [last, *rest])


MAKE = {
    "mean": MeanImputer,
    "gaussian": GaussianEMImputer,
    "trees": lambda: ExtraTreesImputer(n_estimators=2, n_rounds=1, random_state=0),
    "auto": lambda: AutoImputer(["mean", "gaussian_em"], n_splits=1, random_state=0),
}


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_fit_is_the_same_to_the_bit_for_any_partitioning_and_order(name: str, tmp_path: Path) -> None:
    table = mixed(6000)
    order = np.random.default_rng(1).permutation(len(table))
    shuffled = table.take(order)
    sources = [
        write(table, tmp_path / "one", 1),
        write(table, tmp_path / "two", 2),
        write(shuffled, tmp_path / "seven", 7),
        Elsewhere([shuffled.slice(0, 10), shuffled.slice(10, 3000), shuffled.slice(3010)]),
        duckdb.read_parquet(str(tmp_path / "seven" / "*.parquet")),
        pl.from_arrow(shuffled).lazy(),
    ]
    assert isinstance(sources[3], BatchSource)
    fitted = [MAKE[name]().fit(otimpute.scan(X, sample_rows=1500, min_observed=30)) for X in sources]
    data = [imputer.to_bytes() for imputer in fitted]
    assert data[1:5] == data[:4]
    whole = fitted[0].transform(table)
    assert fitted[5].transform(table).equals(whole)  # of polars, whose texts have another type
    assert not any(column.null_count for column in whole.columns)
    restored = otimpute.from_bytes(data[0])
    assert restored.scan_summary_ == fitted[0].scan_summary_
    assert fitted[0].scan_summary_.n_rows == 6000
    assert fitted[0].training_table_.n_missing.tolist() == [column.null_count for column in table.columns]


def test_a_relation_of_duckdb_is_read_anew_in_every_pass() -> None:
    relation = duckdb.sql("SELECT i::DOUBLE AS x, CASE WHEN i % 7 > 0 THEN 2 * i + i % 3 END AS y FROM range(3000) t(i)")
    if hasattr(relation, "fetchmany"):  # DuckDB 1
        relation.fetchmany(1000)  # what was read of it before is not missing
    imputer = GaussianEMImputer().fit(otimpute.scan(relation, sample_rows=300, rounds=2))
    assert imputer.scan_summary_.n_rows == 3000
    assert imputer.scan_summary_.rounds == 2
    assert imputer.training_table_.n_missing.tolist() == [0, 429]
    filled = pa.Table.from_batches(imputer.transform_batches(relation.select("*").to_arrow_table().to_batches()))
    assert duckdb.from_arrow(filled).aggregate("count(y)").fetchall() == [(3000,)]


def test_what_is_a_sum_is_that_of_all_rows(tmp_path: Path) -> None:
    table = mixed(5000).drop_columns("rare")
    X = write(table, tmp_path / "X", 3)
    scanned = MeanImputer().fit(otimpute.scan(X, sample_rows=200, min_observed=10))
    whole = MeanImputer().fit(table)
    assert scanned.column_kinds_ == whole.column_kinds_
    assert scanned.categories_ == whole.categories_
    assert "a colour that occurs once" in scanned.categories_["colour"]
    np.testing.assert_allclose(scanned.means_, whole.means_, rtol=1e-12)
    assert "From all 5,000 rows: counts of values, ranges of numbers and dates, categories, means" in str(scanned.scan_summary_)


def test_a_gaussian_of_all_rows_is_nearer_to_the_truth_than_that_of_the_sample() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 4)) @ (np.eye(4) + 0.5)
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pa.table({f"c{k}": pa.array(X[:, k], from_pandas=True) for k in range(4)})
    truth = GaussianEMImputer(tol=1e-8).fit(table)

    def means(rounds: int) -> np.ndarray:
        fitted = GaussianEMImputer().fit(otimpute.scan(pl.from_arrow(table).lazy(), sample_rows=500, rounds=rounds))
        assert fitted.scan_summary_.rounds == rounds
        scaler = fitted.model_.columns.scaler
        return scaler.restore(fitted.mean_, np.arange(4))

    expected = truth.model_.columns.scaler.restore(truth.mean_, np.arange(4))
    off = [np.abs(means(rounds) - expected).max() for rounds in (0, 1, 3)]
    assert off[1] < 0.3 * off[0]
    assert off[2] < 0.1 * off[1] + 1e-4


def test_rows_of_a_sample_are_as_frequent_as_in_the_table() -> None:
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 20_000, p=[0.7, 0.25, 0.05])  # few different rows, most of them many times
    table = pl.DataFrame({"kind": [["a", "b", "c"][k] for k in kind], "x": kind.astype(float)})
    X = table.with_columns(x=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise(pl.col("x")))
    imputer = ExtraTreesImputer(n_estimators=2, n_rounds=1, random_state=0)
    drawn: list[pa.Table] = []
    fit_table = imputer._fit_table

    def note(rows: Any, **given: Any) -> Any:
        drawn.append(rows)
        return fit_table(rows, **given)

    imputer._fit_table = note
    imputer.fit(otimpute.scan(X.lazy(), sample_rows=1000, min_observed=1))
    (rows,) = drawn
    shares = {each["values"]: each["counts"] / len(rows) for each in rows["kind"].value_counts().to_pylist()}
    assert len(rows) == pytest.approx(1000, abs=5)
    assert shares == pytest.approx({"a": 0.7, "b": 0.25, "c": 0.05}, abs=0.01)


def test_sparse_columns_have_enough_values_in_the_sample() -> None:
    n = 30_000
    rare = [float(k) if k % 1000 == 0 else None for k in range(n)]
    X = pl.LazyFrame({"x": np.random.default_rng(0).normal(size=n), "rare": rare})
    imputer = GaussianEMImputer().fit(otimpute.scan(X, sample_rows=300, min_observed=25))
    summary = imputer.scan_summary_
    assert 20 <= summary.n_added <= 25
    assert summary.n_sample == 300 + summary.n_added
    assert imputer.training_table_.n_missing.tolist() == [0, n - 30]


def test_a_sample_as_long_as_the_table_is_the_table() -> None:
    table = mixed(800).drop_columns("rare")
    imputer = MeanImputer().fit(table)
    scanned = MeanImputer().fit(pl.from_arrow(table).lazy())
    assert scanned.scan_summary_.n_sample == 800
    np.testing.assert_allclose(scanned.means_, imputer.means_, rtol=1e-12)
    assert scanned.training_table_.encoding == imputer.training_table_.encoding


def test_what_cannot_be_read_in_batches_is_refused_with_advice(tmp_path: Path) -> None:
    frame = pl.LazyFrame({"x": [1.0, None]})
    with pytest.raises(TypeError, match="its batches to transform_batches"):
        MeanImputer().fit_transform(frame)
    with pytest.raises(TypeError, match=r"pass pyarrow.dataset.dataset\(path\) for files"):
        otimpute.scan("data/*.parquet")
    with pytest.raises(ValueError, match="at least one row"):
        MeanImputer().fit(frame.filter(pl.col("x") > 5))
    with pytest.raises(ValueError, match="contains infinity in columns 'x'"):
        MeanImputer().fit(pl.LazyFrame({"x": [1.0, np.inf]}))


_LONG = """
import sys, otimpute, pyarrow.dataset as ds
from otimpute.estimator import scan_fit
scan_fit._SECONDS_BETWEEN = 0.0
imputer = otimpute.baselines.GaussianEMImputer()
imputer.fit(otimpute.scan(ds.dataset("X"), sample_rows=500, checkpoint="state", rounds=2))
imputer.save("model.otimpute")
"""


def _wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    assert condition()


def _stage(path: Path) -> int:
    from otimpute._archive import read_archive

    return read_archive(path, "scan checkpoint")[0]["stage"] if path.exists() else -1


@pytest.mark.parametrize("stage", [0, 1])
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(stage: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400_000, 6))
    X[rng.random(X.shape) < 0.2] = np.nan
    table = pa.table({f"c{k}": pa.array(X[:, k], from_pandas=True) for k in range(6)})
    dataset = write(table, tmp_path / "X", 40, rows_per_group=10_000)
    process = subprocess.Popen([sys.executable, "-c", _LONG], cwd=tmp_path)
    state = tmp_path / "state"
    _wait_for(lambda: _stage(state) >= stage or process.poll() is not None)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "model.otimpute").exists()
    with pytest.raises(StoredFileError, match="of a fit with other parameters"):
        GaussianEMImputer(prior_rows=2).fit(otimpute.scan(dataset, sample_rows=500, checkpoint=state, rounds=2))
    subprocess.run([sys.executable, "-c", _LONG], cwd=tmp_path, check=True)
    at_once = GaussianEMImputer().fit(otimpute.scan(dataset, sample_rows=500, rounds=2))
    assert (tmp_path / "model.otimpute").read_bytes() == at_once.to_bytes()
    assert not state.exists()


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    table = pa.table({f"c{k}": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.2) for k in range(8)})
    (tmp_path / "X").mkdir()
    for k in range(40):
        path = tmp_path / "X" / f"{k}.parquet"
        if k < 5:  # different rows
            pq.write_table(table.set_column(0, "c0", pa.array(rng.normal(size=n))), path)
        else:
            path.hardlink_to(tmp_path / "X" / f"{k % 5}.parquet")
    code = (
        "import otimpute, resource, pyarrow.dataset as ds, pathlib, sys; from otimpute.baselines import GaussianEMImputer\n"
        "files = sorted(map(str, pathlib.Path('X').iterdir()))[:int(sys.argv[1])]\n"
        "GaussianEMImputer().fit(otimpute.scan(ds.dataset(files), sample_rows=2000))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    few, many = (
        int(subprocess.run([sys.executable, "-c", code, k], cwd=tmp_path, capture_output=True, check=True).stdout)
        for k in ("10", "40")
    )
    assert many < few + 120  # MiB, where 3 million more rows have 180 MiB of numbers


def test_what_is_read_in_batches_is_not_imputed_as_a_whole() -> None:
    X = pl.from_arrow(mixed(100)).lazy()
    imputer = MeanImputer()
    with pytest.raises(TypeError, match="would come back as a whole; pass it to fit, and its batches to transform_batches"):
        imputer.fit_transform(X)
    with pytest.raises(TypeError, match=r"lazy frame.*pass X.collect\(\)"):
        imputer.fit(X).transform(X)
