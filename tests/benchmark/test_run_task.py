"""One task: holes, scores, health, failures."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from io import BytesIO

import numpy as np
import pytest

from otimpute import AutoImputer
from otimpute.baselines import KNNImputer, MeanImputer, MissForestImputer
from otimpute.benchmark import Record, Task, worker
from otimpute.benchmark.record import SCORES
from otimpute.benchmark.run_task import run_task, split, suspicious, unusable, whiten
from otimpute.catalogue import METRICS
from otimpute.datasets import load_dataset
from otimpute.metrics import crps, energy_score, mae, rmse
from otimpute.missingness import MCAR

TASK = Task("iris", "mcar", 0.3, "mean", "mean", 0)


def test_the_record_has_what_was_asked_for() -> None:
    record = run_task(TASK)
    assert record.status == "ok"
    assert set(SCORES) == set(METRICS)
    assert set(record.scores["train"]) == {name for name, metric in METRICS.items() if not metric.of_draws}
    assert (record.n, record.d) == (150, 4)
    assert 100 < record.n_missing < 260
    assert record.peak_mib > record.added_mib >= 0
    assert record.versions["scikit-learn"]
    X = whiten(load_dataset("iris").values)
    missing = MCAR(0.3).sample(X, TASK.generator_of_holes())
    expected = mae(X, MeanImputer().fit_transform(np.where(missing, np.nan, X)), missing)
    assert record.scores["train"]["mae"] == expected


def test_out_of_sample_rows_are_not_fitted_on() -> None:
    task = dataclasses.replace(TASK, test_fraction=0.3)
    train, test = split(task, 150)
    assert len(test) == 45
    assert sorted([*train, *test]) == list(range(150))
    record = run_task(task)
    X = whiten(load_dataset("iris").values)
    missing = MCAR(0.3).sample(X, task.generator_of_holes())
    imputer = MeanImputer().fit(np.where(missing, np.nan, X)[train])
    for part, rows in {"train": train, "test": test}.items():
        X_imputed = imputer.transform(np.where(missing, np.nan, X)[rows])
        assert record.scores[part]["rmse"] == rmse(X[rows], X_imputed, missing[rows])
    assert set(record.scores) == {"train", "test"}
    assert set(record.seconds) == {"fit", "transform", "task"}
    parts = [outcome.part for outcome in record.outcomes()]
    assert parts == ["train", "test"]


QUICK = {"experts": ["mean", "gaussian_em"]}


@pytest.mark.parametrize(
    ("imputer", "parameters"), [("auto_distribution", QUICK), ("auto", {**QUICK, "target": "distribution"})]
)
def test_draws_of_a_method_that_draws_are_scored(imputer: str, parameters: dict[str, object]) -> None:
    task = Task("iris", "mcar", 0.3, "draws", imputer, 3, parameters, test_fraction=0.3, n_draws=4)
    record = run_task(task)
    X = whiten(load_dataset("iris").values)
    missing = MCAR(0.3).sample(X, task.generator_of_holes())
    X_incomplete, (train, test) = np.where(missing, np.nan, X), split(task, 150)
    imputers = [AutoImputer(**QUICK, target="distribution", random_state=seed) for seed in (3, *task.seeds_of_draws())]
    of_train = [each.fit_transform(X_incomplete[train]) for each in imputers]
    of_test = [each.transform(X_incomplete[test]) for each in imputers]
    for part, rows, draws in (("train", train, of_train), ("test", test, of_test)):
        assert record.scores[part]["crps"] == pytest.approx(crps(X[rows], draws, missing[rows]))
        assert record.scores[part]["energy_score"] == pytest.approx(energy_score(X[rows], draws, missing[rows]))
        assert record.scores[part]["mae"] == pytest.approx(mae(X[rows], draws[0], missing[rows]))  # of the first alone
        assert record.scores[part]["crps"] < record.scores[part]["mae"]
    assert set(record.seconds) == {"fit", "transform", "draws", "task"}


def test_a_method_that_does_not_draw_is_scored_as_a_single_draw() -> None:
    record = run_task(dataclasses.replace(TASK, n_draws=4))
    assert set(record.scores["train"]) == set(METRICS)
    assert record.scores["train"]["crps"] == pytest.approx(record.scores["train"]["mae"])
    assert "draws" not in record.seconds
    alone = run_task(TASK).scores["train"]
    assert {name: score for name, score in record.scores["train"].items() if name in alone} == alone


def test_draws_that_cannot_be_scored_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("iris", "mcar", 0.3, "draws", "auto_distribution", 0, QUICK, n_draws=2)
    fit_transform = AutoImputer.fit_transform
    sound = lambda self, X: fit_transform(self, X) if self.random_state == 0 else np.full_like(X, np.nan)  # noqa: E731
    monkeypatch.setattr(AutoImputer, "fit_transform", sound)
    record = run_task(task)
    assert record.status == "failed"
    assert "draws must be finite where it is scored" in record.error


def test_whitening_leaves_constant_columns_at_zero() -> None:
    X = np.random.default_rng(0).normal(3, 5, size=(50, 3))
    X[:, 1] = 0.1
    Z = whiten(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), [1, 0, 1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"imputer": "knn", "parameters": {"n_neighbors": 0}}, "n_neighbors must be a whole number >= 1"),
        ({"imputer": "nobody"}, "imputer must be one of"),
        ({"dataset": "nothing"}, "must be one of"),
        ({"rate": 7.0}, "rate must be"),
    ],
    ids=["method", "imputer", "data set", "rate"],
)
def test_a_failure_is_a_record_that_says_why(change: dict[str, object], reason: str) -> None:
    record = run_task(dataclasses.replace(TASK, **change))
    assert record.status == "failed"
    assert reason in record.error
    assert not record.scores
    assert record.seconds["task"] > 0


def test_a_method_that_wants_to_exit_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeanImputer, "fit_transform", lambda *_: sys.exit("enough"))
    record = run_task(TASK)
    assert record.status == "failed"
    assert "SystemExit: enough" in record.error


def test_a_worker_that_cannot_load_a_method_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeanImputer, "fit_cells", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        worker.serve(["mean"], BytesIO(), BytesIO())


def test_warnings_of_a_method_are_kept() -> None:
    record = run_task(Task("iris", "mcar", 0.3, "ice", "ice", 0, {"max_iter": 1}))
    assert record.warnings == ("ConvergenceWarning: [IterativeImputer] Early stopping criterion not reached.",)


def test_the_health_check_finds_what_scores_would_hide() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 2] = 0
    X_incomplete = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    filled = KNNImputer().fit_transform(X_incomplete)
    means = MeanImputer().fit_transform(X_incomplete)
    column_means = np.nanmean(X_incomplete, axis=0)
    check = lambda imputer, table: suspicious("train", imputer, X_incomplete, table, column_means)  # noqa: E731
    assert check(KNNImputer(), filled) == []
    assert check(KNNImputer(), means) == ["train: equals the column mean"]
    assert check(MeanImputer(), means) == []
    assert "changes" in check(KNNImputer(), filled + 1e-12)[0]
    assert unusable("train", X_incomplete, filled) == []
    half = np.where(np.isnan(X_incomplete) & (np.arange(3) == 0), np.nan, filled)
    assert "NaN" in unusable("train", X_incomplete, half)[0]
    assert unusable("train", X_incomplete, filled[:, :2]) == ["train: shape (50, 2) instead of (50, 3)"]


def test_one_number_in_a_column_of_two_values_is_not_suspicious() -> None:
    X = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 3.0], [np.nan, 4.0]])
    filled = np.where(np.isnan(X), 1.0, X)
    assert suspicious("train", KNNImputer(), X, filled, np.nanmean(X, axis=0)) == []


def test_an_explosion_is_a_failure_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeanImputer, "fit_transform", lambda _, X: np.where(np.isnan(X), 1e200, X))
    record = run_task(TASK)
    assert record.status == "failed"
    assert "train: rmse is inf" in record.error
    assert Record.from_json(record.to_json(), TASK.key) == record


def test_the_seed_of_a_task_is_the_methods_too() -> None:
    quick = {"n_estimators": 3, "max_iter": 1}
    by_seed = [run_task(Task("iris", "mcar", 0.3, "f", "missforest", seed, quick)) for seed in (0, 0, 1)]
    assert by_seed[0].scores == by_seed[1].scores != by_seed[2].scores
    task = Task("iris", "mcar", 0.3, "f", "missforest", 1, quick)
    X = whiten(load_dataset("iris").values)
    missing = MCAR(0.3).sample(X, task.generator_of_holes())
    X_imputed = MissForestImputer(**quick, random_state=1).fit_transform(np.where(missing, np.nan, X))
    assert by_seed[2].scores["train"]["mae"] == mae(X, X_imputed, missing)


def test_a_result_with_nan_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeanImputer, "fit_transform", lambda _, X: X)
    record = run_task(TASK)
    assert record.status == "failed"
    assert "leaves" in record.error
    assert record.scores == {}


@pytest.mark.skipif(not worker.FORKS, reason="a child for each task is for Linux")
@pytest.mark.parametrize(
    ("death", "reason"),
    [(lambda _: os.kill(os.getpid(), signal.SIGKILL), "signal 9"), (lambda _: os._exit(3), "exit status 3")],
    ids=["killed", "exit"],
)
def test_what_kills_a_task_kills_nothing_else(monkeypatch: pytest.MonkeyPatch, death, reason: str) -> None:
    monkeypatch.setattr(worker, "_do", death)
    inlet, outlet = os.pipe()
    with os.fdopen(inlet, "rb") as requests, os.fdopen(outlet, "wb"):
        record = worker._in_child({"tasks": [TASK.as_dict()], "data_home": None}, requests, BytesIO())[0]
    assert record.status == "failed"
    assert reason in record.error


def test_a_worker_answers_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FORKS", False)
    line = json.dumps({"tasks": [TASK.as_dict()], "data_home": None}).encode() + b"\n"
    replies = BytesIO()
    worker.serve([], BytesIO(line), replies)
    ready, reply = replies.getvalue().splitlines(keepends=True)
    assert ready == worker.READY
    assert worker.read_records(reply, [TASK])[0].status == "ok"
