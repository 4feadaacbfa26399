"""Algorithm 3: what it learns, how it ends, and what it leaves behind for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

import otimpute._interrupt as interrupt
import otimpute.imputers.preparation.working_copy as working_copy
import otimpute.imputers.transport_imputer as transport_imputer
from otimpute import RoundRobinImputer
from otimpute.datasets import make_toy
from otimpute.exceptions import DivergedError, FitStoppedWarning, OtimputeWarning
from otimpute.fitting import FitProgress
from otimpute.imputers.batches.divergence import draw_pair
from otimpute.imputers.round_robin.cycles import ColumnOrder
from otimpute.imputers.round_robin.net_models import NetTrainer
from otimpute.imputers.round_robin.trained_columns import choose_columns_to_train
from otimpute.metrics import energy_distance, mae, rmse

QUICK = {"max_cycles": 2, "n_updates": 3, "n_pairs": 2, "random_state": 0}


def whitened(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def punch(X: np.ndarray, rate: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    missing = np.random.default_rng(seed).random(X.shape) < rate
    return np.where(missing, np.nan, X), missing


def correlated(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.3 * rng.normal(size=(n, d))


def noise_free(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A third column that is a combination of two others, with holes in it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 2] = (2 * X[:, 0] - X[:, 1]) / 5**0.5
    missing = np.zeros(X.shape, dtype=bool)
    missing[:, 2] = rng.random(n) < 0.3
    return X, np.where(missing, np.nan, X), missing


def weights_of(imputer: RoundRobinImputer, column: int) -> np.ndarray:
    return imputer._model.models.parameters[column]


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_noise_free_linear_relation_is_recovered(model: str) -> None:
    X, X_incomplete, missing = noise_free(600)
    imputer = RoundRobinImputer(model, random_state=0).fit(X_incomplete)
    assert rmse(X, RoundRobinImputer(model, random_state=0).fit_transform(X_incomplete), missing) < 0.05
    new = np.array([[1.0, 0.5, np.nan], [-0.7, 1.1, np.nan]])
    np.testing.assert_allclose(imputer.transform(new)[:, 2], (2 * new[:, 0] - new[:, 1]) / 5**0.5, atol=0.1)


def test_a_linear_relation_is_learned_from_a_random_start_while_the_loss_falls() -> None:
    X, X_incomplete, missing = noise_free(600)
    imputer = RoundRobinImputer(
        initial_weights="random", initial="mean", metric="euclidean", learning_rate=1e-2,
        max_cycles=20, n_updates=50, tol=0, skip_complete=True, random_state=0,
    )  # fmt: skip
    imputed = imputer.fit_transform(X_incomplete)
    assert rmse(X, imputed, missing) < 0.25
    slope = weights_of(imputer, 2)
    assert 0.7 < slope[0] < 1
    assert -0.55 < slope[1] < -0.3
    losses = imputer.history_["loss"]
    assert losses[-1] < 0.9 * losses[0]
    assert losses[-1] < 0.9 * losses[1]


def test_the_mlp_beats_the_linear_model_on_curved_data_in_energy_distance() -> None:
    X = whitened(make_toy("half_moon", 600, random_state=0))
    X_incomplete, missing = punch(X, seed=1)
    keep = missing.all(axis=1)
    X_incomplete[keep], missing[keep] = X[keep], False
    distance = {}
    for model in ("linear", "mlp"):
        imputer = RoundRobinImputer(model, batches="observed-missing", learning_rate=1e-2, max_cycles=15, random_state=0)
        distance[model] = energy_distance(X, imputer.fit_transform(X_incomplete), missing)
    assert distance["mlp"] < 0.7 * distance["linear"]


def test_a_fit_by_transport_is_no_regression() -> None:
    """Least squares would find a slope of .6; observed rows to resemble ask for their spread, a slope of 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    X = np.column_stack([x, 0.6 * x + 0.8 * rng.normal(size=2000)])
    X_incomplete = X.copy()
    X_incomplete[rng.random(2000) < 0.4, 1] = np.nan
    settings = {"metric": "euclidean", "initial": "mean", "learning_rate": 1e-2, "max_cycles": 10, "n_updates": 30}
    for batches in ("observed-all", "observed-missing"):
        imputer = RoundRobinImputer(batches=batches, skip_complete=True, random_state=0, **settings).fit(X_incomplete)
        assert 0.85 < weights_of(imputer, 1)[0] < 1.1


@pytest.mark.parametrize("batches", ["all", "observed-all", "observed-missing"])
def test_batches_are_drawn_from_the_rows_asked_for(batches: str) -> None:
    free = np.random.default_rng(0).random((60, 2)) < 0.3
    ranges = np.array([[-1, -1], [1, 1]], np.float32)
    trained_column = choose_columns_to_train(free, ranges, batch_size=64, batches=batches, skip_complete=True, seed=0)[1]
    rows = np.empty((1, 2, trained_column.batch_size), np.int64)
    drawn: tuple[set[int], set[int]] = set(), set()
    for step in range(40):
        draw_pair(trained_column.plan, 60, step, 0, rows)
        for side in range(2):
            drawn[side].update(rows[0, side].tolist())
    everyone, missing = set(range(60)), set(np.flatnonzero(free[:, 1]).tolist())
    expected = {
        "all": (everyone, everyone),
        "observed-all": (everyone - missing, everyone),
        "observed-missing": (everyone - missing, missing),
    }
    assert drawn == expected[batches]
    assert trained_column.batch_size == min(map(len, drawn))


def test_the_two_sided_loss_of_any_imputation_falls_as_the_batch_grows() -> None:
    X_incomplete, _ = punch(correlated(600, 4))
    losses = [
        RoundRobinImputer(batch_size=size, epsilon=0.01, max_cycles=1, n_updates=1, random_state=0)
        .fit(X_incomplete)
        .history_["loss"][0]
        for size in (16, 64, 256)
    ]
    assert losses[1] < 0.6 * losses[0]
    assert losses[2] < 0.6 * losses[1]


@pytest.fixture
def vowel(uci: Path) -> np.ndarray:
    return np.loadtxt(uci / "connectionist_bench_vowel.csv", delimiter=",", skiprows=1)


SETS = {"wine": lambda _: load_wine().data, "breast cancer": lambda _: load_breast_cancer().data}
SETS["vowel"] = lambda request: request.getfixturevalue("vowel")


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("name", SETS)
def test_imputations_beat_the_column_mean(name: str, model: str, request: pytest.FixtureRequest) -> None:
    X = whitened(SETS[name](request))
    X_incomplete, missing = punch(X)
    imputed = RoundRobinImputer(model, random_state=0).fit_transform(X_incomplete)
    assert mae(X, imputed, missing) < 0.85 * mae(X, np.where(missing, np.nanmean(X_incomplete, axis=0), X), missing)


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_new_rows_are_imputed_better_than_by_the_training_mean(model: str) -> None:
    X = whitened(load_breast_cancer().data)
    X_incomplete, missing = punch(X)
    imputer = RoundRobinImputer(model, random_state=0).fit(X_incomplete[:400])
    mean = np.where(missing, np.nanmean(X_incomplete[:400], axis=0), X)
    assert mae(X[400:], imputer.transform(X_incomplete[400:]), missing[400:]) < 0.5 * mae(X[400:], mean[400:], missing[400:])


def test_the_paper_preset_is_the_papers() -> None:
    X_incomplete, _ = punch(whitened(correlated(300, 4)))
    imputer = RoundRobinImputer.paper("mlp", random_state=0)
    expected = {
        "model": "mlp", "max_cycles": 10, "n_updates": 15, "n_pairs": 10, "batches": "observed-missing",
        "order": "random", "tol": 1e-3, "learning_rate": 1e-2,
        "l2": 1e-5, "noise": 0.1, "initial": "mean", "metric": "euclidean", "epsilon": "authors",
        "scale": False, "batch_size": "auto", "step_decay": 1.0, "initial_weights": "random",
    }  # fmt: skip
    assert {name: imputer.get_params()[name] for name in expected} == expected
    imputer.fit(X_incomplete)
    filled = np.where(np.isnan(X_incomplete), np.nanmean(X_incomplete, axis=0), X_incomplete)
    i, j = np.triu_indices(len(filled), 1)
    cost = np.square(filled[i] - filled[j]).sum(axis=1) / 2
    assert imputer.epsilon_ == pytest.approx((0.05 * np.median(cost)) ** 2, rel=0.05)
    assert imputer.batch_size_ == 128
    assert weights_of(imputer, 0).shape == (3 * 6 + 6 + 6 * 3 + 3 + 3 + 1,)


def test_columns_are_visited_in_the_order_asked_for() -> None:
    rng = np.random.default_rng(0)
    assert ColumnOrder("given", [5, 1, 3], rng).next().tolist() == [0, 1, 2]
    assert ColumnOrder("increasing", [5, 1, 3, 1], rng).next().tolist() == [1, 3, 2, 0]
    random = ColumnOrder("random", [0] * 50, rng)
    first, second = random.next(), random.next()
    assert sorted(first) == sorted(second) == list(range(50))
    assert first.tolist() != second.tolist() == random.current.tolist()
    X = correlated(80, 4)
    X_incomplete = X.copy()
    for column, count in enumerate([30, 10, 20, 40]):
        X_incomplete[rng.choice(80, count, replace=False), column] = np.nan
    fitted = RoundRobinImputer(**QUICK).fit(X_incomplete)._model
    assert [target.column for target in fitted.targets] == [1, 2, 0, 3]


@pytest.mark.parametrize("score", ["rmse", "mae", "energy"])
def test_validation_keeps_the_best_cycle(score: str) -> None:
    X_incomplete, _ = punch(whitened(load_wine().data))
    settings = {
        "initial_weights": "random", "learning_rate": 0.05, "tol": 0, "random_state": 0,
        "validation_fraction": 0.2, "validation_score": score, "patience": 3,
    }  # fmt: skip
    imputer = RoundRobinImputer("mlp", max_cycles=30, **settings)
    imputed = imputer.fit_transform(X_incomplete)
    scores = imputer.history_[f"validation_{score}"]
    assert imputer.stop_reason_ == "validation"
    assert imputer.best_cycle_ == 1 + int(np.argmin(scores[1:])) == imputer.n_cycles_ - 3
    assert len(scores) == imputer.n_cycles_ + 1 < 31
    observed = ~np.isnan(X_incomplete)
    np.testing.assert_array_equal(imputed[observed], X_incomplete[observed])
    # Without step decay the first cycles of a longer fit are those of a shorter one.
    short = RoundRobinImputer("mlp", max_cycles=imputer.best_cycle_, **settings)
    np.testing.assert_array_equal(short.fit_transform(X_incomplete), imputed)
    # Stopped inside the cycle after the best one: its half-trained models are not kept.
    n_updates = imputer.best_cycle_ * 15 * 13 + 40
    stopped = RoundRobinImputer("mlp", max_cycles=30, callbacks=lambda p: p.step >= n_updates, **settings)
    np.testing.assert_array_equal(stopped.fit_transform(X_incomplete), imputed)
    assert stopped.stop_reason_ == "callback"


def test_validation_of_a_table_too_small_to_hide_anything_warns() -> None:
    with pytest.warns(OtimputeWarning, match="hides none"):
        RoundRobinImputer(validation_fraction=0.1, **QUICK).fit([[1.0, 2.0], [np.nan, 3.0], [2.0, 1.0]])


def test_columns_complete_in_training_have_models_unless_skipped() -> None:
    import pandas as pd

    X = correlated(300, 3)
    X[:, 2] = X[:, 0] - X[:, 1] + 0.05 * X[:, 2]
    frame = pd.DataFrame(X, columns=["a", "b", "whole"])
    frame.loc[::3, "a"] = np.nan
    new = pd.DataFrame({"a": [0.5, -1.0], "b": [0.2, 1.0], "whole": [np.nan, np.nan]})
    imputed = RoundRobinImputer(random_state=0).fit(frame).transform(new)
    np.testing.assert_allclose(imputed["whole"], new["a"] - new["b"], atol=0.4 * X[:, 2].std())
    skipping = RoundRobinImputer(skip_complete=True, random_state=0).fit(frame)
    with pytest.warns(OtimputeWarning, match="columns whole were complete in training"):
        imputed = skipping.transform(new)
    np.testing.assert_allclose(imputed["whole"], frame["whole"].mean(), rtol=1e-5)


def test_practice_leaves_observed_values_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of complete columns are trained on hidden cells, which must be back when the others look at them."""
    X = correlated(200, 4)
    X_incomplete = X.copy()
    X_incomplete[::2, 0] = np.nan
    tables = []

    def look(self: NetTrainer, trained_column: Any, *rest: Any) -> None:
        update(self, trained_column, *rest)
        tables.append((trained_column.target.column, self.batches.cells.values[:, :4].copy()))

    update = NetTrainer.update
    monkeypatch.setattr(NetTrainer, "update", look)
    RoundRobinImputer(**QUICK).fit(X_incomplete)
    standard = whitened(X)
    for column, table in tables:
        others = [k for k in range(1, 4) if k != column]
        np.testing.assert_allclose(table[:, others], standard[:, others], atol=1e-5)
        if column:
            replaced = np.abs(table[:, column] - standard[:, column]) > 1e-3
            assert 0.1 < replaced.mean() <= 0.2
    assert {column for column, _ in tables} == {0, 1, 2, 3}


def test_new_rows_are_filled_by_the_models_in_turn_from_the_training_means() -> None:
    X_incomplete, _ = punch(whitened(correlated(200, 4)))
    imputer = RoundRobinImputer.paper(random_state=0, max_cycles=2).fit(X_incomplete)
    row = np.array([0.3, np.nan, np.nan, -1.0])
    centre = imputer._model.columns.scaler.centre
    z = np.where(np.isnan(row), 0, row - centre)
    for _ in range(30):
        for target in imputer._model.targets:
            if np.isnan(row[target.column]):
                weights = weights_of(imputer, target.column)
                z[target.column] = np.delete(z, target.column) @ weights[:-1] + weights[-1]
    np.testing.assert_allclose(imputer.transform(row[None])[0], z + centre, atol=5e-3)


def test_new_rows_are_imputed_alike_in_chunks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    X_incomplete, _ = punch(correlated(200, 4))
    imputer = RoundRobinImputer("mlp", **QUICK).fit(X_incomplete)
    whole = imputer.transform(X_incomplete)
    monkeypatch.setattr(working_copy, "CHUNK", 7)
    np.testing.assert_array_equal(imputer.transform(X_incomplete), whole)


def test_a_warm_start_continues_from_the_fitted_models() -> None:
    X_incomplete, _ = punch(whitened(load_wine().data))
    settings = {"initial_weights": "random", "metric": "euclidean", "initial": "mean", "learning_rate": 1e-2, "tol": 0}
    imputer = RoundRobinImputer(max_cycles=3, warm_start=True, random_state=0, **settings).fit(X_incomplete)
    before, cold = weights_of(imputer, 0).copy(), imputer.history_["loss"]
    imputer.set_params(max_cycles=1, learning_rate=1e-6)
    imputer.fit(X_incomplete)
    np.testing.assert_allclose(weights_of(imputer, 0), before, atol=1e-4)
    assert imputer.history_["loss"][0] == pytest.approx(cold[-1], rel=0.1)
    again = RoundRobinImputer(max_cycles=1, random_state=0, **{**settings, "learning_rate": 1e-6}).fit(X_incomplete)
    assert np.abs(weights_of(again, 0) - before).max() > 0.1
    with pytest.raises(ValueError, match="first fit has 13 columns, got 4"):
        imputer.fit(X_incomplete[:, :4])
    imputer.set_params(warm_start=False).fit(X_incomplete[:, :4])


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_the_number_of_threads_does_not_change_a_bit(model: str) -> None:
    X_incomplete, _ = punch(correlated(100, 4))
    settings = {**QUICK, "n_pairs": 5, "validation_fraction": 0.1}
    alone = RoundRobinImputer(model, **settings)
    expected = alone.fit_transform(X_incomplete)
    for n_jobs in (2, 3):
        imputer = RoundRobinImputer(model, n_jobs=n_jobs, **settings)
        np.testing.assert_array_equal(imputer.fit_transform(X_incomplete), expected)
        np.testing.assert_equal(imputer.history_, alone.history_)


def test_an_interrupted_fit_keeps_what_it_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "_last", [-np.inf])
    X_incomplete, _ = punch(correlated(300, 5))

    def press(progress: FitProgress) -> None:
        if progress.step > 100:
            raise KeyboardInterrupt

    imputer = RoundRobinImputer(max_cycles=1000, tol=0, random_state=0, callbacks=press)
    with pytest.warns(FitStoppedWarning, match="Ctrl-C"):
        imputed = imputer.fit_transform(X_incomplete)
    assert imputer.stop_reason_ == "interrupted"
    assert np.isfinite(imputed).all()
    assert np.isfinite(imputer.transform(X_incomplete)).all()
    with pytest.raises(KeyboardInterrupt):
        imputer.fit(X_incomplete)


def test_time_limit_and_callback_stop_a_fit() -> None:
    X_incomplete, _ = punch(correlated(300, 5))
    limited = RoundRobinImputer(max_cycles=100_000, tol=0, max_seconds=0.2, random_state=0)
    with pytest.warns(FitStoppedWarning, match="max_seconds"):
        limited.fit(X_incomplete)
    assert limited.stop_reason_ == "max_seconds"
    seen: list[FitProgress] = []
    stopped = RoundRobinImputer(callbacks=[seen.append, lambda progress: progress.step >= 40], random_state=0)
    stopped.fit(X_incomplete)
    assert stopped.stop_reason_ == "callback"
    assert seen[-1].step >= 40
    assert seen[-1].max_steps == 5 * 15 * 5  # cycles, updates, columns


def test_a_cycle_that_changes_nothing_ends_the_fit() -> None:
    X_incomplete, _ = punch(correlated(200, 3))
    imputer = RoundRobinImputer(learning_rate=1e-9, max_cycles=50, random_state=0).fit(X_incomplete)
    assert imputer.stop_reason_ == "tol"
    assert imputer.converged_
    assert imputer.n_cycles_ < 50


def test_a_table_with_nothing_to_train_needs_no_training() -> None:
    imputer = RoundRobinImputer(skip_complete=True, random_state=0).fit(correlated(50, 3))
    assert imputer.stop_reason_ == "nothing to train"
    assert imputer.n_cycles_ == 0


def test_a_fit_that_diverges_says_so() -> None:
    X_incomplete, _ = punch(correlated(200, 3))
    with pytest.raises(DivergedError, match="lower learning_rate"):
        RoundRobinImputer(learning_rate=1e30, random_state=0).fit(X_incomplete)


def test_predictions_never_run_away_and_a_fit_that_would_says_so() -> None:
    """Models that amplify each other are held near the observed range, in the fit and in new rows."""
    X_incomplete, _ = punch(correlated(200, 3))
    imputer = RoundRobinImputer(learning_rate=10.0, max_cycles=3, random_state=0)
    low, high = np.nanmin(X_incomplete, axis=0), np.nanmax(X_incomplete, axis=0)
    with pytest.warns(OtimputeWarning, match="of the imputed values are held at one range beyond the observed ones"):
        outputs = [imputer.fit_transform(X_incomplete), imputer.transform(X_incomplete)]
    for imputed in outputs:
        assert (imputed >= low - 1.01 * (high - low)).all()
        assert (imputed <= high + 1.01 * (high - low)).all()


def test_many_columns_start_from_a_plain_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_imputer, "fit_model", None)  # too expensive here: not even begun
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(400, 5))
    X = whitened(factors @ rng.normal(size=(5, 310)) + 0.5 * rng.normal(size=(400, 310)))
    X_incomplete, missing = punch(X, 0.1)
    imputer = RoundRobinImputer(max_cycles=1, n_updates=1, n_pairs=1, random_state=0)
    imputed = imputer.fit_transform(X_incomplete)
    assert imputer.metric_ == "euclidean"
    assert rmse(X, imputed, missing) < 0.6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "forest"}, "model must be one of 'linear', 'mlp', got 'forest'"),
        ({"model": 3}, 'model must be "linear", "mlp" or a function'),
        ({"max_cycles": 0}, "max_cycles must be a whole number >= 1, got 0"),
        ({"n_updates": 1.5}, "n_updates must be a whole number >= 1, got 1.5"),
        ({"order": "decreasing"}, "order must be one of 'given', 'increasing', 'random', got 'decreasing'"),
        ({"validation_score": "r2"}, "validation_score must be one of"),
        ({"initial_weights": "zero"}, "initial_weights must be one of"),
        ({"l2": -1}, "l2 must be a finite number >= 0, got -1"),
        ({"skip_complete": "yes"}, "skip_complete must be True or False, got 'yes'"),
        ({"patience": 0}, "patience must be a whole number >= 1, got 0"),
        ({"epsilon": 0}, "epsilon must be a finite number > 0, got 0"),
        ({"batch_size": 51}, "batch_size=51 exceeds the 50 rows"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named_with_what_is_accepted(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        RoundRobinImputer(**parameters).fit(punch(correlated(50, 3))[0])
    assert message in str(error.value)


def test_without_torch_models_of_ones_own_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from otimpute import MetaSinkhornImputer

    monkeypatch.setitem(sys.modules, "torch", None)
    X_incomplete, _ = punch(correlated(50, 3))
    for imputer in (RoundRobinImputer(lambda d_in: None), MetaSinkhornImputer()):
        with pytest.raises(ModuleNotFoundError, match=r'pip install "otimpute\[torch\]"'):
            imputer.fit(X_incomplete)
    RoundRobinImputer("mlp", **QUICK).fit(X_incomplete)


def test_an_untrained_start_is_never_taken_for_the_best_cycle() -> None:
    """With random weights the table starts from another model's guesses, which say nothing of the weights."""
    X = whitened(load_wine().data)
    X_incomplete, _ = punch(X)
    imputer = RoundRobinImputer(
        initial_weights="random", learning_rate=1e-3, max_cycles=2, validation_fraction=0.1, random_state=0
    )
    imputer.fit(X_incomplete)
    assert imputer.history_["validation_rmse"][0] < min(imputer.history_["validation_rmse"][1:])
    assert imputer.best_cycle_ >= 1


def test_random_weights_are_trained_longer_and_faster_by_default() -> None:
    X = whitened(load_wine().data)
    X_incomplete, missing = punch(X)
    imputer = RoundRobinImputer(initial_weights="random", tol=0, random_state=0)
    imputed = imputer.fit_transform(X_incomplete)
    assert imputer.n_cycles_ == 20
    assert mae(X, imputed, missing) < 0.8 * mae(X, np.where(missing, np.nanmean(X_incomplete, axis=0), X), missing)


def test_the_paper_preset_on_raw_columns_warns() -> None:
    with pytest.warns(OtimputeWarning) as caught:
        RoundRobinImputer.paper(max_cycles=1, n_updates=1, random_state=0).fit(punch(load_wine().data)[0])
    assert any("about unit spread, got 0.1" in str(warning.message) for warning in caught)


def test_a_warm_start_survives_a_fit_that_failed_and_refuses_another_model() -> None:
    X_incomplete, _ = punch(whitened(correlated(150, 4)))
    imputer = RoundRobinImputer(warm_start=True, **QUICK).fit(X_incomplete)
    before = weights_of(imputer, 0).copy()
    with pytest.raises(DivergedError):
        imputer.set_params(learning_rate=1e30).fit(X_incomplete)
    imputer.set_params(learning_rate=1e-6).fit(X_incomplete)
    np.testing.assert_allclose(weights_of(imputer, 0), before, atol=1e-4)
    with pytest.raises(ValueError, match="continues to train 'linear', got 'mlp'"):
        imputer.set_params(model="mlp").fit(X_incomplete)


def test_a_warm_start_warns_where_the_old_scales_do_not_fit() -> None:
    X_incomplete, _ = punch(whitened(correlated(150, 3)))
    X_incomplete[:, 2] = 5
    imputer = RoundRobinImputer(warm_start=True, **QUICK).fit(X_incomplete)
    with pytest.warns(OtimputeWarning, match="lie far outside"):
        imputer.fit(1000 * X_incomplete)
    X_incomplete[:, 2] = np.arange(150)
    with pytest.warns(OtimputeWarning, match="columns vary that were constant"):
        imputer.fit(X_incomplete)
    constant = RoundRobinImputer(warm_start=True, **QUICK).fit(np.ones((20, 3)))
    with pytest.warns(OtimputeWarning, match="columns vary that were constant"):
        constant.fit(X_incomplete)


def test_a_batch_without_holes_changes_no_model() -> None:
    X = whitened(correlated(3000, 3))
    X[7, 1] = np.nan
    settings = {"skip_complete": True, "learning_rate": 1e-2, "l2": 0.1, "n_pairs": 1, "batch_size": 2, "tol": 0}
    imputer = RoundRobinImputer(max_cycles=10, n_updates=10, random_state=0, **settings).fit(X)
    untrained = RoundRobinImputer(max_cycles=1, random_state=0, **{**settings, "learning_rate": 1e-12}).fit(X)
    np.testing.assert_allclose(weights_of(imputer, 1), weights_of(untrained, 1), atol=0.05)


def test_skipped_columns_stay_so_with_validation() -> None:
    X_incomplete = correlated(100, 4)
    X_incomplete[::3, 0] = np.nan
    imputer = RoundRobinImputer(skip_complete=True, validation_fraction=0.2, **QUICK).fit(X_incomplete)
    assert [target.column for target in imputer._model.targets] == [0]


def test_limits_are_those_of_all_observed_values_hidden_or_not() -> None:
    X_incomplete, _ = punch(correlated(60, 3))
    imputer = RoundRobinImputer(validation_fraction=0.6, **QUICK).fit(X_incomplete)
    scaler = imputer._model.columns.scaler
    for target in imputer._model.targets:
        ends = scaler.restore(np.array([target.low, target.high]), np.full(2, target.column))
        column = X_incomplete[:, target.column]
        low, high = np.nanmin(column), np.nanmax(column)
        np.testing.assert_allclose(ends, [2 * low - high, 2 * high - low], rtol=1e-4)


def test_networks_follow_far_tails_as_linear_models_do() -> None:
    rng = np.random.default_rng(0)
    x = -np.exp(1.8 * rng.normal(size=(400, 1)))
    X = np.hstack([x, x, -x]) + 0.01 * rng.normal(size=(400, 3))
    far = np.argsort(X[:, 0])[1:4]  # the farthest stays and sets the limits
    X_incomplete = X.copy()
    X_incomplete[far, 0] = np.nan
    X_incomplete[::5, 1] = np.nan
    imputed = RoundRobinImputer("mlp", **QUICK).fit_transform(X_incomplete)
    np.testing.assert_allclose(imputed[far, 0], X[far, 0], rtol=0.1)


def test_progress_is_shown_without_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "rich", None)
    RoundRobinImputer(verbose=1, **QUICK).fit(punch(correlated(50, 3))[0])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("round-robin imputation: step ")
    assert lines[-1].startswith("round-robin imputation: finished after ")


def test_networks_that_no_memory_holds_are_refused() -> None:
    from otimpute.imputers.round_robin.net_models import layer_sizes, random_parameters

    with pytest.raises(ValueError, match='grow with the cube of the columns; use model="linear"'):
        random_parameters(layer_sizes("mlp", 999), 1000, np.random.default_rng(0))


@pytest.mark.parametrize("labels", [["x", "y", "a"], ["x", "y", "zz"], ["x", "y"]])
def test_new_labels_do_not_change_what_a_warm_start_learned(labels: list[str]) -> None:
    rng = np.random.default_rng(0)

    def batch(names: list[str]) -> tuple[pl.DataFrame, np.ndarray]:
        group = rng.integers(0, len(names), 150)
        numbers = {f"s{k}": (group == k) * 1.0 + rng.normal(size=150) * 0.05 for k in range(3)}
        cells = [None if row % 5 == 0 else names[k] for row, k in enumerate(group)]
        return pl.DataFrame({**numbers, "c": cells}), np.array(names)[group]

    first, _ = batch(["x", "y", "z"])
    second, truth = batch(labels)
    imputer = RoundRobinImputer(max_cycles=4, n_updates=20, random_state=0, warm_start=True).fit(first)
    imputed = imputer.set_params(max_cycles=1, n_updates=1).fit_transform(second)["c"].to_numpy()
    known = second["c"].is_null().to_numpy() & np.isin(truth, ["x", "y"])
    assert (imputed == truth)[known].mean() > 0.95
