"""Reports from the shell."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest


@pytest.fixture
def table(tmp_path: Path, flats: pd.DataFrame) -> Path:
    path = tmp_path / "flats.csv"
    flats.drop(columns=["remark"]).to_csv(path, index=False)
    return path


def text_of(page: Path) -> str:
    words: list[str] = []
    parser = HTMLParser()
    parser.handle_data = words.append  # type: ignore[method-assign]
    parser.feed(page.read_text(encoding="utf-8"))
    return " ".join(" ".join(words).split())


def test_impute_makes_a_report_and_tells_its_verdict(invoke: Any, table: Path) -> None:
    result = invoke("impute", "flats.csv", "-o", "full.csv", "--report", "flats.html", "-m", "gaussian_em")
    assert "report in flats.html" in result.stderr
    assert "✓ Is everything filled in, and nothing else changed? All " in result.stderr
    page = text_of(Path("flats.html"))
    assert "Imputation of flats.csv" in page
    assert "otimpute impute flats.csv -o full.csv --report flats.html -m gaussian_em" in page
    assert "observed values unchanged" in page


def test_a_report_shows_what_was_written(invoke: Any, table: Path) -> None:
    # The method draws at random, so values imputed anew would be others.
    told = json.loads(invoke("impute", table, "-o", "full.csv", "-m", "sinkhorn", "--report", "r.html", "--json").stdout)
    assert told["report"] == "r.html"
    assert [each["key"] for each in told["report_verdict"]] == ["kept", "converged", "better", "trusted", "chance"]
    assert told["report_verdict"][0]["light"] == "good"
    assert "imputed for this report by transform" not in text_of(Path("r.html"))


def test_report_on_a_model_and_a_table(invoke: Any, table: Path) -> None:
    invoke("fit", table, "--model", "m.otimpute", "-m", "gaussian_em", "-q")
    before = Path("m.otimpute").read_bytes()
    result = invoke("report", "m.otimpute", "flats.csv", "-o", "r.html")
    assert "report in r.html" in result.stderr and result.stdout == ""
    assert "imputed for this report by transform" in text_of(Path("r.html"))
    assert Path("m.otimpute").read_bytes() == before
    told = json.loads(invoke("report", "m.otimpute", "flats.csv", "--json", "--no-check", "--max-rows", "50").stdout)
    assert (told["table"]["n_rows"], told["table"]["n_shown"]) == (240, 50)
    assert told["check"] is None and told["no_check"] == "It was not requested."
    assert told["reproduce"]["command"].startswith("otimpute report m.otimpute flats.csv")


def test_new_rows_are_filled_by_the_model_itself(invoke: Any, table: Path) -> None:
    lines = table.read_text().splitlines(keepends=True)
    Path("old.csv").write_text("".join(lines[:200]))
    Path("new.csv").write_text("".join([lines[0], *lines[200:]]))
    invoke("fit", "old.csv", "--model", "m.otimpute", "-m", "gaussian_em", "-q")
    judged = {
        name: json.loads(invoke("report", "m.otimpute", name, "--json").stdout)["check"] for name in ("old.csv", "new.csv")
    }
    assert {name: check["filled_by"] for name, check in judged.items()} == {"old.csv": "copy", "new.csv": "model"}


def test_a_report_as_a_page_and_as_data_at_once(invoke: Any, table: Path) -> None:
    invoke("fit", table, "--model", "m.otimpute", "-m", "mean", "-q")
    result = invoke("report", "m.otimpute", "flats.csv", "-o", "r.html", "--json", "--no-check")
    assert json.loads(result.stdout)["title"] == "Imputation of flats.csv"
    assert "Imputation of flats.csv" in text_of(Path("r.html"))


def test_more_columns_and_an_unknown_one(invoke: Any, table: Path, flats: pd.DataFrame) -> None:
    invoke("fit", table, "--model", "m.otimpute", "-m", "mean", "--columns", "size,rent", "-q")
    told = json.loads(invoke("report", "m.otimpute", table, "--json", "--no-check").stdout)
    assert [column["name"] for column in told["columns"]] == ["size", "rent"]
    (note,) = [note for note in told["notes"] if note.startswith("Columns neither used")]
    assert "rooms" in note and "rent" not in note
    flats[["size", "rooms"]].to_csv("less.csv", index=False)
    assert "rent" in invoke("report", "m.otimpute", "less.csv", "-o", "r.html", code=1).stderr
    assert not Path("r.html").exists()


def test_nothing_is_overwritten_unasked(invoke: Any, table: Path) -> None:
    Path("r.html").write_text("mine")
    arguments = ["impute", table, "-o", "full.csv", "-m", "mean", "--report", "r.html"]
    assert "r.html" in invoke(*arguments, code=1).stderr
    assert not Path("full.csv").exists()
    assert Path("r.html").read_text() == "mine"
    invoke(*arguments, "--force")
    assert "observed values unchanged" in text_of(Path("r.html"))


def test_a_report_must_go_somewhere_of_its_own(invoke: Any, table: Path) -> None:
    invoke("fit", table, "--model", "m.otimpute", "-m", "mean", "-q")
    assert "pass -o REPORT.html, or --json" in invoke("report", "m.otimpute", table, code=1).stderr
    assert "same file" in invoke("report", "m.otimpute", table, "-o", table, "--force", code=1).stderr
    assert "same file" in invoke("impute", table, "-o", "x.csv", "--report", "x.csv", code=1).stderr
    assert "not to standard output" in invoke("report", "m.otimpute", table, "-o", "-", code=1).stderr
    assert not Path("-").exists()


def test_what_a_report_needs_is_told_before_the_fit(invoke: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = invoke("impute", table, "-o", "full.csv", "-m", "mean", "--report", "r.html", code=1)
    assert 'pip install "otimpute[report]"' in result.stderr
    assert not Path("full.csv").exists()


def test_standard_input(invoke: Any, table: Path) -> None:
    result = invoke("impute", "-", "-o", "-", "-m", "mean", "--report", "r.html", stdin=table.read_bytes())
    assert result.stdout.splitlines()[0] == table.read_text().splitlines()[0]
    assert "Imputation report" in text_of(Path("r.html"))


def test_columns_that_stay_empty_are_named(invoke: Any, table: Path) -> None:
    pd.read_csv(table).assign(nothing=None).to_csv("more.csv", index=False)
    invoke("impute", "more.csv", "-o", "full.csv", "-m", "mean", "--report", "r.html")
    assert "Columns neither used, nor imputed, nor in this report: nothing." in text_of(Path("r.html"))
