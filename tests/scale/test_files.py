"""Many files at a time: whole or not there, none done twice, and an error names its file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import otimpute
from otimpute.baselines import GaussianEMImputer, MeanImputer
from otimpute.distributed import FilesFailedError, impute_files
from otimpute.distributed.files import FileTask, list_files, tasks_of


def rows(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.2], [0, 1, 0.7], [0, 0, 1]])
    x[rng.random(x.shape) < 0.2] = np.nan
    colour = np.where(rng.random(n) < 0.1, None, rng.choice(["red", "green"], n))
    columns = {name: pa.array(x[:, k], from_pandas=True) for k, name in enumerate("abc")}
    return pa.table({"id": np.arange(n), **columns, "colour": pa.array(colour, pa.string())})


@pytest.fixture(scope="module")
def model() -> bytes:
    return GaussianEMImputer().fit(rows(500).drop_columns("id")).to_bytes()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for k in range(5):
        path = tmp_path / "data" / f"{'sub/' * (k == 4)}part-{k}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(1000 + k, seed=k), path, compression="zstd")
    return tmp_path / "data"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_files_are_the_same_for_any_number_of_workers(model: bytes, data: Path, tmp_path: Path) -> None:
    made = []
    for n_workers in (1, 2):
        summary = impute_files(model, data, tmp_path / str(n_workers), n_workers=n_workers)
        assert [outcome.n_rows for outcome in summary.done] == [1000, 1001, 1002, 1003, 1004]
        made.append(contents(tmp_path / str(n_workers)))
    assert made[0] == made[1]
    assert list(made[0]) == [str(path.relative_to(data)) for path in sorted(data.rglob("*.parquet"))]
    for name in made[0]:
        before, after = pq.read_table(data / name), pq.read_table(tmp_path / "1" / name)
        at_once = otimpute.from_bytes(model).transform(before.drop_columns("id"))
        assert after.equals(at_once.add_column(0, "id", before["id"]))
        assert pq.read_metadata(tmp_path / "1" / name).row_group(0).column(0).compression == "ZSTD"


def test_links_to_files_are_completed_under_their_own_names(model: bytes, data: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "first.parquet").symlink_to(data / "part-0.parquet")
    (links / "again.parquet").symlink_to(data / "part-0.parquet")
    (links / "below.parquet").symlink_to(data / "sub" / "part-4.parquet")
    (links / "folder").symlink_to(data / "sub", target_is_directory=True)
    out = tmp_path / "out"
    summary = impute_files(model, str(links / "**" / "*.parquet"), out, n_workers=2)
    assert [outcome.n_rows for outcome in summary.done] == [1000, 1004, 1000, 1004]
    made = contents(out)
    assert list(made) == ["again.parquet", "below.parquet", "first.parquet", "folder/part-4.parquet"]
    assert made["again.parquet"] == made["first.parquet"] != made["below.parquet"]
    with pytest.raises(ValueError, match="is the folder of the input"):
        impute_files(model, links / "folder", data / "sub")


def test_finished_files_are_not_done_again(model: bytes, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    impute_files(model, str(data / "*.parquet"), out, n_workers=1)
    written = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    truncated, changed, *others = sorted(written)
    truncated.write_bytes(truncated.read_bytes()[:-100])
    pq.write_table(rows(70, seed=9), data / changed.name)
    summary = impute_files(model, str(data / "*.parquet"), out, n_workers=1)
    assert (len(summary.done), summary.n_skipped) == (2, 2)
    assert all(path.stat().st_mtime_ns == written[path] for path in others)
    assert pq.read_metadata(changed).num_rows == 70
    other_model = MeanImputer().fit(rows(100).drop_columns("id")).to_bytes()
    assert impute_files(other_model, str(data / "*.parquet"), out, n_workers=1).n_skipped == 0


def test_a_file_that_cannot_be_done_is_named_and_the_others_are_finished(model: bytes, data: Path, tmp_path: Path) -> None:
    whole = data / "part-1.parquet"
    whole.write_bytes(whole.read_bytes()[:-200])
    garbled = bytearray((data / "part-0.parquet").read_bytes())
    garbled[50:4000] = os.urandom(3950)
    (data / "part-0.parquet").write_bytes(garbled)
    pq.write_table(rows(50).drop_columns("b"), data / "part-2.parquet")
    drifted = rows(50)
    pq.write_table(drifted.set_column(1, "a", drifted["a"].cast(pa.string())), data / "part-3.parquet")
    with pytest.raises(FilesFailedError, match=r"part-0.parquet: .*3 other files failed.*; 1 file finished") as failure:
        impute_files(model, data, tmp_path / "out", n_workers=2)
    errors = {Path(outcome.source).name: outcome.error for outcome in failure.value.summary.failed}
    assert list(errors) == [f"part-{k}.parquet" for k in range(4)]
    assert "no column b, which the model needs" in errors["part-2.parquet"]
    assert "column 'a' held numbers in training, now it holds text" in errors["part-3.parquet"]
    assert list(contents(tmp_path / "out")) == ["sub/part-4.parquet"]  # and nothing half written


def test_a_new_category_stays_and_says_nothing(model: bytes, tmp_path: Path) -> None:
    table = rows(40)
    colour = pa.array(["violet", *table["colour"].to_pylist()[1:]])
    pq.write_table(table.set_column(4, "colour", colour), tmp_path / "new.parquet")
    impute_files(model, tmp_path / "new.parquet", tmp_path / "out", n_workers=1)
    completed = pq.read_table(tmp_path / "out" / "new.parquet")
    assert completed["colour"][0].as_py() == "violet"
    assert not any(column.null_count for column in completed.columns)


def children() -> list[int]:
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for each in found for pid in each.read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@pytest.mark.parametrize("deaths", [1, 2])
def test_a_file_whose_worker_is_killed_is_tried_once_more(model: bytes, tmp_path: Path, deaths: int) -> None:
    for name in ("long", "short"):
        pq.write_table(rows(300_000 if name == "long" else 200), tmp_path / f"{name}.parquet")
    out, killed = tmp_path / "out", []

    def kill() -> None:
        while len(killed) < deaths:
            if parts := set(out.glob(".long-*")) - set(killed):
                before = set(children())
                for pid in before:
                    if "otimpute.distributed.worker" in Path(f"/proc/{pid}/cmdline").read_text() and any(
                        str(part) in str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() for part in parts
                    ):
                        os.kill(pid, signal.SIGKILL)
                        killed.extend(parts)
            time.sleep(0.002)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    if deaths == 1:
        impute_files(model, str(tmp_path / "*.parquet"), out, n_workers=2)
        assert sorted(contents(out)) == ["long.parquet", "short.parquet"]
    else:
        with pytest.raises(
            FilesFailedError, match=r"long.parquet: the worker process .* died .*signal 9.*2 times; .*1 file finished"
        ):
            impute_files(model, str(tmp_path / "*.parquet"), out, n_workers=2)
        assert "short.parquet" in contents(out)
        assert "long.parquet" not in contents(out)
        impute_files(model, str(tmp_path / "*.parquet"), out, n_workers=1)
        assert sorted(contents(out)) == ["long.parquet", "short.parquet"]  # what the dead left behind is gone
    thread.join(1)


def test_a_full_disk_ends_the_job_and_leaves_no_part(model: bytes, data: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from otimpute.distributed import impute_files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))\n"
        f"impute_files(Path('m').read_bytes(), {str(data)!r}, 'out', n_workers=1)"
    )
    (tmp_path / "m").write_bytes(model)
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "out/part-0.parquet: file too large; 0 files finished" in ended.stderr
    assert contents(tmp_path / "out") == {}
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 8000


def test_where_files_go(tmp_path: Path) -> None:
    for name in ("2024/a.parquet", "2025/a.parquet", "2025/_temporary/b.parquet", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files = list_files(tmp_path)
    out = tmp_path / "out"
    assert tasks_of(files, out) == [
        FileTask(str(tmp_path / f"{year}/a.parquet"), str(out / f"{year}/a.parquet")) for year in (2024, 2025)
    ]
    with pytest.raises(ValueError, match="is the folder of the input"):
        tasks_of(files, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        list_files(str(tmp_path / "*.orc"))
    with pytest.raises(ValueError, match="no Parquet file by its name"):
        list_files(str(tmp_path / "*.txt"))
    with pytest.raises(ValueError, match="engine must be one of"):
        impute_files(b"", tmp_path, out, engine="flink")
