"""Every fitted imputer survives a file, to the bit."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import os
import pickle
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import otimpute
from every_imputer import TORCH, grouped_table
from otimpute import MetaSinkhornImputer, SinkhornImputer
from otimpute.baselines import MeanImputer
from otimpute.exceptions import OtimputeWarning, StoredFileError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
needs_torch = pytest.mark.skipif(not find_spec("torch"), reason="needs the extra torch")


def same(first: Any, second: Any) -> bool:
    """Equal in value and type, all the way down."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        alike = first.dtype == second.dtype and first.shape == second.shape
        return alike and (first.tobytes() == second.tobytes() if first.dtype != object else first.tolist() == second.tolist())
    if dataclasses.is_dataclass(first):
        return same(vars(first), vars(second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second or (first != first and second != second))


def learned(imputer: Any) -> dict[str, Any]:
    not_stored = ("completer_", "imputation_std_")  # code, and what belongs to one table
    return {key: value for key, value in vars(imputer).items() if key.endswith("_") and key not in not_stored}


KINDS = ["array", "one column", "constant", "pandas", "pandas, numbered", "polars"]


def of_kind(kind: str, X: np.ndarray) -> Any:
    return {
        "array": lambda: X,
        "one column": lambda: X[:, :1],
        "constant": lambda: np.where(np.isnan(X), X, 7.0),
        "pandas": lambda: pd.DataFrame(X, columns=["a", "b", "c", "d"]),
        "pandas, numbered": lambda: pd.DataFrame(X),
        "polars": lambda: pl.DataFrame(X, schema=["a", "b", "c", "ü"]),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_transform_after_loading_equals_transform_before_to_the_bit(
    model_name: str, kind: str, models: Any, tmp_path: Path
) -> None:
    if (model_name, kind) == ("own-completer", "one column"):  # its module has four columns
        kind = "array"
    X = of_kind(kind, models.table())
    imputer = models.make(model_name, add_indicator=True).fit(X)
    loaded = models.reload(model_name, imputer, tmp_path / "model.otimpute")
    for rows in (X, of_kind(kind, models.table(50, seed=1))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OtimputeWarning)  # of columns that were complete in training
            before, after = (each.transform(rows) for each in (imputer, loaded))
        assert type(before) is type(after)
        assert same(np.asarray(before), np.asarray(after))
    assert same(learned(imputer), learned(loaded))
    assert same(imputer.get_feature_names_out(), loaded.get_feature_names_out())


def test_empty_columns_stay_dropped_and_names_are_still_compared(model_name: str, models: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(models.table(), columns=["a", "rain", "c", "d"])
    frame["rain"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtimputeWarning)
        imputer = models.make(model_name, keep_empty_features=False).fit(frame)
    loaded = models.reload(model_name, imputer, tmp_path / "model.otimpute")
    pd.testing.assert_frame_equal(loaded.transform(frame), imputer.transform(frame), check_exact=True)
    assert "rain" not in loaded.transform(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame.rename(columns={"a": "b"}))


def test_a_loaded_imputer_can_be_saved_pickled_cloned_and_fitted_anew(model_name: str, models: Any, tmp_path: Path) -> None:
    imputer, other = models.make(model_name).fit(models.table()), models.table(40, seed=3)
    loaded = models.reload(model_name, imputer, tmp_path / "model.otimpute")
    loaded.save(tmp_path / "again.otimpute")
    assert (tmp_path / "again.otimpute").read_bytes() == (tmp_path / "model.otimpute").read_bytes()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded)).transform(other), imputer.transform(other))
    expected = clone(imputer).fit(other).transform(models.table())
    np.testing.assert_array_equal(clone(loaded).fit(other).transform(models.table()), expected)
    np.testing.assert_array_equal(loaded.fit(other).transform(models.table()), expected)


def test_the_same_fit_gives_the_same_file(model_name: str, models: Any, tmp_path: Path) -> None:
    models.make(model_name).fit(models.table()).save(tmp_path / "second.otimpute")
    assert (tmp_path / "second.otimpute").read_bytes() == models.file(model_name).read_bytes()


@pytest.mark.parametrize("name", ["round-robin", "round-robin-mlp", "meta-sinkhorn", "own-completer", "own-model"])
def test_a_warm_start_continues_as_if_never_saved(name: str, models: Any, tmp_path: Path) -> None:
    if name not in models.names:
        pytest.skip("needs the extra torch")
    imputer = models.make(name, warm_start=True, validation_fraction=0.0).fit(models.table())
    loaded = models.reload(name, imputer, tmp_path / "model.otimpute")
    first = learned(imputer)["history_"]["loss"]
    np.testing.assert_array_equal(loaded.fit_transform(models.table()), imputer.fit_transform(models.table()))
    assert loaded.history_["loss"] == imputer.history_["loss"] != first


def test_mixed_tables_are_imputed_alike_after_loading(model_name: str, models: Any, tmp_path: Path) -> None:
    frame = pl.DataFrame(grouped_table()[1]).with_columns(
        size_class=pl.Series(["S", None, "L"] * 30, dtype=pl.Enum(["S", "M", "L"])),
        note=pl.Series([f"row {k}" for k in range(90)]),
    )
    wishes = {"size": {"bounds": (0, 5)}, "colour": {"categories": ["red", "green", "blue"]}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtimputeWarning)
        imputer = models.make(model_name, constraints=wishes, **models.given(model_name)).fit(frame)
        loaded = models.reload(model_name, imputer, tmp_path / "model")
        assert loaded.column_kinds_ == imputer.column_kinds_
        assert loaded.transform(frame).equals(imputer.transform(frame))


def test_parameters_come_back_with_their_types(tmp_path: Path, models: Any) -> None:
    start = np.asfortranarray(np.zeros((60, 5)))
    frame = pl.DataFrame(np.nan_to_num(models.table()), schema=["a", "b", "c", "d"]).with_columns(
        b=pl.Series(["x", "y", "z"] * 20), c=pl.Series([dt.date(2024, 1, 1), None] * 30)
    )
    imputer = SinkhornImputer(
        epsilon=np.float32(0.3),
        max_steps=5,
        initial=start,
        random_state=2**40,
        missing_values=-999,
        constraints={
            "a": {"bounds": (-100.5, math.inf)},
            "b": {"categories": ["z", "y", "x"]},
            "c": {"bounds": (dt.date(2023, 1, 1), dt.datetime(2025, 1, 1, 12))},
        },
        max_categories=None,
    ).fit(frame)
    found, expected = models.reload("sinkhorn", imputer, tmp_path / "model").get_params(), imputer.get_params()
    assert all(same(found[key], expected[key]) for key in expected.keys() - {"constraints", "initial"})
    np.testing.assert_array_equal(found["initial"], start)
    assert same(found["constraints"], expected["constraints"])


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)])
def test_functions_and_generators_are_left_out(generator: Any, models: Any, tmp_path: Path) -> None:
    imputer = SinkhornImputer(max_steps=5, random_state=generator, callbacks=[lambda _: None]).fit(models.table())
    loaded = models.reload("sinkhorn", imputer, tmp_path / "model")
    assert loaded.random_state is None
    assert loaded.callbacks is None


def test_parameters_that_no_file_can_hold_are_named(models: Any, tmp_path: Path) -> None:
    imputer = SinkhornImputer(max_steps=5, initial=pd.DataFrame(np.zeros((60, 4)))).fit(models.table())
    with pytest.raises(TypeError, match=r"parameters.initial is of type DataFrame.*set_params"):
        imputer.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_only_fitted_imputers_of_otimpute_are_saved(model_name: str, models: Any, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        models.make(model_name).save(tmp_path / "model")
    own = type("Own", (MeanImputer,), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match="Own is a class of your own"):
        own().fit(models.table()).save(tmp_path / "model")


def test_save_takes_texts_replaces_files_and_leaves_nothing_else(models: Any, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "model.otimpute"
    MeanImputer().fit(models.table()).save(str(path))
    MeanImputer().fit([[1.0, np.nan], [3.0, 4.0]]).save(str(path))
    assert otimpute.load(str(path)).transform([[np.nan, np.nan]]).tolist() == [[2.0, 4.0]]
    assert [each.name for each in path.parent.iterdir()] == ["model.otimpute"]


def test_loading_needs_no_optional_package(models: Any) -> None:
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "pandas", "polars", "rich", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import otimpute
for path in sys.argv[1:]:
    print(otimpute.load(path).transform([[1.0, float("nan"), 3.0, 0.5]]).shape)
"""
    paths = [str(models.file(name)) for name in models.names if name not in TORCH and not name.startswith("own")]
    result = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, env=os.environ, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["(1, 4)"] * len(paths)


@needs_torch
@pytest.mark.parametrize(("name", "parameter"), [("own-model", "model"), ("own-completer", "completer")])
def test_load_says_which_module_to_pass(name: str, parameter: str, models: Any) -> None:
    with pytest.raises(StoredFileError, match=rf"a {parameter} of your own.*otimpute\.load\(path, {parameter}=\.\.\.\)"):
        otimpute.load(models.file(name))


@needs_torch
@pytest.mark.parametrize("name", ["meta-sinkhorn", "round-robin", "mean", "own-model"])
def test_a_module_that_is_not_needed_is_refused(name: str, models: Any) -> None:
    with pytest.raises(ValueError, match="without a completer of your own"):
        otimpute.load(models.file(name), **{**models.given(name), "completer": lambda: None})


@needs_torch
def test_a_module_serves_as_well_as_a_function_and_stays_as_it_is(models: Any) -> None:
    import torch

    make = models.given("own-completer")["completer"]
    module, state = make(), torch.random.get_rng_state()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    loaded = otimpute.load(models.file("own-completer"), completer=module)
    by_function = otimpute.load(models.file("own-completer"), completer=make)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(loaded.transform(models.table()), by_function.transform(models.table()))
    assert loaded.completer is module
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())


@needs_torch
def test_other_modules_are_refused_with_a_reason(models: Any) -> None:
    import torch

    from otimpute.imputers.meta_sinkhorn.joint_completer import JointCompleter

    completer, model = models.file("own-completer"), models.file("own-model")
    with pytest.raises(StoredFileError, match=r"'network.0.weight' of completer has shape \(6, 8\).*in the file \(5, 8\)"):
        otimpute.load(completer, completer=JointCompleter(4, width=6))
    with pytest.raises(StoredFileError, match=r"type torch.float64, but in the file .*torch.float32"):
        otimpute.load(completer, completer=JointCompleter(4, width=5).double())
    with pytest.raises(StoredFileError, match=r"has the weights weight, bias, but the file count, 0.weight"):
        otimpute.load(model, model=lambda d_in: torch.nn.Linear(d_in, 1))
    with pytest.raises(TypeError, match="must make a module per column"):
        otimpute.load(model, model=torch.nn.Linear(2, 1))
    with pytest.raises(TypeError, match=r"completer must be a torch.nn.Module"):
        otimpute.load(completer, completer=lambda: 5)


@needs_torch
def test_state_that_is_no_array_is_refused_when_saved(models: Any, tmp_path: Path) -> None:
    from otimpute.imputers.meta_sinkhorn.joint_completer import JointCompleter

    class WithNotes(JointCompleter):
        def get_extra_state(self) -> Any:
            return {"notes": "..."}

        def set_extra_state(self, state: Any) -> None: ...

    imputer = MetaSinkhornImputer(WithNotes(4, width=5), max_steps=2, random_state=0).fit(models.table())
    with pytest.raises(TypeError, match="'_extra_state' in the state of completer"):
        imputer.save(tmp_path / "model")
