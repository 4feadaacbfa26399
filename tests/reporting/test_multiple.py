"""Reports on several completed tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import otimpute
from otimpute import MultipleImputer
from otimpute.baselines import ChainedImputer, GaussianEMImputer
from otimpute.reporting import Report, ReportData, collect
from otimpute.reporting.plots import error_against_tables, observed_against_imputed, trace
from otimpute.reporting.render import render

M = 6


@pytest.fixture(scope="module")
def imputer(flats: pd.DataFrame) -> MultipleImputer:
    return MultipleImputer(m=M, random_state=0).fit(flats.drop(columns="remark"))


@pytest.fixture(scope="module")
def said(flats: pd.DataFrame, imputer: MultipleImputer) -> ReportData:
    return collect(imputer, flats.drop(columns="remark"), source="flats.csv")


def light(data: ReportData, key: str) -> Any:
    return next(each for each in data.verdict if each.key == key)


def test_the_report_says_what_the_diagnostics_say(imputer: MultipleImputer, said: ReportData) -> None:
    assert said.multiple is not None and said.multiple.n_tables == M and said.check is None
    found = imputer.diagnostics()
    for column, own in zip(said.multiple.columns, found.columns, strict=True):
        assert (column.name, column.n_missing, column.tables_needed) == (own.name, own.draws.shape[1], own.tables_needed)
        assert column.fmi == own.fmi and column.monte_carlo_error == own.monte_carlo_error
        assert column.matched is not None and own.matched is not None
        assert column.matched.difference == own.matched.difference and column.light == "good"
        assert dict(column.error_against_tables)[M] == pytest.approx(
            own.monte_carlo_error / own.pooled.std_error[own.uncertain]  # type: ignore[union-attr]
        )
        assert column.trace is not None and np.shape(column.trace.lines) == (M, 5)
    heating = next(column for column in said.multiple.columns if column.name == "heating")
    gas, oil = np.mean(found["heating"].of_draws, axis=0)
    assert heating.trace is not None and heating.trace.what == "share of gas less that of oil"
    assert np.mean([line[-1] for line in heating.trace.lines]) == pytest.approx(gas - oil)


def test_figures_of_columns_show_every_table(imputer: MultipleImputer, said: ReportData) -> None:
    own = imputer.diagnostics()["heating"]
    shown = next(column for column in said.columns if column.name == "heating")
    assert shown.shape is not None and np.allclose(shown.shape.tables, own.of_draws)
    rent = next(column for column in said.columns if column.name == "rent")
    picture = observed_against_imputed(rent)
    assert picture is not None
    assert sum(each.get("d", "").count("M") for each in picture.iter("path") if each.get("class") == "table-line") == M
    mean = next(each for each in rent.statistics if each.name == "mean")
    low, high = map(float, mean.tables.split(" to "))
    assert low <= float(mean.imputed) <= high


def test_the_page_has_a_section_on_several_tables_and_none_on_hidden_values(said: ReportData) -> None:
    page = render(said)
    assert 'id="multiple"' in page and 'id="check"' not in page and 'id="fit"' not in page
    assert "Draws over the rounds" in page and "Monte-Carlo error against the number of tables" in page
    assert "tables = imputer.fit_transform(X)" in page
    assert [each.key for each in said.verdict] == ["kept", "converged", "alike", "enough", "chance"]
    for each in said.verdict:
        assert each.answer.split(":")[0] in page.replace("\N{NO-BREAK SPACE}%", " %")
    assert json.loads(json.dumps(Report(said).as_dict()))["multiple"]["n_tables"] == M


def test_draws_that_are_wrong_are_named() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["x", "<i>y</i>"])
    X.loc[:60, "<i>y</i>"] = np.nan
    data = collect(MultipleImputer(m=3, delta={"<i>y</i>": "2 sd"}, random_state=0).fit(X), X)
    assert light(data, "alike").light == "caution" and "<i>y</i>" in light(data, "alike").answer
    assert data.columns[0].light == "caution" and "as delta intends" in data.columns[0].words
    assert "<i>y" not in render(data) and "&lt;i&gt;y" in render(data)


def test_few_tables_are_said_to_be_few() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    X[:80, 1] = np.nan
    data = collect(MultipleImputer(m=2, random_state=0).fit(X), X)
    assert light(data, "enough").light == "caution" and "tables_needed()" in light(data, "enough").answer


@pytest.mark.parametrize(
    ("base", "what"),
    [(GaussianEMImputer, "draws values at once"), (lambda: ChainedImputer(n_rounds=1), "one round only")],
)
def test_imputers_without_rounds_have_no_traces(base: Callable[[], Any], what: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    X[:15, 1] = np.nan
    data = collect(MultipleImputer(base(), m=3, random_state=0).fit(X), X)
    assert what in light(data, "converged").answer
    assert "table-line" in render(data)


def test_a_report_is_one_call_and_needs_the_table_that_was_fitted(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[::5, 0] = np.nan
    imputer = MultipleImputer(m=2, random_state=0).fit(X)
    made = otimpute.report(imputer, X, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == made.html
    with pytest.raises(ValueError, match="not the table that was fitted"):
        otimpute.report(imputer, X[::2] + 1)


def test_pictures_lie_inside_their_frames_and_have_a_finding(said: ReportData) -> None:
    assert said.multiple is not None
    for column in said.multiple.columns:
        assert column.trace is not None
        for picture in (trace(column.name, column.trace), error_against_tables(column, said.multiple)):
            assert all(child.text for child in picture[:2])
            _, _, width, height = map(float, picture.get("viewBox", "").split())
            for each in picture.iter():
                for place, end in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height)):
                    assert 0 <= float(each.get(place, 0)) <= end
