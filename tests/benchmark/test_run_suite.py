"""Whole runs in real processes: killed, shared, sharded, parallel."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from otimpute.benchmark import Record, RunProgress, Store, Suite, Task, execute, load_suite, outcomes_in, run_suite

posix = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc of Linux")


def suite(**only: object) -> Suite:
    return load_suite("smoke").only(**{"datasets": ["iris", "wine"], "methods": ["mean", "knn"], "seeds": [0], **only})


def records(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "records").glob("[!.]*.json")}


def test_scores_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    part = suite(datasets=["iris"], settings=["mcar-30"], methods=["softimpute", "sinkhorn", "gaussian_em"])
    for jobs in (1, 2):
        report = run_suite(part, tmp_path / str(jobs), jobs=jobs)
        assert [record.status for record in report.done] == ["ok"] * 3
    scores = [{o.method: o.scores for o in outcomes_in(tmp_path / jobs)} for jobs in ("1", "2")]
    assert scores[0] == scores[1]


@posix
def test_kill_9_loses_nothing_and_only_what_is_missing_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "otimpute.cli", "benchmark", "run", "smoke", "--out", str(tmp_path), "--jobs", "2"]
    command += ["--methods", "mean,knn,ice,softimpute", "--seeds", "0-3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while len(records(tmp_path)) < 5:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    workers = _workers_of(process.pid)
    assert workers
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = records(tmp_path)
    n_tasks = len(load_suite("smoke").only(methods=["mean", "knn", "ice", "softimpute"], seeds=range(4)).tasks())
    assert 5 <= len(before) < n_tasks
    assert not Store(tmp_path).read().foreign
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in workers):  # they end by themselves
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = records(tmp_path)

    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"{n_tasks - len(before)} tasks done, {len(before)} before, of {n_tasks}" in again.stdout
    after = records(tmp_path)
    assert len(after) == n_tasks
    assert {name: after[name] for name in before} == before


def _workers_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            found.append(int(stat.parent.name))
    return found


@posix
def test_an_interrupt_ends_the_run_and_its_workers_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "otimpute.cli", "benchmark", "run", "smoke", "--out", str(tmp_path)]
    command += ["--methods", "mean,knn,missforest_small", "--datasets", "breast_cancer_diagnostic", "--seeds", "50"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(records(tmp_path)) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    workers = _workers_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command to continue" in errors
    assert "Traceback" not in errors
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_damaged_records_are_reported_and_run_again(tmp_path: Path) -> None:
    part = suite(datasets=["iris"], settings=["mcar-30"])
    run_suite(part, tmp_path)
    damaged, intact = sorted((tmp_path / "records").iterdir())
    damaged.write_text(damaged.read_text()[:100])
    (tmp_path / "records" / "notes.txt").write_text("hello")
    kept = intact.stat().st_mtime_ns
    report = run_suite(part, tmp_path)
    assert set(report.foreign) == {damaged, tmp_path / "records" / "notes.txt"}
    assert [record.task.key for record in report.done] == [damaged.stem]
    assert intact.stat().st_mtime_ns == kept
    assert len(Store(tmp_path).read().records) == 2


def test_shards_share_a_folder_and_make_a_whole(tmp_path: Path) -> None:
    part = suite(seeds=range(4))
    reports = [run_suite(part, tmp_path, shard=(i, 2)) for i in (1, 2)]
    assert sum(report.n_tasks for report in reports) == len(part.tasks()) == len(outcomes_in(tmp_path))
    assert all(0 < report.n_tasks < len(part.tasks()) for report in reports)
    for wrong in ((0, 3), (4, 3)):
        with pytest.raises(ValueError, match="shard must be i/n with i from 1 to n"):
            run_suite(part, tmp_path, shard=wrong)


def test_two_runs_may_share_a_folder(tmp_path: Path) -> None:
    part = suite(seeds=range(3))
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(run_suite(part, tmp_path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [record.task.key for report in reports for record in report.done]
    assert sorted(done) == sorted(task.key for task in part.tasks())  # each once, by one of the two
    assert not Store(tmp_path).read().foreign


def test_failures_are_records_and_can_be_repeated(tmp_path: Path) -> None:
    good = suite(datasets=["iris"], settings=["mcar-30"], methods=["knn"])
    bad = dataclasses.replace(good, methods=(dataclasses.replace(good.methods[0], parameters={"n_neighbors": -1}),))
    assert run_suite(bad, tmp_path).done[0].status == "failed"
    again = run_suite(bad, tmp_path)
    assert again.done == []
    assert [record.status for record in again.failed_before] == ["failed"]
    other = dataclasses.replace(good, methods=load_suite("smoke").only(methods=["mean"]).methods)
    run_suite(other, tmp_path, retry_failed=True)  # touches what it was asked for only
    assert len(records(tmp_path)) == 2
    assert len(run_suite(bad, tmp_path, retry_failed=True).done) == 1


def test_a_task_that_takes_too_long_is_stopped_and_the_next_one_runs(tmp_path: Path) -> None:
    slow = Task("breast_cancer_diagnostic", "mcar", 0.3, "slow", "missforest", 0, {"n_estimators": 100_000})
    quick = Task("iris", "mcar", 0.3, "mean", "mean", 0)
    found = dict(execute.execute([slow, quick], Store(tmp_path), max_seconds=1.0))
    assert isinstance(found[slow], Record)
    assert (found[slow].status, found[slow].error) == ("timeout", "took longer than 1 s")
    assert found[quick].status == "ok"


def test_a_worker_that_cannot_start_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "_WORKER", [sys.executable, "-c", "import sys; sys.exit('no such library')"])
    with pytest.raises(ChildProcessError, match="could not start, so no task can run: no such library"):
        run_suite(suite(), tmp_path)
    assert not records(tmp_path)


def test_data_sets_that_cannot_be_had_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from otimpute.datasets import DatasetUnavailableError, load_dataset

    def offline(name: str, **_: object) -> object:
        if name == "wine":
            raise DatasetUnavailableError("no wine")
        return load_dataset(name)

    monkeypatch.setattr("otimpute.benchmark.run.load_dataset", offline)
    seen: list[RunProgress] = []
    report = run_suite(suite(settings=["mcar-30"]), tmp_path, on_progress=seen.append)
    assert [now.activity for now in seen[:2]] == ["looking for iris", "looking for wine"]
    assert "starting" in seen[2].activity
    assert report.unavailable == {"wine": "no wine"}
    assert {record.task.dataset for record in report.done} == {"iris"}


def test_methods_whose_package_is_not_installed_wait_and_the_others_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    part = load_suite("oos").only(datasets=["iris"], settings=["mcar-30"], methods=["mean", "meta_sinkhorn"], seeds=[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        assert load_suite("oos").methods[-1].name == "meta_sinkhorn"
        report = run_suite(part, tmp_path)
    assert [(record.task.method, record.status) for record in report.done] == [("mean", "ok")]
    assert report.unavailable == {
        "meta_sinkhorn": "MetaSinkhornImputer needs the package 'torch': pip install \"otimpute[torch]\""
    }
    again = run_suite(part, tmp_path)  # in a worker that has trained with torch before it forks
    assert [(record.task.method, record.status) for record in again.done] == [("meta_sinkhorn", "ok")]
    assert not again.unavailable
    assert set(again.done[0].scores) == {"train", "test"}


def test_progress_counts_and_estimates(tmp_path: Path) -> None:
    run_suite(suite(seeds=[0]), tmp_path)
    seen: list[RunProgress] = []
    run_suite(suite(seeds=range(2)), tmp_path, on_progress=seen.append)
    assert {(now.n_done, now.n_tasks) for now in seen if now.activity} == {(8, 16)}  # what was done before counts
    seen = [now for now in seen if not now.activity]
    assert [now.n_done for now in seen] == list(range(9, 17))
    assert {now.n_tasks for now in seen} == {16}
    assert seen[-1].seconds_left == 0
    assert all(now.seconds_left is not None and now.seconds_left >= 0 for now in seen)


def test_what_lies_in_the_current_folder_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('mine')")
    monkeypatch.chdir(tmp_path)
    report = run_suite(suite(datasets=["iris"], settings=["mcar-30"], methods=["mean"]), tmp_path / "out")
    assert [record.status for record in report.done] == ["ok"]


@posix
def test_a_worker_that_dies_between_tasks_is_replaced(tmp_path: Path) -> None:
    pool = execute._Pool(["mean"], None, None)
    tasks = [Task("iris", "mcar", 0.3, "mean", "mean", seed) for seed in range(3)]
    try:
        assert pool.ask(tasks[:1])[0].status == "ok"
        os.killpg(pool._all[0]._process.pid, signal.SIGKILL)
        pool._all[0]._process.wait()
        assert pool.ask(tasks[1:2])[0].status == "ok"
        os.kill(pool._all[1]._process.pid, signal.SIGSTOP)  # alive to the eye, but dead when asked
        threading.Timer(0.2, lambda: os.killpg(pool._all[1]._process.pid, signal.SIGKILL)).start()
        record = pool.ask(tasks[2:])[0]
        assert (record.status, record.error) == ("failed", "the worker died: ")
        assert pool.ask(tasks[2:])[0].status == "ok"
    finally:
        pool.close()


def test_the_estimate_scales_with_the_data_and_forgets_what_others_did() -> None:
    from otimpute.benchmark.run import _Estimate

    iris, wine = (Task(dataset, "mcar", 0.3, "mean", "mean", 0) for dataset in ("iris", "wine"))
    done = Record(dataclasses.replace(iris, seed=1), "ok", seconds={"task": 6.0}, n=150, d=4)
    estimate = _Estimate([done], [iris, wine], jobs=2)
    assert estimate.after(iris, None) == pytest.approx(6.0 * (178 * 13) / (150 * 4) / 2)
    assert estimate.after(wine, None) == 0
    assert _Estimate([], [iris, wine], jobs=1).after(iris, None) is None


@posix
def test_workers_have_one_thread_and_see_no_gpu(tmp_path: Path) -> None:
    names = "['OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'CUDA_VISIBLE_DEVICES']"
    program = f"import os, sys; sys.exit('|'.join(os.environ[name] for name in {names}))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "_WORKER", [sys.executable, "-c", program])
        patch.setitem(os.environ, "OMP_NUM_THREADS", "8")
        with pytest.raises(ChildProcessError, match=r"1\|1\|$"):
            run_suite(suite(), tmp_path)
