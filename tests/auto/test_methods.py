"""``methods=``: a column is imputed by the expert that is named for it, and by no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.impute import KNNImputer as ScikitLearnKNN

import otimpute
from otimpute import AutoImputer
from otimpute.auto._choices import Choice
from otimpute.auto._weights import learn_weights
from otimpute.baselines import ExtraTreesImputer, MeanImputer
from otimpute.exceptions import DivergedError
from otimpute.fitting import CellFit

FEW = ["gaussian_em", "gaussian_mixture"]


class FailingImputer(MeanImputer):
    """Never learns anything."""

    def fit_cells(self, *args: Any, **options: Any) -> CellFit:
        raise DivergedError("it fails on purpose")


def incomplete_table(n: int = 200) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 2] = 2 * X[:, 0] - X[:, 1] + 0.1 * X[:, 2]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def mixed_frame() -> pd.DataFrame:
    X = incomplete_table()
    labels = np.where(np.isnan(X[:, 0]), None, np.where(np.nan_to_num(X[:, 0]) > 0, "high", "low"))
    return pd.DataFrame({"age": X[:, 1], "income": X[:, 2], "job": labels})


def auto(**options: Any) -> AutoImputer:
    return AutoImputer(**{"experts": FEW, "n_splits": 1, "random_state": 0, **options})


def test_the_named_expert_gets_all_the_weight_in_its_column() -> None:
    imputer = auto(methods={"job": "trees", "age": "gaussian"}).fit(mixed_frame())
    job, age, income = (imputer.weights_[name] for name in ("job", "age", "income"))
    assert job["extra_trees"] == 1 and sum(job.values()) == 1
    assert age["gaussian_em"] == 1 and sum(age.values()) == 1
    assert sum(income.values()) == pytest.approx(1)
    assert {"extra_trees", "mean", *FEW} <= imputer.scores_["age"].keys()  # all were tried, and say how good they are
    assert imputer.scores_["age"]["stack"] == imputer.scores_["age"]["gaussian_em"]


def test_what_is_imputed_is_what_the_named_expert_says() -> None:
    X = incomplete_table()
    made = auto(methods={0: "mean", 2: "gaussian_em"}).fit_transform(X)
    missing = np.isnan(X)
    np.testing.assert_allclose(made[missing[:, 0], 0], np.nanmean(X[:, 0]))
    gaussian = otimpute.baselines.GaussianEMImputer().fit_transform(X)
    np.testing.assert_allclose(made[missing[:, 2], 2], gaussian[missing[:, 2], 2], rtol=1e-9)


def test_of_a_list_only_those_named_count() -> None:
    X = incomplete_table()
    imputer = auto(methods={2: ["mean", "gaussian_em"], 0: ("knn", "extra_trees")}).fit(X)
    assert {name for name, weight in imputer.weights_[2].items() if weight} <= {"mean", "gaussian_em"}
    assert {name for name, weight in imputer.weights_[0].items() if weight} <= {"knn", "extra_trees"}
    assert imputer.weights_[2]["gaussian_em"] > 0.9


def test_an_expert_that_is_passed_can_be_named() -> None:
    imputer = auto(experts=["gaussian_em", ScikitLearnKNN()], methods={1: "KNNImputer"}).fit(incomplete_table())
    assert imputer.weights_[1]["KNNImputer"] == 1


def test_a_column_worse_than_the_mean_stays_with_its_expert_and_the_verdict_says_so() -> None:
    noise = np.random.default_rng(0).normal(size=(300, 3))
    noise[:60, 0] = np.nan
    imputer = auto(methods={0: "knn"}, n_splits=6).fit(noise)
    assert imputer.weights_[0]["knn"] == 1
    (found,) = imputer.judgement_.columns
    assert not found.is_mean and found.finding == "no better"
    assert "Not clearly better than the mean" in imputer.verdict_


def test_a_named_expert_is_fitted_whatever_the_time() -> None:
    imputer = auto(experts=None, methods={0: "extra_trees"}, max_seconds=1e-3)
    with pytest.warns(otimpute.exceptions.FitStoppedWarning):
        imputer.fit(incomplete_table())
    assert imputer.weights_[0]["extra_trees"] == 1
    assert "extra_trees" not in imputer.left_out_ and "kernel_ridge" in imputer.left_out_


def test_no_other_expert_stands_in_for_one_that_fails() -> None:
    with pytest.raises(DivergedError, match=r"column 1 could be fitted \(FailingImputer: it fails on purpose\)"):
        auto(experts=["gaussian_em", FailingImputer()], methods={1: "FailingImputer"}).fit(incomplete_table())
    with pytest.warns(otimpute.exceptions.OtimputeWarning, match="'FailingImputer' is left out"):
        imputer = auto(experts=["gaussian_em", FailingImputer()], methods={1: ["FailingImputer", "mean"]}).fit(
            incomplete_table()
        )
    assert imputer.weights_[1]["mean"] == 1


def test_an_expert_that_fails_on_the_whole_table_only_is_missed_too() -> None:
    class FailsInTheEnd(ExtraTreesImputer):
        def fit_cells(self, values: Any, *args: Any, **options: Any) -> CellFit:
            if len(calls) == 1:
                raise DivergedError("the whole table is too much")
            calls.append(len(values))
            return super().fit_cells(values, *args, **options)

    calls: list[int] = []
    with pytest.raises(DivergedError, match="the whole table is too much"):
        auto(experts=["gaussian_em", FailsInTheEnd(n_rounds=1, n_estimators=2)], methods={1: "FailsInTheEnd"}).fit(
            incomplete_table()
        )


def test_draws_and_error_bars_go_with_named_experts() -> None:
    X = incomplete_table()
    imputer = auto(methods={2: "extra_trees"}, target="distribution").fit(X)
    drawn, bars = imputer.transform(X, return_std=True)
    missing = np.isnan(X)
    assert np.isfinite(drawn).all() and (bars[missing] > 0).all()


def test_methods_survive_saving_and_apply_to_new_rows(tmp_path: Path) -> None:
    frame = mixed_frame()
    imputer = auto(methods={"job": ["trees", "gaussian_em"], "age": "gaussian"}).fit(frame)
    imputer.save(tmp_path / "model.otimpute")
    loaded = otimpute.load(tmp_path / "model.otimpute")
    assert loaded.methods == imputer.methods and loaded.weights_ == imputer.weights_
    pd.testing.assert_frame_equal(loaded.transform(frame[:20]), imputer.transform(frame[:20]))


def test_a_column_without_values_may_be_named() -> None:
    X = np.column_stack([incomplete_table(), np.full(200, np.nan)])
    with pytest.warns(otimpute.exceptions.EmptyColumnWarning):
        imputer = auto(methods={3: "gaussian_em", 2: "mean"}).fit(X)
    assert imputer.weights_[2]["mean"] == 1


def test_a_complete_table_learns_with_methods_when_it_has_to() -> None:
    complete = np.nan_to_num(incomplete_table())
    imputer = auto(methods={1: "mean"}).fit(complete)
    assert imputer.transform([[1.0, np.nan, 1.0]])[0, 1] == pytest.approx(complete[:, 1].mean())
    with pytest.raises(ValueError, match="got 7"):
        auto(methods={7: "mean"}).fit(complete)


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        ({"jobs": "trees"}, r"'age', 'income', 'job'; got 'jobs'; did you mean 'job'\?"),
        ({0: "trees"}, "got 0"),
        ({"job": "extra_tree"}, r"got 'extra_tree'; did you mean 'extra_trees'\?"),
        ({"job": "chained"}, "an expert in methods must be one of"),
        ({"job": []}, "must be an expert's name or a list of such"),
        ({"job": MeanImputer()}, "must be an expert's name or a list of such"),
        (["trees"], "must be a dictionary of experts by column"),
    ],
)
def test_methods_that_make_no_sense_are_refused(methods: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        auto(methods=methods).fit(mixed_frame())


def test_restricted_weights_are_the_best_of_those_allowed() -> None:
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(4000, 3)) * [0.1, 0.4, 0.4]
    group, width = np.repeat([0, 1], 2000), np.ones(2, dtype=int)
    allowed = np.array([[False, True, True], [True, True, True]])
    weights = learn_weights(errors, group, width, allowed=allowed)
    np.testing.assert_allclose(weights[0], [0, 0.5, 0.5], atol=0.05)  # independent errors of one size
    np.testing.assert_array_equal(weights[1], learn_weights(errors, group, width)[1])
    assert Choice("x", ("b",)).among(["a", "b"], {}).tolist() == [False, True]


def test_weights_of_experts_follow_the_rows_that_count() -> None:
    rng = np.random.default_rng(0)
    first = rng.random(3000) < 0.5  # one expert is good in these rows, the other in the rest
    errors = rng.normal(size=(3000, 2)) * np.where(first[:, None], [0.1, 1.0], [1.0, 0.1])
    group, width = np.zeros(3000, dtype=int), np.ones(1, dtype=int)
    for own, other in ((1.0, 9.0), (9.0, 1.0)):
        counts = np.where(first, own, other)
        expected = np.average(errors**2, axis=0, weights=counts)
        best = expected[::-1] / expected.sum()
        # Large errors count by their size, which favours the better one a bit more.
        np.testing.assert_allclose(learn_weights(errors, group, width, counts)[0], best, atol=0.1)


def test_scores_are_weighted_means_of_errors_on_hidden_values() -> None:
    rng = np.random.default_rng(0)
    of_second = rng.random(600) < 0.5
    x = rng.normal(size=600)
    X = np.column_stack([x, np.where(of_second, rng.normal(size=600), x), rng.normal(size=600)])
    X[rng.random(600) < 0.2, 1] = np.nan
    clean, noisy = (auto(n_splits=3).fit(X, sample_weight=np.where(of_second, own, 1 - own)).scores_[1] for own in (0.01, 0.99))
    assert clean["gaussian_em"]["rmse"] < 0.5 * noisy["gaussian_em"]["rmse"]
    hidden = (imputer := auto(n_splits=3).fit(X, sample_weight=np.where(of_second, 1.0, 3.0))).hidden_values_
    mine = hidden.column == 1
    own = np.where(of_second, 1.0, 3.0)[hidden.row[mine]]
    stands_for = hidden.stands_for[mine]
    assert stands_for.mean() == pytest.approx(1)
    assert np.average(own, weights=stands_for) > own.mean()
    off = np.abs(hidden.guess - hidden.truth)[mine]
    assert imputer.scores_[1]["stack"]["mae"] == pytest.approx(np.average(off, weights=stands_for))
