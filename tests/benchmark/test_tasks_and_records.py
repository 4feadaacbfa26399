"""Keys, seeds, records and suites."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import pytest

from otimpute import MetaSinkhornImputer, RoundRobinImputer
from otimpute.benchmark import Record, Store, Task, load_suite, outcomes_in
from otimpute.benchmark.record import ForeignRecordError
from otimpute.benchmark.summary import aggregate
from otimpute.benchmark.summary.names import sort_methods
from otimpute.benchmark.task import canonical
from otimpute.catalogue import METHODS, make_imputer

ONE = "settings: [{mechanism: mcar, rate: 0.3}]"
TASK = Task("iris", "mcar", 0.3, "knn", "knn", 0, {"n_neighbors": 3})
GOOD = Record(
    TASK,
    "ok",
    scores={"train": {"mae": 0.5, "rmse": 0.7}},
    seconds={"fit": 0.1, "task": 0.2},
    added_mib=3.0,
    flags=("looks odd",),
    n=150,
    d=4,
)


def test_a_key_is_the_same_in_every_process_and_version() -> None:
    assert TASK.key == "e4e9ca1d181fdae0699a2a29"


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "wine"},
        {"mechanism": "logistic_mar"},
        {"rate": 0.1},
        {"method": "near"},
        {"imputer": "mean"},
        {"seed": 1},
        {"parameters": {"n_neighbors": 4}},
        {"options": {"x": 1}},
        {"test_fraction": 0.3},
        {"n_draws": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_makes_a_task_is_in_its_key(change: dict[str, object]) -> None:
    assert dataclasses.replace(TASK, **change).key != TASK.key


def test_holes_depend_on_set_mechanism_rate_and_seed_only() -> None:
    draw = lambda task: task.generator_of_holes().random()  # noqa: E731
    others = [{"method": "m"}, {"imputer": "mean"}, {"parameters": {}}, {"test_fraction": 0.3}, {"n_draws": 2}]
    assert {draw(dataclasses.replace(TASK, **change)) for change in others} == {draw(TASK)}
    for change in ({"dataset": "wine"}, {"mechanism": "x"}, {"rate": 0.2}, {"seed": 1}):
        assert draw(dataclasses.replace(TASK, **change)) != draw(TASK)
        assert draw(TASK) != TASK.generator_of_split().random()


def test_tasks_and_records_come_back_from_their_text() -> None:
    assert Task.from_dict(json.loads(json.dumps(TASK.as_dict()))) == TASK
    again = Record.from_json(GOOD.to_json(), TASK.key)
    assert again == GOOD
    assert hash(again.task) == hash(TASK)


def test_records_from_before_there_were_groups_are_read() -> None:
    content = json.loads(GOOD.to_json())
    del content["n_together"], content["sha256"]
    older = {**content, "sha256": hashlib.sha256(canonical(content).encode()).hexdigest()}
    assert Record.from_json(json.dumps(older), TASK.key) == GOOD


def test_tasks_of_before_draws_were_scored_are_the_same_as_with_one_draw() -> None:
    assert "n_draws" not in TASK.as_dict()
    assert "n_draws" not in json.loads(GOOD.to_json())["task"]
    assert Task.from_dict(TASK.as_dict()).n_draws == 1


def test_the_number_of_draws_comes_back_from_the_text() -> None:
    several = dataclasses.replace(GOOD, task=dataclasses.replace(TASK, n_draws=20))
    assert Record.from_json(several.to_json(), several.task.key) == several


def test_every_draw_has_a_seed_of_its_own_that_more_draws_do_not_change() -> None:
    few, many = (dataclasses.replace(TASK, n_draws=n).seeds_of_draws() for n in (3, 20))
    assert few == many[:2]
    assert len({TASK.seed, *many}) == 20
    assert TASK.seeds_of_draws() == []
    assert dataclasses.replace(TASK, n_draws=20, seed=1).seeds_of_draws() != many


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "not a record"),
        (lambda text: "", "not a record"),
        (lambda text: "[]", "not a record"),
        (lambda text: "null", "not a record"),
        (lambda text: '{"sha256": 1}', "not a record"),
        (lambda text: text.replace("0.7", "0.1"), "damaged or edited"),
        (lambda text: text.replace("0.7", "NaN"), "not a record"),
        (lambda text: text.replace("0.7", "7" * 5000), "not a record"),
        (lambda text: "[" * 100_000, "not a record"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "another format"),
        (lambda text: dataclasses.replace(GOOD, task=dataclasses.replace(TASK, seed=9)).to_json(), "does not match its name"),
    ],
    ids=["cut", "empty", "list", "null", "thin", "edited", "nan", "long", "deep", "format", "another task"],
)
def test_damaged_and_foreign_records_are_reported_never_trusted(tmp_path: Path, damage, reason: str) -> None:
    store = Store(tmp_path)
    store.plan("mine", [TASK])
    store.write(GOOD)
    assert store.has(TASK)
    path = tmp_path / "records" / f"{TASK.key}.json"
    path.write_text(damage(path.read_text()))
    contents = store.read()
    assert not contents.records
    assert reason in contents.foreign[path]
    assert not store.has(TASK)
    assert outcomes_in(tmp_path) == []
    with pytest.raises(ForeignRecordError, match=reason):
        Record.from_json(path.read_text(), TASK.key)


def test_bytes_that_are_not_text_are_no_record(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(GOOD)
    (tmp_path / "records" / f"{TASK.key}.json").write_bytes(b"\xff\xfe\x00")
    assert list(store.read().foreign.values()) == ["not text: invalid start byte"]


def test_what_a_killed_process_was_writing_is_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.plan("mine", [TASK])
    store.write(GOOD)
    (tmp_path / "records" / ".half-written.json").write_text("{")
    (tmp_path / "plans" / ".half-written.json").write_text("{")
    contents = store.read()
    assert list(contents.records) == [TASK.key]
    assert not contents.foreign


def test_odd_things_in_a_folder_are_named_and_harm_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.plan("mine", [TASK])
    store.write(GOOD)
    record = tmp_path / "records" / f"{TASK.key}.json"
    (tmp_path / "records" / "folder.json").mkdir()
    (tmp_path / "records" / f"{TASK.key}.json~").write_text(record.read_text())
    (tmp_path / "plans" / "folder.json").mkdir()
    (tmp_path / "plans" / "deep.json").write_text("[" * 100_000)
    for name, change in {"nan": {"rate": float("nan")}, "null": {"method": None}, "more": {"x": 1}}.items():
        plan = {"suite": "x", "tasks": [{**TASK.as_dict(), **change}]}
        (tmp_path / "plans" / f"{name}.json").write_text(json.dumps(plan))
    contents = store.read()
    assert list(contents.records) == [TASK.key]
    assert list(contents.planned) == [TASK.key]
    assert {path.name for path in contents.foreign} == {
        "folder.json", f"{TASK.key}.json~", "deep.json", "nan.json", "null.json", "more.json",
    }  # fmt: skip


def test_one_and_one_point_zero_are_the_same_task() -> None:
    assert dataclasses.replace(TASK, rate=0, test_fraction=0).key == dataclasses.replace(TASK, rate=0.0, test_fraction=0.0).key
    with pytest.raises(TypeError, match="a task's seed must be"):
        dataclasses.replace(TASK, seed=True)


def test_plans_add_up(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = dataclasses.replace(TASK, seed=1)
    for _ in range(2):
        store.plan("a", [TASK])
        store.plan("a", [TASK, other])
    assert set(store.read().planned.values()) == {TASK, other}
    assert len(list((tmp_path / "plans").iterdir())) == 2


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no benchmark folder 'nowhere'; run a benchmark with --out"):
        Store("nowhere").read()


def test_a_claim_is_for_one_process_and_ends(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.claim(TASK) as first:
        assert first
        with Store(tmp_path).claim(TASK) as second:
            assert not second
        with store.claim(dataclasses.replace(TASK, seed=1)) as other:
            assert other
    with store.claim(TASK) as again:
        assert again


def test_outcomes_are_the_numbers_of_records_and_nan_where_a_task_failed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = dataclasses.replace(TASK, seed=1)
    store.plan("mine", [TASK, other])
    store.write(GOOD)
    store.write(Record(other, "failed", "no"))
    outcome, failed = sorted(outcomes_in(tmp_path), key=lambda each: each.seed)
    assert all(np.isnan(value) for value in failed.scores.values())
    assert {"rmse", "wasserstein2"} <= set(failed.scores)
    for score in ("rmse", "seconds", "added_mib"):  # what failed took no time and no memory: that must not count as good
        assert aggregate([outcome, failed], score) == []
    assert (outcome.dataset, outcome.setting, outcome.method, outcome.part) == ("iris", "mcar-30", "knn", "train")
    assert outcome.scores == {"mae": 0.5, "rmse": 0.7}
    assert outcome.seconds == 0.1


def test_contents_can_be_narrowed_to_methods(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = dataclasses.replace(TASK, method="near")
    store.plan("mine", [TASK, other])
    store.write(GOOD)
    store.write(dataclasses.replace(GOOD, task=other))
    contents = store.read()
    assert contents.only([]) == contents
    assert [outcome.method for outcome in contents.only(["near"]).outcomes()] == ["near"]
    with pytest.raises(ValueError, match="method must be one of 'knn', 'near', got 'knnn'; did you mean 'knn'"):
        contents.only(["knnn"])


def test_tasks_that_would_be_shown_as_one_may_not_share_a_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.plan("paper", [TASK])
    store.write(GOOD)
    for change in ({"test_fraction": 0.3}, {"n_draws": 2}, {"parameters": {"n_neighbors": 4}}, {"imputer": "mean"}):
        with pytest.raises(ValueError, match="use a separate folder for each suite"):
            store.plan("oos", [dataclasses.replace(TASK, **change)])
    store.plan("oos", [dataclasses.replace(TASK, method="knn4", parameters={"n_neighbors": 4})])


def test_a_corrected_task_takes_the_place_of_the_one_that_failed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    wrong = dataclasses.replace(TASK, parameters={"n_neighbors": -3})
    store.plan("mine", [wrong])
    store.write(Record(wrong, "failed", "n_neighbors must be ..."))
    time.sleep(0.02)  # plans are told apart by their age
    store.plan("mine", [TASK])
    assert list(store.read().planned.values()) == [TASK]
    store.write(GOOD)
    assert [outcome.scores for outcome in outcomes_in(tmp_path)] == [GOOD.scores["train"]]


def test_the_paper_suite_is_the_papers_experiment() -> None:
    suite = load_suite("paper")
    assert len(suite.datasets) == 23
    assert [setting.name for setting in suite.settings] == [
        "mcar-10", "mcar-30", "mcar-50", "logistic_mar-30", "logistic_mnar-30", "quantile_mnar-30",
    ]  # fmt: skip
    assert suite.seeds == tuple(range(30))
    tasks = suite.tasks()
    assert len({task.key for task in tasks}) == len(tasks) == 23 * 6 * 30 * len(suite.methods)
    assert load_suite("oos").test_fraction == 0.3


def test_suites_compare_every_imputer_we_have() -> None:
    of_auto = {"auto", "auto_distribution", "gaussian_mixture", "extra_trees", "kernel_ridge"}
    of_several_tables = {"chained"}  # a draw of it is no best guess: compared in docs/studies/multiple_imputation.md
    for name in ("paper", "oos", "runtime"):
        methods = load_suite(name).methods
        assert {method.imputer for method in methods} == set(METHODS) - of_auto - of_several_tables
        assert [method.name for method in methods] == sort_methods(set(METHODS) - of_auto - of_several_tables)
    assert of_auto < {method.name for method in load_suite("auto").methods}
    assert "linear_rr" in {method.name for method in load_suite("smoke").methods}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear_rr", RoundRobinImputer("linear", n_pairs=3, random_state=7)),
        ("mlp_rr", RoundRobinImputer("mlp", n_pairs=3, random_state=7)),
        ("linear_rr_paper", RoundRobinImputer.paper("linear", n_pairs=3, random_state=7)),
        ("mlp_rr_paper", RoundRobinImputer.paper("mlp", n_pairs=3, random_state=7)),
        ("meta_sinkhorn", MetaSinkhornImputer(n_pairs=3, random_state=7)),
    ],
)
def test_names_stand_for_imputers_with_parameters_and_seed(name: str, expected: object) -> None:
    made = make_imputer(name, {"n_pairs": 3}, random_state=7)
    assert type(made) is type(expected)
    assert {key: repr(value) for key, value in vars(made).items()} == {k: repr(v) for k, v in vars(expected).items()}


def test_a_part_of_a_suite_has_the_same_tasks() -> None:
    suite = load_suite("paper")
    part = suite.only(datasets=["iris"], settings=["mcar-50"], methods=["sinkhorn", "mean"], seeds=[3])
    assert set(part.tasks()) <= set(suite.tasks())
    assert [task.method for task in part.tasks()] == ["mean", "sinkhorn"]
    for wrong in ({"datasets": ["isir"]}, {"settings": ["mcar-31"]}, {"methods": ["mena"]}):
        with pytest.raises(ValueError, match="must be one of"):
            suite.only(**wrong)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("datasets: [", "not YAML"),
        ("- 1", "expected the entries"),
        ("methods: {mean: }\nsettings: []\nsedes: 3", "expected the entries"),
        (f"datasets: [isir]\n{ONE}\nmethods: {{mean: }}", "data set must be one of"),
        ("settings: [{mechanism: mcra, rate: 0.1}]\nmethods: {mean: }", "mechanism must be one of"),
        ("settings: [{mechanism: mcar, rate: 2}]\nmethods: {mean: }", "rate must be"),
        ("settings: [{mechanism: mcar, rate: 0.1, x: 2}]\nmethods: {mean: }", "unexpected keyword argument 'x'"),
        (f"{ONE}\nmethods: {{nobody: }}", "imputer must be one of"),
        (f"{ONE}\nmethods: {{knn: {{k: 2}}}}", "unexpected keyword argument 'k'"),
        (f"{ONE}\nmethods: {{knn: {{n_neighbors: -3}}}}", "n_neighbors must be a whole number >= 1"),
        (f"{ONE}\nmethods: {{sinkhorn: {{epsilon: small}}}}", "epsilon"),
        (f"{ONE}\nmethods: {{knn: {{n_neighbors: .nan}}}}", "Out of range"),
        (f"{ONE}\nmethods: {{knn: {{n_neighbors: 2020-01-01}}}}", "not JSON serializable"),
        (f"{ONE}\nmethods: [knn]", "methods must be entries with names"),
        (f"{ONE}\nmethods: {{}}", "methods must be entries with names"),
        (f"{ONE}\nmethods: {{1: }}", "methods must be entries with names"),
        (f"{ONE}\nmethods: {{knn: mean}}", "method 'knn' must be entries with names"),
        ("methods: {knn: }\nsettings: []", "settings must be a list of at least one"),
        ("methods: {knn: }\nsettings: [mcar]", "a setting must be entries with names"),
        ("methods: {knn: }\nsettings: [{mechanism: mcar}]", "a setting needs a mechanism and a rate"),
        (
            "methods: {knn: }\nsettings: [{mechanism: mcar, rate: 0.3}, {mechanism: mcar, rate: 0.300000001}]",
            "settings must differ",
        ),
        (f"{ONE}\nmethods: {{knn: }}\ndatasets: iris", "datasets must be a list"),
        (f"{ONE}\nmethods: {{knn: }}\ndatasets: [iris, iris]", "datasets must differ"),
        (f"{ONE}\nmethods: {{knn: }}\nseeds: 0", "seeds must be"),
        (f"{ONE}\nmethods: {{knn: }}\nseeds: true", "seeds must be"),
        (f"{ONE}\nmethods: {{knn: }}\nseeds: '12'", "seeds must be a list"),
        (f"{ONE}\nmethods: {{knn: }}\nseeds: [1.5]", "a seed must be a whole number"),
        (f"{ONE}\nmethods: {{knn: }}\nseeds: [-1]", "a seed must be a whole number"),
        (f"{ONE}\nmethods: {{knn: }}\nseeds: [1, 1]", "seeds must differ"),
        (f"{ONE}\nmethods: {{knn: }}\nn_draws: 0", "n_draws must be a whole number >= 1"),
    ],
)
def test_mistakes_in_a_suite_are_found_before_it_runs(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"suite mine.yaml: .*{reason}"):
        load_suite(path)


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "datasets: [iris]\nsettings: [{mechanism: quantile_mnar, rate: 0.3, tails: upper}]\n"
        "methods: {near: {imputer: knn, n_neighbors: 2}}\nseeds: [4, 7]\nn_draws: 5\n"
    )
    tasks = load_suite(path).tasks()
    assert [task.seed for task in tasks] == [4, 7]
    assert tasks[0].parameters == {"n_neighbors": 2}
    assert {task.n_draws for task in tasks} == {5}
    assert tasks[0].setting == "quantile_mnar-30-tails=upper"
    with pytest.raises(FileNotFoundError, match="no suite 'nosuch': pass one of auto, oos, paper, runtime, smoke"):
        load_suite("nosuch")


def test_seeds_come_in_whole_rounds() -> None:
    seeds = [task.seed for task in load_suite("smoke").tasks()]
    assert seeds == sorted(seeds)
    assert np.unique(seeds).tolist() == [0, 1]
