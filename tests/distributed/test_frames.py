"""Ray, Spark and Dask keep the same promises: bits, types and rows are those of memory, and nothing is done too early."""

from __future__ import annotations

import gc
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import otimpute
from engines import Engine, cut
from faults import Mark
from otimpute.baselines import MeanImputer
from otimpute.distributed import impute

pytestmark = pytest.mark.engines


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """The same rows, in whatever order, to the bit."""
    assert found.column_names == expected.column_names
    found, expected = found.cast(expected.schema).sort_by("key"), expected.sort_by("key")
    assert found["key"].equals(expected["key"])
    assert [name for name in found.column_names if found[name].to_pylist() != expected[name].to_pylist()] == []


@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_every_engine_gives_the_bits_of_transform(engine: Engine, imputer, table, expected, n_parts: int) -> None:
    frame = engine.frame(cut(table, n_parts, seed=n_parts))
    assert_same(engine.table(impute(frame, imputer)), expected)


def test_names_types_and_what_may_be_null_stay(engine: Engine, imputer, table) -> None:
    frame = engine.frame(cut(table, 2))
    assert engine.schema(impute(frame, imputer)) == engine.schema(frame)


def test_a_frame_without_rows_stays_one(engine: Engine, imputer, table) -> None:
    found = engine.table(impute(engine.frame([table.slice(0, 0)]), imputer))
    assert found.num_rows == 0


def test_nothing_is_computed_before_it_is_asked_for(engine: Engine, imputer, table, tmp_path: Path) -> None:
    marker = tmp_path / "computed"
    lazy = impute(engine.each_part(engine.frame(cut(table, 2)), Mark(str(marker))), imputer)
    assert not marker.exists()
    assert engine.table(lazy).num_rows == len(table)
    assert marker.exists()


def test_a_worker_that_is_killed_loses_and_doubles_nothing(
    engine: Engine, imputer, table, expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module(f"otimpute.distributed.{engine.name}")
    marker = tmp_path / "killed"
    monkeypatch.setattr(module, engine.worker_task, engine.dying(getattr(module, engine.worker_task), str(marker)))
    found = engine.table(impute(engine.frame(cut(table, 2)), imputer))
    assert marker.exists()
    assert_same(found, expected)


def test_columns_that_do_not_fit_are_named_before_anything_is_computed(engine: Engine, imputer, table) -> None:
    with pytest.raises(ValueError, match="no column size, which the model needs; there are colour"):
        impute(engine.frame([table.drop_columns(["size"])]), imputer)
    texts = table.set_column(0, "size", table["size"].cast(pa.string()))
    with pytest.raises(ValueError, match="column 'size' held numbers in training, now it holds text"):
        impute(engine.frame([texts]), imputer)


def test_models_that_would_change_the_schema_are_refused(engine: Engine, table) -> None:
    frame = engine.frame([table])
    with pytest.raises(ValueError, match="add_indicator=True adds columns"):
        impute(frame, MeanImputer(add_indicator=True).fit(table.select(["size"])))
    with pytest.raises(TypeError, match="imputer must be a fitted imputer of otimpute, got dict"):
        impute(frame, {})


def test_parquet_files_go_through_an_engine_from_disk_to_disk(engine: Engine, imputer, table, expected, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for k, part in enumerate(cut(table, 2)):
        pq.write_table(part, tmp_path / "in" / f"{k}.parquet")
    engine.write(impute(engine.read(tmp_path / "in"), imputer), tmp_path / "out")
    assert_same(pq.read_table(tmp_path / "out").select(table.column_names), expected)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")
def test_rows_never_come_to_the_driver(engine: Engine, tmp_path: Path) -> None:
    """A table of 60 MB is imputed, and read to learn from, while the memory of the driver grows by less than half of that."""
    rng = np.random.default_rng(0)
    rows = pa.table({f"c{k}": pa.array(rng.normal(size=130_000), mask=rng.random(130_000) < 0.1) for k in range(10)})
    (tmp_path / "in").mkdir()
    pq.write_table(rows.slice(0, 100), tmp_path / "in" / "0.parquet")
    imputer = MeanImputer().fit(rows)
    engine.write(impute(engine.read(tmp_path / "in"), imputer), tmp_path / "few")  # what is imported once, and buffers
    MeanImputer().fit(engine.read(tmp_path / "in"))
    for k in range(1, 7):
        pq.write_table(rows, tmp_path / "in" / f"{k}.parquet")
    del rows
    before = start_of_peak()
    engine.write(impute(engine.read(tmp_path / "in"), imputer), tmp_path / "out")
    fitted = MeanImputer().fit(otimpute.scan(engine.read(tmp_path / "in"), sample_rows=1000, min_observed=100))
    grown = peak() - before
    assert fitted.scan_summary_.n_rows == 100 + 6 * 130_000 == pq.ParquetDataset(tmp_path / "out").read(columns=["c0"]).num_rows
    assert grown < 30e6


def start_of_peak() -> int:
    """Bytes of memory that this process has now; from here on the peak is recorded."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most memory that this process had."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
