"""Many files from the shell: fit one model to all, apply it to each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from otimpute.cli.app import app


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for k in range(3):
        rng = np.random.default_rng(k)
        x = rng.normal(size=400)
        table = {"id": np.arange(400), "x": x, "y": x + 0.1 * rng.normal(size=400)}
        holes = {name: rng.random(400) < (0 if name == "id" else 0.2) for name in table}
        pq.write_table(pa.table({n: pa.array(v, mask=holes[n]) for n, v in table.items()}), tmp_path / "data" / f"{k}.parquet")
    return tmp_path / "data"


def run(*arguments: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_files_are_fitted_together_and_completed_one_by_one(data: Path) -> None:
    told = run("fit", "data/*.parquet", "--model", "m.otimpute", "-m", "gaussian_em", "--exclude", "id")
    assert "gaussian_em learned from 1,200 rows × 2 columns in 3 files" in told.stderr
    assert "From all 1,200 rows: counts of values" in told.stderr
    first = run("apply", "m.otimpute", "data/*.parquet", "-o", "out", "--workers", 2)
    assert "out: 3 files, 1,200 rows" in first.stderr
    for k in range(3):
        before, after = pq.read_table(data / f"{k}.parquet"), pq.read_table(f"out/{k}.parquet")
        assert after["id"].equals(before["id"])
        assert after["x"].null_count == after["y"].null_count == 0
        gaps = np.asarray(before["y"].is_null()) & ~np.asarray(before["x"].is_null())
        assert np.abs(np.asarray(after["y"])[gaps] - np.asarray(after["x"])[gaps]).max() < 1
    again = json.loads(run("apply", "m.otimpute", "data", "-o", "out", "--json").stdout)
    assert (again["n_files"], again["n_skipped"], again["failed"]) == (0, 3, [])


def test_a_bad_file_is_named_and_the_others_are_finished(data: Path) -> None:
    run("fit", "data", "--model", "m.otimpute", "-m", "mean", "-q")
    whole = (data / "1.parquet").read_bytes()
    (data / "1.parquet").write_bytes(whole[:-50])
    told = run("apply", "m.otimpute", "data", "-o", "out", code=1)
    assert "1.parquet: " in told.stderr
    assert "2 files finished, which the same command will not do again" in told.stderr
    assert sorted(path.name for path in Path("out").iterdir()) == ["0.parquet", "2.parquet"]
    assert "1.parquet" in run("fit", "data", "--model", "n.otimpute", "-m", "mean", code=1).stderr
    (data / "1.parquet").write_bytes(whole)
    assert "1 file, 400 rows" in run("apply", "m.otimpute", "data", "-o", "out").stderr


def test_files_with_other_columns_are_not_fitted_together(data: Path) -> None:
    table = pq.read_table(data / "2.parquet")
    pq.write_table(table.drop_columns("y"), data / "2.parquet")
    assert "2.parquet: no column 'y', which other files have" in run("fit", "data", "--model", "m", code=1).stderr
    pq.write_table(table.set_column(2, "y", table["y"].cast(pa.string())), data / "2.parquet")
    assert "2.parquet: column 'y' is string, in other files it is double" in run("fit", "data", "--model", "m", code=1).stderr


def test_options_of_single_tables_are_refused(data: Path) -> None:
    run("fit", "data", "--model", "m.otimpute", "-m", "mean", "-q")
    assert (
        "--mask and --std are for a single table"
        in run("apply", "m.otimpute", "data", "-o", "out", "--mask", "k.csv", code=1).stderr
    )
    assert "many files need a folder" in run("apply", "m.otimpute", "data", "-o", "-", code=1).stderr
    assert "engine must be one of" in run("apply", "m.otimpute", "data", "-o", "out", "--engine", "flink", code=1).stderr


def test_ctrl_c_leaves_whole_files_only(data: Path) -> None:
    run("fit", "data", "--model", "m.otimpute", "-m", "gaussian_em", "-q")
    big = pa.concat_tables([pq.read_table(data / "0.parquet")] * 150)
    for k in range(3, 7):
        pq.write_table(big, data / f"{k}.parquet")
    command = [sys.executable, "-m", "otimpute.cli", "apply", "m.otimpute", "data", "-o", "out", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 60
    while not list(Path("out").glob("[3-6].parquet")) and time.monotonic() < end:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; finished files stay; run the same command to continue" in told
    left = list(Path("out").iterdir())
    assert 0 < len(left) < 7
    assert all(pq.read_table(path)["x"].null_count == 0 for path in left)
    assert not [path for path in left if path.name.startswith(".")]
    assert f"{7 - len(left)} file" in run("apply", "m.otimpute", "data", "-o", "out").stderr
