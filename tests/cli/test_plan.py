"""A file with what people know of their table: ``--plan``, and its draft."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from otimpute.files import read_file

N = 60


@pytest.fixture(autouse=True)
def table(tmp_path: Path) -> Path:
    """People of several years; a third of the incomes and some jobs are missing."""
    rng = np.random.default_rng(0)
    lines = ["key,person,year,age,income,job,born"]
    for k in range(N):
        age, job = 20 + k // 4 + k % 4, ["nurse", "clerk", "none"][k % 3]
        income = "" if k % 3 == 0 else f"{age * 2 + rng.normal():.2f}"
        lines.append(f"{k},p{k // 4},{2015 + k % 4},{age},{income},{'NA' if k % 7 == 0 else job},{1950 + k // 4}-05-03")
    path = tmp_path / "in.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def impute(invoke: Any, plan: str = "", *arguments: str, name: str = "out.csv", suffix: str = "toml") -> dict[str, Any]:
    if plan:
        Path(f"plan.{suffix}").write_text(plan, encoding="utf-8")
        arguments = (*arguments, "--plan", f"plan.{suffix}")
    result = invoke("impute", "in.csv", "-o", name, "-f", "--json", *arguments)
    return dict(json.loads(result.stdout))


PLAN = """
exclude = ["key", "person"]
method = "gaussian_em"
keep = {job = ["NA"]}

[constraints]
born.bounds = "1950-01-01:"
[constraints.income]
bounds = [0, 70]  # a comment
integer = true
"""
FLAGS = [
    *["--exclude", "key,person", "--method", "gaussian_em", "--keep", "job=NA", "--bounds", "born=1950-01-01:"],
    *["--bounds", "income=0:70", "--integer", "income"],
]


def test_a_plan_does_what_its_flags_do(invoke: Any) -> None:
    by_plan = impute(invoke, PLAN, name="a.csv")
    by_flags = impute(invoke, "", *FLAGS, name="b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != Path("in.csv").read_bytes()
    assert by_plan["plan"] == by_flags["plan"]
    assert by_plan["plan"]["constraints"] == {"income": {"bounds": [0, 70], "integer": True}, "born": {"bounds": "1950-01-01:"}}
    assert by_plan["method"] == "gaussian_em"


def test_a_plan_in_yaml_does_the_same(invoke: Any) -> None:
    pytest.importorskip("yaml")
    content = tomllib.loads(PLAN)
    content["constraints"]["born"] = {"bounds": ["1950-01-01", None]}
    yaml = json.dumps(content).replace('"1950-01-01"', "1950-01-01").replace(": ", ": ")
    impute(invoke, PLAN, name="a.csv")
    impute(invoke, yaml, name="b.csv", suffix="yaml")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_yaml_without_its_package_says_how_to_get_it(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    Path("plan.yaml").write_text("method: mean")
    said = invoke("impute", "in.csv", "-o", "out.csv", "--plan", "plan.yaml", code=1).stderr
    assert "needs the package 'yaml': pip install \"otimpute[yaml]\"" in said


def test_flags_win_column_by_column(invoke: Any) -> None:
    plan = impute(invoke, PLAN, "--bounds", "income=1:69", "--exclude", "key", "--method", "mean")["plan"]
    assert plan["constraints"]["income"] == {"bounds": [1, 69], "integer": True}
    assert plan["constraints"]["born"] == {"bounds": "1950-01-01:"}
    assert (plan["exclude"], plan["method"], plan["keep"]) == (["key"], "mean", {"job": ["NA"]})
    rows = Path("out.csv").read_text().splitlines()
    assert all(1 <= float(row.split(",")[4]) <= 69 for row in rows[1::3])


def test_settings_are_for_the_method_of_the_plan(invoke: Any) -> None:
    plan = 'method = "sinkhorn"\nexclude = ["key"]\n[settings]\nmax_steps = 20\nepsilon = 0.5'
    assert impute(invoke, plan, "--set", "max_steps=30")["plan"]["settings"] == {"max_steps": 30, "epsilon": 0.5}
    summary = impute(invoke, plan, "--method", "mean")
    assert "settings" not in summary["plan"]
    assert "plan.toml: the settings are for sinkhorn, not for --method mean" in summary["notes"]


def test_the_weights_column_is_not_imputed_and_not_used(invoke: Any) -> None:
    assert "age" not in [each["name"] for each in impute(invoke, 'weights = "age"\nmethod = "mean"')["columns"]]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ('exclud = ["key"]', "plan.toml, line 1: exclud is not known; did you mean 'exclude'?"),
        ('\n\nmethod = "sinkhron"', "plan.toml, line 3: method must be one of .*, got 'sinkhron'; did you mean 'sinkhorn'?"),
        ("time = 3", "plan.toml, line 1: time must be the name of a column, got 3"),
        ('groups = {a = "b"}', "plan.toml, line 1: groups must be the name of a column, or a list of columns, .*, got {a ="),
        ('exclude = ["kex"]', "line 1: exclude names a column 'kex', which is not in the table; did you mean 'key'? There are"),
        ("[constraints.age]\nbounds = [0, 1, 2]", "plan.toml, line 2: constraints.age.bounds must be a pair such as [0, 120]"),
        (
            '[constraints.age]\nbounds = "x:y"',
            "plan.toml, line 2: constraints.age.bounds must be low:high with numbers or dates",
        ),
        ("[constraints]\nage.integr = true", "plan.toml, line 2: constraints.age.integr is not known; did you mean 'integer'?"),
        ("[constraints.age]\ninteger = true\ntime = 'year'", "'time' is said of the whole table: move it above the first line"),
        (
            "[constraints]\n\nagee.integer = true",
            "line 3: constraints.agee names a column 'agee', which is not in the table; did",
        ),
        ("[constraints.job]\nbounds = [0, 1]", "plan.toml, line 2: constraints.job.bounds: "),
        ("[predictors]\nincome = 'age'", "line 2: predictors.income must be a list of columns"),
        ('[predictors]\nincome = ["aeg"]', "line 2: predictors.income names a column 'aeg'"),
        ("[settings]\nmax_step = 2\n", "plan.toml, line 2: settings.max_step: a parameter of auto must be one of .*"),
        ("[settings]\nrandom_state = 2\n", "line 2: settings.random_state has a place of its own; use --seed instead"),
        ('method = "sinkhorn"\n[settings]\ntol = "small"', "line 3: settings.tol must be a finite number >= 0, got 'small'"),
        ("a = 1\na = 2", "plan.toml, end of line 2: cannot overwrite a value"),
        ("a = [", "plan.toml, end of line 1: "),
        ("max_categories = 0", "plan.toml, line 1: max_categories must be a whole number >= 1, got 0"),
        ("na = true", "plan.toml, line 1: na must be a list of texts"),
        ('na = {jobb = ["x"]}', "plan.toml, line 1: na.jobb names a column 'jobb'"),
    ],
)
def test_mistakes_are_named_with_their_line(invoke: Any, plan: str, said: str) -> None:
    Path("plan.toml").write_text(plan)
    line = invoke("impute", "in.csv", "-o", "out.csv", "--plan", "plan.toml", code=1).stderr
    assert line.startswith("otimpute: plan.toml, ") and line.count("\n") == 1
    assert all(part in line for part in said.split(".*")), line
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("time: year\ntime: age", "plan.yaml, line 2: time is there twice; leave one out"),
        (
            "constraints:\n  age: {bound: [0, 1]}",
            "plan.yaml, line 2: constraints.age.bound is not known; did you mean 'bounds'?",
        ),
        (
            "constraints:\n  no: {integer: true}",
            "plan.yaml, line 2: constraints.no is not text in YAML; put it in quotes: 'no'",
        ),
        ("a: [1", "plan.yaml, line 1, column 6"),
        ("- a", "plan.yaml: a plan has keys and values"),
    ],
)
def test_mistakes_in_yaml_are_named_with_their_line(invoke: Any, plan: str, said: str) -> None:
    pytest.importorskip("yaml")
    Path("plan.yaml").write_text(plan)
    assert said in invoke("impute", "in.csv", "-o", "out.csv", "--plan", "plan.yaml", code=1).stderr


def test_errors_about_flags_are_not_blamed_on_the_plan(invoke: Any) -> None:
    Path("plan.toml").write_text("[constraints.job]\nbounds = [0, 1]")
    said = invoke("impute", "in.csv", "-o", "o.csv", "--plan", "plan.toml", "--bounds", "job=0:2", code=1).stderr
    assert said.startswith("otimpute: in.csv: ") and "plan.toml" not in said


def test_other_files_are_no_plans(invoke: Any) -> None:
    Path("plan.json").write_text("{}")
    said = invoke("impute", "in.csv", "-o", "o.csv", "--plan", "plan.json", code=1).stderr
    assert said == "otimpute: plan.json: a plan is a .toml or .yaml file; give it one of these extensions\n"
    assert "no.toml: no such file" in invoke("fit", "in.csv", "--model", "m", "--plan", "no.toml", code=1).stderr


def test_a_model_remembers_its_plan(invoke: Any) -> None:
    Path("plan.toml").write_text(PLAN)
    invoke("fit", "in.csv", "--model", "model", "--plan", "plan.toml", "-q")
    invoke("apply", "model", "in.csv", "-o", "out.csv", "-q")
    rows = [row.split(",") for row in Path("out.csv").read_text().splitlines()[1:]]
    assert all(float(row[4]) <= 70 and float(row[4]).is_integer() for k, row in enumerate(rows) if k % 3 == 0)


def test_a_draft_is_a_plan_that_changes_nothing(invoke: Any) -> None:
    assert "plan in plan.toml" in invoke("inspect", "in.csv", "--write-plan", "plan.toml").stdout
    assert tomllib.loads(Path("plan.toml").read_text()).keys() <= {
        *["settings", "constraints", "predictors", "derive", "applicable", "methods"]
    }
    options = ["-o", "a.csv", "-m", "gaussian_em", "-q"]
    invoke("impute", "in.csv", *options)
    invoke("impute", "in.csv", *options[2:], "-o", "b.csv", "--plan", "plan.toml")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_each_proposal_of_a_draft_is_accepted(invoke: Any) -> None:
    invoke("inspect", "in.csv", "--write-plan", "plan.toml", "-q")
    lines = Path("plan.toml").read_text().splitlines()
    proposals = [k for k, line in enumerate(lines) if re.match(r"#[a-z\"]", line)]
    proposed = [lines[k][1:].split(" = ")[0] for k in proposals]
    assert {"groups", "time", "only", "exclude", "income", "job"} <= set(proposed)
    assert 'groups = "person"' in "\n".join(lines) and '#time = "year"' in lines
    for k in proposals:
        Path("one.toml").write_text("\n".join([*lines[:k], lines[k][1:], *lines[k + 1 :]]))
        found = json.loads(invoke("inspect", "in.csv", "--plan", "one.toml", "--json").stdout)
        assert found["plan"], lines[k]


def test_a_draft_keeps_what_is_known_already(invoke: Any) -> None:
    Path("plan.toml").write_text(PLAN)
    shown = invoke("inspect", "in.csv", "--plan", "plan.toml", "--non-negative", "age", "--write-plan", "next.toml").stdout
    assert "otimpute impute in.csv -o in-imputed.csv --plan next.toml" in shown
    both = [json.loads(invoke("inspect", "in.csv", *options, "--json").stdout)["plan"] for options in (
        ["--plan", "plan.toml", "--non-negative", "age"], ["--plan", "next.toml"],
    )]  # fmt: skip
    assert both[0] == both[1]
    assert both[0]["constraints"]["age"] == {"non_negative": True}


def test_a_draft_replaces_nothing_unasked(invoke: Any) -> None:
    Path("plan.toml").write_text("")
    assert "'plan.toml' exists; give another name" in invoke("inspect", "in.csv", "--write-plan", "plan.toml", code=1).stderr
    invoke("inspect", "in.csv", "--write-plan", "plan.toml", "--force", "-q")
    said = invoke("inspect", "in.csv", "--write-plan", "plan.yaml", code=1).stderr
    assert "plan.yaml: plans are drafted as TOML" in said


def test_many_files_are_fitted_by_a_plan(invoke: Any) -> None:
    frame = read_file("in.csv").frame
    Path("parts").mkdir()
    for k in range(2):
        pq.write_table(frame.slice(30 * k, 30), f"parts/{k}.parquet")
    Path("plan.toml").write_text('method = "gaussian_em"\nexclude = ["key"]\n[constraints]\nincome.bounds = [0, 60]')
    summary = json.loads(invoke("fit", "parts/*.parquet", "--model", "model", "--plan", "plan.toml", "--json").stdout)
    assert summary["plan"]["constraints"] == {"income": {"bounds": [0, 60]}} and summary["method"] == "gaussian_em"
    invoke("apply", "model", "in.csv", "-o", "out.csv", "-q")
    rows = [row.split(",") for row in Path("out.csv").read_text().splitlines()[1:]]
    assert all(0 <= float(row[4]) <= 60 for row in rows[::3])
    said = invoke("fit", "parts/*.parquet", "--model", "m", "--weights", "age", code=1).stderr
    assert "--weights is for a single table; leave it out" in said
