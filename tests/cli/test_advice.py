"""What inspect and impute say about tables that are not quite in order, and on screens that are not UTF-8."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from otimpute.cli.app import app

TYPO = "id,x\n" + "".join(f"a{k},{'1O.5' if k == 77 else 'NA' if k == 5 else k + 0.5}\n" for k in range(200))


def test_a_typo_among_numbers_is_named_with_its_line(invoke: Any) -> None:
    Path("in.csv").write_text(TYPO)
    note = "note: x: 198 of 199 values are numbers, not '1O.5' (line 79): correct it, or pass --na x=1O.5 --na x=NA"
    assert note in invoke("inspect", "in.csv").stdout
    assert note in invoke("impute", "in.csv", "-o", "out.csv", "-m", "mean", "-q").stderr
    assert "numbers" not in invoke("impute", "in.csv", "-o", "b.csv", "--columns", "id", "-m", "mean", "-q").stderr
    cured = invoke("inspect", "in.csv", "--na", "x=1O.5", "--na", "x=NA").stdout
    assert "values are" not in cured
    assert re.search(r"\nx +number", cured)


@pytest.mark.parametrize("spelling", ["N.A.", "-"])
def test_holes_among_numbers_that_were_not_told_are_named(invoke: Any, spelling: str) -> None:
    Path("in.csv").write_text("x,y\n" + "1.5,2\n" * 30 + f"{spelling},3\n" * 3 + "X,1\n")
    shown = invoke("inspect", "in.csv", "--na", "X").stdout
    assert f"30 of 33 values are numbers, not {spelling!r} (line 32): correct it, or pass --na x={spelling} --na x=X" in shown


def test_dates_that_do_not_show_what_comes_first_are_named(invoke: Any) -> None:
    Path("in.csv").write_text("at,x\n" + "".join(f"{k % 12 + 1}/{k % 11 + 1}/2020,{k}\n" for k in range(30)) + ",5\n")
    assert "note: at looks like dates: pass --day-first or --month-first\n" in invoke("inspect", "in.csv").stdout
    assert "looks like" not in invoke("inspect", "in.csv", "--day-first").stdout


def test_names_and_numbers_of_clubs_are_no_typos(invoke: Any) -> None:
    ids = "".join(f"{k:05},{'north' if k % 2 else 'south'}\n" for k in range(40))
    Path("in.csv").write_text("id,side\n" + ids + "X0041,\n")
    notes = [line for line in invoke("inspect", "in.csv").stdout.splitlines() if "note:" in line]
    assert len(notes) == 1 and "looks like an identifier: id" in notes[0]


def test_why_text_is_left_alone_is_said_shortly(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    rows = "".join(f"{k % 60},{'' if k % 9 == 0 else f'text {k}'},word {k % 60}\n" for k in range(300))
    Path("in.csv").write_text("n,remark,word\n" + rows)
    shown = invoke("inspect", "in.csv").stdout
    assert "left alone (hardly repeats)" in shown
    assert "one of the 49 most frequent labels" in shown


def test_empty_columns_stay_empty_as_inspect_says(invoke: Any) -> None:
    Path("in.csv").write_text("a,b\n1,\n2,\n")
    assert json.loads(invoke("inspect", "in.csv", "--json").stdout)["used"][1]["treatment"] == "left empty (no value)"


def test_the_suggested_command_works_as_it_stands(invoke: Any) -> None:
    Path("my table.csv").write_text("a b;c;d\n1,5;2;x\n;-9;x\n2,5;4;y\n")
    options = ["--na", "-9", "--exclude", "d", "--bounds", "a b=0:", "--no-header", "--max-categories", "3"]
    shown = invoke("inspect", "my table.csv", *[each for each in options if each != "--no-header"]).stdout
    command = shlex.split(shown.splitlines()[-1], comments=True)
    assert command[:5] == ["otimpute", "impute", "my table.csv", "-o", "my table-imputed.csv"]
    assert sorted(command[5:]) == sorted(each for each in options if each != "--no-header")
    invoke(*command[1:], "-m", "mean", "-q")
    assert Path("my table-imputed.csv").read_text() == "a b;c;d\n1,5;2;x\n2,0;3;x\n2,5;4;y\n"
    piped = invoke("inspect", "-", "--no-header", "--columns", "column_1", stdin=b"1,\n2,\n,4\n").stdout
    assert "otimpute impute - -o - " in piped
    assert " --no-header" in piped


def test_inspect_shows_what_impute_would_refuse(invoke: Any) -> None:
    frame = pa.table({"list": [[1], [2], None], "x": [1.0, float("inf"), None], "y": [1, 2, None]})
    pq.write_table(frame, "in.parquet")
    shown = invoke("inspect", "in.parquet").stdout
    assert "3 missing values (33 %)" in shown
    assert "note: impute rejects infinite values, as in x: replace them, or --exclude these columns" in shown


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_screens_that_know_few_characters_show_plainer_ones(invoke: Any, encoding: str) -> None:
    Path("in.csv").write_text("größe,x\n1,2\n,3\n3,\n", encoding="utf-8")
    runner = CliRunner(charset=encoding)
    shown = runner.invoke(app, ["inspect", "in.csv"], catch_exceptions=False)
    assert f"3 rows {'×' if encoding == 'cp1252' else 'x'} 2 columns" in shown.stdout
    assert re.search("##[.·]{3}", shown.stdout)
    told = runner.invoke(app, ["impute", "in.csv", "-o", "out.csv", "-m", "mean"], catch_exceptions=False)
    assert re.search("##[.·]{3}", told.stderr)
    assert "\\u" not in told.stderr
    for_machines = runner.invoke(app, ["inspect", "in.csv", "--json"], catch_exceptions=False).stdout
    assert '"gr\\u00f6\\u00dfe"' in for_machines


def test_a_folder_that_may_not_be_written_to_is_noticed_at_once(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("locked").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and access(path, mode))
    said = invoke("impute", "no.csv", "-o", "locked/new/out.csv", code=1).stderr
    assert said.startswith("otimpute: 'locked/new/out.csv' cannot be created: no permission to write to the folder")
    assert "cannot be created" in invoke("fit", "no.csv", "--model", "locked/m", code=1).stderr
    Path("file").touch()
    assert "is a file, not a folder" in invoke("impute", "no.csv", "-o", "file/out.csv", code=1).stderr


def test_what_the_system_refuses_is_a_sentence(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from otimpute.files import csv_file

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    Path("in.csv").write_text("x,y\n1,2\n,4\n")
    monkeypatch.setattr(csv_file.CsvWriter, "write", fail)
    said = invoke("impute", "in.csv", "-o", "out.csv", "-m", "mean", code=1).stderr
    assert said == "otimpute: no space left on device\n"


def test_names_that_occur_twice_are_to_be_renamed(invoke: Any) -> None:
    Path("in.csv").write_text("a,,\n1,2,3\n")
    assert (
        "got '' more than once in line 1; rename one of them, or pass --no-header" in invoke("inspect", "in.csv", code=1).stderr
    )
