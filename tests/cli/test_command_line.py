"""The command ``otimpute``: what it shows, what it refuses, what it loads."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from otimpute import __version__
from otimpute.benchmark import Record, Store, Task
from otimpute.cli.app import app


def told(*arguments: str) -> str:
    """What a command says besides its result."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False).stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "otimpute.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of two data sets and two methods, one of whose tasks failed, one is flagged, one missing."""
    store = Store(tmp_path / "bench")
    tasks = [
        Task(dataset, "mcar", 0.3, method, method, seed)
        for dataset in ("iris", "wine")
        for method in ("mean", "knn")
        for seed in (0, 1)
    ]
    store.plan("mine", tasks)
    for i, task in enumerate(tasks[:-1]):
        scores = {"train": {"mae": 0.5 + 0.01 * i, "rmse": 0.7 + 0.01 * i}}
        store.write(Record(task, "ok", scores=scores, seconds={"fit": 0.1, "task": 0.2}, n=150, d=4))
    store.write(Record(tasks[0], "failed", "Traceback\n  [bold]ValueError[/]: no"))
    store.write(dataclasses.replace(store.read().records[tasks[2].key], flags=("train: fills each column with one number",)))
    return tmp_path / "bench"


@pytest.mark.parametrize("command", ["", "impute", "apply", "inspect", "score", "demo", "benchmark run"])
def test_help_and_version_load_no_heavy_library(command: str) -> None:
    program = (
        f"import sys\nsys.argv = ['otimpute', *{command.split()!r}, '--help']\nfrom otimpute.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'pandas', 'pyarrow', 'narwhals', 'torch', 'scipy', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Usage: otimpute" in result.stdout
    assert invoke("--version").strip() == f"otimpute {__version__}"


def test_status_counts_names_failures_and_flags(folder: Path) -> None:
    (folder / "records" / "alien.json").write_text("{}")
    shown = invoke("benchmark", "status", str(folder))
    row = next(line for line in shown.splitlines() if "all" in line)
    assert [cell.strip() for cell in row.split("│")[2:-1]] == ["6", "1", "0", "1", "1"]
    assert "failed: mean on iris, mcar-30, seed 0: [bold]ValueError[/]: no" in shown.replace("\n", " ").replace("  ", " ")
    assert "fills each column with one number" in shown
    assert "missing, by data set: wine (1)" in shown
    assert "ignored, not a valid record: alien.json" in shown


@pytest.mark.parametrize(("form", "mark"), [("text", "*"), ("markdown", "**"), ("csv", "iris,")])
def test_tables_come_in_three_forms(folder: Path, form: str, mark: str) -> None:
    shown = invoke("benchmark", "table", str(folder), "--score", "mae", "--format", form)
    assert "iris" in shown
    assert mark in shown


def test_an_unfinished_benchmark_says_so(folder: Path) -> None:
    assert told("benchmark", "table", str(folder)) == "unfinished: 1 of 8 tasks not done yet\n"


def test_a_part_or_a_score_that_is_not_there_is_explained(folder: Path, tmp_path: Path) -> None:
    assert "there are no test rows" in told("benchmark", "table", str(folder), "--part", "test")
    assert "no task has a finite 'wasserstein2'" in told("benchmark", "table", str(folder), "--score", "wasserstein2")
    Store(tmp_path / "new").plan("mine", [Task("iris", "mcar", 0.3, "mean", "mean", 0)])
    assert "no task has finished yet" in told("benchmark", "table", str(tmp_path / "new"))


def test_figures_are_drawn_beside_the_records(folder: Path) -> None:
    shown = [line for line in invoke("benchmark", "figures", str(folder)).split() if line.endswith(("svg", "png"))]
    assert str(folder / "figures" / "bars-mcar-30.svg") in shown
    assert all(Path(path).stat().st_size > 1000 for path in shown)


def test_tables_and_figures_of_some_methods(folder: Path, tmp_path: Path) -> None:
    shown = invoke("benchmark", "table", str(folder), "--methods", "mean", "--format", "csv")
    assert ",mean," in shown and ",knn," not in shown
    assert "unfinished" not in told("benchmark", "table", str(folder), "--methods", "mean")  # what is missing is knn's
    drawn = invoke("benchmark", "figures", str(folder), "--methods", "mean", "--out", str(tmp_path / "one"))
    assert "run-times.svg" in drawn and "ranks" not in drawn  # nothing to compare it with
    refused = told("benchmark", "figures", str(folder), "--methods", "mena")
    assert refused == "otimpute: method must be one of 'knn', 'mean', got 'mena'; did you mean 'mean'?\n"


def test_a_method_whose_package_is_not_installed_is_named_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    part = ["--methods", "mean,meta_sinkhorn", "--datasets", "iris", "--settings", "mcar-30", "--seeds", "1"]
    result = CliRunner().invoke(app, ["benchmark", "run", "paper", "--out", str(tmp_path), *part])
    assert result.exit_code == 1
    assert "1 task done, 0 before, of 2;" in result.output
    assert "MetaSinkhornImputer needs the package 'torch': pip install \"otimpute[torch]\"" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nosuch", "--out", "x"], "no suite 'nosuch': pass one of auto, oos, paper, runtime, smoke"),
        (["run", "smoke", "--out", "x", "--methods", "mena"], "method must be one of"),
        (["run", "smoke", "--out", "x", "--datasets", "isir"], "data set must be one of"),
        (["run", "smoke", "--out", "x", "--settings", "mcar-31"], "setting must be one of"),
        (["run", "smoke", "--out", "x", "--shard", "3/2"], "shard must be i/n with i from 1 to n, got 3/2"),
        (["run", "smoke", "--out", "x", "--shard", "half"], "--shard takes i/n, such as 1/4, got 'half'"),
        (["run", "smoke", "--out", "x", "--seeds", "few"], "--seeds takes how many"),
        (["run", "smoke", "--out", "x", "--seeds", "0"], "--seeds takes how many"),
        (["run", "smoke", "--out", "x", "--seeds", "3-1"], "--seeds takes how many"),
        (["run", "smoke", "--out", "x", "--methods", ","], "expected names separated by commas, got ','"),
        (["run", "smoke", "--out", "x", "--jobs", "0"], "jobs must be a whole number >= 1"),
        (["run", "smoke", "--out", "x", "--device", "gpu"], "device must be one of 'cpu', 'cuda'"),
        (["run", "smoke", "--out", "x", "--data", "nowhere"], "must be an existing folder"),
        (["status", "nowhere"], "no benchmark folder 'nowhere'"),
        (["table", "nowhere"], "no benchmark folder 'nowhere'"),
    ],
    ids=lambda value: " ".join(value[:1] + value[-2:]) if isinstance(value, list) else "",
)
def test_mistakes_end_in_a_line_not_in_a_traceback(tmp_path: Path, arguments: list[str], message: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["benchmark", *arguments], catch_exceptions=False)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    store = Store(tmp_path)
    task = Task("iris", "mcar", 0.3, "[/a] [bold]", "mean", 0)
    store.plan("mine", [task])
    store.write(Record(task, "failed", "[/b]"))
    shown = invoke("benchmark", "status", str(tmp_path))
    assert shown.count("[/a] [bold]") == 2
    assert "[/b]" in shown


def test_what_was_done_by_another_version_is_said(folder: Path) -> None:
    store = Store(folder)
    key, record = next(iter(store.read().records.items()))
    store.write(dataclasses.replace(record, versions={"otimpute": "0.0.1"}))
    assert key
    assert "records of different versions of otimpute: 0.0.1, unknown" in invoke("benchmark", "status", str(folder))


def test_names_that_are_completed_are_those_of_the_catalogue() -> None:
    from otimpute.catalogue import MECHANISMS, METHODS
    from otimpute.cli.experiment import _complete_mechanism
    from otimpute.cli.method import _complete_method

    assert [name for name, _ in _complete_method("")] == sorted(METHODS)
    assert [name for name, _ in _complete_mechanism("")] == list(MECHANISMS)


def test_shells_complete_methods_without_loading_them() -> None:
    program = (
        "import sys\nfrom otimpute.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert not {'numpy', 'sklearn'} & set(sys.modules)"
    )
    environment = os.environ | {
        "_OTIMPUTE_COMPLETE": "complete_bash",
        "COMP_WORDS": "otimpute impute in.csv --method mlp",
        "COMP_CWORD": "4",
    }
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert result.stderr == ""
    assert result.stdout.split() == ["mlp_rr", "mlp_rr_paper"]


def test_the_help_names_every_score() -> None:
    from otimpute.benchmark import SCORES
    from otimpute.cli.benchmark import _SCORES

    assert all(score in _SCORES for score in SCORES)


@pytest.mark.parametrize("absent", ["typer", "rich", "ot", "yaml"])
def test_what_is_not_installed_is_named_with_the_extra_that_brings_it(absent: str, tmp_path: Path) -> None:
    program = (
        f"import sys\nsys.modules[{absent!r}] = None\n"
        f"sys.argv = ['otimpute', 'benchmark', 'run', 'smoke', '--out', {str(tmp_path / 'out')!r}]\n"
        "from otimpute.cli import main\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("otimpute: ")
    assert 'pip install "otimpute[' in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_unknown_score_is_refused(folder: Path) -> None:
    assert "--score must be one of" in told("benchmark", "table", str(folder), "--score", "mse")


def test_a_small_run_from_the_shell(tmp_path: Path) -> None:
    arguments = ["benchmark", "run", "smoke", "--out", str(tmp_path), "--datasets", "iris", "--methods", "mean,knn"]
    first = run(*arguments, "--seeds", "1", "--settings", "mcar-30")
    assert first.returncode == 0, first.stderr
    assert "2 tasks done, 0 before, of 2;" in first.stdout
    assert "2 of 2 tasks" in first.stderr
    assert first.stderr.count("2 of 2 tasks") == 1
    again = run(*arguments, "--seeds", "0,1", "--settings", "mcar-30")
    assert "2 tasks done, 2 before, of 4;" in again.stdout
