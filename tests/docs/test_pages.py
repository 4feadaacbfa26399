"""The examples of the guide run as printed, and every page can be found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "guide"
Printed = list[str]


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the blocks of a page, each going on from those before; what they leave, and what they print."""

    def run(name: str) -> tuple[dict[str, Any], Printed]:
        monkeypatch.chdir(tmp_path)
        scope: dict[str, Any] = {}
        for block in re.findall(r"```python\n(.*?)```", (GUIDE / name).read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, name, "exec"), scope)
        return scope, capsys.readouterr().out.splitlines()

    return run


def test_the_front_page(run_page: Any) -> None:
    assert "](images/report.png)](report.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
    scope, printed = run_page("../index.md")
    assert printed[0].startswith("On ")
    assert scope["X_new"].shape == scope["std"].shape == (1, 13)


def test_which_method(run_page: Any) -> None:
    scope, printed = run_page("which-method.md")
    assert printed[0].startswith("On ")
    X, guesses, drawn, missing = (scope[name][:, 1] for name in ("X", "X_imputed", "drawn", "missing"))
    assert guesses[missing].std() < drawn[missing].std()
    assert np.abs(guesses - X).mean() < np.abs(drawn - X).mean()
    errors = {line.split()[0]: float(line.split()[2]) for line in printed[-4:]}
    assert min(errors, key=errors.get) == "SinkhornImputer" and max(errors, key=errors.get) == "MeanImputer"


def test_how_sure(run_page: Any) -> None:
    pytest.importorskip("jinja2", reason="needs the extra report")
    scope, printed = run_page("how-sure.md")
    assert "Nothing was better than the mean (or the most frequent value) in 2" in "".join(printed)
    inside, missing = scope["inside"], scope["missing"]
    assert 0.8 < inside[missing].mean() < 0.99
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {each.light for each in scope["found"].data.verdict} >= {"good", "caution"}
    assert abs(scope["pooled"] - 1) < 0.15
    assert scope["error"] > np.sqrt(scope["within"]) > np.sqrt(scope["variance"])


def test_new_rows(run_page: Any) -> None:
    _, printed = run_page("new-rows.md")
    assert printed[:2] == ["True", "True"]
    assert float(printed[2]) > 0.7
    assert "missingindicator_x2" in printed[-1]


def test_mixed_columns(run_page: Any) -> None:
    pytest.importorskip("pandas", reason="needs the extra bench")
    scope, printed = run_page("mixed-columns.md")
    assert "'energy': 'ordered', 'built': 'date/time', 'balcony': 'boolean'" in printed[0]
    assert printed[1] == "True 0"
    assert scope["right"].mean() > 0.8


def test_missing_why(run_page: Any) -> None:
    scope, _ = run_page("missing-why.md")
    income, silent, imputed = scope["income"], scope["silent"], scope["imputed"]
    assert income[~silent].mean() < imputed.mean() < income.mean() < scope["shifted"].mean()


def test_how_it_works(run_page: Any) -> None:
    scope, _ = run_page("how-it-works.md")
    assert np.abs(scope["x"] - scope["y"]).max() < 0.01
    assert scope["imputer"].n_steps_ > 0


def test_speed_and_memory(run_page: Any) -> None:
    _, printed = run_page("speed-and-memory.md")
    assert printed[0].startswith("On ")
    assert 0 < float(printed[1].split()[2]) < 0.5


def test_reproduce_the_paper(run_page: Any) -> None:
    _, printed = run_page("reproduce-the-paper.md")
    assert [line.split(":")[0] for line in printed] == ["as published", "our defaults"]
    assert all(0.4 < float(score) < 0.8 for line in printed for score in re.findall(r"0\.\d+", line))


def test_extend(run_page: Any) -> None:
    pytest.importorskip("torch", reason="needs the extra torch")
    scope, printed = run_page("extend.md")
    assert scope["missing"].mean(axis=0)[0] == 0 < scope["missing"].mean(axis=0)[1] < scope["missing"].mean(axis=0)[2]
    assert printed[-1] == "0"


def test_every_page_of_the_guide_is_run() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert {page.stem for page in GUIDE.glob("*.md")} - {"index"} <= tested


PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("[a-z]*/*.md")])
PAGES = [page for page in PAGES if page.parent.name not in ("auto_examples", "_build", "_api")]


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [entry.rpartition("<")[2].rstrip(">") for entry in entries]
            listed |= {found.resolve() for name in names for found in (page.parent).glob(f"{name}.md")}
    assert [str(page.relative_to(DOCS)) for page in PAGES if page not in listed] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
