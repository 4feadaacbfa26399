"""Nothing of the user's gets lost: no digits on narrow screens, no files under names given twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TABLE = "x,y\n1.5,2\n,4\n3.5,\n"


@pytest.fixture
def table(invoke: Any) -> Path:
    path = Path("in.csv")
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize("width", ["20", "60", "200"])
def test_numbers_are_whole_on_any_screen(invoke: Any, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    names = "a_name_that_is_rather_long,another_name_that_is_long"
    Path("truth.csv").write_text(f"{names}\n1234567,2335898\n2345678,1335898\n")
    Path("guess.csv").write_text(f"{names}\n11234567,22335898\n22345678,11335898\n")
    monkeypatch.setenv("COLUMNS", width)
    shown = invoke("score", "truth.csv", "guess.csv").stdout
    assert "15000000" in shown  # the mean absolute error of both columns, and the sizes of lines agree
    assert "15811388" in shown
    assert len({len(line) for line in shown.splitlines()[:2]}) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["impute", "in.csv", "-o", "new.csv", "--save-model", "./new.csv"], "--out and --save-model are the same file"),
        (["impute", "in.csv", "-o", "new.csv", "-f", "--save-model", "in.csv"], "IN and --save-model are the same file"),
        (["impute", "in.csv", "-o", "new.csv", "--checkpoint", "new.csv"], "--out and --checkpoint are the same file"),
        (["impute", "in.csv", "-o", "-", "--save-model", "m", "--checkpoint", "m"], "--save-model and --checkpoint are the"),
        (["fit", "in.csv", "-f", "--model", "in.csv"], "IN and --model are the same file, 'in.csv'; give another name"),
        (["apply", "in.csv", "-", "-f", "-o", "in.csv"], "MODEL and --out are the same file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_one_file_is_not_for_two_things(invoke: Any, table: Path, arguments: list[str], said: str) -> None:
    assert invoke(*arguments, code=1).stderr.startswith(f"otimpute: {said}")
    assert table.read_text() == TABLE
    assert [path.name for path in Path().iterdir()] == ["in.csv"]


def test_only_a_checkpoint_may_be_deleted(invoke: Any, table: Path) -> None:
    Path("mine.csv").write_text("precious")
    said = invoke("impute", table, "-o", "out.csv", "-m", "sinkhorn", "--checkpoint", "mine.csv", code=1).stderr
    assert "checkpoint mine.csv cannot be used" in said
    assert said.endswith("; pass another path\n")
    assert Path("mine.csv").read_text() == "precious"


def test_a_file_of_one_column_is_separated_by_nothing(invoke: Any) -> None:
    Path("in.csv").write_text("x\n1,5\n2,5\n\n")
    assert "csv, utf-8, decimal comma\n" in invoke("inspect", "in.csv").stdout
    assert json.loads(invoke("inspect", "in.csv", "--json").stdout)["columns"][0]["kind"] == "number"
