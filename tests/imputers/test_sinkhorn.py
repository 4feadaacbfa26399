"""SinkhornImputer: presets, parameters, quality, stopping."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import sys
import threading
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError

import otimpute.imputers.preparation.working_copy as working_copy
from otimpute import SinkhornImputer
from otimpute.baselines import GaussianEMImputer, ICEImputer
from otimpute.exceptions import DivergedError, FitStoppedWarning, OtimputeWarning
from otimpute.fitting import FitProgress
from otimpute.metrics import energy_distance, mae, rmse


def whitened(load: Any, rate: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = load().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    missing = np.random.default_rng(seed).random(X.shape) < rate
    return X, missing, np.where(missing, np.nan, X)


def test_the_paper_preset_is_the_published_table() -> None:
    preset = SinkhornImputer.paper()
    expected = {
        "epsilon": "authors", "batch_size": "auto", "n_pairs": 1, "max_steps": 3000, "learning_rate": 1e-2,
        "step_decay": 1.0, "tail_average": 0.0, "initial": "mean", "noise": 0.1, "metric": "euclidean",
        "one_sided": False, "scale": False, "tol": 0.0,
    }  # fmt: skip
    assert {name: getattr(preset, name) for name in expected} == expected
    assert SinkhornImputer.paper(max_steps=5).max_steps == 5


def test_the_paper_presets_epsilon_is_the_authors_on_the_mean_filled_table() -> None:
    X, missing, X_incomplete = whitened(load_iris)
    imputer = SinkhornImputer.paper(max_steps=1, random_state=0).fit(X_incomplete)
    filled = np.where(missing, np.nanmean(X_incomplete, axis=0), X_incomplete)
    squared = ((filled[:, None] - filled[None]) ** 2).sum(axis=2)[np.triu_indices(len(X), 1)]
    assert imputer.epsilon_ == pytest.approx((0.05 * np.median(squared) / 2) ** 2, rel=1e-4)


@pytest.mark.parametrize(("n", "m"), [(300, 128), (257, 128), (256, 128), (150, 64), (5, 2), (3, 1), (2, 1)])
def test_the_batch_is_128_or_the_power_of_two_below_half_the_rows(n: int, m: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 2))
    assert SinkhornImputer(max_steps=1).fit(X).batch_size_ == m


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_defaults_beat_the_column_mean_by_a_third_in_and_out_of_sample(load: Any) -> None:
    X, missing, X_incomplete = whitened(load)
    zeros = np.zeros_like(X)
    imputed = SinkhornImputer(random_state=0).fit_transform(X_incomplete)
    assert mae(X, imputed, missing) < 0.75 * mae(X, zeros, missing)
    assert energy_distance(X, imputed, missing) < 0.2 * energy_distance(X, zeros, missing)
    order = np.random.default_rng(1).permutation(len(X))
    train, test = order[: len(X) * 2 // 3], order[len(X) * 2 // 3 :]
    new = SinkhornImputer(random_state=0).fit(X_incomplete[train]).transform(X_incomplete[test])
    assert mae(X[test], new, missing[test]) < 0.8 * mae(X[test], zeros[test], missing[test])


def test_the_paper_preset_beats_the_column_mean() -> None:
    X, missing, X_incomplete = whitened(load_breast_cancer)
    imputed = SinkhornImputer.paper(random_state=0, max_steps=1000).fit_transform(X_incomplete)
    assert rmse(X, imputed, missing) < 0.65 * rmse(X, np.zeros_like(X), missing)


def test_one_sided_batches_impute_from_complete_rows() -> None:
    X, missing, _ = whitened(load_iris)
    missing[np.random.default_rng(0).permutation(len(X))[:80]] = False
    X_incomplete = np.where(missing, np.nan, X)
    imputed = SinkhornImputer(one_sided=True, random_state=0).fit_transform(X_incomplete)
    assert rmse(X, imputed, missing) < 0.75 * rmse(X, np.zeros_like(X), missing)
    with pytest.raises(ValueError, match="none of the 3 rows is complete"):
        SinkhornImputer(one_sided=True).fit([[1.0, 2.0, np.nan], [np.nan, 3.0, 4.0], [2.0, np.nan, 5.0]])


def test_scaling_inside_makes_units_irrelevant() -> None:
    X, _, X_incomplete = whitened(load_wine)
    units = np.logspace(-6, 6, X.shape[1])
    plain = SinkhornImputer(random_state=0, max_steps=50).fit_transform(X_incomplete)
    other = SinkhornImputer(random_state=0, max_steps=50).fit_transform(X_incomplete * units + 1e3 * units) / units
    np.testing.assert_allclose(other - 1e3, plain, atol=1e-3)


def test_a_starting_table_is_used() -> None:
    X, missing, X_incomplete = whitened(load_iris)
    given = SinkhornImputer(initial=X, noise=0.0, max_steps=1, learning_rate=1e-9, random_state=0)
    assert rmse(X, given.fit_transform(X_incomplete), missing) < 1e-3
    with pytest.raises(ValueError, match="shape"):
        SinkhornImputer(initial=X[:5]).fit(X_incomplete)
    with pytest.raises(ValueError, match="finite"):
        SinkhornImputer(initial=X_incomplete).fit(X_incomplete)


def test_validation_scores_are_those_of_hidden_cells_which_come_back_untouched() -> None:
    X, missing, X_incomplete = whitened(load_breast_cancer)
    imputer = SinkhornImputer(validation_fraction=0.1, random_state=0, max_steps=400)
    imputed = imputer.fit_transform(X_incomplete)
    np.testing.assert_array_equal(imputed[~missing], X[~missing])
    score = imputer.history_["validation_rmse"][-1]
    assert score == pytest.approx(rmse(X, imputed, missing), rel=0.25)
    assert len(imputer.history_["validation_mae"]) == len(imputer.history_["step"])
    assert "validation_mae" not in SinkhornImputer(max_steps=20).fit(X_incomplete).history_


def test_history_tells_how_the_fit_went() -> None:
    _, _, X_incomplete = whitened(load_iris)
    imputer = SinkhornImputer(random_state=0, tol=0, initial="mean").fit(X_incomplete)
    history = imputer.history_
    assert set(history) == {"step", "learning_rate", "loss", "marginal_error", "movement"}
    assert history["step"] == list(range(50, 1001, 50))
    assert history["loss"][-1] < history["loss"][0]
    assert history["learning_rate"][-1] == pytest.approx(1e-3, rel=0.01)
    assert 0 < history["marginal_error"][-1] < 1
    assert imputer.n_steps_ == 1000
    assert imputer.stop_reason_ == "max_steps"


def test_a_loose_tolerance_stops_early_and_says_converged() -> None:
    _, _, X_incomplete = whitened(load_iris)
    imputer = SinkhornImputer(random_state=0, tol=0.5).fit(X_incomplete)
    assert imputer.converged_
    assert imputer.stop_reason_ == "tol"
    assert imputer.n_steps_ == 100
    assert not SinkhornImputer(random_state=0, tol=1e-9, max_steps=100).fit(X_incomplete).converged_


def test_steps_grow_with_the_table() -> None:
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[::3, 0] = np.nan
    with pytest.warns(FitStoppedWarning, match="max_seconds"):
        imputer = SinkhornImputer(random_state=0, max_seconds=1e-9).fit(X)
    assert imputer.stop_reason_ == "max_seconds"
    assert imputer._schedule(5000, 128).n_steps == -(-100 * 5000 // 256)
    assert imputer._schedule(500, 128).n_steps == 1000


def test_a_complete_table_comes_back_at_once() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    imputer = SinkhornImputer()
    np.testing.assert_array_equal(imputer.fit_transform(X), X)
    assert imputer.n_steps_ == 0
    assert imputer.stop_reason_ == "nothing missing"


def test_callbacks_watch_and_may_stop() -> None:
    _, _, X_incomplete = whitened(load_breast_cancer)
    seen: list[FitProgress] = []
    imputer = SinkhornImputer(random_state=0, callbacks=[seen.append]).fit(X_incomplete)
    assert [p.step for p in seen] == sorted({p.step for p in seen})
    assert seen[-1].max_steps == 1000
    stopped = SinkhornImputer(random_state=0, callbacks=lambda progress: progress.step >= 100).fit(X_incomplete)
    assert stopped.stop_reason_ == "callback"
    assert stopped.n_steps_ < imputer.n_steps_
    assert np.isfinite(stopped.transform(X_incomplete)).all()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_leaves_a_usable_imputer_and_says_so() -> None:
    _, _, X_incomplete = whitened(load_breast_cancer)
    begun = threading.Event()

    def interrupt() -> None:
        begun.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    imputer = SinkhornImputer(random_state=0, max_steps=10_000_000, tol=0, callbacks=lambda _: begun.set())
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs deaf to Ctrl-C
    try:
        thread.start()
        with pytest.warns(FitStoppedWarning, match="stopped by Ctrl-C"):
            imputed = imputer.fit_transform(X_incomplete)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert imputer.stop_reason_ == "interrupted"
    assert 0 < imputer.n_steps_ < 10_000_000
    assert np.isfinite(imputed).all()
    assert np.isfinite(imputer.transform(X_incomplete)).all()


def test_numbers_that_leave_the_finite_range_raise_with_advice() -> None:
    _, _, X_incomplete = whitened(load_iris)
    with pytest.raises(DivergedError, match="lower learning_rate"):
        SinkhornImputer(learning_rate=1e30, random_state=0, max_steps=200).fit(X_incomplete)


def test_unscaled_tables_of_huge_numbers_are_refused_with_advice() -> None:
    with pytest.raises(ValueError, match="pass scale=True"):
        SinkhornImputer(scale=False).fit([[1e200, 1.0], [-1e200, np.nan], [3.0, 4.0]])


def test_the_same_result_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_copy, "CHUNK", 50)  # so that there is something to share out
    _, _, X_incomplete = whitened(load_breast_cancer)
    results = []
    for n_jobs in (None, 2, -1):
        imputer = SinkhornImputer(n_pairs=3, n_jobs=n_jobs, max_steps=60, random_state=0)
        results.append((imputer.fit_transform(X_incomplete), imputer.transform(X_incomplete)))
    for fitted, new in results[1:]:
        np.testing.assert_array_equal(fitted, results[0][0])
        np.testing.assert_array_equal(new, results[0][1])


def test_a_fitted_imputer_keeps_at_most_the_reference_rows_asked_for() -> None:
    _, _, X_incomplete = whitened(load_breast_cancer)
    imputer = SinkhornImputer(reference_size=64, max_steps=20, random_state=0).fit(X_incomplete)
    assert imputer._model.reference is not None
    assert imputer._model.reference.points.shape == (30, 64)


def test_the_progress_bar_is_shown_only_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    _, _, X_incomplete = whitened(load_iris)
    SinkhornImputer(max_steps=20, random_state=0).fit(X_incomplete)
    assert capsys.readouterr() == ("", "")
    SinkhornImputer(max_steps=20, random_state=0, verbose=1).fit(X_incomplete)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Sinkhorn imputation" in err
    assert "finished after 20 steps" in " ".join(err.split())
    stopping = {"callbacks": lambda progress: progress.step >= 10, "max_steps": 500}
    SinkhornImputer(random_state=0, verbose=1, **stopping).fit(X_incomplete)
    err = " ".join(capsys.readouterr().err.split())
    assert "stopped by a callback after" in err and "finished" not in err


def test_without_rich_progress_is_told_in_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)  # as if it were not installed
    _, _, X_incomplete = whitened(load_iris)
    SinkhornImputer(max_steps=200, random_state=0, verbose=1, tol=0).fit(X_incomplete)
    *lines, last = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"Sinkhorn imputation: step {n} of 200" for n in (50, 100, 150, 200)]
    assert [line.endswith(" left") for line in lines] == [True, True, True, False]
    assert last == "Sinkhorn imputation: finished after 200 steps"


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": -0.1}, ValueError, 'epsilon must be a finite number > 0, got -0.1; pass "auto"'),
        ({"epsilon": "small"}, ValueError, "epsilon must be one of 'authors', 'auto', 'cost', 'distance', got 'small'"),
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number >= 1, got 0"),
        ({"batch_size": 1000}, ValueError, "exceeds the 5 rows"),
        ({"batch_size": 2.5}, TypeError, "batch_size"),
        ({"n_pairs": 0}, ValueError, "n_pairs"),
        ({"max_steps": "many"}, TypeError, "max_steps"),
        ({"learning_rate": float("nan")}, ValueError, "learning_rate"),
        ({"step_decay": 0}, ValueError, "step_decay must be a finite number > 0 and <= 1, got 0"),
        ({"tail_average": 1}, ValueError, "tail_average"),
        ({"initial": "median"}, ValueError, "initial"),
        ({"noise": -1}, ValueError, "noise"),
        ({"metric": "cosine"}, ValueError, "metric must be one of"),
        ({"one_sided": "yes"}, TypeError, "one_sided must be True or False, got 'yes'"),
        ({"scale": 2}, TypeError, "scale"),
        ({"tol": -1}, ValueError, "tol"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction"),
        ({"reference_size": 0}, ValueError, "reference_size"),
        ({"max_seconds": 0}, ValueError, "pass None for no limit"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"random_state": "seed"}, ValueError, "random_state must be None"),
        ({"callbacks": [3]}, TypeError, "callbacks"),
        ({"missing_values": "NA"}, TypeError, "missing_values must be a number"),
        ({"add_indicator": 1.5}, TypeError, "add_indicator"),
        ({"keep_empty_features": None}, TypeError, "keep_empty_features"),
        ({"integers": "truncate"}, ValueError, "integers must be one of 'float', 'round', got 'truncate'"),
    ],
    ids=str,
)
def test_invalid_parameters_are_refused_with_what_is_accepted(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 1.0], [4.0, 0.0], [5.0, 7.0]])
    with pytest.raises(error) as raised:
        SinkhornImputer(**parameters).fit(X)
    assert message in str(raised.value)


def test_the_constructor_takes_keywords_only_and_every_one_is_documented() -> None:
    with pytest.raises(TypeError):
        SinkhornImputer(0.1)  # type: ignore[misc]
    names = inspect.signature(SinkhornImputer).parameters
    assert [name for name in names if f"\n    {name} : " not in SinkhornImputer.__doc__] == []


def test_an_interrupt_that_comes_before_a_block_was_counted_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import otimpute._interrupt as interrupt
    import otimpute.fitting.training as training
    import otimpute.imputers.sinkhorn.cpu_steps as cpu_steps

    _, _, X_incomplete = whitened(load_breast_cancer)
    take = cpu_steps.CpuSteps.take
    calls = []

    def interrupted(self: Any, first: int, rates: np.ndarray, window_start: int) -> Any:
        found = take(self, first, rates, window_start)
        calls.append(first + len(rates))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(cpu_steps.CpuSteps, "take", interrupted)
    monkeypatch.setattr(training, "_BLOCK_SECONDS", 1e9)  # blocks grow alike in both fits, however busy the machine is
    monkeypatch.setattr(interrupt, "_last", [-np.inf])
    imputer = SinkhornImputer(random_state=0, max_steps=100_000, initial="mean", tol=0)
    with pytest.warns(FitStoppedWarning, match="Ctrl-C"):
        imputed = imputer.fit_transform(X_incomplete)
    assert imputer.n_steps_ == calls[-1]
    monkeypatch.setattr(cpu_steps.CpuSteps, "take", take)
    stopped = SinkhornImputer(
        random_state=0, max_steps=100_000, initial="mean", tol=0, callbacks=lambda progress: progress.step >= calls[-1]
    )
    assert np.abs(imputed - stopped.fit_transform(X_incomplete)).max() < 0.1
    assert stopped.n_steps_ == imputer.n_steps_
    # A second Ctrl-C right after the first is for the program around the fit.
    monkeypatch.setattr(cpu_steps.CpuSteps, "take", interrupted)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        imputer.fit(X_incomplete)


def test_a_fit_that_fails_leaves_no_half_fitted_imputer() -> None:
    _, _, X_incomplete = whitened(load_iris)

    def fail(_: FitProgress) -> None:
        raise RuntimeError("from a callback")

    imputer = SinkhornImputer(max_steps=20, random_state=0).fit(X_incomplete)
    imputer.set_params(callbacks=[fail])
    with pytest.raises(RuntimeError, match="from a callback"):
        imputer.fit(100 * X_incomplete)
    with pytest.raises(NotFittedError):
        imputer.transform(X_incomplete)


def test_hidden_cells_do_not_start_at_their_own_value() -> None:
    X, _, X_incomplete = whitened(load_breast_cancer)
    honest = SinkhornImputer(validation_fraction=0.1, max_steps=60, noise=0.0, metric="euclidean", random_state=0)
    given = SinkhornImputer(validation_fraction=0.1, max_steps=60, noise=0.0, metric="euclidean", initial=X, random_state=0)
    scores = [imputer.fit(X_incomplete).history_["validation_mae"][0] for imputer in (honest, given)]
    assert scores[1] > 0.7 * scores[0]


def test_validation_leaves_complete_rows_complete_for_one_sided_batches() -> None:
    X, missing, _ = whitened(load_breast_cancer)
    missing[:300] = False
    imputer = SinkhornImputer(one_sided=True, validation_fraction=0.3, max_steps=60, random_state=0)
    imputer.fit(np.where(missing, np.nan, X))
    assert np.isfinite(imputer.history_["validation_mae"][-1])


def test_too_few_values_to_validate_are_told() -> None:
    with pytest.warns(OtimputeWarning, match="hides none"):
        SinkhornImputer(validation_fraction=0.1, max_steps=5).fit([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]])


def test_values_that_were_hardly_ever_drawn_do_not_count_as_settled() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    X[::3, 1] = np.nan
    imputer = SinkhornImputer(metric="euclidean", max_steps=200, random_state=0).fit(X)
    assert not imputer.converged_
    assert imputer.n_steps_ == 200


def test_overlapping_fits_leave_the_threads_of_blas_as_they_were() -> None:
    from threadpoolctl import threadpool_info

    def n_blas_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    _, _, X_incomplete = whitened(load_breast_cancer)
    before = n_blas_threads()
    threads = [
        threading.Thread(target=SinkhornImputer(max_steps=100 * k, random_state=k, tol=0).fit, args=(X_incomplete,))
        for k in (1, 4, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n_blas_threads() == before


def test_very_wide_tables_take_the_euclidean_metric_and_little_memory() -> None:
    X = np.random.default_rng(0).normal(size=(20, 1000))
    X[::4, ::3] = np.nan
    imputer = SinkhornImputer(max_steps=5, random_state=0).fit(X)
    assert imputer.metric_ == "euclidean"
    assert len(pickle.dumps(imputer)) < 20 * X.nbytes
    assert np.isfinite(imputer.transform(X)).all()


def interest_rates(n: int = 480, seed: int = 0) -> np.ndarray:
    """Sixteen maturities a month, made of three factors that wander and a little noise: columns that are nearly collinear."""
    rng = np.random.default_rng(seed)
    years = np.array([1, 3, 6, 12, 18, 24, 36, 48, 60, 72, 84, 96, 120, 180, 240, 360]) / 12
    fading = (1 - np.exp(-0.6 * years)) / (0.6 * years)
    level = np.cumsum(0.2 * rng.normal(size=n))
    slope, curvature = (lfilter([0.25], [1, -0.97], rng.normal(size=n)) for _ in range(2))
    factors = np.column_stack([level, slope, curvature])
    shapes = np.array([np.ones(16), fading, fading - np.exp(-0.6 * years)])
    X = factors @ shapes + 0.02 * rng.normal(size=(n, 16))
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("rate", [0.2, 0.3])
def test_nearly_collinear_columns_are_imputed_as_well_as_by_regressions(rate: float) -> None:
    scores = []
    for seed in range(3):
        X = interest_rates(seed=seed)
        missing = np.random.default_rng([seed, 1]).random(X.shape) < rate
        X_incomplete = np.where(missing, np.nan, X)
        imputers = [SinkhornImputer(random_state=0), GaussianEMImputer(), ICEImputer()]
        scores.append([rmse(X, imputer.fit_transform(X_incomplete), missing) for imputer in imputers])
    ours, *peers = np.mean(scores, axis=0)
    assert ours < 1.1 * min(peers)
