"""Filling the holes of files."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

# Ids with zeros in front, long integers, quotes, spaces, several spellings of nothing, Windows' line ends.
CSV = (
    b'id,"big",x, y \r\n007,9007199254740993,1.50,2\r\n008,9007199254740995,,4\r\n"009",9007199254740997,3.0,NA\r\n'
    b"010,9007199254740999,4.50, 8\r\n011,9007199254741001,?,10\r\n012,9007199254741003,6,\r\n"
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(CSV)
    return path


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def is_filled_in_its_holes_only(before: bytes, after: bytes) -> bool:
    """Compare raw fields; no field here holds a delimiter."""
    fields = [[line.split(b",") for line in data.split(b"\r\n")] for data in (before, after)]
    assert [len(line) for line in fields[0]] == [len(line) for line in fields[1]]
    pairs = [(old, new) for lines in zip(*fields, strict=True) for old, new in zip(*lines, strict=True)]
    return all(new.strip() not in (b"", b"NA", b"?") if old in (b"", b"NA", b"?") else old == new for old, new in pairs[:-1])


@pytest.mark.parametrize("options", ["--method mean", "--method sinkhorn --set max_steps=20", "--set experts=gaussian_em"])
def test_only_the_holes_of_a_csv_change(invoke: Any, table: Path, options: str) -> None:
    result = invoke("impute", "in.csv", "-o", "out.csv", "--exclude", "id,big", *options.split())
    assert is_filled_in_its_holes_only(CSV, Path("out.csv").read_bytes())
    assert table.read_bytes() == CSV
    assert result.stdout == ""
    assert "out.csv: 6 rows × 4 columns, 4 missing values filled by" in result.stderr


def test_from_standard_input_to_standard_output(start: Any) -> None:
    result = start("impute", "-", "-o", "-", "--exclude", "id,big", "-m", "mean", stdin=CSV)
    assert result.returncode == 0, result.stderr
    assert is_filled_in_its_holes_only(CSV, result.stdout)
    assert b"standard output: 6 rows" in result.stderr


def test_the_same_command_gives_the_same_file(invoke: Any, table: Path) -> None:
    options = ["--exclude", "id,big", "-m", "sinkhorn", "--set", "max_steps=20", "-q"]
    for name, seed in (("a.csv", "0"), ("b.csv", "0"), ("c.csv", "1")):
        assert invoke("impute", table, "-o", name, "--seed", seed, *options).stderr == ""
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != Path("c.csv").read_bytes()


def test_columns_that_are_not_chosen_are_neither_used_nor_filled(invoke: Any, table: Path) -> None:
    invoke("impute", table, "-o", "out.csv", "--columns", "x", "-m", "mean", "-q")
    before, after = rows(CSV), rows(Path("out.csv").read_bytes())
    assert [row[2] for row in after[1:]] == ["1.50", "3.75", "3.0", "4.50", "3.75", "6"]
    assert [row[:2] + row[3:] for row in after] == [row[:2] + row[3:] for row in before]


def test_names_with_commas_are_taken_whole_first(invoke: Any) -> None:
    Path("in.csv").write_text('a,b,"a,b"\n1,2,\n,4,6\n3,,8\n')
    summary = json.loads(invoke("impute", "in.csv", "-o", "o.csv", "--columns", "a,b", "-m", "mean", "--json").stdout)
    assert [column["name"] for column in summary["columns"]] == ["a,b"]
    again = invoke("impute", "in.csv", "-o", "p.csv", "--columns", "a", "--columns", "b", "-m", "mean", "--json")
    assert [column["name"] for column in json.loads(again.stdout)["columns"]] == ["a", "b"]


def test_a_summary_for_machines(invoke: Any, table: Path) -> None:
    result = invoke("impute", table, "-o", "out.csv", "--exclude", "id", "--exclude", "big", "-m", "knn", "--json")
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert (told["method"], told["seed"], told["n_rows"], told["output"]) == ("knn", 0, 6, "out.csv")
    assert told["columns"] == [
        {"name": "x", "n_missing": 2, "n_filled": 2, "missing_as": {"": 1, "?": 1}},
        {"name": "y", "n_missing": 2, "n_filled": 2, "missing_as": {"NA": 1, "": 1}},
    ]
    assert told["not_used"] == ["id", "big"]
    result = invoke("impute", table, "-o", "-", "--exclude", "id,big", "-m", "knn", "--json")
    assert json.loads(result.stderr)["output"] == "-"
    assert rows(result.stdout_bytes)[0] == ["id", "big", "x", " y "]


def test_an_empty_column_stays_empty_and_is_named(invoke: Any) -> None:
    Path("in.csv").write_text("a,b,c\n1,,2\n2,,\n,,4\n")
    result = invoke("impute", "in.csv", "-o", "out.csv", "-m", "mean")
    assert "note: all values of b are missing: left empty" in result.stderr
    assert Path("out.csv").read_text() == "a,b,c\n1,,2\n2,,3\n2,,4\n"


def test_formats_go_in_and_out(invoke: Any, table: Path) -> None:
    frame = pa.table({"x": pa.array([1.0, None, 3.0], pa.float32()), "n": pa.array([1, 2, None], pa.int16())})
    pq.write_table(frame, "in.parquet")
    for name in ("out.parquet", "out.feather", "out.csv"):
        invoke("impute", "in.parquet", "-o", name, "-m", "mean", "-q")
    assert pq.read_table("out.parquet").schema.equals(frame.schema)
    assert pq.read_table("out.parquet").to_pydict() == {"x": [1.0, 2.0, 3.0], "n": [1, 2, 2]}
    assert Path("out.csv").read_text() == "x,n\n1.0,1\n2.0,2\n3.0,2\n"
    raw = invoke("impute", "in.parquet", "-o", "-", "--out-format", "parquet", "-m", "mean", "-q").stdout_bytes
    assert pq.read_table(pa.BufferReader(raw)).to_pydict()["x"] == [1.0, 2.0, 3.0]


def test_what_is_told_about_a_file_is_not_guessed(invoke: Any) -> None:
    Path("in.txt").write_bytes("größe|n\n1,5|-9\n|4\n2,5|6\n".encode("cp1252"))
    told = ["--delimiter", "|", "--decimal", ",", "--encoding", "cp1252", "--na", "-9"]
    invoke("impute", "in.txt", "-o", "out.txt", "-m", "mean", "-q", *told)
    assert Path("out.txt").read_bytes().decode("cp1252") == "größe|n\n1,5|5\n2,0|4\n2,5|6\n"
    Path("in.tsv").write_text("1\t2\n3\t\n")
    result = invoke("impute", "in.tsv", "-o", "-", "--no-header", "--columns", "column_2", "-m", "mean", "-q")
    assert result.stdout == "1\t2\n3\t2\n"


def test_an_existing_file_is_refused_before_anything_is_read(invoke: Any, table: Path) -> None:
    Path("out.csv").write_text("mine")
    said = invoke("impute", "no.csv", "-o", "out.csv", code=1).stderr
    assert said == "otimpute: 'out.csv' exists; give another name, or --force to replace it\n"
    assert "in.csv' is the input itself" in invoke("impute", table, "-o", table, code=1).stderr
    model = invoke("impute", table, "-o", "new.csv", "--save-model", "out.csv", code=1).stderr
    assert "'out.csv' exists" in model
    assert Path("out.csv").read_text() == "mine"
    invoke("impute", table, "-o", "out.csv", "--force", "--exclude", "id,big", "-m", "mean", "-q")
    assert is_filled_in_its_holes_only(CSV, Path("out.csv").read_bytes())
    invoke("impute", table, "-o", table, "-f", "--exclude", "id,big", "-m", "mean", "-q")
    assert table.read_bytes() == Path("out.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["-m", "sinkhorn", "--set", "max_step=2"],
            "--set of sinkhorn must be one of 'batch_size', .*; did you mean 'max_steps'?",
        ),
        (["--set", "max_steps=2"], "--set of auto must be one of 'device', 'experts', 'n_splits', 'target', got 'max_steps'"),
        (
            ["--set", "experts=ice,extra_tree"],
            "a name in experts must be one of .*, got 'extra_tree'; did you mean 'extra_trees'?",
        ),
        (["--set", "experts=3"], "in.csv: experts must be a list of names or imputers"),
        (["-m", "sinkhorn", "--set", "callbacks=2"], "--set of sinkhorn must be one of"),
        (["--set", "max_steps"], "--set takes key=value, such as max_steps=2000, got 'max_steps'"),
        (["--set", "random_state=1"], "--set random_state=1: use --seed instead"),
        (["--set", "n_jobs=1"], "--set n_jobs=1: use --jobs instead"),
        (["-m", "sinkhorn", "--set", "tol=small"], "in.csv: --set tol must be a finite number >= 0, got 'small'"),
        (["--method", "sinkhron"], "--method must be one of .*, got 'sinkhron'; did you mean 'sinkhorn'?"),
        (["--method", "mean", "--max-seconds", "3"], "--max-seconds is not for method 'mean'; leave it out"),
        (["--method", "knn", "--checkpoint", "c"], "--checkpoint is not for method 'knn'; leave it out"),
        (["--checkpoint", "c"], "--checkpoint is not for method 'auto'; leave it out, or pass --method sinkhorn"),
        (["--max-seconds", "0"], "in.csv: --max-seconds must be a finite number > 0, got 0.0"),
        (["--columns", "x,why"], "in.csv: --columns: no column 'why'; there are id, big, x, y"),
        (["--exclude", "BIG"], "in.csv: --exclude: no column 'BIG'; did you mean 'big'? There are id, big, x, y"),
        (["--exclude", "id,big,x,y"], "in.csv: no column is left"),
        (["--bounds", "x=low:high"], "--bounds takes column=low:high with numbers or dates such as 2020-01-31"),
        (["--bounds", "x"], "--bounds takes age=0:120 or when=2020-01-01:, got 'x'"),
        (["--bounds", "z=0:1"], "in.csv: --bounds: no column 'z'"),
        (["--columns", "y", "--integer", "x"], "in.csv: --integer: no column 'x'; there are y"),
        (["--delimiter", ";;"], "in.csv: --delimiter must be one character"),
        (["--encoding", "klingon"], "in.csv: --encoding must be one that Python knows"),
        (["--sheet", "one"], "--sheet is for Excel files, and 'in.csv' is read as csv"),
        (["--format", "sas"], "in.csv: --format must be one of 'arrow', 'csv'"),
        (["--format", "parquet"], "in.csv: the file cannot be read as parquet"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line_and_leaves_no_file(invoke: Any, table: Path, arguments: list[str], said: str) -> None:
    result = invoke("impute", "in.csv", "-o", "out.csv", *arguments, code=1)
    line = result.stderr.rstrip("\n")
    assert "\n" not in line
    pattern = said.split(".*")
    assert line.startswith("otimpute: ")
    assert all(part in line for part in pattern), line
    assert result.stdout == ""
    assert [path.name for path in table.parent.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("no.csv", None, "otimpute: there is no file 'no.csv'"),
        ("bad.csv", b"a,b\n1,2\n3,4\n" * 9 + b"3\n", "otimpute: bad.csv: line 28 has 1 field, expected 2 fields"),
        ("head.csv", b"a,b\n", "otimpute: head.csv: the file has column names but no rows; pass --no-header if"),
        ("empty.csv", b"a,b\n,\n,\n", "otimpute: empty.csv: all values of a, b are missing, so there is nothing to learn from"),
        (
            "packed.csv",
            b"PAR1",
            "otimpute: packed.csv: the file is a Parquet file, not text; name it .parquet or pass --format",
        ),
        ("in.sas", b"", "otimpute: the name of a table must end in"),
    ],
)
def test_files_that_cannot_be_used_are_named(invoke: Any, name: str, data: bytes | None, said: str) -> None:
    if data is not None:
        Path(name).write_bytes(data)
    result = invoke("impute", name, "-o", "out.csv", "-m", "mean", code=1)
    assert result.stderr.startswith(said)
    assert len(result.stderr.splitlines()) == 1


def test_an_output_that_cannot_be_written_is_refused_at_once(invoke: Any, table: Path) -> None:
    said = invoke("impute", table, "-o", "out.xml", code=1).stderr
    assert "got 'out.xml'; rename it, or pass --out-format" in said
    Path("folder.csv").mkdir()
    assert "'folder.csv' is a folder" in invoke("impute", table, "-o", "folder.csv", "--force", code=1).stderr


def test_a_write_that_fails_leaves_no_file(invoke: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from otimpute.files import csv_file

    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(csv_file.CsvWriter, "write", fail)
    said = invoke("impute", table, "-o", "out.csv", "--exclude", "id,big", "-m", "mean", code=1).stderr
    assert said == "otimpute: no space left on device\n"
    assert [path.name for path in table.parent.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("place", ["first", "last"])
def test_debug_shows_where_an_error_came_from(table: Path, place: str) -> None:
    from otimpute.cli.app import app

    command = ["impute", "no.csv", "-o", "out.csv"]
    arguments = ["--debug", *command] if place == "first" else [*command, "--debug"]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, FileNotFoundError)


def test_a_wrong_use_ends_with_2(invoke: Any) -> None:
    assert "Missing option" in invoke("impute", "in.csv", code=2).stderr
    invoke("impute", "in.csv", "-o", "out.csv", "--seed", "-1", code=2)
    invoke("nosuch", code=2)


def test_warnings_are_notes(invoke: Any, table: Path) -> None:
    result = invoke("impute", table, "-o", "out.csv", "--exclude", "id,big", "-m", "ice", "--set", "max_iter=1", "-q")
    assert "UserWarning" not in result.stderr
    rows = [line for line in result.stderr.splitlines() if line]
    assert all(line.startswith("note: ") for line in rows)


def test_validation_is_told(invoke: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 1)) * [1.0, 2.0, 3.0]
    lines = ["a,b,c", *(f"{a:.3f},{b:.3f}," if k % 4 == 0 else f"{a:.3f},{b:.3f},{c:.3f}" for k, (a, b, c) in enumerate(X))]
    Path("in.csv").write_text("\n".join(lines) + "\n")
    told = ["-m", "sinkhorn", "--set", "validation_fraction=0.2", "--set", "max_steps=50"]
    assert "errors on hidden values: MAE 0." in invoke("impute", "in.csv", "-o", "o.csv", *told).stderr
    assert 0 < json.loads(invoke("impute", "in.csv", "-o", "p.csv", "--json", *told).stdout)["validation_mae"] < 0.8


def test_whoever_reads_may_stop_reading(table: Path) -> None:
    many = b"a,b\n" + b"1,2\n,3\n" * 20_000
    command = [sys.executable, "-m", "otimpute.cli", "impute", "-", "-o", "-", "-q", "-m", "mean"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(many)
        process.stdin.close()
        assert process.stdout.readline() == b"a,b\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_interrupt_writes_nothing_and_ends_with_130(
    invoke: Any, table: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: bool
) -> None:
    from otimpute import AutoImputer, SinkhornImputer

    def stop_early(self: Any, X: Any) -> Any:  # what a fit does on Ctrl-C: it ends, and holds what was reached
        self.stop_reason_ = "interrupted"
        return X

    monkeypatch.setattr(SinkhornImputer, "fit_transform", stop_early)
    options = ["--checkpoint", "saved"] if checkpoint else []
    if checkpoint:
        Path("saved").write_text("")
    said = invoke("impute", table, "-o", "out.csv", "-m", "sinkhorn", *options, code=130).stderr
    hint = "run the same command to continue from saved" if checkpoint else "nothing was written"
    assert said == f"otimpute: stopped; {hint}\n"
    assert not Path("out.csv").exists()

    def stop_at_once(self: Any, X: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(AutoImputer, "fit_transform", stop_at_once)
    assert invoke("impute", table, "-o", "out.csv", code=130).stderr == "otimpute: stopped; nothing was written\n"
