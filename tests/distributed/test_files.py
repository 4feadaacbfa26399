"""Files that workers of Ray, Spark and Dask complete, and what can go wrong: every file is right, or an error names it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines import Engine
from faults import dying, without_room
from otimpute.distributed import FilesFailedError, FileTask, JobSummary, impute_files

pytestmark = pytest.mark.engines


@pytest.fixture
def folder(tmp_path: Path, table: pa.Table) -> Path:
    """The table in three files."""
    (tmp_path / "in").mkdir()
    for k in range(3):
        pq.write_table(table.slice(k * 80, 80), tmp_path / "in" / f"{k}.parquet")
    return tmp_path


@pytest.fixture
def run(engine: Engine, imputer: Any, folder: Path) -> Any:
    """Completes the files of the folder ``in`` into the folder ``out``."""

    def run() -> JobSummary:
        return impute_files(imputer.to_bytes(), folder / "in", folder / "out", engine=engine.name, n_workers=2)

    return run


def replace_task(engine: Engine, patch: pytest.MonkeyPatch, wrap: Any, *args: Any) -> None:
    module = import_module(f"otimpute.distributed.{engine.name}")
    patch.setattr(module, "_complete_file", wrap(module._complete_file, *args))


def assert_right(folder: Path, expected: pa.Table, files: tuple[int, ...] = (0, 1, 2)) -> None:
    """These files are there, and nothing else; each is right to the bit."""
    assert sorted(path.name for path in (folder / "out").iterdir()) == [f"{k}.parquet" for k in files]
    for k in files:
        found = pq.read_table(folder / "out" / f"{k}.parquet")
        assert found.cast(expected.schema).to_pylist() == expected.slice(k * 80, 80).to_pylist()


def test_there_is_one_right_file_per_input_file_and_none_is_done_twice(run, folder: Path, expected) -> None:
    assert [outcome.n_rows for outcome in run().done] == [80, 80, 80]
    assert_right(folder, expected)
    (folder / "out" / "1.parquet").unlink()
    again = run()
    assert again.n_skipped == 2 and [Path(outcome.source).name for outcome in again.done] == ["1.parquet"]
    assert_right(folder, expected)


def test_a_worker_that_is_killed_leaves_nothing_half_done(engine: Engine, run, folder: Path, expected, monkeypatch) -> None:
    replace_task(engine, monkeypatch, dying, str(folder / "killed"))
    run()
    assert (folder / "killed").exists()
    assert_right(folder, expected)


def test_files_that_cannot_be_completed_are_named_and_others_are_finished(run, folder: Path, table, expected) -> None:
    pq.write_table(table.slice(0, 80), folder / "checked.parquet", write_page_checksum=True)
    whole = (folder / "checked.parquet").read_bytes()
    (folder / "in" / "truncated.parquet").write_bytes(whole[: len(whole) // 2])
    corrupt = bytearray(whole)
    corrupt[200:300] = b"\xff" * 100
    (folder / "in" / "corrupt.parquet").write_bytes(corrupt)
    pq.write_table(table.drop_columns(["size"]), folder / "in" / "no-size.parquet")
    texts = table.set_column(0, "size", table["size"].cast(pa.string()))
    pq.write_table(texts, folder / "in" / "texts.parquet")
    with pytest.raises(FilesFailedError, match=r"parquet: .* \(and 3 other files failed\); 3 files finished") as failed:
        run()
    errors = {Path(outcome.source).name: outcome.error for outcome in failed.value.summary.failed}
    assert list(errors) == ["corrupt.parquet", "no-size.parquet", "texts.parquet", "truncated.parquet"]
    assert all(error.startswith(str(folder / "in" / name)) for name, error in errors.items())
    assert "no column size, which the model needs" in errors["no-size.parquet"]
    assert "column 'size' held numbers in training, now it holds text" in errors["texts.parquet"]
    assert_right(folder, expected)


def test_a_new_category_stays_and_other_rows_are_as_without_it(run, folder: Path, table, expected) -> None:
    colours = table["colour"].to_pylist()[:80]
    known = next(k for k, colour in enumerate(colours) if colour is not None)
    colours[known] = "violet"
    changed = table.slice(0, 80).set_column(1, "colour", pa.array(colours))
    pq.write_table(changed, folder / "in" / "0.parquet")
    run()
    found = pq.read_table(folder / "out" / "0.parquet").to_pylist()
    assert found[known]["colour"] == "violet"
    assert None not in [row[name] for row in found for name in ("size", "colour", "count", "shade")]
    assert found[:known] + found[known + 1 :] == [row for k, row in enumerate(expected.slice(0, 80).to_pylist()) if k != known]


def test_a_full_disk_is_said_with_the_name_of_the_file(engine: Engine, run, folder: Path, expected, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        replace_task(engine, patch, without_room, 1000)
        with pytest.raises(FilesFailedError, match=r"(?i)out/\d.parquet: .*file too large"):
            run()
    assert list((folder / "out").iterdir()) == []
    run()
    assert_right(folder, expected)


def test_two_workers_on_the_same_file_leave_one_that_is_right(engine: Engine, imputer, folder: Path, expected) -> None:
    """As when an engine takes a slow worker for a dead one."""
    task = FileTask(str(folder / "in" / "0.parquet"), str(folder / "out" / "0.parquet"))
    outcomes = list(import_module(f"otimpute.distributed.{engine.name}").run_files([task] * 4, imputer.to_bytes(), 2))
    assert [outcome.error for outcome in outcomes] == [""] * 4
    assert_right(folder, expected, files=(0,))
