"""A fit that was stopped, crashed or killed goes on from its checkpoint to the bits of one that was not."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import otimpute._interrupt as interrupt
import otimpute.fitting.checkpoint as checkpoints
import otimpute.fitting.training as training
import otimpute.imputers.sinkhorn.cpu_steps as cpu_steps
from otimpute import MetaSinkhornImputer, RoundRobinImputer, SinkhornImputer
from otimpute._archive import read_archive, write_archive
from otimpute._stored import Place
from otimpute.exceptions import FitStoppedWarning, OtimputeWarning, StoredFileError
from otimpute.fitting import FitProgress
from otimpute.fitting.checkpoint import Checkpoint
from otimpute.fitting.state_tree import StateTree

try:
    import torch
except ModuleNotFoundError:
    torch = None


def incomplete(n: int = 90) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + 0.3 * rng.normal(size=(n, 4))
    missing = rng.random(X.shape) < 0.25
    missing[: n // 3] = False  # for one-sided batches
    missing[:, 3] = False  # a column whose model practises
    return np.where(missing, np.nan, X)


X = incomplete()


@contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks of few steps, and a checkpoint after each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "SECONDS_BETWEEN", 0)
        patch.setattr(checkpoints, "COSTS_BETWEEN", 0)
        patch.setattr(training, "_BLOCK_SECONDS", 1e-9)
        patch.setattr(training, "_BLOCK_SECONDS", 1e-9)
        patch.setattr(os, "fsync", lambda _: None)  # no power will fail
        yield


def small_network(n_inputs: int) -> Any:
    """With everything that has a state: random numbers, running means, float64."""
    return torch.nn.Sequential(
        torch.nn.Linear(n_inputs, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 1)
    ).double()


def completer() -> Any:
    class Corrector(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.3), torch.nn.Linear(6, 4))

        def forward(self, values: Any, missing: Any) -> Any:
            return torch.where(missing, values + self.network(values), values)

    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Corrector()


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sinkhorn": (SinkhornImputer, {"max_steps": 130, "tol": 0, "validation_fraction": 0.1}),
    "sinkhorn, settles": (SinkhornImputer, {"max_steps": 300, "tol": 0.1, "n_pairs": 3, "one_sided": True}),
    "sinkhorn, last iterate": (SinkhornImputer, {"max_steps": 70, "tail_average": 0.0, "metric": "euclidean", "noise": 1.0}),
    "linear": (RoundRobinImputer, {"max_cycles": 3, "n_updates": 4, "order": "random", "validation_fraction": 0.1}),
    "mlp": (RoundRobinImputer, {"model": "mlp", "max_cycles": 2, "n_updates": 4, "batches": "observed-missing", "n_pairs": 3}),
    "mlp, validates": (
        RoundRobinImputer,
        {"model": "mlp", "max_cycles": 8, "n_updates": 2, "validation_fraction": 0.2, "patience": 1, "learning_rate": 0.1},
    ),
}
if torch is not None:
    KINDS |= {
        "modules": (RoundRobinImputer, {"model": small_network, "max_cycles": 2, "n_updates": 3, "validation_fraction": 0.1}),
        "meta": (MetaSinkhornImputer, {"max_steps": 40, "learning_rate": 0.03, "patience": 2}),
        "meta, own completer": (MetaSinkhornImputer, {"completer": completer(), "max_steps": 30, "validation_fraction": 0}),
    }
ONE_OF_EACH = [name for name in ("sinkhorn", "linear", "modules", "meta") if name in KINDS]


def make(kind: str, **more: Any) -> Any:
    imputer, parameters = KINDS[kind]
    return imputer(**{"random_state": 0, **parameters, **more})


def outcome(imputer: Any, imputed: np.ndarray) -> dict[str, Any]:
    """Everything a fit leaves behind that a continued one could get wrong."""
    learned = {name: value for name, value in vars(imputer).items() if name.endswith("_") and not name.startswith("_")}
    learned.pop("completer_", None)
    learned.pop("training_table_")
    learned["fit_summary_"] = vars(learned["fit_summary_"])
    return {**learned, "imputed": imputed, "new rows": imputer.transform(incomplete(30))}


@cache
def uninterrupted(kind: str) -> tuple[dict[str, Any], int]:
    """What a fit gives, and how often it asks its callbacks."""
    n_calls = 0

    def count(_: FitProgress) -> None:
        nonlocal n_calls
        n_calls += 1

    with small_blocks():
        imputer = make(kind, callbacks=count)
        return outcome(imputer, imputer.fit_transform(X)), n_calls


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for name in expected:
        np.testing.assert_equal(found[name], expected[name], err_msg=name)


class CrashError(Exception):
    pass


def raising(error: BaseException, call: int) -> Any:
    """A callback that raises when it is called for this time."""
    calls = iter(range(1, call + 1))

    def callback(_: FitProgress) -> None:
        if next(calls) == call:
            raise error

    return callback


def crashed(kind: str, path: Path, call: int = 5, **more: Any) -> None:
    """Begin a fit, keep checkpoints, and crash."""
    with small_blocks(), pytest.raises(CrashError):
        make(kind, checkpoint=path, callbacks=raising(CrashError(), call), **more).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_crashed_ends_as_if_it_had_not(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    expected, n_calls = uninterrupted(kind)
    path = tmp_path_factory.mktemp("fit") / "fit.ckpt"

    @settings(max_examples=5, deadline=None)
    @given(st.lists(st.tuples(st.integers(1, n_calls), st.sampled_from([1, 2])), max_size=3), st.sampled_from([1, 2]))
    def crashes(attempts: list[tuple[int, int]], n_jobs: int) -> None:
        path.unlink(missing_ok=True)
        with small_blocks():
            for call, jobs in attempts:  # the later ones may well reach the end
                try:
                    make(kind, checkpoint=path, n_jobs=jobs, callbacks=raising(CrashError(), call)).fit(X)
                except CrashError:
                    continue
            imputer = make(kind, checkpoint=str(path), n_jobs=n_jobs)
            assert_same(outcome(imputer, imputer.fit_transform(X)), expected)
        assert list(path.parent.iterdir()) == []

    crashes()


def test_the_kinds_end_in_different_ways() -> None:
    """Or the test above would not see what happens to stopping rules and best states."""
    reasons = {uninterrupted(kind)[0]["stop_reason_"] for kind in KINDS}
    assert reasons == {"max_steps", "max_cycles", "tol", "validation"}
    best, n_cycles = (uninterrupted("mlp, validates")[0][name] for name in ("best_cycle_", "n_cycles_"))
    assert best < n_cycles


WAYS_TO_DIE = ["at a callback", "while saving", "from outside"]


def fit_and_die(kind: str, path: Path, way: str) -> dict[str, Any]:
    def kill_myself() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    callback, n_saved = None, iter(range(5))
    with small_blocks():
        if way == "at a callback":
            callback = lambda progress: kill_myself() if progress.step > 9 else None  # noqa: E731
        if way == "from outside":
            callback = lambda _: time.sleep(0.02)  # noqa: E731
        if way == "while saving":
            os.fsync = lambda _: kill_myself() if next(n_saved) == 4 else None
        imputer = make(kind, checkpoint=path, callbacks=callback)
        return outcome(imputer, imputer.fit_transform(X))


def fits_that_get_killed(kinds: list[str], folder: Path) -> None:
    """Run by a process of its own, which starts one fit after the other and sees each killed, but the last of a kind."""
    rng = np.random.default_rng(0)
    for kind in {"sinkhorn", "linear"} & set(kinds):
        make(kind).fit(X)  # loads machine code once for all children; torch would not survive the fork
    for kind in kinds:
        path = folder / "fit.ckpt"
        for way in [*WAYS_TO_DIE, "not at all"]:
            child = os.fork()
            if child == 0:
                (folder / f"{kind}.pickle").write_bytes(pickle.dumps(fit_and_die(kind, path, way)))
                os._exit(0)
            if way == "from outside":
                time.sleep(rng.uniform(0.05, 0.1))
                os.kill(child, signal.SIGKILL)
            was_killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            assert was_killed == (way in WAYS_TO_DIE), (kind, way)
            assert path.exists() == was_killed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
def test_a_fit_that_was_killed_again_and_again_ends_as_if_it_had_not(tmp_path: Path) -> None:
    expected = {kind: uninterrupted(kind)[0] for kind in ONE_OF_EACH}
    call = f"runpy.run_path({__file__!r})['fits_that_get_killed']({ONE_OF_EACH}, pathlib.Path({str(tmp_path)!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-c", f"import pathlib, runpy; {call}"]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for kind in ONE_OF_EACH:
        assert_same(pickle.loads((tmp_path / f"{kind}.pickle").read_bytes()), expected[kind])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{kind}.pickle" for kind in ONE_OF_EACH)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_fit_stopped_by_the_clock_goes_on(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_BLOCK_SECONDS", 1e-9)
    path = tmp_path / "fit.ckpt"
    imputer = make(kind, checkpoint=path, max_seconds=1e-9)
    for _ in range(3):  # after one block each
        with pytest.warns(FitStoppedWarning, match=f"by max_seconds .* go on from {re.escape(str(path))}"):
            imputer.fit(X)
        assert path.exists()
    imputer.set_params(max_seconds=None)
    assert_same(outcome(imputer, imputer.fit_transform(X)), uninterrupted(kind)[0])
    assert not path.exists()


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_fit_stopped_by_a_callback_goes_on_and_says_where_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    seen: list[FitProgress] = []
    with small_blocks():
        imputer = make(kind, checkpoint=path, callbacks=lambda progress: seen.append(progress) or len(seen) == 5).fit(X)
        assert imputer.stop_reason_ == "callback"
        imputer.set_params(callbacks=seen.append)
        assert_same(outcome(imputer, imputer.fit_transform(X)), uninterrupted(kind)[0])
    steps = [progress.step for progress in seen]
    assert steps == sorted(set(steps))
    assert [progress.seconds for progress in seen] == sorted(progress.seconds for progress in seen)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_ctrl_c_waits_for_a_state_that_is_whole_and_keeps_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt, "_last", [-np.inf])
    monkeypatch.setattr(training, "_BLOCK_SECONDS", 1e-9)
    path = tmp_path / "fit.ckpt"

    def press(_: FitProgress) -> None:
        signal.raise_signal(signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs deaf to Ctrl-C
    try:
        imputer = make(kind, checkpoint=path, callbacks=press)
        with pytest.warns(FitStoppedWarning, match="stopped by Ctrl-C"):
            imputer.fit(X)
        assert imputer.stop_reason_ == "interrupted"
        assert path.exists()
        before = path.read_bytes()
        with pytest.raises(KeyboardInterrupt):  # the second in a row is for the program
            imputer.fit(X)
        assert path.read_bytes() == before
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    imputer.set_params(callbacks=None)
    assert_same(outcome(imputer, imputer.fit_transform(X)), uninterrupted(kind)[0])


def test_ctrl_c_in_the_middle_of_a_step_does_not_tear_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "_last", [-np.inf])
    take = cpu_steps.CpuSteps.take

    def interrupted(self: Any, *arguments: Any) -> Any:
        found = take(self, *arguments)
        signal.raise_signal(signal.SIGINT)
        return found

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(cpu_steps.CpuSteps, "take", interrupted)
        imputer = make("sinkhorn", checkpoint=tmp_path / "fit.ckpt")
        with pytest.warns(FitStoppedWarning, match="stopped by Ctrl-C"):
            imputer.fit(X)
    finally:
        signal.signal(signal.SIGINT, handler)
    monkeypatch.setattr(cpu_steps.CpuSteps, "take", take)
    assert_same(outcome(imputer, imputer.fit_transform(X)), uninterrupted("sinkhorn")[0])


def changed_value() -> np.ndarray:
    other = X.copy()
    other[0, 0] += 1e-9
    return other


def other_hole() -> np.ndarray:
    other = X.copy()
    other[0, 0] = np.nan
    return other


@pytest.mark.parametrize(
    ("kind", "more", "table", "message"),
    [
        ("sinkhorn", {"epsilon": 0.1}, X, "epsilon='auto', got 0.1"),
        ("sinkhorn", {"max_steps": 131, "noise": 0.2}, X, "max_steps=130, got 131; with noise=0.1, got 0.2"),
        ("sinkhorn", {"random_state": 1}, X, "random_state=0, got 1"),
        ("sinkhorn", {"initial": np.zeros_like(X)}, X, "initial='auto', got 'float64 of shape (90, 4), checksum "),
        ("sinkhorn", {"constraints": {0: {"bounds": (0, 1)}}}, X, "constraints=None, got {'0': {'bounds': [0, 1]}}"),
        ("sinkhorn", {}, X[:80], "table='90 rows, 4 columns, checksum "),
        ("sinkhorn", {}, changed_value(), "table='90 rows, 4 columns, checksum "),
        ("sinkhorn", {}, other_hole(), "table='90 rows, 4 columns, checksum "),
        ("sinkhorn", {}, X.astype(np.float32), "table='90 rows, 4 columns, checksum "),
        ("linear", {}, X, "imputer='SinkhornImputer', got 'RoundRobinImputer'"),
    ],
)
def test_the_checkpoint_of_another_fit_is_refused_and_left_alone(
    kind: str, more: dict[str, Any], table: np.ndarray, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("sinkhorn", path)
    before = path.read_bytes()
    with pytest.raises(StoredFileError, match=re.escape(message)) as error:
        make(kind, checkpoint=path, **more).fit(table)
    assert f"checkpoint {path} belongs to a fit with " in str(error.value)
    assert "delete it to begin anew, or pass another path" in str(error.value)
    assert path.read_bytes() == before


def test_the_checkpoint_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("sinkhorn", path)
    monkeypatch.setattr(checkpoints, "__version__", "99.0")
    with pytest.raises(StoredFileError, match=r"otimpute='0.*', got '99.0'"):
        make("sinkhorn", checkpoint=path).fit(X)


def test_what_cannot_change_the_result_may_change(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("sinkhorn", path)
    moved = path.rename(tmp_path / "elsewhere.ckpt")
    imputer = make("sinkhorn", checkpoint=moved, n_jobs=2, max_seconds=1000, callbacks=[lambda _: None])
    assert_same(outcome(imputer, imputer.fit_transform(np.asfortranarray(X))), uninterrupted("sinkhorn")[0])


@pytest.mark.skipif(torch is None, reason="needs the extra torch")
def test_other_modules_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("meta, own completer", path)
    with pytest.raises(StoredFileError, match=r"completer={'.*Corrector': .*\(6, 4\).*}, got None"):
        make("meta", **{**KINDS["meta, own completer"][1], "completer": None}, checkpoint=path).fit(X)
    path.unlink()
    crashed("modules", path)
    with pytest.raises(StoredFileError, match=r"model='small_network', got '.*<lambda>'"):
        make("modules", model=lambda d_in: small_network(d_in), checkpoint=path).fit(X)

    def renamed(n_inputs: int) -> Any:
        return torch.nn.Linear(n_inputs, 1)

    renamed.__qualname__ = "small_network"
    with pytest.raises(StoredFileError, match="not the one the checkpoint was written with"):
        make("modules", model=renamed, checkpoint=path).fit(X)


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(3), np.random.RandomState(3)])
def test_without_a_seed_the_one_in_the_checkpoint_is_used(random_state: Any, tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("sinkhorn", path, random_state=random_state)
    shutil.copy(path, tmp_path / "copy")
    first = make("sinkhorn", checkpoint=path, random_state=random_state).fit_transform(X)
    again = make("sinkhorn", checkpoint=tmp_path / "copy", random_state=None).fit_transform(X)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, make("sinkhorn", random_state=random_state).fit_transform(X))


def test_a_checkpoint_of_a_seed_is_continued_without_one_but_not_the_other_way_round(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("sinkhorn", path, random_state=None)
    with pytest.raises(StoredFileError, match="random_state=None, got 0"):
        make("sinkhorn", checkpoint=path).fit(X)
    path.unlink()
    crashed("sinkhorn", path)
    imputer = make("sinkhorn", checkpoint=path, random_state=None)
    assert_same(outcome(imputer, imputer.fit_transform(X)), uninterrupted("sinkhorn")[0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "fit.ckpt"
    crashed("sinkhorn", path)
    return path.read_bytes()


@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_damaged_checkpoint_is_refused_with_advice(data: Any, whole: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damaged") / "fit.ckpt"
    place = data.draw(st.integers(0, len(whole) - 1))
    kept = whole[:place]
    path.write_bytes(kept if data.draw(st.booleans()) else kept + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    before = path.read_bytes()
    with pytest.raises(StoredFileError, match="pass another path"):
        make("sinkhorn", checkpoint=path).fit(X)
    assert path.read_bytes() == before


def test_files_that_are_no_checkpoint_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    crashed("sinkhorn", path)
    document, arrays = read_archive(path, "checkpoint")
    foreign = {
        "a pickle": lambda: path.write_bytes(pickle.dumps(X)),
        "a model": lambda: write_archive(path, "model", document, arrays),
        "no document": lambda: write_archive(path, "checkpoint", [1], arrays),
        "no arrays": lambda: write_archive(path, "checkpoint", document, {}),
        "no state": lambda: write_archive(path, "checkpoint", {**document, "state": {"code": "import os"}}, arrays),
    }
    for what, write in foreign.items():
        write()
        with pytest.raises(StoredFileError, match="pass another path") as error:
            make("sinkhorn", checkpoint=path).fit(X)
        assert ("delete it to begin anew" in str(error.value)) == what.startswith("no ")  # others are not ours to delete


def test_a_path_that_cannot_be_written_fails_before_anything_else(tmp_path: Path) -> None:
    no_table = "nobody looks at this"
    with pytest.raises(ValueError, match="must be the path of a file, got the folder"):
        SinkhornImputer(checkpoint=tmp_path).fit(no_table)
    with pytest.raises(ValueError, match="got the folder ''"):
        SinkhornImputer(checkpoint="").fit(no_table)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot be written: .*; pass a path in a folder you may write to"):
        SinkhornImputer(checkpoint=tmp_path / "file" / "fit.ckpt").fit(no_table)
    for wrong in (True, 3, b"fit.ckpt", ["fit.ckpt"]):
        with pytest.raises(TypeError, match="checkpoint must be the path of a file or None, got "):
            SinkhornImputer(checkpoint=wrong).fit(no_table)
    with pytest.raises(ValueError, match="warm_start=False"):
        RoundRobinImputer(checkpoint=tmp_path / "fit.ckpt", warm_start=True).fit(no_table)


def test_a_short_fit_writes_nothing_and_folders_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "write_archive", lambda *_: pytest.fail("half a minute is not over"))
    path = tmp_path / "new" / "fit.ckpt"
    imputer = make("sinkhorn", checkpoint=path)
    assert_same(outcome(imputer, imputer.fit_transform(X)), uninterrupted("sinkhorn")[0])
    assert list(path.parent.iterdir()) == []


def test_a_full_disk_is_a_warning_and_the_fit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoints, "write_archive", no_space)
    imputer = make("sinkhorn", checkpoint=tmp_path / "fit.ckpt")
    with small_blocks(), pytest.warns(OtimputeWarning, match="could not write the checkpoint .*: No space left on device"):
        imputed = imputer.fit_transform(X)
    assert_same(outcome(imputer, imputed), uninterrupted("sinkhorn")[0])


def test_saving_takes_a_fiftieth_of_the_time_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, saved = 0.0, []

    def save(*_: Any) -> None:
        nonlocal now
        saved.append(now)
        now += cost

    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(checkpoints, "write_archive", save)
    for cost, every in ((0.1, 30), (2.0, 100)):
        saved.clear()
        start = now
        checkpoint = Checkpoint(tmp_path / "fit.ckpt", {}, 0)
        while now < start + 1000:
            now += 1
            checkpoint.offer(dict)
        gaps = np.diff(saved)
        assert saved[0] - start == pytest.approx(30)
        assert gaps.min() >= every - 1e-9
        assert gaps.max() <= every + cost + 1.5
    n_saved = len(saved)
    checkpoint.offer(dict, now=True)
    assert len(saved) == n_saved + 1


def leaves() -> Any:
    numbers = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    shapes = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    kinds = st.sampled_from(["float32", "float64", "int64", "bool", "uint8"])
    return numbers | st.builds(np.ones, shapes, kinds)


trees = st.recursive(
    leaves(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(trees)
@settings(max_examples=50, deadline=None)
def test_a_state_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    path = tmp_path_factory.mktemp("state") / "file"
    arrays: dict[str, np.ndarray] = {}
    write_archive(path, "state", StateTree().pack(tree, Place.root("state", arrays)), arrays)
    document, arrays = read_archive(path, "state")
    found = StateTree().unpack(document, Place.root("state", arrays))
    np.testing.assert_equal(found, tree)
    assert type(found) is type(tree)


@pytest.mark.skipif(torch is None, reason="needs the extra torch")
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_of_any_type_come_back(kind: str, shape: tuple[int, ...]) -> None:
    tensor = (torch.rand(shape) * 3).to(getattr(torch, kind))
    place = Place.root("state", {})
    found = StateTree().unpack(StateTree().pack(tensor, place), place)
    assert found.dtype == tensor.dtype
    assert torch.equal(found, tensor)


def test_the_example_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs/guide/checkpoints.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "checkpoints.md", "exec"), {})
    assert capsys.readouterr().out == "as if never stopped: True\n"
    assert list(tmp_path.iterdir()) == []


def test_a_link_leads_to_the_checkpoint(tmp_path: Path) -> None:
    link = tmp_path / "link.ckpt"
    link.symlink_to("fit.ckpt")
    kept = Checkpoint(link, {}, seed=0)
    kept.offer(lambda: {"step": 1}, now=True)
    assert Checkpoint(link, {}, seed=0).load() == {"step": 1}
    assert link.is_symlink()
    kept.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["link.ckpt"]
    assert Checkpoint(link, {}, seed=0).load() is None
