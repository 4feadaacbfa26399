"""Tables with text, categories, answers and dates; models in files; what inspect shows."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otimpute

HOLES = ("", "NA")


@pytest.fixture
def flats(invoke: Any) -> list[list[str]]:
    """``truth.csv`` and ``holes.csv``: ids, categories, integers, dates as Germans write them, answers, decimal commas."""
    rng = np.random.default_rng(0)
    rows = [["id", "district", "rooms", "built", "lift", "rent", "remark"]]
    for k in range(120):
        rooms, district = int(rng.integers(1, 6)), str(rng.choice(["hills", "old town, north"]))
        year, lift = int(rng.integers(1950, 2020)), "yes" if rooms > 3 else "no"
        rent = f"{200 * rooms + (300 if district == 'hills' else 0) + rng.normal(0, 20):.2f}".replace(".", ",")
        rows.append([f"{k:04}", district, str(rooms), f"{k % 28 + 1}.{k % 12 + 1}.{year}", lift, rent, f"remark no. {k * k}"])
    with Path("truth.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    invoke("mask", "truth.csv", "-o", "holes.csv", "--rate", "0.2", "--exclude", "id,remark", "-q")
    return rows


def read(path: str) -> list[list[str]]:
    with Path(path).open(newline="") as file:
        return list(csv.reader(file, delimiter=";"))


def test_every_kind_of_column_is_filled_as_it_is_written(invoke: Any, flats: list[list[str]]) -> None:
    invoke("impute", "holes.csv", "-o", "filled.csv", "-m", "sinkhorn", "--set", "max_steps=50")
    before, after = read("holes.csv"), read("filled.csv")
    forms = [
        r"\d{4}",
        r"hills|old town, north",
        r"\d",
        r"\d{1,2}\.\d{1,2}\.(19|20)\d\d",
        r"yes|no",
        r"-?\d+,\d\d",
        r"remark.*",
    ]
    for row, (old, new) in enumerate(zip(before[1:], after[1:], strict=True)):
        for was, now, form in zip(old, new, forms, strict=True):
            assert re.fullmatch(form, now), (row, now)
            assert was in HOLES or was == now
    assert sum(cell in HOLES for row in before for cell in row) > 50


def test_text_that_is_left_alone_keeps_its_holes_and_is_named(invoke: Any) -> None:
    lines = ["remark,x,y", *(f"{'' if k % 7 == 0 else f'text {k}'},{k},{'' if k % 5 == 0 else 2 * k}" for k in range(60))]
    Path("in.csv").write_text("\n".join(lines) + "\n")
    result = invoke("impute", "in.csv", "-o", "out.csv", "-m", "mean")
    assert re.search(r"note: columns remark are not imputed.*; convert the columns, or drop them", result.stderr)
    assert re.search(r"remark +left alone", result.stderr)
    assert [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()] == [line.split(",")[0] for line in lines]


@pytest.mark.usefixtures("two_experts")
def test_constraints_are_obeyed(invoke: Any, flats: list[list[str]]) -> None:
    wishes = ["--bounds", "rent=500:900", "--bounds", "built=1990-01-01:", "--categories", "district=hills"]
    result = invoke("impute", "holes.csv", "-o", "filled.csv", "--integer", "rent", *wishes)
    filled = [
        (name, new)
        for old, new_row in zip(read("holes.csv")[1:], read("filled.csv")[1:], strict=True)
        for name, was, new in zip(flats[0], old, new_row, strict=True)
        if was in HOLES
    ]
    rents = [float(value.replace(",", ".")) for name, value in filled if name == "rent"]
    assert rents and all(500 <= rent <= 900 and rent == int(rent) for rent in rents)
    assert all(int(value[-4:]) >= 1990 for name, value in filled if name == "built")
    assert {value for name, value in filled if name == "district"} == {"hills"}
    assert "note: column 'district' has observed values that are not among its categories" in result.stderr


def test_inspect_tells_what_is_missing_and_what_would_be_done(invoke: Any, flats: list[list[str]]) -> None:
    shown = invoke("inspect", "holes.csv").stdout
    assert shown.startswith("holes.csv: 120 rows × 7 columns, ")
    assert "separated by semicolons, utf-8, decimal comma" in shown
    assert re.search(r"rooms +integer +5 +\d+ +[█·]{5} +\d+ %", shown)
    assert re.search(r"\d+ rows of 120 lack nothing", shown)
    assert "otimpute impute holes.csv -o holes-imputed.csv" in shown
    told = json.loads(invoke("inspect", "holes.csv", "--json", "--exclude", "id").stdout)
    assert {column["name"]: column["kind"] for column in told["used"]} == {
        "district": "category", "rooms": "integer", "built": "date/time", "lift": "boolean", "rent": "number", "remark": "text",
    }  # fmt: skip
    assert sum(pattern["n_rows"] for pattern in told["patterns"]) == 120
    assert "nothing is missing" in invoke("inspect", "truth.csv").stdout
    piped = invoke("inspect", "-", stdin=Path("holes.csv").read_bytes()).stdout
    assert piped.startswith("-: 120 rows")


def test_a_model_fills_other_rows(invoke: Any, flats: list[list[str]]) -> None:
    options = ["-m", "sinkhorn", "--set", "max_steps=50", "--exclude", "id"]
    invoke("fit", "holes.csv", "--model", "flats.otimpute", *options)
    # Another order, another dialect, a column the model does not know, and without one that it left alone.
    rows = read("holes.csv")
    order = [flats[0].index(name) for name in ("rent", "lift", "id", "built", "rooms", "district")]
    with Path("new.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([[row[k] for k in order] for row in rows])
    told = json.loads(invoke("apply", "flats.otimpute", "new.csv", "-o", "applied.csv", "--json").stdout)
    applied = read("applied.csv")
    assert told["n_filled"] == sum(cell in HOLES for row in rows for cell in row)
    assert not any(cell in HOLES for row in applied for cell in row)
    assert all(rows[i][k] in (*HOLES, new) for i, row in enumerate(applied) for k, new in zip(order, row, strict=True))
    shown = invoke("inspect", "flats.otimpute").stdout
    assert "a model of SinkhornImputer" in shown
    assert "max_steps=50" in shown
    assert re.search(r"district +category", shown)
    assert json.loads(invoke("inspect", "flats.otimpute", "--json").stdout)["columns"]["built"] == "date/time"


def test_rows_that_are_applied_alone_come_out_as_together(invoke: Any, flats: list[list[str]]) -> None:
    # Of columns whose style one row shows as well as many do.
    chosen = ["--columns", "district,rooms", "-m", "sinkhorn", "--set", "max_steps=20"]
    invoke("impute", "holes.csv", "-o", "filled.csv", "--save-model", "m", *chosen, "-q")
    invoke("apply", "m", "holes.csv", "-o", "together.csv", "-q")
    head, *rows = Path("holes.csv").read_bytes().splitlines(keepends=True)
    alone = [invoke("apply", "m", "-", "-o", "-", "-q", stdin=head + row).stdout_bytes for row in rows[:20]]
    assert [each.splitlines()[1] for each in alone] == Path("together.csv").read_bytes().splitlines()[1:21]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"x\n1\n", "otimpute: 'new.csv' has no column 'y'; it has 'x'"),
        (b"x,y\n1,2.5\n", "otimpute: new.csv: line 2, column 'y': '2.5' is not a whole number"),
        (b"x,y\n1,high\n", "otimpute: new.csv: line 2, column 'y': 'high' is not a whole number"),
    ],
)
def test_rows_that_do_not_suit_a_model_are_refused(invoke: Any, data: bytes, said: str) -> None:
    Path("in.csv").write_text("x,y\n1.5,2\n,4\n3.5,\n")
    invoke("fit", "in.csv", "--model", "m", "-m", "mean", "-q")
    Path("new.csv").write_bytes(data)
    refused = invoke("apply", "m", "new.csv", "-o", "out.csv", code=1).stderr
    assert refused.startswith(said)
    assert len(refused.splitlines()) == 1
    assert not Path("out.csv").exists()


def test_files_that_are_no_models_are_refused(invoke: Any) -> None:
    Path("in.csv").write_text("x,y\n1.5,2\n,4\n")
    assert "in.csv is no file of otimpute's" in invoke("apply", "in.csv", "in.csv", "-o", "out.csv", code=1).stderr
    assert "there is no file 'm'" in invoke("apply", "m", "in.csv", "-o", "out.csv", code=1).stderr
    otimpute.SinkhornImputer(max_steps=2, random_state=0).fit([[1.0, 2.0], [2.0, np.nan], [3.0, 1.0]]).save("m")
    said = invoke("apply", "m", "in.csv", "-o", "out.csv", code=1).stderr
    assert said == "otimpute: m: the model was fitted on columns without names; fit it on a file or a data frame\n"


PEAK = (
    "import resource, sys\nsys.argv = ['otimpute', 'apply', 'm', sys.argv[1], '-o', 'out.csv', '-q', '-f']\n"
    "from otimpute.cli import main\ntry:\n    main()\nfinally:\n"
    "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_a_model_is_applied_to(invoke: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(1000, 10)).round(3)
    lines = [",".join("" if (i + j) % 9 == 0 else str(x) for j, x in enumerate(row)) + "\n" for i, row in enumerate(X)]
    head = ",".join(f"x{j}" for j in range(10)) + "\n"
    Path("in.csv").write_text(head + "".join(lines))
    invoke("fit", "in.csv", "--model", "m", "-m", "gaussian_em", "-q")
    peaks = []
    for n_thousands in (100, 800):
        Path("new.csv").write_text(head + "".join(lines) * n_thousands)
        shown = subprocess.run(
            [sys.executable, "-c", PEAK, "new.csv"], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        peaks.append(float(shown.stdout))
    assert peaks[1] < 1.15 * peaks[0], peaks
