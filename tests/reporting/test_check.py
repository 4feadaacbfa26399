"""What the check on hidden values judges, by which rows, and how its numbers are averaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import otimpute
from otimpute import AutoImputer
from otimpute.baselines import GaussianEMImputer, MeanImputer
from otimpute.estimator import BaseImputer, HiddenValues, TrainingRows
from otimpute.reporting import collect
from otimpute.reporting.data import HiddenCheck

N_COLUMNS = 8


def related_rows(n_rows: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Rows of two hidden causes, a fifth of the values missing."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).normal(size=(2, N_COLUMNS))
    X = rng.normal(size=(n_rows, 2)) @ loadings + 0.3 * rng.normal(size=(n_rows, N_COLUMNS)) + shift
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


def checked(imputer: BaseImputer, X: Any) -> HiddenCheck:
    check = collect(imputer, X).check
    assert check is not None
    return check


def error_of(check: HiddenCheck, method: str) -> float:
    found = next(each.error for each in check.methods if each.method == method)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def fitted() -> GaussianEMImputer:
    return GaussianEMImputer().fit(related_rows(500, 0))


def test_a_model_is_judged_as_it_is_on_rows_it_was_not_fitted_to(
    fitted: GaussianEMImputer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "model.otimpute")
    model = otimpute.load(tmp_path / "model.otimpute")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the model was fitted again")

    monkeypatch.setattr(GaussianEMImputer, "fit_cells", refuse)
    check = checked(model, related_rows(30, 1))
    assert check.filled_by == "model"
    assert check.n_rows == 30
    assert error_of(check, "GaussianEMImputer") < 0.5 * error_of(check, "column mean")
    assert "not fitted on; it imputed them without being refitted" in check.words[0]


def test_the_table_of_the_fit_is_judged_by_a_copy(fitted: GaussianEMImputer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.otimpute")
    for imputer in (fitted, otimpute.load(tmp_path / "model.otimpute")):
        for X in (related_rows(500, 0), related_rows(500, 0)[::-1], related_rows(500, 0)[:80]):
            check = checked(imputer, X)
            assert check.filled_by == "copy"
            assert "a copy of the imputer with the same settings was fitted" in check.words[0]


def test_rows_of_the_training_are_left_out_of_the_check_of_a_model(fitted: GaussianEMImputer) -> None:
    check = checked(fitted, np.vstack([related_rows(500, 0)[:100], related_rows(60, 1)]))
    assert (check.filled_by, check.n_rows) == ("model", 60)
    assert "Rows that were in training, 62 % of the table, are excluded" in check.words[0]


def test_the_mean_is_that_of_the_training(fitted: GaussianEMImputer) -> None:
    near, far = (checked(fitted, related_rows(200, 1, shift)) for shift in (0.0, 5.0))
    assert error_of(far, "column mean") > error_of(near, "column mean") + 2


def test_new_rows_of_few_categories_are_not_taken_for_old_ones() -> None:
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame({name: rng.choice(["x", "y", None], n) for name in "abc"}) for n in (300, 100)
    ]  # fmt: skip
    assert checked(MeanImputer().fit(tables[0]), tables[1]).filled_by == "model"


def test_long_tables_are_recognised_by_some_of_their_rows() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 3))
    nothing = np.zeros(X.shape, dtype=bool)
    known = TrainingRows.of(X, nothing)
    assert len(known.keys) < len(X)
    assert known.are_all_of(X, nothing)
    assert not known.are_all_of(X[::-1], nothing)
    half_new = np.vstack([X[:20_000], X[:20_000] + 1])
    seen, share = known.among(half_new, np.zeros(half_new.shape, dtype=bool))
    assert share == pytest.approx(0.5, abs=0.02)
    assert not seen[20_000:].any()


def test_headlines_count_columns_by_their_holes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    X = np.column_stack([x, x + 0.01 * rng.normal(size=600), rng.normal(size=600)])
    X[:10, 1] = np.nan  # easy, few holes
    X[rng.random(600) < 0.5, 2] = np.nan  # hopeless, many
    check = checked(GaussianEMImputer().fit(X), X)
    easy, hopeless = (each.scores["GaussianEMImputer"] / (each.spread or 1) for each in check.columns)
    n_missing = np.isnan(X).sum(axis=0)[1:]
    expected = np.average([easy, hopeless], weights=n_missing)
    assert easy < 0.1 < 0.7 < hopeless
    assert error_of(check, "GaussianEMImputer") == pytest.approx(expected)


def test_booleans_are_right_or_wrong(flats: pd.DataFrame) -> None:
    X = flats[["size", "balcony"]]
    for imputer in (GaussianEMImputer().fit(X), GaussianEMImputer(integers="float").fit(X)):
        (column,) = [each for each in checked(imputer, X).columns if each.name == "balcony"]
        assert (column.measure, column.spread) == ("wrong", None)


def test_an_imputer_that_hid_values_itself_is_judged_by_those() -> None:
    X = related_rows(120, 0)
    X[:, 7] = np.nan_to_num(X[:, 7])  # complete, so nothing was filled in there
    spread = np.nanstd(X, axis=0)
    imputer = AutoImputer(["gaussian_em"], n_splits=2, random_state=0).fit(X)
    row, column = np.nonzero(~np.isnan(X))
    some = np.sort(np.random.default_rng(0).choice(len(row), 300, replace=False))
    row, column, truth = row[some], column[some], X[row[some], column[some]]
    far = np.arange(300) % 2 == 0
    imputer.hidden_values_ = HiddenValues(
        rows=np.unique(row),
        row=row,
        column=column,
        split=np.arange(300) % 6,
        truth=truth,
        guess=truth + np.where(far, 0.3, 0.1) * spread[column],
        simplest=truth + spread[column],
        stands_for=np.where(far, 0.5, 1.5),
        spread=spread,
    )
    check = checked(imputer, X)
    assert check.filled_by == "trial"
    assert [each.name for each in check.columns] == list("0123456")
    assert check.n_hidden == np.count_nonzero(column < 7)
    weight = np.where(far, 0.5, 1.5)
    errors = [np.average(np.where(far, 0.3, 0.1)[column == k], weights=weight[column == k]) for k in range(7)]
    expected = np.average(errors, weights=np.isnan(X).sum(axis=0)[:7])
    assert error_of(check, "AutoImputer") == pytest.approx(expected)
    assert error_of(check, "AutoImputer") < error_of(check, "KNN") < error_of(check, "column mean")
    assert "were hidden during the fit" in check.words[0]
    assert checked(imputer, related_rows(120, 1)).filled_by == "model"


def numbers_said(words: str, pattern: str) -> list[str]:
    found = re.search(pattern, words)
    assert found is not None, words
    return list(found.groups())


@pytest.mark.filterwarnings("ignore::otimpute.exceptions.OtimputeWarning")
@pytest.mark.parametrize("is_loaded", [False, True])
def test_verdict_and_page_say_the_same_numbers(flats: pd.DataFrame, is_loaded: bool, tmp_path: Path) -> None:
    imputer = AutoImputer(["gaussian_em"], random_state=0)
    filled = imputer.fit_transform(flats)
    if is_loaded:
        imputer.save(tmp_path / "model")
        imputer = otimpute.load(tmp_path / "model")
    said = collect(imputer, flats, filled)
    page = next(each.answer for each in said.verdict if each.key == "better")
    assert said.check is not None and said.check.filled_by == "trial"
    numbers = numbers_said(imputer.verdict_, r"off by ([\d.]+) standard deviations on average.*column means \(([\d.]+)\)")
    assert numbers == numbers_said(page, r"off by ([\d.]+) standard deviations on average \(column mean ([\d.]+)")
    categories = numbers_said(imputer.verdict_, r"Of hidden categories, (\d+)%.*the most frequent ones \((\d+)%\)")
    assert categories == numbers_said(page, r"(\d+) % of the categories were wrong \(most frequent value (\d+) %")


def test_values_are_hidden_the_way_they_are_missing() -> None:
    # Three columns say everything about each other and are missing together: one alone would be read off the others.
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 800))
    X = np.column_stack([x + 0.05 * rng.normal(size=800) for _ in range(3)] + [0.7 * x + 0.7 * y])
    X[rng.random(800) < 0.3, :3] = np.nan
    check = checked(GaussianEMImputer().fit(X), X)
    assert 0.4 < error_of(check, "GaussianEMImputer") < 0.7
