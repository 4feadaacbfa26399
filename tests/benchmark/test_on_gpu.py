"""Suites on a GPU: other tasks, seeds side by side. Without a GPU, Triton's interpreter stands in for one."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from otimpute import _gpu
from otimpute.benchmark import Record, Suite, Task, execute, load_suite, run_suite
from otimpute.benchmark.run_task import run_task, run_tasks
from otimpute.benchmark.suite import Method
from otimpute.imputers import SinkhornImputer, side_by_side

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:triton")  # the interpreter's integers overflow, as they should

QUICK = {"max_steps": 1, "batch_size": 4}
TASK = Task("iris", "mcar", 0.3, "ours", "sinkhorn", 0, {"device": "cuda", **QUICK})
TASKS = [dataclasses.replace(TASK, seed=seed) for seed in range(3)]


def quick_suite(*methods: Method) -> Suite:
    part = load_suite("smoke").only(datasets=["iris"], settings=["mcar-30"], seeds=[0, 1])
    return dataclasses.replace(part, methods=methods)


def without_chance(record: Record) -> dict[str, Any]:
    """What a record says that must not depend on who else was there."""
    return {name: getattr(record, name) for name in ("task", "status", "error", "scores", "flags", "n", "d", "n_missing")}


def test_tasks_side_by_side_have_the_scores_of_each_alone_and_their_own_troubles(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    descend, begin_fit = side_by_side.descend_on_gpu, SinkhornImputer.begin_fit

    def counted(group: Any) -> Any:
        sizes.append(len(group))
        return descend(group)

    def troubled(imputer: SinkhornImputer, X: Any) -> Any:
        if imputer.random_state == 1:
            raise ZeroDivisionError("of seed 1")
        warnings.warn(f"of seed {imputer.random_state}", stacklevel=1)
        return begin_fit(imputer, X)

    monkeypatch.setattr(side_by_side, "descend_on_gpu", counted)
    monkeypatch.setattr(SinkhornImputer, "begin_fit", troubled)
    together = run_tasks(TASKS)
    assert sizes == [2]
    assert [record.status for record in together] == ["ok", "failed", "ok"]
    assert [record.warnings[:1] for record in together] == [("UserWarning: of seed 0",), (), ("UserWarning: of seed 2",)]
    assert "ZeroDivisionError: of seed 1" in together[1].error
    assert [record.n_together for record in together] == [3, 3, 3]
    assert together[0].seconds == together[2].seconds
    assert 0 < together[0].seconds["fit"] < together[0].seconds["task"]
    alone = run_task(TASKS[2])
    assert without_chance(alone) == without_chance(together[2])
    assert alone.n_together == 1


def test_a_run_on_a_gpu_keeps_a_record_a_task_and_does_not_mix_with_one_on_the_cpu(tmp_path: Path) -> None:
    suite = quick_suite(Method("mean", "mean", {}), Method("ours", "sinkhorn", QUICK))
    report = run_suite(suite, tmp_path, device="cuda")
    found = {(record.task.method, record.task.seed): record for record in report.done}
    assert {key: (record.status, record.n_together) for key, record in found.items()} == {
        ("mean", 0): ("ok", 1), ("mean", 1): ("ok", 1), ("ours", 0): ("ok", 2), ("ours", 1): ("ok", 2),
    }  # fmt: skip
    assert found["ours", 1].task == TASKS[1]
    again = run_suite(suite, tmp_path, device="cuda")
    assert (again.n_already_done, again.done) == (4, [])
    with pytest.raises(ValueError, match="use a separate folder for each suite"):
        run_suite(suite, tmp_path)


def test_methods_get_the_device_if_they_have_one_and_the_suite_does_not_say_otherwise() -> None:
    suite = quick_suite(
        Method("knn", "knn", {"n_neighbors": 3}),
        Method("ours", "sinkhorn", {}),
        Method("slow", "sinkhorn_paper", {"device": "cpu"}),
        Method("models", "linear_rr", {}),
    )
    parameters = {method.name: method.parameters for method in suite.on_gpu().methods}
    cuda = {"device": "cuda"}
    assert parameters == {"knn": {"n_neighbors": 3}, "ours": cuda, "slow": {"device": "cpu"}, "models": cuda}


def test_without_a_gpu_the_run_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu, "interpreted", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r'device="cuda" needs an NVIDIA GPU, but torch .* finds none'):
        run_suite(quick_suite(Method("ours", "sinkhorn", QUICK)), tmp_path, device="cuda")
    with pytest.raises(ValueError, match="device must be one of"):
        run_suite(quick_suite(), tmp_path, device="gpu")


def test_groups_differ_in_their_seed_only() -> None:
    on_cpu = [dataclasses.replace(task, parameters=QUICK) for task in TASKS[:2]]
    wine = [dataclasses.replace(task, dataset="wine") for task in TASKS[:2]]
    models = [dataclasses.replace(task, imputer="linear_rr", parameters={"device": "cuda"}) for task in TASKS[:2]]
    groups = execute._groups([TASKS[0], *on_cpu, wine[0], TASKS[1], wine[1], *models])
    assert groups == [TASKS[:2], [on_cpu[0]], [on_cpu[1]], wine, [models[0]], [models[1]]]


def test_what_fails_in_company_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []

    def ask_once(tasks: Sequence[Task]) -> list[Record]:
        asked.append([task.seed for task in tasks])
        fail = [1, 2] if len(tasks) > 1 else [2]  # seed 1 in company only
        return [Record(task, "timeout" if task.seed in fail else "ok") for task in tasks]

    pool = execute._Pool([], None, None, "cuda")
    monkeypatch.setattr(pool, "_ask_once", ask_once)
    assert [record.status for record in pool.ask(TASKS)] == ["ok", "ok", "timeout"]
    assert asked == [[0, 1, 2], [1], [2]]
