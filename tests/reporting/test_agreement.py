"""The verdict of AutoImputer and the report are about the same hidden values, and say the same about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import otimpute
from otimpute import AutoImputer
from otimpute.auto._verdict import Verdict
from otimpute.estimator import Comparison, Finding, Rating, judge_column
from otimpute.reporting import ReportData, collect

RNG = np.random.default_rng


def with_holes(frame: pd.DataFrame, rate: float = 0.2, seed: int = 9) -> pd.DataFrame:
    return frame.mask(RNG(seed).random(frame.shape) < rate)


def good() -> pd.DataFrame:
    x = RNG(0).normal(size=300)
    noise = 0.1 * RNG(1).normal(size=(300, 3))
    frame = pd.DataFrame(x[:, None] * [1, -2, 3] + noise, columns=["a", "b", "c"])
    return with_holes(frame.assign(side=np.where(x > 0, "up", "down")))


def hopeless() -> pd.DataFrame:
    frame = pd.DataFrame(RNG(2).normal(size=(200, 3)), columns=["one", "two", "three"])
    return with_holes(frame.assign(label=RNG(3).choice(["p", "q", "r"], 200)))


def mixed() -> pd.DataFrame:
    frame = good().assign(alone=RNG(4).normal(size=300), weak=lambda told: told["a"].fillna(0) * 0.3 + RNG(5).normal(size=300))
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta((frame["a"].fillna(0) * 1000).round(), unit="h")
    frame["kind"] = RNG(6).choice(list("xyz"), 300)
    frame["rare"] = np.where(RNG(7).random(300) < 0.92, np.nan, frame["b"])
    frame["same"] = 7.0
    late = ["alone", "weak", "when", "kind", "same"]
    frame[late] = with_holes(frame[late], 0.25, 8)
    return frame


@pytest.fixture(scope="module", params=[good, hopeless, mixed], ids=lambda make: make.__name__)
def judged(request: pytest.FixtureRequest) -> tuple[AutoImputer, pd.DataFrame, ReportData]:
    table = request.param()
    imputer = AutoImputer(["gaussian_em", "kernel_ridge"], n_splits=3, random_state=0)
    filled = imputer.fit_transform(table)
    return imputer, table, collect(imputer, table, filled)


def test_lights_and_verdict_agree_column_by_column(judged: tuple[AutoImputer, pd.DataFrame, ReportData]) -> None:
    imputer, _, said = judged
    lights = {column.name: column.light for column in said.columns if column.n_missing}
    ours = {each.name: each for each in imputer.judgement_.columns}
    assert lights == {name: each.finding.rating for name, each in ours.items()}
    assert said.check is not None and said.check.filled_by == "trial"
    for column in said.check.columns:
        assert (column.finding, column.n_hidden) == (ours[column.name].finding, ours[column.name].n_hidden)


def test_they_agree_on_the_whole_table(judged: tuple[AutoImputer, pd.DataFrame, ReportData]) -> None:
    imputer, _, said = judged
    (better,) = [each for each in said.verdict if each.key == "better"]
    assert better.light is imputer.judgement_.rating
    assert said.check is not None
    for page, own in zip(said.check.overall, imputer.judgement_.overall, strict=True):
        assert (page.measure, page.n_hidden, page.finding) == (own.measure, own.n_hidden, own.finding)
        assert (page.own, page.simplest) == pytest.approx((own.own, own.simplest), rel=1e-9)


def test_the_tables_are_what_they_are_called() -> None:
    ratings = [AutoImputer(["gaussian_em"], random_state=0).fit(make()).judgement_.rating for make in (good, hopeless)]
    assert ratings == [Rating.GOOD, Rating.BAD]


def test_columns_without_a_clear_gain_are_named_in_words(judged: tuple[AutoImputer, pd.DataFrame, ReportData]) -> None:
    imputer, _, _ = judged
    lines = [line for line in imputer.verdict_.splitlines() if "better than the mean" in line]
    doubtful = (Finding.NO_BETTER, Finding.MAY_BE_CHANCE)
    assert bool(lines) == any(each.finding in doubtful for each in imputer.judgement_.columns)


def test_the_verdict_is_the_text_of_its_data(judged: tuple[AutoImputer, pd.DataFrame, ReportData], tmp_path: Path) -> None:
    imputer, _, said = judged
    assert type(imputer.verdict_) is str
    assert str(imputer.judgement_) == imputer.verdict_
    imputer.save(tmp_path / "model")
    again = otimpute.load(tmp_path / "model")
    assert isinstance(again.judgement_, Verdict)
    assert (again.judgement_, again.left_out_) == (imputer.judgement_, imputer.left_out_)
    told = json.loads(json.dumps(said.as_dict()))
    assert told["training"]["judgement"]["rating"] == imputer.judgement_.rating
    assert [each["finding"] for each in told["check"]["columns"]] == [each.finding for each in said.check.columns]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("compared", "is_label", "share_missing", "found"),
    [
        (Comparison(0.9, 1.0, 9, 8.0), False, 0.1, Finding.TOO_FEW),
        (Comparison(0.0, 0.0, 50, None), False, 0.1, Finding.EXACT),
        (Comparison(0.97, 1.0, 50, 8.0), False, 0.1, Finding.NO_BETTER),
        (Comparison(float("nan"), 1.0, 50, None), False, 0.1, Finding.NO_BETTER),
        (Comparison(0.8, 1.0, 50, 1.6), False, 0.1, Finding.MAY_BE_CHANCE),
        (Comparison(0.6, 0.9, 50, 5.0), True, 0.1, Finding.MOSTLY_WRONG),
        (Comparison(0.6, 0.9, 50, 5.0), False, 0.6, Finding.MOSTLY_IMPUTED),
        (Comparison(0.6, 0.9, 50, 5.0), False, 0.5, Finding.BETTER),
    ],
)
def test_what_is_found_about_a_column(compared: Comparison, is_label: bool, share_missing: float, found: Finding) -> None:
    assert judge_column(compared, is_label=is_label, share_missing=share_missing) is found
