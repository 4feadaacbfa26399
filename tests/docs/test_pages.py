"""The examples of the README and of every page run as printed, with what the page says to install for them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engines import need
from installation import Block, Outcome, run_blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md")]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
INSTALL = re.compile(r"[Tt]o run [^`:]*: `pip install ([^`]+)`")

RunPage = Callable[..., Outcome]


ENGINES = {
    "Ray Data": "ray",
    "Spark": "spark",
    "Dask": "dask",
}  # sections whose examples need an engine, and nothing before them


def examples(page: Path, section: str = "") -> Iterator[Block]:
    """The blocks of a page, each with all that the page has said to install up to there.

    Those of a section of an engine are blocks of their own, as if the rest of the page were not there.
    """
    text = page.read_text(encoding="utf-8")
    for name in ENGINES:
        found = re.search(rf"^### {name}$.*?(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
        if found and name == section:
            text = "\n" * text.count("\n", 0, found.start()) + found[0]
            break
        if found:
            text = text.replace(found[0], "\n" * found[0].count("\n"))
    for block in PYTHON.finditer(text):
        commands = INSTALL.findall(text[: block.start()])
        assert commands, (
            f'{page.name} must say what its examples need, such as: To run the examples: `pip install "otimpute[cli]"`.'
        )
        requirements = [re.sub(r"^\.", "otimpute", each) for command in commands for each in shlex.split(command)]
        line = text.count("\n", 0, block.start(1))
        yield Block("\n" * line + block[1], requirements, str(page))  # tracebacks show the line of the page


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPage:
    """Runs a page in an empty folder: what each block prints, and the values of expressions after the last one."""
    monkeypatch.chdir(tmp_path)
    return lambda page, section="", **values: run_blocks(examples(ROOT / page, section), tmp_path, values)


def assert_printed_as_shown(page: str, printed: str) -> None:
    """The page shows what its example prints; numbers, and so the order of experts, may differ between machines."""
    (shown,) = re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    first, experts, *rest = zip(*(re.sub(r"[\d.,]+", "#", text).splitlines() for text in (shown, printed)), strict=True)
    assert all(there == here for there, here in (first, *rest))
    assert sorted(experts[0].split()) == sorted(experts[1].split())


def test_readme(run_page: RunPage) -> None:
    page = run_page("README.md", bars="std.shape", filled="np.isfinite(X_new).all() and np.isfinite(X_imputed).all()")
    verdict, error, _, people, scores = page.printed
    assert_printed_as_shown("README.md", verdict)
    assert page.values == {"bars": [1, 13], "filled": True}
    assert "Imputation report" in Path("report.html").read_text(encoding="utf-8")
    assert 0 < float(error) < 1
    assert "2019-03-01" in people and "NaN" not in people and "NaT" not in people
    by_method = dict(line.split() for line in scores.splitlines())
    assert list(by_method) == ["SinkhornImputer", "ICEImputer", "KNNImputer", "MissForestImputer"]
    assert all(0.5 < float(score) < 1.2 for score in by_method.values())


def test_front_page(run_page: RunPage) -> None:
    assert "](images/report.png)](guide/report.md)" in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    page = run_page("docs/index.md", filled="X_new.shape", bars="std.shape")
    assert_printed_as_shown("docs/index.md", page.printed[0])
    assert page.values == {"filled": [1, 13], "bars": [1, 13]}


def test_choosing_a_method(run_page: RunPage) -> None:
    verdict, _, covered, spreads, experts, chosen, weighted, same, scores = run_page("docs/guide/choosing-a-method.md").printed
    assert verdict.startswith("On ")
    assert 80 <= int(covered.partition("%")[0]) <= 97
    truth, estimates, draws = ([float(part) for part in re.findall(r"\d+\.\d+", line)] for line in spreads.splitlines())
    assert truth[0] == 0 < estimates[0] < draws[0]
    assert estimates[1] < draws[1] < 1.1 * truth[1]
    assert experts == "['mean', 'gaussian_em', 'KNNImputer', 'stack']\n"
    weights, by_trees = chosen.splitlines()
    assert set(re.findall(r"'(\w+)'", weights)) <= {"gaussian_em", "knn"}
    trees, mean = (float(part) for part in re.findall(r"\d+\.\d+", by_trees))
    assert trees < mean
    assert weighted.startswith("On ") and 0 < float(weighted.splitlines()[1]) < 1
    assert same == "True True\n"
    errors = {line.split()[0]: float(line.split()[2]) for line in scores.splitlines()}
    assert min(errors, key=errors.__getitem__) == "SinkhornImputer" and max(errors, key=errors.__getitem__) == "MeanImputer"


def test_comparing_methods(run_page: RunPage) -> None:
    (printed,) = run_page("docs/guide/benchmark.md").printed
    scores = dict(line.split() for line in printed.splitlines())
    assert len(scores) == 2 and all(0 < float(score) < 1 for score in scores.values())


def test_checkpoints(run_page: RunPage) -> None:
    assert run_page("docs/guide/checkpoints.md").printed == ["as if never stopped: True\n"]
    assert not Path("fit.ckpt").exists()


def test_gpu(run_page: RunPage) -> None:
    assert run_page("docs/guide/gpu.md").printed == ["cpu\n"]


def test_large_tables(run_page: RunPage) -> None:
    summary, *printed = run_page("docs/guide/large-tables.md").printed
    assert summary.startswith("From all 6,000 rows: counts of values, ranges of numbers and dates, categories, mean and")
    assert printed[1:3] == ["6000 0\n", "3 files, 6000 rows\n"]


def test_mixed_tables(run_page: RunPage) -> None:
    page = run_page("docs/guide/mixed-tables.md", wrong="wrong.mean()", expected="expected.mean()", sums="chances.sum(axis=1)")
    kinds, same_types_and_full = page.printed[0].splitlines()
    assert "'energy': 'ordered', 'built': 'date/time', 'balcony': 'boolean'" in kinds
    assert same_types_and_full == "True 0"
    assert "null" not in page.printed[1]
    assert "'heating': 'category', 'built': 'date/time', 'balcony': 'boolean'" in page.printed[1]
    assert page.values["wrong"] < 0.2 and page.values["expected"] < 0.2
    assert all(abs(total - 1) < 1e-9 for total in page.values["sums"])


def test_panel_data(run_page: RunPage) -> None:
    plain, told = re.findall(r"RMSE ([0-9.]+)", run_page("docs/guide/panels.md").printed[0])
    assert float(told) < 0.85 * float(plain)


def test_model_files(run_page: RunPage) -> None:
    assert run_page("docs/guide/model-files.md").printed == ["True\n", "True\n"]


def test_models(run_page: RunPage) -> None:
    (cycles, *lines), completer = (printed.splitlines() for printed in run_page("docs/guide/models.md").printed)
    assert cycles.startswith("cycles ")
    assert [line.rsplit(maxsplit=1)[0] for line in lines + completer] == ["new rows", "completer"]
    assert all(float(line.rsplit(maxsplit=1)[1]) < 0.3 for line in lines + completer)


def test_report(run_page: RunPage) -> None:
    verdict, _, for_machines = run_page("docs/guide/report.md").printed
    assert len(verdict.splitlines()) == 5
    assert verdict.startswith("[good] Is everything filled in, and nothing else changed? All ")
    assert for_machines.startswith("Little's test ")
    assert "'caution'" in for_machines
    assert Path("wine.html").stat().st_size > 10_000


def test_how_sure(run_page: RunPage) -> None:
    page = run_page(
        "docs/guide/how-sure.md",
        covered="inside[missing].mean()",
        lights="[each.light for each in found.data.verdict]",
        slope="pooled.estimate[0]",
        errors="[np.sqrt(variance), np.sqrt(pooled.within[0]), pooled.std_error[0]]",
    )
    assert "Nothing was better than the mean (or the most frequent value) in column 2" in page.printed[1]
    assert 0.8 < page.values["covered"] < 0.99
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert set(page.values["lights"]) >= {"good", "caution"}
    assert abs(page.values["slope"] - 1) < 0.15
    assert page.values["errors"] == sorted(page.values["errors"])


def test_multiple_imputation(run_page: RunPage) -> None:
    page = run_page(
        "docs/guide/multiple-imputation.md",
        errors="[regression(table.dropna()).bse['bmi'], pooled.std_error[2], regression(complete).bse['bmi']]",
        long="long.shape",
        tips="found.tipping_point('bmi') is None",
    )
    dropped, pooled, complete = page.values["errors"]
    assert complete < pooled < dropped  # less is known than with everything, more than from complete rows alone
    assert page.values["long"] == [442 * 21, 7] and page.values["tips"]


def test_what_you_know(run_page: RunPage) -> None:
    page = run_page(
        "docs/guide/knowledge.md",
        empty="[int(filled['pregnancies'].isna().sum()), int((visits['sex'] == 'm').sum())]",
        obeyed="bool((visits_limited['bmi'].notna()).all())",
    )
    rules, errors, _, new_rows = page.printed
    assert rules.splitlines()[-2:] == ["True", "True"]
    assert page.values["empty"][0] == page.values["empty"][1]
    for line in errors.splitlines():
        with_rules, without = map(float, re.findall(r"\d+\.\d+", line))
        assert with_rules < 0.8 * without
    assert new_rows == "True\n"


def test_panels(run_page: RunPage) -> None:
    errors, _ = run_page("docs/guide/panels.md").printed
    without, with_groups = (float(line.split()[-1]) for line in errors.splitlines())
    assert with_groups < 0.7 * without


def test_new_rows(run_page: RunPage) -> None:
    alone, loaded, score, names = run_page("docs/guide/new-rows.md").printed
    assert alone == loaded == "True\n"
    assert float(score) > 0.7
    assert "missingindicator_x2" in names


def test_missing_why(run_page: RunPage) -> None:
    page = run_page(
        "docs/guide/missing-why.md",
        means="[income[~silent].mean(), imputed.mean(), income.mean(), shifted.mean()]",
    )
    assert page.values["means"] == sorted(page.values["means"])


def test_how_it_works(run_page: RunPage) -> None:
    page = run_page("docs/guide/how-it-works.md", off="np.abs(x - y).max()", n_steps="imputer.n_steps_")
    assert page.values["off"] < 0.01
    assert page.values["n_steps"] > 0


def test_speed_and_memory(run_page: RunPage) -> None:
    (printed,) = run_page("docs/guide/speed-and-memory.md").printed
    verdict, error = printed.splitlines()
    assert verdict.startswith("On ")
    assert 0 < float(error.split()[2]) < 0.5


def test_reproduce_the_paper(run_page: RunPage) -> None:
    (printed,) = run_page("docs/guide/reproduce-the-paper.md").printed
    lines = printed.splitlines()
    assert [line.split(":")[0] for line in lines] == ["as published", "our defaults"]
    assert all(0.4 < float(score) < 0.8 for line in lines for score in re.findall(r"0\.\d+", line))


def test_extend(run_page: RunPage) -> None:
    page = run_page("docs/guide/extend.md", missing="missing.mean(axis=0)")
    assert page.values["missing"][0] == 0 < page.values["missing"][1] < page.values["missing"][2]
    n_missing, weights = page.printed[-1].splitlines()
    assert n_missing == "0"
    assert weights.startswith("{'mean': ")


@pytest.mark.engines
@pytest.mark.parametrize("section", ENGINES)
def test_large_tables_on_engines(run_page: RunPage, section: str) -> None:
    need(ENGINES[section])
    printed = run_page("docs/guide/large-tables.md", section).printed
    assert printed[0].splitlines()[-1] == {"Ray Data": "2000", "Spark": "0", "Dask": "0"}[section]


def test_every_page_with_examples_is_run() -> None:
    run = set(re.findall(r'run_page\(\s*"([^"]+)"', Path(__file__).read_text(encoding="utf-8")))
    assert {page.relative_to(ROOT).as_posix() for page in PAGES if PYTHON.search(page.read_text(encoding="utf-8"))} == run
