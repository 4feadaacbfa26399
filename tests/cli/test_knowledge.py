"""Flags for what people know of their table do what the parameters of imputers do, and models keep them."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from otimpute import AutoImputer
from otimpute.baselines import GaussianEMImputer
from otimpute.files import TableSource, read_file

N = 80
NUMBERS = ["age", "income", "tax", "births"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    person = np.arange(N) // 4
    age = 20.0 + person + rng.normal(0, 1, N).round(1)
    income = age * 2 + rng.normal(0, 3, N).round(1)
    columns = {
        "row_id": 1000 + 3 * np.arange(N), "person": [f"p{k}" for k in person], "year": 2015 + np.arange(N) % 4,
        "sex": np.where(person % 2 == 0, "f", "m"), "age": age, "income": income, "tax": (income / 5).round(2),
        "births": rng.poisson(1.5, N).astype(float), "weight": 1.0 + person % 3,
    }  # fmt: skip
    masked = [pa.array(np.asarray(values), mask=(rng.random(N) < 0.2) & (name in NUMBERS)) for name, values in columns.items()]
    path = tmp_path / "in.csv"
    pyarrow.csv.write_csv(pa.table(masked, names=list(columns)), path)
    return path


def by_library(imputer: Any, without: str = "", **fit: Any) -> pa.Table:
    frame = read_file("in.csv").frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return imputer.fit_transform(frame.drop_columns(without) if without else frame, **fit)


FLAGS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "only": (["--only", "income,tax"], {"columns": ["income", "tax"]}),
    "identifiers": (["--identifiers", "use"], {"identifiers": "use"}),
    "predictors": (
        ["--predictors", "income=age,sex", "--predictors", "tax=not:births", "--predictors", "not:person"],
        {"predictors": {"income": ["age", "sex"], "tax": {"not": ["births"]}, "not": ["person"]}},
    ),
    "auto": (["--predictors", "auto"], {"predictors": "auto"}),
    "groups": (["--groups", "person", "--time", "year"], {"groups": ["person"], "time": "year"}),
    "applicable": (["--applicable", "births=sex == 'f'"], {"applicable": {"births": "sex == 'f'"}}),
    "derive": (
        ["--derive", "tax = income / 5", "--derive", "births <= age"],
        {"derive": ["tax = income / 5", "births <= age"]},
    ),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_does_what_the_parameter_does(invoke: Any, name: str) -> None:
    flags, parameters = FLAGS[name]
    options = ["-m", "gaussian_em", *flags]
    summary = json.loads(invoke("impute", "in.csv", "-o", "out.parquet", "--json", *options).stdout)
    expected = by_library(GaussianEMImputer(**parameters))
    given = pa.parquet.read_table("out.parquet")
    assert [given[column].to_pylist() for column in NUMBERS] == [expected[column].to_pylist() for column in NUMBERS]
    plain = by_library(GaussianEMImputer())
    if name != "auto":  # the table is not wide
        assert any(plain[column].to_pylist() != expected[column].to_pylist() for column in NUMBERS)
    named = {"only": "only", "auto": "predictors"}.get(name, name)
    assert summary["plan"][named] == next(iter(parameters.values()))
    assert ("set aside what looks like an identifier: row_id" in str(summary["notes"])) == (name != "identifiers")


@pytest.mark.parametrize("name", ["only", "predictors", "groups", "applicable", "derive"])
def test_a_model_keeps_what_was_said(invoke: Any, name: str) -> None:
    flags, parameters = FLAGS[name]
    invoke("fit", "in.csv", "--model", "model", "-m", "gaussian_em", "-q", *flags)
    invoke("apply", "model", "in.csv", "-o", "out.parquet", "-q")
    frame = read_file("in.csv").frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = GaussianEMImputer(**parameters).fit(frame).transform(frame)
    given = pa.parquet.read_table("out.parquet")
    assert [given[column].to_pylist() for column in NUMBERS] == [expected[column].to_pylist() for column in NUMBERS]
    assert repr(parameters[next(iter(parameters))])[1:-1] in invoke("inspect", "model").stdout


def test_methods_and_weights_reach_the_fit(invoke: Any) -> None:
    experts = ["mean", "gaussian_em"]
    options = ["--set", "experts=mean,gaussian_em", "--methods", "income=mean", "--methods", "tax=mean,gaussian_em"]
    summary = json.loads(invoke("impute", "in.csv", "-o", "o.parquet", "--weights", "weight", "--json", *options).stdout)
    imputer = AutoImputer(experts, methods={"income": "mean", "tax": ["mean", "gaussian_em"]}, random_state=0)
    weights = read_file("in.csv").frame["weight"].to_numpy()
    expected = by_library(imputer, "weight", sample_weight=weights)
    given = pa.parquet.read_table("o.parquet")
    assert [given[column].to_pylist() for column in NUMBERS] == [expected[column].to_pylist() for column in NUMBERS]
    assert summary["weights"]["income"]["mean"] == 1.0
    assert summary["plan"]["weights"] == "weight" and summary["not_used"] == ["weight"]


def test_columns_that_are_named_are_no_identifiers(invoke: Any) -> None:
    shown = invoke("inspect", "in.csv", "--columns", "row_id,age").stdout
    assert "identifier" not in shown
    assert "left alone (looks like an identifier)" in " ".join(invoke("inspect", "in.csv").stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "incme"], "in.csv: --only: no column 'incme'; did you mean 'income'?"),
        (["--exclude", "age", "--only", "age"], "in.csv: --only: no column 'age'; "),
        (["--identifiers", "yes"], "in.csv: --identifiers must be one of 'set aside', 'use', got 'yes'"),
        (["--predictors", "income"], "in.csv: --predictors takes income=age,job, income=not:tax_code, not:outcome or auto"),
        (["--predictors", "income=agee"], "in.csv: --predictors: no column 'agee'; did you mean 'age'?"),
        (["--predictors", "income=income"], "in.csv: predictors of 'income' must be such that some column is left"),
        (["--groups", "persn"], "in.csv: --groups: no column 'persn'; did you mean 'person'?"),
        (["--time", "yer"], "in.csv: --time: no column 'yer'; did you mean 'year'?"),
        (["--time", "sex"], "in.csv: --time must be a column of numbers or dates, got 'sex'"),
        (["--derive", "tax = incom / 5"], "in.csv: "),
        (["--derive", "tax = income /"], "in.csv: "),
        (["--applicable", "births"], "in.csv: --applicable takes \"pregnancies=sex == 'f'\", got 'births'"),
        (["--applicable", "births=sx == 'f'"], "in.csv: "),
        (["--methods", "income"], "in.csv: --methods takes age=gaussian_em or age=gaussian_em,knn, got 'income'"),
        (["--methods", "income=knn", "-m", "mean"], "in.csv: --methods must be left out for method mean"),
        (["--weights", "wight"], "in.csv: --weights: no column 'wight'; did you mean 'weight'?"),
        (["--weights", "age"], "in.csv: weights: column 'age' has "),
        (["--weights", "weight", "-m", "knn"], "in.csv: sample_weight cannot be used by KNNImputer"),
        (
            ["--weights", "weight", "--multiple", "2", "-m", "chained"],
            "--weights is not for --multiple, whose draws count all rows alike",
        ),
        (["--set", "groups=person"], "--set groups=person: use --groups instead"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_named(invoke: Any, arguments: list[str], said: str) -> None:
    line = invoke("impute", "in.csv", "-o", "out.csv", "--method", "auto", *arguments, code=1).stderr
    assert line.startswith(f"otimpute: {said}") and line.count("\n") == 1, line
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ('[derive]\n\ntax = "incom / 5"', "plan.toml, line 3: derive.tax: "),
        ('groups = "person"\ntime = "sex"', "plan.toml, line 2: time must be a column of numbers or dates, got 'sex'"),
        ("[applicable]\nbirths = \"sex == 'f\"", "plan.toml, line 2: applicable.births: "),
        ('[predictors]\nincome = {not = ["person", "year", "sex", "age", "tax", "births", "weight", "row_id"]}',
         "plan.toml, line 2: predictors.income: predictors of 'income' must be such that some column is left"),
        ('weights = "age"', "plan.toml, line 1: weights: weights: column 'age' has "),
    ],
)  # fmt: skip
def test_mistakes_in_a_plan_are_named_with_their_line(invoke: Any, plan: str, said: str) -> None:
    Path("plan.toml").write_text(plan)
    line = invoke("impute", "in.csv", "-o", "out.csv", "-m", "gaussian_em", "--plan", "plan.toml", code=1).stderr
    assert line.startswith(f"otimpute: {said}") and line.count("\n") == 1, line


def test_rows_of_a_group_are_imputed_together_however_the_file_is_read(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("fit", "in.csv", "--model", "model", "-m", "gaussian_em", "-q", "--groups", "person", "--time", "year")
    Path("new.csv").write_text(re.sub(r'"p(\d)', r'"new \1', Path("in.csv").read_text()))
    invoke("apply", "model", "new.csv", "-o", "whole.csv", "-q")
    chunks = TableSource.chunks
    monkeypatch.setattr(TableSource, "chunks", lambda self, rows=None: chunks(self, 7))
    invoke("apply", "model", "new.csv", "-o", "chunks.csv", "-q")
    assert Path("chunks.csv").read_bytes() == Path("whole.csv").read_bytes() != Path("new.csv").read_bytes()
