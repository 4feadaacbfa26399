"""What AutoImputer says is true: checked against values it could not see."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer

from every_imputer import few_experts
from otimpute import AutoImputer
from otimpute.auto import _experts
from otimpute.baselines import ExtraTreesImputer, GaussianEMImputer, MeanImputer
from otimpute.exceptions import DivergedError, FitStoppedWarning, OtimputeWarning


def factors(n: int = 400, d: int = 8, seed: int = 0) -> np.ndarray:
    """Columns that follow two curved factors."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    X = np.tanh(hidden @ rng.normal(size=(2, d))) + 0.2 * rng.normal(size=(n, d))
    return X / X.std(axis=0)


def headline(imputer: AutoImputer) -> float:
    found = re.search(r"off by ([\d.]+) standard deviations", imputer.verdict_)
    assert found, imputer.verdict_
    return float(found[1])


def true_error(X: np.ndarray, missing: np.ndarray, filled: np.ndarray) -> float:
    return float((np.abs(filled - X) / X.std(axis=0))[missing].mean())


# --- Time --------------------------------------------------------------------------------------------------------------


class FailsInTheEnd(MeanImputer):
    """Very good as long as it is tried, and then fails: it has seen the truth."""

    truth = factors()
    fails = True

    def fit_cells(self, values, missing, *layout, **options):
        if self.fails and missing.mean() < 0.25:
            raise DivergedError("went astray in the end")
        return replace(super().fit_cells(values, missing, *layout, **options), cells=self.truth[missing])


def test_scores_and_verdict_are_about_the_experts_that_are_left():
    X = FailsInTheEnd.truth
    missing = np.random.default_rng(1).random(X.shape) < 0.2
    with pytest.warns(OtimputeWarning, match="'FailsInTheEnd' is left out"):
        imputer = AutoImputer(["gaussian_em", FailsInTheEnd()], random_state=0).fit(np.where(missing, np.nan, X))
    filled = imputer.transform(np.where(missing, np.nan, X))
    assert headline(imputer) == pytest.approx(true_error(X, missing, filled), rel=0.2)
    assert "FailsInTheEnd" not in imputer.weights_[0]
    assert "FailsInTheEnd" not in imputer.scores_[0]
    inside = np.abs(filled - X)[missing] <= 1.645 * imputer.transform(np.where(missing, np.nan, X), return_std=True)[1][missing]
    assert inside.mean() > 0.85


def test_without_time_the_gaussian_is_fitted_and_what_is_said_is_true_of_it():
    X = factors(n=600, d=12)
    missing = np.random.default_rng(2).random(X.shape) < 0.2
    incomplete = np.where(missing, np.nan, X)
    imputer = AutoImputer(max_seconds=1e-3, random_state=0)
    with pytest.warns(FitStoppedWarning, match="left no time for"):
        filled = imputer.fit_transform(incomplete)
    error = true_error(X, missing, filled)
    assert error < 1.1 * true_error(X, missing, GaussianEMImputer().fit_transform(incomplete))
    assert headline(imputer) == pytest.approx(error, rel=0.2)
    assert "Most trusted: gaussian_em" in imputer.verdict_


def test_an_expert_for_which_there_is_no_time_in_the_end_leaves_its_weight_to_the_others(monkeypatch):
    n_fits, fit_cells = 0, ExtraTreesImputer.fit_cells

    def slow_trees(self, values, missing, layout, *, deadline, **options):
        nonlocal n_fits
        n_fits += self.n_estimators == 5  # others are fitted to have all machine code ready
        if missing.mean() < 0.25 and np.isfinite(deadline):
            raise _experts.OutOfTime
        return fit_cells(self, values, missing, layout, **options)

    monkeypatch.setattr(ExtraTreesImputer, "fit_cells", slow_trees)
    X = factors(n=300)
    missing = np.random.default_rng(3).random(X.shape) < 0.2
    trees = ExtraTreesImputer(n_estimators=5, n_rounds=2)
    imputer = AutoImputer(["gaussian_em", trees], max_seconds=600, n_splits=2, random_state=0)
    with pytest.warns(FitStoppedWarning, match="ExtraTreesImputer"):
        imputer.fit(np.where(missing, np.nan, X))
    assert n_fits == 3
    assert "Left out: ExtraTreesImputer (there was no time for it)." in imputer.verdict_
    assert all(sum(weights.values()) == pytest.approx(1) for weights in imputer.weights_.values())
    assert all("ExtraTreesImputer" not in scores for scores in imputer.scores_.values())


def test_a_complete_table_is_returned_at_once_and_learned_from_when_rows_need_it(monkeypatch):
    asked: list[str] = []
    fit_cells = GaussianEMImputer.fit_cells
    monkeypatch.setattr(
        GaussianEMImputer, "fit_cells", lambda self, *table, **options: asked.append("") or fit_cells(self, *table, **options)
    )
    X = factors(n=120)
    imputer = AutoImputer(["gaussian_em"], n_splits=1, random_state=0)
    np.testing.assert_array_equal(imputer.fit_transform(X), X)
    np.testing.assert_array_equal(imputer.transform(X), X)
    assert asked == []
    assert imputer.verdict_ == "Nothing was missing."
    new = factors(n=30, seed=0)
    new[:, 0] = np.nan
    assert np.isfinite(imputer.transform(new)).all()
    assert asked
    assert imputer.weights_


# --- Error bars and headline -------------------------------------------------------------------------------------------


def together(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    missing = np.zeros(X.shape, dtype=bool)
    missing[rng.random(len(X)) < 0.35, :3] = True
    return missing


def half_of_some_rows(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    missing = np.zeros(X.shape, dtype=bool)
    for row in np.flatnonzero(rng.random(len(X)) < 0.3):
        missing[row, rng.choice(X.shape[1], X.shape[1] // 2, replace=False)] = True
    return missing


def strongly_at_random(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    missing = np.zeros(X.shape, dtype=bool)
    missing[:, 1:4] = rng.random((len(X), 3)) < expit(3 * X[:, [0]] - 1)
    return missing


@pytest.mark.parametrize("mechanism", [together, half_of_some_rows, strongly_at_random])
def test_error_bars_and_headline_hold_where_values_are_not_missing_evenly(mechanism: Callable[..., np.ndarray]):
    inside, said, true = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = factors(n=400, seed=seed)
        X[:, 1] = X[:, 0] + X[:, 2] + 0.05 * rng.normal(size=400)  # read off the others, unless they are missing too
        missing = mechanism(X, rng)
        imputer = AutoImputer(few_experts(), random_state=seed)
        filled = imputer.fit_transform(np.where(missing, np.nan, X))
        inside.append((np.abs(filled - X) <= 1.645 * imputer.imputation_std_)[missing].mean())
        said.append(headline(imputer))
        true.append(true_error(X, missing, filled))
    assert 0.84 < np.mean(inside) < 0.97
    assert 0.9 < np.mean(said) / np.mean(true) < 1.4  # rather too much: hidden values are filled from less than missing ones


def test_the_headline_weighs_columns_by_their_missing_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    X = np.column_stack([x, x + 0.05 * rng.normal(size=1000), x + 2 * rng.normal(size=1000)])
    missing = np.zeros(X.shape, dtype=bool)
    missing[rng.random(1000) < 0.05, 1] = True
    missing[rng.random(1000) < 0.5, 2] = True
    imputer = AutoImputer(["gaussian_em"], random_state=0)
    filled = imputer.fit_transform(np.where(missing, np.nan, X))
    assert headline(imputer) == pytest.approx(true_error(X, missing, filled), rel=0.15)


def test_the_verdict_names_the_range_in_which_hardly_anything_was_observed():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.uniform(20, 90, 600), "size": rng.normal(170, 10, 600)})
    frame["income"] = 1000 + 20 * frame["age"] + rng.normal(0, 100, 600)
    frame.loc[frame["age"] > 70, "income"] = np.nan
    imputer = AutoImputer(["gaussian_em"], random_state=0).fit(frame)
    (line,) = [line for line in imputer.verdict_.splitlines() if "missing in income" in line]
    low, high = (float(each) for each in re.search(r"where age is ([\d.]+) to ([\d.]+)", line).groups())
    assert 65 < low < 75
    assert 85 < high <= 90
    assert "none of income" in line or "only" in line


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_values_missing_by_chance_are_not_called_unseen(rate):
    n_named = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 5))
        imputer = AutoImputer(["mean"], n_splits=1, random_state=0).fit(np.where(rng.random(X.shape) < rate, np.nan, X))
        n_named += "was observed: imputed values rest on" in imputer.verdict_
    assert n_named == 0


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda X: pl.DataFrame(X, schema=list("abcdefgh"))])
def test_error_bars_come_as_the_kind_of_table_that_went_in(make):
    X = factors(n=80)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    table = make(X)
    imputer = AutoImputer(["gaussian_em"], n_splits=1, random_state=0).fit(table)
    _, std = imputer.transform(table, return_std=True)
    assert type(std) is type(imputer.imputation_std_) is type(table)
    np.testing.assert_array_equal(np.asarray(std) > 0, np.isnan(X))
    if isinstance(table, pd.DataFrame):
        assert std.index.equals(table.index)
        assert std.columns.equals(table.columns)


# --- Categories --------------------------------------------------------------------------------------------------------


def labelled(n: int = 900, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A category, a rare boolean and an order that numbers tell something about, complete and with holes."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n))
    chance = np.exp(np.column_stack([1.5 * x, 1.5 * y, np.full(n, -1.0)]))
    chance /= chance.sum(axis=1, keepdims=True)
    label = (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    grade = np.clip(np.rint(x + rng.normal(size=n) + 2), 0, 4).astype(int)
    complete = pd.DataFrame(
        {
            "x": x,
            "y": y,
            "kind": np.array(["u", "v", "w"], dtype=object)[label],
            "rare": pd.array(rng.random(n) < expit(2 * y - 3.5), dtype="boolean"),
            "grade": pd.Categorical.from_codes(grade, ["a", "b", "c", "d", "e"], ordered=True),
        }
    )
    incomplete = complete.copy()
    for name in ("kind", "rare", "grade"):
        incomplete.loc[rng.random(n) < 0.3, name] = None
    return complete, incomplete


@pytest.fixture(scope="module")
def of_labels() -> tuple[pd.DataFrame, pd.DataFrame, AutoImputer, pd.DataFrame]:
    complete, incomplete = labelled()
    imputer = AutoImputer(few_experts(), random_state=0)
    return complete, incomplete, imputer, imputer.fit_transform(incomplete)


def test_chances_of_being_wrong_are_per_cell_and_true(of_labels):
    complete, incomplete, imputer, filled = of_labels
    for name in ("kind", "rare"):
        missing = incomplete[name].isna()
        wrong, said = (filled[name] != complete[name])[missing].to_numpy(float), imputer.imputation_std_[name][missing]
        assert said.nunique() > 20
        assert ((said > 0) & (said < 1)).all()
        sure = said <= said.median()
        for part in (sure, ~sure):
            error = 3 * np.sqrt(said[part].mean() * (1 - said[part].mean()) / part.sum())
            assert abs(wrong[part].mean() - said[part].mean()) < max(error, 0.03), name


def test_chances_of_categories_add_up_and_agree_with_what_is_imputed(of_labels):
    complete, incomplete, imputer, _ = of_labels
    chances, filled = imputer.category_probabilities(incomplete), imputer.transform(incomplete)
    assert imputer.categories_ == {"kind": ["u", "v", "w"], "rare": [False, True], "grade": ["a", "b", "c", "d", "e"]}
    for name, chance in chances.items():
        assert chance.shape == (len(complete), len(imputer.categories_[name]))
        np.testing.assert_allclose(chance.sum(axis=1), 1)
        observed = incomplete[name].notna().to_numpy()
        np.testing.assert_array_equal(chance[observed].max(axis=1), 1)
        if name != "grade":
            likeliest = np.array(imputer.categories_[name], dtype=object)[chance.argmax(axis=1)]
            assert (likeliest == filled[name].to_numpy(object)).all()


def test_columns_with_one_category_are_certain():
    frame = labelled(n=80)[1].assign(always=pd.array([True, None] * 40, dtype="boolean"), only=["a", None] * 40)
    chances = AutoImputer(["gaussian_em"], n_splits=1, random_state=0).fit(frame).category_probabilities(frame)
    np.testing.assert_array_equal(chances["always"], np.tile([0, 1], (80, 1)))
    np.testing.assert_array_equal(chances["only"], np.ones((80, 1)))


def test_draws_have_classes_as_often_as_the_truth():
    differences = []
    for seed in range(3):
        complete, incomplete = labelled(seed=seed)
        drawn = AutoImputer(["gaussian_em"], target="distribution", random_state=seed).fit_transform(incomplete)
        for name in ("kind", "rare", "grade"):
            missing = incomplete[name].isna()
            for label in complete[name].unique():
                true, got = (complete[name] == label)[missing].mean(), (drawn[name] == label)[missing].mean()
                differences.append((got - true) / np.sqrt(2 * max(true * (1 - true), 0.01) / missing.sum()))  # both are random
    assert np.abs(np.mean(differences)) < 0.5
    assert np.abs(differences).max() < 3
    assert np.mean(np.abs(differences) < 2) > 0.85


def test_draws_have_classes_as_often_as_the_truth_where_other_rows_are_missing():
    """The share of the missing values is not that of the observed ones, and few of these are like missing ones."""
    differences = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=300)
        kind = np.where(rng.random(300) < expit(2 * x - 1), "a", "b")
        missing = rng.random(300) < expit(2 * x - 1)
        frame = pd.DataFrame({"x": x, "kind": pd.Series(kind).mask(missing)})
        drawn = AutoImputer(["gaussian_em"], target="distribution", random_state=seed).fit_transform(frame)
        differences.append((drawn["kind"][missing] == "a").mean() - (kind[missing] == "a").mean())
        assert (kind[missing] == "a").mean() - (kind[~missing] == "a").mean() > 0.2
    assert np.abs(np.mean(differences)) < 0.08


def test_draws_of_amounts_vary_as_true_ones_do():
    """High amounts vary more than low ones, and none is negative."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=1500)
        amount = np.maximum(10 * x + 10 + 10 * np.maximum(x + 1, 0) * rng.normal(size=1500), 0)
        missing = rng.random(1500) < 0.4
        frame = pd.DataFrame({"x": x, "amount": pd.Series(amount).mask(missing)})
        drawn = AutoImputer(["gaussian_em"], target="distribution", random_state=seed).fit_transform(frame)["amount"]
        ratios.append([drawn[missing & part].std() / amount[missing & part].std() for part in (x > -9, x < -0.5, x > 0.5)])
        assert drawn.min() >= 0
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.15)


@pytest.mark.parametrize("noise", [0.1, 1.0, 3.0])
def test_draws_vary_as_true_values_do(noise):
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=600)
        X = np.column_stack([x, x + noise * rng.normal(size=600), np.round(2 * x + rng.normal(size=600))])
        missing = rng.random(X.shape) < [0, 0.4, 0.4]
        drawn = AutoImputer(["gaussian_em"], target="distribution", random_state=seed).fit_transform(
            np.where(missing, np.nan, X)
        )
        ratios.append([drawn[missing[:, k], k].std() / X[missing[:, k], k].std() for k in (1, 2)])
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.1)


def test_draws_do_not_pile_up_at_a_bound():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=800), rng.normal(size=800)])
    missing = np.zeros(X.shape, dtype=bool)
    missing[:300, 0] = True
    drawn = AutoImputer(
        ["gaussian_em"], target="distribution", constraints={0: {"bounds": (0, None)}}, random_state=0
    ).fit_transform(np.where(missing, np.nan, X))
    assert drawn[:, 0].min() >= 0
    assert (drawn[:300, 0] == 0).sum() == 0


# --- Odds and ends -----------------------------------------------------------------------------------------------------


def test_a_fit_with_a_time_limit_can_be_pickled():
    X = factors(n=80, d=4)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitStoppedWarning)
        imputer = AutoImputer(["sinkhorn", "extra_trees"], max_seconds=60, n_splits=1, random_state=0).fit(X)
    assert {"sinkhorn", "extra_trees"} & {name for weights in imputer.weights_.values() for name in weights}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(imputer)).transform(X), imputer.transform(X))


def test_imputers_and_regressors_of_scikit_learn_can_be_experts(tmp_path):
    X = factors(n=120)
    missing = np.random.default_rng(0).random(X.shape) < 0.2
    incomplete = np.where(missing, np.nan, X)
    imputer = AutoImputer([SimpleImputer(strategy="median"), Ridge()], n_splits=1, random_state=0)
    filled = imputer.fit_transform(incomplete)
    assert {"SimpleImputer", "Ridge"} <= imputer.scores_[0].keys()
    assert true_error(X, missing, filled) < 0.9 * true_error(X, missing, MeanImputer().fit_transform(incomplete))
    np.testing.assert_allclose(imputer.transform(incomplete[:1]), imputer.transform(incomplete)[:1])
    with pytest.raises(TypeError, match="model files hold otimpute's imputers only"):
        imputer.save(tmp_path / "model")


def test_what_returns_other_columns_is_refused_as_an_expert():
    X = factors(n=60)
    X[:10, 0] = np.nan
    with pytest.raises(ValueError, match="as an expert must return the 8 columns it gets"):
        AutoImputer([FunctionTransformer(lambda X: np.nan_to_num(X)[:, :2])], n_splits=1).fit(X)
