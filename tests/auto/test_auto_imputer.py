"""The imputer of several experts: what they are combined to, what it says about that, and what cannot spoil it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

import otimpute
import otimpute.auto._learn as learning
import otimpute.auto._trial as trial
from every_imputer import few_experts, grouped_table
from otimpute import AutoImputer, RoundRobinImputer, SinkhornImputer
from otimpute.auto._experts import DEFAULT, read_experts, suit_to_size
from otimpute.baselines import ExtraTreesImputer, GaussianEMImputer, GaussianMixtureImputer, KNNImputer, MeanImputer
from otimpute.exceptions import DivergedError, FitStoppedWarning, OtimputeWarning
from otimpute.fitting import CellFit, ColumnLayout, FitSummary

BOTH = pytest.mark.parametrize("target", ["values", "distribution"])


class Failing(MeanImputer):
    def fit_cells(self, *_, **__):
        raise DivergedError("went astray")


class WildModel:
    def impute_cells(self, values, missing, start=None):
        return np.where(np.arange(missing.sum()) % 2, 1e12, -1e12)


class Wild(MeanImputer):
    def fit_cells(self, values, missing, *_, **__):
        return CellFit(WildModel().impute_cells(values, missing), WildModel())


class Stopped(MeanImputer):
    def fit_cells(self, *_, **__):
        raise KeyboardInterrupt


class StoppedQuietly(MeanImputer):
    """As transport imputers do, which keep what they reached."""

    def fit_cells(self, *arrays, **options):
        return replace(super().fit_cells(*arrays, **options), summary=FitSummary(stop_reason="interrupted"))


class Mistaken(MeanImputer):
    def fit_cells(self, *_, **__):
        raise TypeError("a mistake of the programmer's")


def related(n: int = 150, seed: int = 0, rate: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Four columns that say much about each other, complete and with holes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    complete = np.column_stack([x, x**2 - x, 100 * x + 20 * rng.normal(size=n), rng.normal(size=n) - 1e-3 * x])
    complete[:, 3] *= 1e-3
    return complete, np.where(rng.random(complete.shape) < rate, np.nan, complete)


def quick(experts: Any = ("gaussian_em",), **parameters: Any) -> AutoImputer:
    experts = list(experts) if isinstance(experts, tuple) else experts
    return AutoImputer(experts, **{"n_splits": 2, "random_state": 0, **parameters})


@pytest.fixture(scope="module", params=["values", "distribution"])
def fitted(request) -> tuple[AutoImputer, np.ndarray]:
    imputer = quick(few_experts(), target=request.param)
    return imputer, imputer.fit_transform(related()[1])


# --- What comes out ---------------------------------------------------------------------------------------------------


@BOTH
def test_the_number_of_threads_does_not_change_a_bit(target):
    X = related()[1]
    one, two = (quick(few_experts(), target=target, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.fit_transform(X), two.fit_transform(X))
    np.testing.assert_array_equal(one.imputation_std_, two.imputation_std_)
    assert one.weights_ == two.weights_
    assert one.scores_ == two.scores_


def test_a_new_row_is_filled_alone_as_among_others(fitted):
    imputer, _ = fitted
    rows = related(seed=1)[1][:25]
    rows[3] = np.nan
    filled, std = imputer.transform(rows, return_std=True)
    for k in (0, 3, 7, 24):
        alone, alone_std = imputer.transform(rows[[k]], return_std=True)
        np.testing.assert_allclose(alone[0], filled[k], rtol=1e-9)
        np.testing.assert_allclose(alone_std[0], std[k], rtol=1e-9)
    np.testing.assert_allclose(imputer.transform(rows[::-1]), filled[::-1], rtol=1e-9)
    np.testing.assert_array_equal(imputer.transform(rows), filled)


def test_error_bars_are_zero_exactly_where_a_value_was_observed(fitted):
    imputer, _ = fitted
    old, new = related()[1], related(seed=1)[1]
    for X, std in [(old, imputer.imputation_std_), (new, imputer.transform(new, return_std=True)[1])]:
        np.testing.assert_array_equal(std > 0, np.isnan(X))
        assert np.isfinite(std).all()


def test_related_columns_are_filled_better_than_by_means_and_scores_say_so():
    complete, incomplete = related()
    imputer = quick(few_experts())
    filled, holes = imputer.fit_transform(incomplete), np.isnan(incomplete)
    for k in range(3):
        scores = imputer.scores_[k]
        assert scores["stack"]["rmse"] < 0.9 * scores["mean"]["rmse"]
        off, off_mean = ((each - complete)[holes[:, k], k] for each in (filled, np.nanmean(incomplete, axis=0)))
        assert np.sqrt((off**2).mean()) < 0.9 * np.sqrt((off_mean**2).mean())


def test_scores_and_error_bars_are_in_the_columns_units():
    complete, incomplete = related()
    plain, scaled = (quick(few_experts()).fit(each) for each in (incomplete, incomplete * [1, 1024, 1, 1]))
    for expert, score in plain.scores_[1].items():
        assert scaled.scores_[1][expert]["mae"] == pytest.approx(1024 * score["mae"])
        assert scaled.scores_[1][expert]["rmse"] == pytest.approx(1024 * score["rmse"])
    np.testing.assert_allclose(scaled.imputation_std_, plain.imputation_std_ * [1, 1024, 1, 1], rtol=1e-6)
    for k, column in enumerate(complete.T):
        assert 0.01 * column.std() < plain.imputation_std_[np.isnan(incomplete[:, k]), k].mean() < 1.5 * column.std()


def test_weights_of_every_column_sum_to_one(fitted):
    imputer, _ = fitted
    assert list(imputer.weights_) == [0, 1, 2, 3]
    for weights in imputer.weights_.values():
        assert sum(weights.values()) == pytest.approx(1)
        assert min(weights.values()) >= 0
        assert "mean" in weights


def test_columns_that_nothing_tells_anything_about_get_their_mean():
    X = np.random.default_rng(3).normal(size=(200, 3)) * [1, 10, 100]
    X[np.random.default_rng(4).random(X.shape) < 0.2] = np.nan
    imputer = quick(few_experts(), n_splits=3)
    filled = imputer.fit_transform(pd.DataFrame(X, columns=["one", "ten", "hundred"])).to_numpy()
    (line,) = [line for line in imputer.verdict_.splitlines() if line.startswith("Nothing was better than the mean")]
    hopeless = [k for k, name in enumerate(imputer.weights_) if name in line]
    assert len(hopeless) >= 2
    for k in hopeless:
        assert imputer.weights_[("one", "ten", "hundred")[k]]["mean"] == 1
        np.testing.assert_allclose(filled[np.isnan(X[:, k]), k], np.nanmean(X[:, k]), rtol=0, atol=1e-12 * 100)


def test_draws_have_the_spread_of_the_truth_where_best_guesses_have_less():
    rng = np.random.default_rng(5)
    x = rng.normal(size=500)
    complete = np.column_stack([x, x + rng.normal(size=500)])  # half of the variance cannot be known
    holes = np.zeros(complete.shape, dtype=bool)
    holes[:250, 1] = True
    spread, bond = {}, {}
    for target in ("values", "distribution"):
        filled = quick(target=target).fit_transform(np.where(holes, np.nan, complete))
        spread[target], bond[target] = filled[:250, 1].std(), np.corrcoef(filled[:250].T)[0, 1]
    truth, true_bond = complete[:250, 1].std(), np.corrcoef(complete[:250].T)[0, 1]
    assert spread["values"] < 0.85 * truth
    assert spread["distribution"] == pytest.approx(truth, rel=0.12)
    assert abs(bond["distribution"] - true_bond) < abs(bond["values"] - true_bond)


def test_rows_that_look_alike_are_drawn_differently_in_the_table_that_was_fitted():
    X = related()[1]
    X[:20] = [0.3, np.nan, np.nan, np.nan]
    filled = quick(target="distribution").fit_transform(X)
    assert len(np.unique(filled[:20, 2])) == 20


def test_global_random_numbers_are_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    quick(few_experts(), target="distribution", n_splits=1).fit(related(n=60)[1])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# --- What experts may do ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_expert_that_diverges_is_left_out_with_a_warning(n_jobs):
    X = related()[1]
    with pytest.warns(OtimputeWarning, match="the expert 'Failing' is left out: went astray"):
        filled = quick(["gaussian_em", Failing()], n_jobs=n_jobs).fit_transform(X)
    np.testing.assert_allclose(filled, quick().fit_transform(X), rtol=1e-12)


def test_the_verdict_names_who_was_left_out():
    with pytest.warns(OtimputeWarning, match="left out"):
        imputer = quick(["gaussian_em", Failing()]).fit(related()[1])
    assert "Left out: Failing (went astray)." in imputer.verdict_
    assert "Failing" not in imputer.weights_[0]


def test_an_expert_with_wild_guesses_does_not_spoil_the_others():
    X = related()[1]
    imputer = quick(["gaussian_em", Wild()])
    filled = imputer.fit_transform(X)
    assert all(weights.get("Wild", 0.0) < 0.02 for weights in imputer.weights_.values())
    spread = np.nanstd(X, axis=0)
    np.testing.assert_allclose(filled / spread, quick().fit_transform(X) / spread, rtol=0, atol=0.15)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("expert", [Stopped, StoppedQuietly])
def test_ctrl_c_ends_the_fit(expert, n_jobs):
    imputer = quick(["gaussian_em", expert()], n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        imputer.fit(related(n=60)[1])
    with pytest.raises(ValueError, match="not fitted"):
        imputer.transform(related(n=60)[1])


def test_mistakes_of_an_expert_are_not_hidden():
    with pytest.raises(TypeError, match="a mistake of the programmer's"):
        quick(["gaussian_em", Mistaken()]).fit(related(n=60)[1])


@BOTH
def test_without_time_everything_is_filled_nevertheless(target):
    X = related()[1]
    imputer = AutoImputer(max_seconds=1e-6, target=target, random_state=0)
    with pytest.warns(FitStoppedWarning, match="max_seconds=1e-06 left no time for .*kernel_ridge"):
        filled = imputer.fit_transform(X)
    assert np.isfinite(filled).all()
    assert np.isfinite(imputer.transform(X)).all()


@pytest.mark.filterwarnings("ignore::otimpute.exceptions.OtimputeWarning")
def test_draws_without_what_makes_them_are_refused(monkeypatch):
    monkeypatch.setattr(GaussianMixtureImputer, "fit_cells", Failing.fit_cells)
    with pytest.raises(DivergedError, match="'gaussian_mixture', which draws are made with, failed: went astray"):
        quick(target="distribution").fit(related(n=60)[1])


@pytest.mark.parametrize(
    ("experts", "error", "message"),
    [
        (["gausian_em"], ValueError, "got 'gausian_em'; did you mean 'gaussian_em'"),
        (
            ["gaussian_em", GaussianNB()],
            TypeError,
            r"an expert must be one of mean, .*, or an imputer \(of otimpute.*GaussianNB",
        ),
        ([KNNImputer], TypeError, "an expert must be one of mean"),
        ("gaussian_em", TypeError, r"experts must be a list .* got 'gaussian_em'"),
        ([], TypeError, r"experts must be a list .* got \[\]"),
        (3, TypeError, "experts must be a list"),
        ([KNNImputer(n_neighbors=0)], ValueError, "n_neighbors must be"),
    ],
)
def test_what_is_no_expert_is_refused_with_a_reason(experts, error, message):
    with pytest.raises(error, match=message):
        AutoImputer(experts).fit(related(n=20)[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"target": "value"}, "target must be one of .*did you mean 'values'"),
        ({"n_splits": 0}, "n_splits must be"),
        ({"max_seconds": 0}, "max_seconds must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        AutoImputer(**parameters).fit(related(n=20)[1])


def test_several_imputers_of_a_class_have_names_of_their_own():
    given = [KNNImputer(n_neighbors=k) for k in (1, 3, 9)]
    imputer = quick(given).fit(related(n=60)[1])
    assert set(imputer.scores_[0]) == {"mean", "KNNImputer", "KNNImputer'", "KNNImputer''", "stack"}
    assert not any(hasattr(each, "_is_fitted") for each in given)  # what users pass is theirs


# --- Tables of all kinds ----------------------------------------------------------------------------------------------


def test_tables_beyond_the_most_rows_are_fitted_on_some_and_the_others_filled_as_new_rows(monkeypatch):
    monkeypatch.setattr(learning, "_MOST_ROWS", 170)
    monkeypatch.setattr(trial, "_MOST_ROWS", 160)
    n_rows, fit_cells = [], MeanImputer.fit_cells
    monkeypatch.setattr(MeanImputer, "fit_cells", lambda self, *a, **k: n_rows.append(len(a[0])) or fit_cells(self, *a, **k))
    complete, X = related(n=400)
    imputer = quick(few_experts())
    filled = imputer.fit_transform(X)
    assert n_rows == [160, 160, 170]  # two splits, and the end
    assert filled.shape == imputer.imputation_std_.shape == X.shape
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    np.testing.assert_array_equal(imputer.imputation_std_ > 0, np.isnan(X))
    as_new, std = imputer.transform(X, return_std=True)
    alike = np.isclose(filled, as_new, rtol=1e-9, atol=0) & np.isclose(imputer.imputation_std_, std, rtol=1e-9, atol=0)
    assert alike.all(axis=1).sum() >= 400 - 170
    assert (np.abs(filled - complete) / complete.std(axis=0))[:, :3].mean() < 0.1


@BOTH
def test_a_column_that_a_sample_of_the_rows_would_miss_is_filled_too(target, monkeypatch):
    monkeypatch.setattr(learning, "_MOST_ROWS", 40)
    monkeypatch.setattr(trial, "_MOST_ROWS", 30)
    X = related(n=300)[1]
    X[:, 2] = np.nan
    X[[11, 222], 2] = 5.0, 7.0
    filled = quick(few_experts(), target=target).fit_transform(X)
    assert np.isfinite(filled).all()
    assert filled[:, 2].min() > 0  # draws may lie beyond the two values that were observed, and guesses a little
    assert filled[:, 2].max() < 12


def test_too_few_values_to_hide_any_are_filled_without_claiming_certainty():
    X = np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 5.0]])
    imputer = quick().fit(X)
    assert imputer.scores_ == {}
    assert "too few observed values to check the imputation on" in imputer.verdict_
    assert imputer.imputation_std_[0, 1] == pytest.approx(1.0)  # the spread of 3 and 5


def test_error_bars_of_dates_are_seconds_and_those_of_categories_the_chance_to_be_wrong():
    rng = np.random.default_rng(7)
    x = rng.normal(size=300)
    day, noise = 24 * 3600.0, 2 * rng.normal(size=300)
    at = pd.Timestamp("2024-03-01") + pd.to_timedelta((10 * x + noise) * day, unit="s")
    side = np.where(x + 0.3 * rng.normal(size=300) > 0, "right", "left")
    complete = pd.DataFrame({"x": x, "at": at, "side": side})
    incomplete = complete.copy()
    incomplete.loc[:80, "at"] = pd.NaT
    incomplete.loc[200:280, "side"] = None
    imputer = quick()
    filled = imputer.fit_transform(incomplete)
    std = imputer.imputation_std_.to_numpy()
    assert std[:81, 1].mean() == pytest.approx(2 * day, rel=0.4)
    assert 1.5 * day < imputer.scores_["at"]["stack"]["rmse"] < 4 * day  # in the trial, "x" may be hidden too
    assert not std[81:, 1].any()
    wrong = imputer.scores_["side"]["stack"]["wrong"]
    assert std[200:281, 2].mean() == pytest.approx(wrong, abs=0.05)
    assert ((std[200:281, 2] > 0) & (std[200:281, 2] < 1)).all()
    assert wrong == pytest.approx((filled["side"] != complete["side"])[200:281].mean(), abs=0.1)


def test_nothing_missing_is_said_to_be_so_and_new_holes_are_filled():
    complete, incomplete = related(n=80)
    imputer = quick().fit(complete)
    assert imputer.verdict_ == "Nothing was missing."
    assert not imputer.imputation_std_.any()
    filled, std = imputer.transform(incomplete, return_std=True)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(std > 0, np.isnan(incomplete))


def test_the_verdict_says_what_no_check_can_find_out():
    text = quick().fit(related()[1]).verdict_
    assert "less than column means" in text
    assert "Most trusted: gaussian_em" in text
    assert "No check on observed values can tell whether values are missing because of what they are" in text


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(names=st.lists(st.text(min_size=1, max_size=8), min_size=4, max_size=4, unique=True))
def test_columns_go_by_their_names_whatever_is_in_them(names):
    imputer = quick(["mean"], n_splits=1).fit(pd.DataFrame(related(n=40)[1], columns=names))
    assert list(imputer.weights_) == list(imputer.scores_) == names


def test_columns_of_an_array_go_by_their_places():
    imputer = quick(["mean"], n_splits=1).fit(related(n=40)[1])
    assert list(imputer.weights_) == list(imputer.scores_) == [0, 1, 2, 3]


def test_columns_without_a_value_have_neither_weights_nor_scores():
    X = related(n=40)[1]
    X[:, 1] = np.nan
    with pytest.warns(OtimputeWarning, match="no observed value in columns 1"):
        imputer = quick().fit(X)
    assert list(imputer.weights_) == list(imputer.scores_) == [0, 2, 3]
    assert imputer.imputation_std_.shape == X.shape
    assert (imputer.imputation_std_[:, 2] > 0).any()
    assert np.isnan(imputer.imputation_std_[:, 1]).all()  # unknown, which is not the same as certain


def test_one_wrong_number_does_not_decide_whom_to_trust():
    complete, incomplete = related(n=200, seed=3)
    missing = np.isnan(incomplete)
    incomplete[0, 0], missing[0] = 9999.0, False
    imputed = AutoImputer(["gaussian_em", "sinkhorn"], n_splits=3, random_state=0).fit_transform(incomplete)
    column = missing[:, 0]
    assert np.abs(imputed - complete)[column, 0].mean() < 0.7 * np.abs(complete[column, 0] - complete[:, 0].mean()).mean()


def test_a_category_counts_once_however_many_labels_there_are():
    rng = np.random.default_rng(0)
    label = np.array([f"L{k}" for k in range(20)])[rng.integers(0, 20, 200)]
    frame = pd.DataFrame({"label": pd.Series(label).mask(rng.random(200) < 0.2), "x": rng.normal(size=200)})
    frame.loc[:20, "x"] = np.nan
    verdict = quick().fit(frame).verdict_
    assert re.search(r"^On 54 observed numbers", verdict), verdict  # twice 15 % of 179, and not of 200 × 20
    assert re.search(r"^Of hidden categories, (9\d|100)% were imputed wrongly", verdict, re.MULTILINE), verdict


def test_holes_that_nobody_could_learn_to_fill_are_not_said_to_be_none():
    frame = pd.DataFrame({"only": [None] + ["a"] * 11, "x": np.arange(12.0)})
    verdict = quick().fit(frame).verdict_
    assert "Nothing was missing" not in verdict
    assert "No column with holes could be learned from" in verdict


def test_draws_are_not_called_means():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:15, 0] = np.nan
    assert "draws around it were filled in" in quick(target="distribution").fit(X).verdict_


# --- Files ------------------------------------------------------------------------------------------------------------


@BOTH
def test_a_file_of_a_mixed_table_holds_all_there_is(target, tmp_path):
    table, new = (pd.DataFrame(grouped_table(seed=seed)[1]) for seed in (0, 1))
    imputer = quick(few_experts(), target=target).fit(table)
    imputer.save(tmp_path / "model")
    again = otimpute.load(tmp_path / "model")
    (filled, std), (filled_again, std_again) = (each.transform(new, return_std=True) for each in (imputer, again))
    pd.testing.assert_frame_equal(filled, filled_again, check_exact=True)
    np.testing.assert_array_equal(std, std_again)
    assert (again.weights_, again.scores_, again.verdict_) == (imputer.weights_, imputer.scores_, imputer.verdict_)
    assert repr(again) == repr(imputer)  # with the imputers among its experts and their parameters
    again.save(tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_loaded_imputer_can_be_fitted_again(tmp_path):
    X = related(n=60)[1]
    imputer = quick([KNNImputer(n_neighbors=3), ExtraTreesImputer(n_estimators=2)]).fit(X)
    imputer.save(tmp_path / "model")
    np.testing.assert_array_equal(otimpute.load(tmp_path / "model").fit_transform(X), imputer.fit_transform(X))


@pytest.mark.parametrize(
    ("expert", "message"),
    [
        (Wild(), "Wild is a class of your own"),
        (RoundRobinImputer(lambda d: None), "made of code of your own"),
    ],
    ids=["class", "model"],
)
def test_what_could_not_be_read_is_not_written(expert, message, tmp_path):
    imputer = quick().fit(related(n=60)[1])
    imputer.set_params(experts=[expert])
    with pytest.raises(TypeError, match=message):
        imputer.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- Long -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine", "glass"])
def test_nine_of_ten_true_values_are_within_the_error_bars(name, uci):
    complete = np.loadtxt(uci / f"{name}.csv", delimiter=",", skiprows=1)
    inside = []
    for seed in range(3):
        holes = np.random.default_rng(seed).random(complete.shape) < 0.3
        imputer = AutoImputer(random_state=seed)
        filled = imputer.fit_transform(np.where(holes, np.nan, complete))
        inside.append((np.abs(filled - complete) <= 1.645 * imputer.imputation_std_)[holes])
    assert 0.85 < np.concatenate(inside).mean() < 0.95


def test_named_experts_compute_where_they_are_told():
    experts = read_experts(["sinkhorn", SinkhornImputer()], "cpu")
    assert [experts[name].device for name in ("sinkhorn", "SinkhornImputer")] == ["cpu", "auto"]
    with pytest.raises(ValueError, match="device must be one of"):
        AutoImputer(device="gpu").fit(np.eye(3))


@pytest.mark.parametrize(
    ("parameters", "is_asked"),
    [
        ({}, False),
        ({"target": "distribution"}, True),
        ({"methods": {0: "gaussian_mixture"}}, True),
        ({"experts": DEFAULT[1:4]}, True),
    ],
)
def test_a_mixture_is_asked_about_wide_tables_only_if_someone_wants_it(parameters, is_asked):
    X = np.random.default_rng(0).normal(size=(40, 201))
    X[::3, :10] = np.nan
    learned = quick(**{"experts": None, "n_splits": 1, **parameters}).fit(X)
    assert ("gaussian_mixture" in learned.model_.panel.names) is is_asked
    assert "gaussian_mixture" not in learned.left_out_  # who was not asked was not left out either


def test_categories_do_not_make_a_table_wide_for_a_mixture():
    groups = np.repeat(np.arange(30), 10)
    of_labels = replace(ColumnLayout.of_numbers(range(300)), groups=groups)
    assert "gaussian_mixture" in suit_to_size(read_experts(None), 2000, of_labels)
    assert "gaussian_mixture" not in suit_to_size(read_experts(None), 2000, ColumnLayout.of_numbers(range(300)))


def test_a_gaussian_makes_fewer_rounds_of_wide_tables():
    rounds = []
    for width in (100, 200, 1000):
        suited = suit_to_size(read_experts(None), 500, ColumnLayout.of_numbers(range(width)))
        rounds.append(suited["gaussian_em"].max_iter)
        assert suited["gaussian_em_shrunk"].max_iter == rounds[-1]
    assert rounds == [GaussianEMImputer().max_iter, 12, 6]
