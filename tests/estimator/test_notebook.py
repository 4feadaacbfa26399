"""What notebooks show: cards of fitted imputers, and progress."""

from __future__ import annotations

import copy
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from every_imputer import IMPUTERS, few_experts, grouped_table
from otimpute import AutoImputer, RoundRobinImputer, SinkhornImputer, load
from otimpute.baselines import MeanImputer
from otimpute.estimator import notebook
from otimpute.fitting import FitProgress, FitSummary, NotebookBar, in_notebook, notebook_bar, progress_bar

CARD, DIAGRAM = '<div class="otimpute-card">', "sk-container-id"
TIME = r"[\d.]+ \w+"  # however long it took


def shown(estimator: Any) -> str:
    html: str = estimator._repr_mimebundle_()["text/html"]
    assert estimator._repr_html_().count(CARD) == html.count(CARD)  # for those who do not know of bundles
    return html


def words(card: Element) -> str:
    """The text of a card, its style left out."""
    return " ".join(" ".join(text for part in card if part.tag != "style" for text in part.itertext()).split())


def card_of(imputer: Any) -> str:
    return words(notebook._card(imputer))


def without_style(imputer: Any) -> str:
    return notebook.fit_card(imputer).partition("</style>")[2]


class Tags(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


@pytest.fixture(scope="module")
def X() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 1)) + 0.3 * rng.normal(size=(120, 4))
    values[:60, 0] = values[60:72, 1] = values[72:73, 3] = np.nan
    return pd.DataFrame(values, columns=["half", "tenth", "whole", "one"])


@pytest.fixture(scope="module")
def auto(X: pd.DataFrame) -> AutoImputer:
    return AutoImputer(experts=few_experts(), n_splits=1, random_state=0).fit(X)


@pytest.fixture(scope="module")
def sinkhorn(X: pd.DataFrame) -> SinkhornImputer:
    return SinkhornImputer(max_steps=300, tol=0, validation_fraction=0.1, random_state=0).fit(X)


@pytest.mark.parametrize("name", IMPUTERS)
def test_a_fitted_imputer_shows_a_card_above_the_diagram_of_scikit_learn(name: str) -> None:
    imputer = IMPUTERS[name]()
    assert CARD not in shown(imputer)
    assert DIAGRAM in shown(imputer)
    imputer.fit(pd.DataFrame(grouped_table()[1]))
    html = shown(imputer)
    assert html.index(CARD) < html.index(DIAGRAM)
    text = card_of(imputer)
    assert text.startswith(f"{type(imputer).__name__} fitted in ")
    assert "90 rows × 6 columns, " in text
    assert "Missing values by column" in text
    assert "otimpute.report(imputer, X)" in text


def test_a_card_says_what_was_missing_worst_columns_first(sinkhorn: SinkhornImputer) -> None:
    text = card_of(sinkhorn)
    assert "120 rows × 4 columns, 73 missing values (15 %) in 3 columns" in text
    assert "Missing values by column half 50 % tenth 10 % one <1 % Fit" in text


def test_only_the_worst_columns_are_named() -> None:
    X = np.eye(20, 9)
    X[np.triu_indices(9)] = np.nan
    text = card_of(MeanImputer().fit(X))
    assert "column 8 45 % column 7 40 % column 6 35 % column 5 30 % column 4 25 % and 4 more with fewer" in text


def test_nothing_missing_is_said_and_not_drawn() -> None:
    text = card_of(MeanImputer().fit(np.eye(3)))
    assert "3 rows × 3 columns, nothing missing" in text
    assert "Missing values by column" not in text


def test_a_card_says_how_the_fit_ended_and_how_far_off_hidden_values_were(sinkhorn: SinkhornImputer) -> None:
    text = card_of(sinkhorn)
    assert "Imputed values had not quite settled after 300 steps, the most that were allowed." in text
    error = sinkhorn.history_["validation_mae"][-1]
    assert f"off by {error:.3g} standard deviations on average" in text
    assert "root mean square error on hidden values, from" in text
    assert "otimpute-doubt" in without_style(sinkhorn)


def test_the_error_is_that_of_the_models_that_were_kept(X: pd.DataFrame) -> None:
    history = {"cycle": [0, 1, 2, 3], "validation_mae": [0.9, 0.5, 0.7, 0.8]}
    assert FitSummary("cycle", history=history, best_step=1).hidden_error == 0.5
    assert FitSummary("cycle", history=history).hidden_error == 0.8
    assert FitSummary().hidden_error is None
    imputer = RoundRobinImputer(max_cycles=2, n_updates=3, validation_fraction=0.1, scale=False, random_state=0).fit(X)
    assert f"{imputer.history_['validation_mae'][imputer.best_cycle_]:.3g} units of the table" in card_of(imputer)


@pytest.mark.parametrize(
    ("summary", "ended"),
    [
        (FitSummary(converged=True, n_steps=1), "Imputed values had settled after 1 round."),
        (FitSummary(converged=True, stop_reason="nothing to train"), "There was nothing to train."),
        (FitSummary(converged=False, stop_reason="interrupted"), "The fit was stopped by hand; more time may improve it."),
        (FitSummary(n_steps=3), ""),
    ],
)
def test_the_end_of_a_fit_in_words(summary: FitSummary, ended: str) -> None:
    assert summary.ended == ended


def test_a_curve_that_hardly_changes_is_flat() -> None:
    def heights(values: list[float]) -> list[float]:
        picture, caption = notebook._curve(SimpleNamespace(fit_summary_=FitSummary(history={"movement": values})))
        assert caption.text == picture.get("aria-label")
        return [float(point.partition(",")[2]) for point in picture[0].get("points", "").split()]

    assert heights([float("nan"), 3.0, 2.0, 1.0]) == [2, 20, 38]  # from the top
    assert np.ptp(heights([1.0, 0.99, 1.0])) == pytest.approx(1.8)
    assert heights([0.0, 0.0, 0.0]) == [20, 20, 20]
    assert not list(notebook._curve(SimpleNamespace(fit_summary_=FitSummary(history={"movement": [1.0, 2.0]}))))


def test_an_automatic_imputer_shows_its_verdict_and_whom_it_trusts(auto: AutoImputer) -> None:
    text = card_of(auto)
    assert all(line in text for line in auto.verdict_.splitlines())
    means = {
        expert: np.mean([auto.weights_[name][expert] for name in ("half", "tenth", "one")]) for expert in auto.weights_["one"]
    }
    best = max(means, key=lambda expert: means[expert])
    assert f"over incomplete columns {best} {100 * means[best]:.0f} %" in text


def test_settings_are_those_that_were_changed(sinkhorn: SinkhornImputer, X: pd.DataFrame) -> None:
    assert "Settings max_steps=300 random_state=0 tol=0 validation_fraction=0.1 Next steps" in card_of(sinkhorn)
    assert "Settings all defaults Next steps" in card_of(MeanImputer().fit(X))
    long = MeanImputer(constraints={name: {"bounds": (-1000.0, 1000.0)} for name in X})
    assert re.search(r"Settings constraints=\{'half': \{'bounds'.{40,60}… Next steps", card_of(long.fit(X)))


def test_names_cannot_leave_their_place() -> None:
    hostile = ["</style><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b\x00", "x" * 10_000]
    X = pd.DataFrame(np.eye(8, 4), columns=hostile).where(lambda frame: frame < 1)
    html = without_style(MeanImputer(constraints={hostile[0]: {"bounds": (0, 1)}}).fit(X))
    read = Tags()
    read.feed(html)
    assert read.tags == {"div", "b", "span", "code"}
    assert read.attributes == {"class", "title", "style"}
    assert set(hostile[:2]) < set(read.texts)
    assert "&lt;b\N{REPLACEMENT CHARACTER}" in read.texts
    assert len(html) < 10_000


def test_an_imputer_from_a_file_shows_what_the_file_knows(sinkhorn: SinkhornImputer, tmp_path: Path) -> None:
    sinkhorn.save(tmp_path / "model.otimpute")
    loaded = load(tmp_path / "model.otimpute")
    assert CARD in shown(loaded)
    assert card_of(loaded) == re.sub(f"fitted in {TIME}", "fitted", card_of(sinkhorn))


def test_pipelines_look_as_before(X: pd.DataFrame) -> None:
    html = shown(make_pipeline(MeanImputer(), Ridge()).fit(X, np.arange(len(X))))
    assert CARD not in html
    assert "MeanImputer" in html


def test_whoever_wants_text_gets_text(sinkhorn: SinkhornImputer) -> None:
    with config_context(display="text"):
        assert list(sinkhorn._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(sinkhorn, "_repr_html_")


def test_a_fit_that_failed_shows_no_card(X: pd.DataFrame) -> None:
    imputer = MeanImputer().fit(X)
    with pytest.raises(ValueError):
        imputer.fit(X[:0])
    assert CARD not in shown(imputer)


@pytest.mark.parametrize("imputer", ["auto", "sinkhorn"])
def test_whatever_is_lacking_something_is_shown(imputer: str, request: pytest.FixtureRequest) -> None:
    whole = request.getfixturevalue(imputer)
    for name in vars(whole).keys() - whole.get_params(deep=False).keys():
        lacking = copy.copy(whole)
        delattr(lacking, name)
        assert DIAGRAM in shown(lacking)


class Outputs:
    """A kernel as far as outputs go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bundles: list[dict[str, str]] = []
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython = lambda: SimpleNamespace(kernel=self)  # type: ignore[attr-defined]
        display.display = self.display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setattr(notebook_bar, "_SECONDS_BETWEEN", 0)

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Outputs:
        assert raw and display_id and not self.bundles
        self.bundles.append(bundle)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.bundles.append(bundle)


def test_the_bar_moves_and_leaves_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_notebook()
    outputs = Outputs(monkeypatch)
    assert in_notebook()
    with progress_bar("A <b> fit", 1) as (show,):
        assert not show(FitProgress(1000, 4000, 1.0, {"loss": []}))  # a true answer would stop the fit
        assert not show(FitProgress(3000, 4000, 41.0, {"loss": [0.5, 0.25]}))
    first, second, third, last = outputs.bundles
    assert "<progress></progress> starting" in first["text/html"]
    assert '<progress max="4000" value="1000"></progress> 1,000 of 4,000 steps</div>' in second["text/html"]
    assert "A &lt;b&gt; fit" in third["text/html"]
    assert third["text/plain"] == "A <b> fit: 3,000 of 4,000 steps, divergence 0.25, at most about 20 s left"
    assert list(last) == ["text/plain"]
    assert re.fullmatch(rf"A <b> fit: finished after 3,000 steps in {TIME}, divergence 0.25", last["text/plain"])


def test_a_fit_that_was_stopped_says_by_what(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = Outputs(monkeypatch)
    with progress_bar("fit", 1) as bar:
        bar[0](FitProgress(5, 9, 1.0, {"loss": []}))
        bar.ended("max_seconds")
    assert outputs.bundles[-1]["text/plain"].startswith("fit: stopped by max_seconds after 5 steps in ")


def test_a_download_of_unknown_size_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = Outputs(monkeypatch)
    with NotebookBar("iris", "kB", per_unit=1000) as bar:
        bar.show(12_345, None)
    *lines, last = [bundle["text/plain"] for bundle in outputs.bundles]
    assert lines == ["iris: starting", "iris: 12 kB"]
    assert re.fullmatch(f"iris: 12 kB in {TIME}", last)


def test_updates_that_follow_too_soon_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = Outputs(monkeypatch)
    monkeypatch.setattr(notebook_bar, "_SECONDS_BETWEEN", 1000)
    with progress_bar("fit", 1) as (show,):
        for step in range(100):
            show(FitProgress(step, 100, 0.0, {"loss": []}))
    assert [bundle["text/plain"].partition(" in ")[0] for bundle in outputs.bundles[1:]] == ["fit: finished after 99 steps"]


CELLS = {
    "fit": """
        import numpy as np
        from otimpute import AutoImputer, SinkhornImputer
        X = np.random.default_rng(0).normal(size=(200, 3))
        X[:50, 0] = np.nan
        imputer = SinkhornImputer(max_steps=3000, tol=0, random_state=0, verbose=1)
        X_imputed = imputer.fit_transform(X)
    """,
    "show": "imputer",
    "auto": """AutoImputer(["gaussian_em"], n_splits=2, random_state=0, verbose=1).fit(X).verdict_[:2]""",
    "fail": """imputer.set_params(callbacks=lambda progress: 1 / 0).fit(X)""",
    "fetch": """
        from otimpute.datasets.fetch import _bar
        with _bar("iris", True) as report:
            report(4567, 5000)
    """,
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What the cells leave in a notebook that a real kernel has run."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(re.sub("(?m)^ {8}", "", source).strip()) for source in CELLS.values()]
    cells[list(CELLS).index("fail")].metadata["tags"] = ["raises-exception"]
    book = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(variable, str(tmp_path_factory.mktemp(variable)))
        nbclient.NotebookClient(book, timeout=900, kernel_name="python3").execute()
    return dict(zip(CELLS, (cell.outputs for cell in book.cells), strict=True))


def test_in_a_kernel_progress_leaves_one_line(outputs: dict[str, list[Any]]) -> None:
    (line,) = outputs["fit"]
    assert re.fullmatch(
        rf"Sinkhorn imputation: finished after 3,000 steps in {TIME}, divergence 0\.\d+", line["data"].pop("text/plain")
    )
    assert not line["data"]
    line, result = outputs["auto"]
    assert re.fullmatch(rf"Comparing methods: finished after \d+ steps in {TIME}", line["data"]["text/plain"])
    assert result["data"]["text/plain"] == "'On'"
    (line,) = outputs["fetch"]
    assert re.fullmatch(f"iris: 4 kB in {TIME}", line["data"]["text/plain"])


def test_in_a_kernel_a_fit_that_fails_leaves_no_bar(outputs: dict[str, list[Any]]) -> None:
    line, error = outputs["fail"]
    assert re.match(r"Sinkhorn imputation: stopped by an error after \d+ steps in ", line["data"]["text/plain"])
    assert "text/html" not in line["data"]
    assert error["ename"] == "ZeroDivisionError"


def test_in_a_kernel_a_fitted_imputer_shows_its_card(outputs: dict[str, list[Any]]) -> None:
    (result,) = outputs["show"]
    assert result["data"]["text/plain"].startswith("SinkhornImputer(")
    assert CARD in result["data"]["text/html"]
    assert DIAGRAM in result["data"]["text/html"]
