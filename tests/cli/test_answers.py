"""Answers that look like missing values are not overwritten, and what was decided is shown, told and kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import otimpute
from otimpute.baselines import MeanImputer
from otimpute.files import read_file

ANSWERS = ["None"] * 66 + ["NA"] * 45 + ["Some"] * 98 + ["Freq"] * 115
TABLE = "drinks,x\n" + "".join(f"{answer},{k % 13}.5\n" for k, answer in enumerate(ANSWERS))
KEPT = (
    "note: drinks: 'None' × 66 is kept as an answer "
    "(NA marks the missing values of this column, and it is as frequent as other values): "
    "if it means missing, pass --na drinks=None --na drinks=NA; if not, --keep drinks=None"
)


@pytest.fixture
def table(invoke: Any) -> None:
    Path("in.csv").write_text(TABLE)


def answers(path: str) -> list[str]:
    return [line.split(",")[0] for line in Path(path).read_text().splitlines()[1:]]


@pytest.mark.usefixtures("table")
def test_an_answer_stays(invoke: Any) -> None:
    result = invoke("impute", "in.csv", "-o", "out.csv", "-m", "mean")
    assert [new for old, new in zip(ANSWERS, answers("out.csv"), strict=True) if old != "NA"] == [
        answer for answer in ANSWERS if answer != "NA"
    ]
    assert "NA" not in answers("out.csv")
    assert KEPT in result.stderr
    assert re.search(r"drinks +45 +█···· +14 % +NA × 45", result.stderr)
    shown = invoke("inspect", "in.csv").stdout
    assert KEPT in shown
    assert re.search(r"drinks +category +3 +45 +█···· +14 % +NA × 45", shown)
    assert json.loads(invoke("inspect", "in.csv", "--json").stdout)["used"][0]["missing_as"] == {"NA": 45}


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("options", "missing_as"),
    [
        (["--keep", "drinks=None"], {"NA": 45}),
        (["--keep", "None"], {"NA": 45}),
        (["--na", "drinks=None", "--na", "drinks=NA"], {"None": 66, "NA": 45}),
        (["--na", "None"], {"None": 66}),
    ],
)
def test_options_settle_it(invoke: Any, options: list[str], missing_as: dict[str, int]) -> None:
    told = json.loads(invoke("inspect", "in.csv", "--json", *options).stdout)
    assert (told["used"][0]["missing_as"], told["notes"]) == (dict(sorted(missing_as.items(), key=lambda each: -each[1])), [])


def test_a_column_that_is_not_there_is_refused(invoke: Any) -> None:
    Path("in.csv").write_text("drinks,x\nNone,1\nSome,2\n")
    said = invoke("inspect", "in.csv", "--na", "drink=None", code=1).stderr
    assert said == "otimpute: in.csv: --na names a column 'drink'; there are 'drinks', 'x'\n"


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("told", "filled"),
    [([], [False, True, False]), (["--na", "None"], [True, False, False]), (["--na", "drinks=Some"], [False, False, True])],
)
def test_a_model_takes_the_decision_along(invoke: Any, told: list[str], filled: list[bool]) -> None:
    invoke("fit", "in.csv", "--model", "m", "-m", "mean", "-q", *told)
    assert "missing: drinks NA × 45\n" in invoke("fit", "in.csv", "--model", "n", "-m", "mean", "-f").stderr
    Path("new.csv").write_text("drinks,x\nNone,1.5\nNA,2.5\nSome,\n")
    new = ["None", "NA", "Some"]
    invoke("apply", "m", "new.csv", "-o", "out.csv", "-q")
    assert [old != now for old, now in zip(new, answers("out.csv"), strict=True)] == filled


@pytest.mark.usefixtures("table")
def test_what_is_told_with_new_rows_counts_more_than_the_model(invoke: Any) -> None:
    invoke("fit", "in.csv", "--model", "m", "-m", "mean", "-q")
    Path("new.csv").write_text("drinks,x\nNone,1.5\nNA,2.5\nSome,\n")
    invoke("apply", "m", "new.csv", "-o", "out.csv", "-q", "--na", "None", "--na", "NA")
    assert answers("out.csv") == ["Freq", "Freq", "Some"]


@pytest.mark.usefixtures("table")
def test_a_model_of_a_frame_knows_its_categories(invoke: Any) -> None:
    frame = read_file("in.csv").frame
    MeanImputer().fit(frame).save("m")
    assert not hasattr(otimpute.load("m"), "file_gaps_")
    Path("new.csv").write_text("drinks,x\nNone,1.5\nNA,2.5\nSome,\n")
    invoke("apply", "m", "new.csv", "-o", "out.csv", "-q")
    assert answers("out.csv") == ["None", "Freq", "Some"]


def test_a_number_stands_for_missing_values_however_it_is_written(invoke: Any) -> None:
    Path("in.csv").write_text("x,y\n1.5,2\n-999.0,3\n2.5,-999\n-999,4\n")
    told = json.loads(invoke("impute", "in.csv", "-o", "out.csv", "-m", "mean", "--na", "-999", "--json").stdout)
    assert [column["missing_as"] for column in told["columns"]] == [{"-999.0": 1, "-999": 1}, {"-999": 1}]
    assert Path("out.csv").read_text() == "x,y\n1.5,2\n2.0,3\n2.5,3\n2.0,4\n"


def test_scores_are_of_the_same_answers(invoke: Any) -> None:
    Path("truth.csv").write_text("c,x\n" + "None,1\nSome,2\nFreq,3\nNone,4\n,5\n" * 20)
    invoke("mask", "truth.csv", "-o", "holes.csv", "-q")
    invoke("impute", "holes.csv", "-o", "out.csv", "-m", "mean", "-q")
    told = json.loads(invoke("score", "truth.csv", "out.csv", "--holes", "holes.csv", "--json").stdout)
    assert [column["n_unfilled"] for column in told["columns"]] == [0, 0]


def test_signs_that_are_kept_while_others_could_be_gaps_are_said(invoke: Any) -> None:
    Path("in.csv").write_text("work,x\n" + "private,1\nstate,2\n?,3\n" * 20)
    note = "work: '?' × 20 is kept as an answer (it does not mark missing numbers): if it means missing, pass --na 'work=?'"
    assert note in invoke("inspect", "in.csv").stdout
    Path("in.csv").write_text("work,x\n" + "private,1\nstate,?\n?,3\n" * 20)
    shown = invoke("inspect", "in.csv").stdout
    assert "note:" not in shown
    assert shown.count("? × 20") == 2


def test_hints_name_their_options(invoke: Any) -> None:
    rows = "".join(f"{k + 1},{-999 if k % 5 == 0 else k % 17},{k % 3}\n" for k in range(100))
    Path("in.csv").write_text("my id,x,y\n" + rows)
    shown = invoke("inspect", "in.csv").stdout
    assert "x: -999 × 20 is far from all other values (0 to 16): if it means missing, pass --na x=-999" in shown
    assert "note: set aside what looks like an identifier: my id; pass --identifiers use to use them, --exclude" in shown
    used = invoke("inspect", "in.csv", "--identifiers", "use").stdout
    assert "my id has every number once, from 1 to 100: if it only numbers the rows, pass --exclude 'my id'" in used
    settled = invoke("inspect", "in.csv", "--na", "x=-999", "--exclude", "my id").stdout
    assert "note:" not in settled


def test_what_cannot_be_told_of_typed_files_is_not_suggested(invoke: Any) -> None:
    pq.write_table(pa.table({"x": [-999.0] * 20 + [k % 17 + 0.5 for k in range(80)]}), "in.parquet")
    assert "(0.5 to 16.5): if it means missing, make it null\n" in invoke("inspect", "in.parquet").stdout


def test_files_with_spaces_are_filled_in_their_holes(invoke: Any) -> None:
    Path("in.txt").write_text("  x   y\n 1.5   2\n  NA   3\n 2.5  NA\n")
    invoke("impute", "in.txt", "-o", "out.txt", "-m", "mean", "-q")
    assert Path("out.txt").read_text() == "  x   y\n 1.5   2\n  2.0   3\n 2.5  2\n"
    assert "separated by spaces" in invoke("inspect", "in.txt", "--delimiter", "space").stdout
