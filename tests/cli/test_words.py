"""Small things that people read: words of the command line instead of Python's, and what ends how."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning

from otimpute.cli.spelling import in_options
from otimpute.exceptions import InPython, Message, OtimputeWarning, Term

FLATS = "farbe,x,leer,\n" + "rot,1,,1\nblau,,,2\n,3,,\nrot,4,,1\n"


@pytest.fixture
def table(invoke: Any) -> Path:
    path = Path("in.csv")
    path.write_text(FLATS)
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-seconds", "0"], "otimpute: in.csv: --max-seconds must be a finite number > 0, got 0.0; leave it out for no"),
        (["--jobs", "0"], "--jobs must be a whole number >= 1, got 0; leave it out for one thread, or pass -1 for all cores"),
        (["--set", "n_splits=0"], "--set n_splits must be a whole number >= 1, got 0; pass None to derive it from the table"),
        (["-m", "ice", "--set", "tol=x"], "--set tol must be a finite number >= 0, got 'x'"),
        (["--out-format", "cvs"], "--out-format must be one of 'arrow', 'csv', 'excel', 'parquet', 'tsv', got 'cvs'"),
        (["--bounds", "farbe=1:2"], "--bounds, --integer and --non-negative are for numbers; use --categories"),
        (["--categories", 'farbe=rot,"blau'], "a quote is not closed"),
        (["-o", "."], "'.' is a folder; give the name of a file in it"),
    ],
)
def test_errors_speak_of_options(invoke: Any, table: Path, arguments: list[str], said: str) -> None:
    out = [] if "-o" in arguments else ["-o", "out.csv"]
    assert said in invoke("impute", table, *out, *arguments, code=1).stderr


def test_notes_speak_of_options() -> None:
    many = Message("more distinct texts than ", Term("max_categories", 50))
    assert in_options(many) == "more distinct texts than --max-categories 50"
    assert in_options(OtimputeWarning(many)) == in_options(many)
    assert in_options(ConvergenceWarning("[IterativeImputer] Early stopping criterion not reached.")).startswith("ice: ")
    assert in_options(Message("it runs away", InPython(" (see history_)"), ", or not")) == "it runs away, or not"
    assert in_options(Message(InPython("leave ", "pass "), Term("scale", True))) == "pass --set scale=true"
    assert in_options(Message("pass ", Term("header", False), " or ", Term("quote", ""))) == "pass --no-header or --quote ''"
    assert in_options(Message("pass ", Term("day_first"), InPython("=True"))) == "pass --day-first or --month-first"


def test_columns_that_are_empty_are_known_and_unknown_categories_noted(invoke: Any, table: Path) -> None:
    options = ["--bounds", "leer=1:2", "--categories", "farbe=rot,gruen,blau", "-m", "mean"]
    said = invoke("impute", table, "-o", "out.csv", *options).stderr
    assert "note: farbe: gruen never occurs, so it is never imputed" in said
    assert "no column" not in said
    assert "\n''  " in said  # the column without a name


def test_one_row_lacks_nothing(invoke: Any) -> None:
    Path("in.csv").write_text("x,y\n1,2\n,3\n3,\n")
    assert "1 row of 3 lacks nothing" in invoke("inspect", "in.csv").stdout


def test_numbers_that_were_not_filled_have_no_error(invoke: Any) -> None:
    Path("truth.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
    Path("guess.csv").write_text("x,y\n,2\n,3\n,4\n")
    shown = invoke("score", "truth.csv", "guess.csv").stdout
    assert shown.splitlines()[2].split() == ["x", "3", "–", "–", "–", "–"]


def test_a_model_has_no_table_format(invoke: Any) -> None:
    assert "--out-format" not in invoke("fit", "--help").stdout
    assert "--force" in invoke("fit", "--help").stdout
    assert "fill" not in invoke("mask", "--help").stdout.partition("--columns")[2].partition("\n")[0]


def test_a_demo_that_is_stopped_ends_with_130(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from otimpute import AutoImputer

    def stop(self: Any, X: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(AutoImputer, "fit_transform", stop)
    assert "stopped" in invoke("demo", "--out", "demo", code=130).stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_output_that_cannot_be_written_is_one_line(table: Path) -> None:
    for redirected, said in (
        ("--help > /dev/full", b"no space left"),
        (f"impute {table} -m mean -o - >&-", b"output is closed"),
    ):
        command = f"{sys.executable} -m otimpute.cli {redirected}"
        ended = subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=60)
        assert ended.returncode != 0
        assert said in ended.stderr
        assert b"Traceback" not in ended.stderr
