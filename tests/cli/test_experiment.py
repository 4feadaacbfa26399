"""Hiding values and scoring what was put in their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def write(path: str, X: Any, names: str = "a,b,c") -> None:
    lines = [",".join("" if x != x else f"{x:.2f}" for x in row) for row in X]
    Path(path).write_text("\n".join([names, *lines]) + "\n")


@pytest.fixture
def truth() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(200, 1)).round(2)
    return np.hstack([x, 2 * x, 3 - x])


def cells(path: str) -> list[list[str]]:
    return [line.split(",") for line in Path(path).read_text().splitlines()]


def test_hidden_values_are_gone_and_all_others_as_written(invoke: Any, truth: np.ndarray) -> None:
    write("in.csv", truth)
    told = json.loads(invoke("mask", "in.csv", "-o", "out.csv", "--rate", "0.4", "--json").stdout)
    pairs = [
        (old, new) for lines in zip(cells("in.csv"), cells("out.csv"), strict=True) for old, new in zip(*lines, strict=True)
    ]
    hidden = [old for old, new in pairs if new == ""]
    assert all(new in ("", old) for old, new in pairs)
    assert 0.3 < len(hidden) / truth.size < 0.5
    assert sum(column["n_hidden"] for column in told["columns"]) == len(hidden)


def test_seeds_and_columns_decide_where_holes_are(invoke: Any, truth: np.ndarray) -> None:
    write("in.csv", truth)
    for name, seed in (("x.csv", 1), ("y.csv", 1), ("z.csv", 2)):
        invoke("mask", "in.csv", "-o", name, "--exclude", "a", "--seed", seed)
    assert cells("x.csv") == cells("y.csv") != cells("z.csv")
    assert [row[0] for row in cells("x.csv")] == [row[0] for row in cells("in.csv")]


@pytest.mark.parametrize("mechanism", ["logistic_mar", "logistic_self_mnar", "quantile_mnar"])
def test_holes_that_were_there_stay_and_do_not_count(invoke: Any, truth: np.ndarray, mechanism: str) -> None:
    incomplete = truth.copy()
    incomplete[::10, 1] = np.nan
    write("in.csv", incomplete)
    summary = invoke("mask", "in.csv", "-o", "out.csv", "--mechanism", mechanism, "--json").stdout
    empty = np.array([[cell == "" for cell in row] for row in cells("out.csv")[1:]])
    assert empty[::10, 1].all()
    assert empty.sum() == sum(column["n_hidden"] for column in json.loads(summary)["columns"]) + 20


def test_parameters_of_mechanisms(invoke: Any, truth: np.ndarray) -> None:
    write("in.csv", truth)
    invoke(
        "mask", "in.csv", "-o", "out.csv", "--mechanism", "quantile_mnar", "--set", "tails=upper", "--set", "column_fraction=1"
    )
    gone = np.array([[cell == "" for cell in row] for row in cells("out.csv")[1:]])
    assert (truth[:, 0][gone[:, 0]] > np.median(truth[:, 0])).all()
    refused = invoke("mask", "in.csv", "-o", "no.csv", "--mechanism", "quantile_mnar", "--set", "tail=upper", code=1).stderr
    assert "did you mean 'tails'?" in refused
    assert "--mechanism must be one of" in invoke("mask", "in.csv", "-o", "no.csv", "--mechanism", "mca", code=1).stderr
    assert "rate must be a finite number" in invoke("mask", "in.csv", "-o", "no.csv", "--rate", "1", code=1).stderr


def test_only_hidden_values_count(invoke: Any) -> None:
    write("truth.csv", [[1, 10, 5], [2, 20, 5], [3, 30, 5], [6, 40, 5]])
    write("holes.csv", [[1, np.nan, 5], [2, 20, 5], [np.nan, 30, 5], [np.nan, 40, 5]])
    write("filled.csv", [[1, 16, 5], [2, 20, 5], [3, 30, 5], [4, 40, 5]])
    told = json.loads(invoke("score", "truth.csv", "filled.csv", "--holes", "holes.csv", "--json").stdout)
    a, b, c = told["columns"]
    assert (a["n_cells"], a["mae"], a["rmse"]) == (2, 1.0, pytest.approx(2**0.5))
    assert a["simplest"] == pytest.approx((((3 - 1.5) ** 2 + (6 - 1.5) ** 2) / 2) ** 0.5)
    assert (b["n_cells"], b["mae"], c["n_cells"], c["mae"]) == (1, 6.0, 0, None)
    spread_a, spread_b = np.std([1, 2, 3, 6]), np.std([10, 20, 30, 40])
    assert told["mae"] == pytest.approx((2 / spread_a + 6 / spread_b) / 3)
    shown = invoke("score", "truth.csv", "filled.csv", "--holes", "holes.csv").stdout
    assert [line.split()[:3] for line in shown.splitlines()[2:4]] == [["a", "2", "1"], ["b", "1", "6"]]


def test_without_holes_every_value_counts_and_that_is_said(invoke: Any, truth: np.ndarray) -> None:
    write("truth.csv", truth)
    write("filled.csv", truth + np.array([0, 0, 1]))
    result = invoke("score", "truth.csv", "filled.csv")
    assert "note: all values are scored" in result.stderr
    told = json.loads(invoke("score", "truth.csv", "filled.csv", "--json", "--columns", "c").stdout)
    assert [(column["name"], column["n_cells"], column["mae"]) for column in told["columns"]] == [
        ("c", 200, pytest.approx(1)),
    ]


def test_holes_that_were_not_filled_are_named(invoke: Any) -> None:
    write("truth.csv", [[1, 1, 1], [2, 2, 2], [3, 3, 3]])
    write("holes.csv", [[np.nan, 1, 1], [2, 2, 2], [np.nan, 3, 3]])
    result = invoke("score", "truth.csv", "holes.csv", "--holes", "holes.csv")
    assert "note: still missing: 2 of a" in result.stderr
    write("half.csv", [[1, 1, 1], [2, 2, 2], [np.nan, 3, 3]])
    told = json.loads(invoke("score", "truth.csv", "half.csv", "--holes", "holes.csv", "--json").stdout)
    assert (told["columns"][0]["n_unfilled"], told["columns"][0]["mae"]) == (1, 0.0)


def test_words_and_answers_are_right_or_wrong(invoke: Any) -> None:
    Path("truth.csv").write_text("c,ok,day\na,yes,2020-01-01\nb,no,2020-01-11\na,yes,2020-01-21\nb,no,2020-01-31\n")
    Path("holes.csv").write_text("c,ok,day\n,yes,\n,no,2020-01-11\na,,2020-01-21\nb,no,2020-01-31\n")
    Path("filled.csv").write_text("c,ok,day\na,yes,2020-01-04\na,no,2020-01-11\na,yes,2020-01-21\nb,no,2020-01-31\n")
    told = json.loads(invoke("score", "truth.csv", "filled.csv", "--holes", "holes.csv", "--json").stdout)
    c, ok, day = told["columns"]
    assert (c["accuracy"], ok["accuracy"], day["mae"]) == (0.5, 1.0, pytest.approx(3.0))
    assert told["accuracy"] == pytest.approx(2 / 3)
    assert "3 d" in invoke("score", "truth.csv", "filled.csv", "--holes", "holes.csv").stdout


def test_a_column_without_truth_is_not_scored(invoke: Any) -> None:
    Path("truth.csv").write_text("n,e\n1,\n2,\n")
    Path("filled.csv").write_text("n,e\n1,5\n2,6\n")
    told = json.loads(invoke("score", "truth.csv", "filled.csv", "--json").stdout)
    assert [column["n_cells"] for column in told["columns"]] == [2, 0]


def test_integers_may_have_become_numbers(invoke: Any) -> None:
    Path("truth.csv").write_text("n\n1\n2\n3\n")
    Path("filled.csv").write_text("n\n1\n2.5\n3\n")
    told = json.loads(invoke("score", "truth.csv", "filled.csv", "--json").stdout)
    assert told["columns"][0]["mae"] == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    ("filled", "said"),
    [
        ("a,b,c\n1,1,1\n", "otimpute: filled.csv: must have the same 2 rows as TRUTH, got 1"),
        ("a,b\n1,1\n2,2\n", "otimpute: 'filled.csv' has no column 'c'; it has 'a', 'b'"),
        ("a,b,c\n1,1,1\n2,two,2\n", "otimpute: filled.csv: line 3, column 'b': 'two' is not a number"),
    ],
)
def test_tables_that_do_not_match_are_refused(invoke: Any, filled: str, said: str) -> None:
    write("truth.csv", [[1, 1, 1], [2, 2, 2]])
    Path("filled.csv").write_text(filled)
    assert invoke("score", "truth.csv", "filled.csv", code=1).stderr.startswith(said)


def test_all_formats_can_be_pierced(invoke: Any) -> None:
    frame = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "c": ["a", "b", "c", "d"]})
    pq.write_table(frame, "in.parquet")
    for name in ("out.parquet", "out.csv", "out.arrow"):
        invoke("mask", "in.parquet", "-o", name, "--rate", "0.5", "-q")
    holes = pq.read_table("out.parquet").to_pydict()
    assert None in holes["x"] + holes["c"]
    assert Path("out.csv").read_text().splitlines()[1:] == [
        ",".join("" if value is None else str(value) for value in row) for row in zip(holes["x"], holes["c"], strict=True)
    ]
