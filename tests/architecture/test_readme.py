"""The README's examples run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_run_and_print_what_they_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # they write files
    first, second, *others = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, object] = {}
    exec(compile(first, "README.md", "exec"), scope)
    assert capsys.readouterr().out.startswith("On ")
    assert np.shape(scope["X_new"]) == np.shape(scope["std"]) == (1, 13)
    assert "Imputation report" in Path("report.html").read_text(encoding="utf-8")
    exec(compile(second, "README.md", "exec"), scope)
    assert 0 < float(capsys.readouterr().out) < 1
    assert np.isfinite(scope["X_new"]).all(axis=None)
    for example in others:  # each goes on from the ones before
        exec(compile(example, "README.md", "exec"), scope)
    printed = capsys.readouterr().out.splitlines()
    people, scores = printed[:-4], dict(line.split() for line in printed[-4:])
    assert "NaN" not in "".join(people)
    assert "NaT" not in "".join(people)
    assert list(scores) == ["SinkhornImputer", "ICEImputer", "KNNImputer", "MissForestImputer"]
    assert all(0.5 < float(score) < 1.2 for score in scores.values())


def test_the_example_of_the_benchmark_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(
        r"```python\n(.*?)```", (README.parent / "docs/benchmark.md").read_text(encoding="utf-8"), re.DOTALL
    )
    exec(compile(example, "benchmark.md", "exec"), {})
    scores = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert all(0 < float(score) < 1 for score in scores.values())


def test_the_examples_of_the_guide_to_models_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs the extra torch")
    page = (README.parent / "docs/models.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "models.md", "exec"), scope)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(maxsplit=1)[0] for line in lines[1:]] == ["new rows", "completer"]
    assert all(float(line.rsplit(maxsplit=1)[1]) < 0.3 for line in lines[1:])


def test_the_examples_of_the_guide_to_model_files_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs the extra torch")
    page = (README.parent / "docs/model-files.md").read_text(encoding="utf-8")
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "model-files.md", "exec"), {})
    assert capsys.readouterr().out.split() == ["True", "True"]


def test_the_examples_of_the_guide_to_mixed_tables_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (README.parent / "docs/mixed-tables.md").read_text(encoding="utf-8")
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "mixed-tables.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "null" not in printed
    assert "'heating': 'category', 'built': 'date/time', 'balcony': 'boolean'" in printed


def test_the_examples_of_the_guide_to_the_automatic_imputer_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (README.parent / "docs/auto.md").read_text(encoding="utf-8")
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "auto.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("On ")
    inside = re.search(r"(\d+)% of the true values", printed)
    assert inside and 80 <= int(inside[1]) <= 97
    (spreads,) = re.findall(r"^[\d.]+ [\d.]+ [\d.]+$", printed, re.MULTILINE)
    true_spread, of_values, of_draws = map(float, spreads.split())
    assert of_values < of_draws < 1.1 * true_spread
    *_, experts, same = printed.splitlines()
    assert experts == "['mean', 'gaussian', 'KNNImputer', 'stack']"
    assert same == "True True"


def test_the_examples_of_the_guide_to_reports_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # it writes a page
    page = (README.parent / "docs/report.md").read_text(encoding="utf-8")
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "report.md", "exec"), {})
    *verdict, mcar, lights = capsys.readouterr().out.splitlines()
    assert len(verdict) == 5 and verdict[0].startswith("[good] Is everything filled in, and nothing else changed? All ")
    assert mcar.startswith("Little's test ")
    assert "'caution'" in lights
    assert Path("wine.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/auto.md",
        "docs/command-line.md",
        "docs/mixed-tables.md",
        "docs/benchmark.md",
        "docs/models.md",
        "docs/model-files.md",
        "docs/report.md",
        "docs/results/README.md",
        "docs/results/claims.md",
    ],
)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    path = README.parent / page
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []
