"""The default method says what it found out about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("two_experts")

NAMES = ["[bold]size[/]", "weight", "noise"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two columns that say everything about each other, and one that nothing is said about."""
    rng = np.random.default_rng(0)
    size, noise = rng.normal(size=(2, 60))
    X = np.column_stack([size, 2 * size, noise])
    lines = [",".join("" if (i + j) % 7 == 0 else f"{x:.4f}" for j, x in enumerate(row)) for i, row in enumerate(X)]
    path = tmp_path / "in.csv"
    path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    return path


def test_who_names_no_method_gets_the_one_for_any_table(invoke: Any, table: Path) -> None:
    said = invoke("impute", table, "-o", "out.csv").stderr
    assert "filled by auto in" in said
    assert invoke("impute", table, "-o", "same.csv", "--method", "auto", "-q").stderr == ""
    assert Path("out.csv").read_bytes() == Path("same.csv").read_bytes()


def test_the_verdict_stands_below_the_summary(invoke: Any, table: Path) -> None:
    said = invoke("impute", table, "-o", "out.csv").stderr
    summary, _, verdict = said.partition("\nOn ")
    assert "missing" in summary
    assert "hidden the way values are missing" in verdict
    assert "gaussian_em" in verdict
    assert "No check on observed values" in verdict
    quiet = invoke("impute", table, "-o", "out.csv", "-f", "-m", "mean").stderr
    assert "hidden" not in quiet


def test_names_of_columns_are_no_markup_in_a_verdict(invoke: Any, table: Path) -> None:
    said = invoke("impute", table, "-o", "out.csv", "--columns", NAMES[0]).stderr
    assert f"the most frequent value) in {NAMES[0]}: that is what was filled in" in said


def test_machines_get_the_verdict_and_its_numbers(invoke: Any, table: Path) -> None:
    told = json.loads(invoke("impute", table, "-o", "out.csv", "--json").stdout)
    assert told["verdict"].startswith("On ")
    assert list(told["weights"]) == list(told["scores"]) == NAMES
    assert all(sum(weights.values()) == pytest.approx(1) for weights in told["weights"].values())
    assert told["scores"]["weight"]["stack"]["mae"] < 0.7 * told["scores"]["weight"]["mean"]["mae"]
    assert "verdict" not in json.loads(invoke("impute", table, "-o", "b.csv", "-m", "mean", "--json").stdout)


def test_a_table_without_holes_needs_no_verdict(invoke: Any) -> None:
    Path("in.csv").write_text("x,y\n1.5,2\n2.5,4\n3.5,5\n")
    assert invoke("impute", "in.csv", "-o", "out.csv").stderr.endswith("nothing was missing in the columns that were used\n")


def test_a_model_keeps_the_verdict(invoke: Any, table: Path) -> None:
    learned = invoke("fit", table, "--model", "m.otimpute").stderr
    told = json.loads(invoke("inspect", "m.otimpute", "--json").stdout)
    shown = invoke("inspect", "m.otimpute").stdout
    assert "a model of AutoImputer" in shown
    assert told["verdict"] in shown
    assert told["verdict"] in learned
    assert list(told["scores"]) == NAMES


def test_experts_are_chosen_by_name(invoke: Any, table: Path) -> None:
    options = ["--set", "experts=gaussian_em, knn", "--set", "n_splits=2", "--json"]
    told = json.loads(invoke("impute", table, "-o", "out.csv", *options).stdout)
    assert list(told["scores"]["weight"]) == ["mean", "gaussian_em", "knn", "stack"]
