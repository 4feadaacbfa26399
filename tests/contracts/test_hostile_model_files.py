"""No file, whatever is in it, does harm: it is refused with a reason, or holds an imputer like any other."""

from __future__ import annotations

import copy
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import otimpute
from otimpute._archive import write_archive
from otimpute.exceptions import StoredFileError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Change = Callable[[Any, dict[str, Any]], Any]


class _Bomb:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("exploded"),)


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, a=np.arange(3))


def _torch(path: Path) -> None:
    pytest.importorskip("torch").save({"a": 1}, path)


FOREIGN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "text": (lambda path: path.write_text("a,b\n1,2\n"), "no file of otimpute's"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(_Bomb())), "looks like a Python pickle"),
    "npz": (_npz, "looks like a zip archive"),
    "torch": (_torch, "looks like a zip archive"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "archive of another kind": (lambda path: write_archive(path, "checkpoint", {}, {}), "is a checkpoint of otimpute"),
    "no document": (lambda path: write_archive(path, "model file", [1, 2], {}), "must have otimpute, imputer"),
    "future format": (lambda path: path.write_bytes(b"OTIMPUTE\7" + bytes(100)), "format version 7.*upgrade"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_foreign_files_are_refused_and_not_run(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write, message = FOREIGN[what]
    write(tmp_path / "model")
    with pytest.raises(StoredFileError, match=message):
        otimpute.load(tmp_path / "model")
    assert not (tmp_path / "exploded").exists()


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        otimpute.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 4}, r"a MeanImputer written by otimpute .* in version 4, .* reads version 3; upgrade"),
        ({"version": 2}, "in version 2.*fit and save it again"),
        ({"imputer": "TelepathicImputer"}, "a TelepathicImputer written by .* does not know; upgrade"),
        ({"imputer": "os.system"}, "does not know"),
        ({"parameters": {"telepathy": 1}}, r"parameters that it has not got here, \['telepathy'\]; upgrade"),
        ({"parameters": {"callbacks": []}}, "has not got here"),
        ({"state": None}, "the document must have"),
    ],
)
def test_files_of_another_version_are_refused(change: dict[str, Any], message: str, models: Any, tmp_path: Path) -> None:
    with pytest.raises(StoredFileError, match=message):
        otimpute.load(models.rewrite("mean", lambda document, _: document.update(change), tmp_path / "model"))


def test_parameters_that_are_new_since_get_their_defaults(models: Any, tmp_path: Path) -> None:
    path = models.rewrite("knn", lambda document, _: document["parameters"].pop("weights"), tmp_path / "model")
    assert otimpute.load(path).weights == "uniform"


def entry(key: str, index: Any, value: Any) -> Change:
    def change(_: Any, arrays: dict[str, Any]) -> None:
        arrays[f"state.{key}"][index] = value

    return change


def array(key: str, make: Callable[[np.ndarray], np.ndarray]) -> Change:
    def change(_: Any, arrays: dict[str, Any]) -> None:
        arrays[f"state.{key}"] = make(arrays[f"state.{key}"])

    return change


def value(*keys: Any, to: Any) -> Change:
    def change(document: Any, _: dict[str, Any]) -> None:
        place = document["state"]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


def without(key: str) -> Change:
    """Without an attribute and its arrays."""

    def change(document: Any, arrays: dict[str, Any]) -> None:
        del document["state"][key]
        for name in [each for each in arrays if each.startswith(f"state.{key}")]:
            del arrays[name]

    return change


def nothing_learned(key: str) -> Change:
    """None in the place of what was learned."""

    def change(document: Any, arrays: dict[str, Any]) -> None:
        place = document["state"]
        for name in key.split(".")[:-1]:
            place = place[name]
        place[key.split(".")[-1]] = None
        for name in [each for each in arrays if each.startswith(f"state.{key}.")]:
            del arrays[name]

    return change


def refining_first(document: Any, arrays: dict[str, Any]) -> None:
    """All experts count as ones that make a start, also those that need one."""
    arrays["state._model.panel.first_weights"] = arrays["state._model.panel.weights"]


def no_reference_rows(_: Any, arrays: dict[str, Any]) -> None:
    for key in ("points", "slope", "offset"):
        arrays[f"state._model.reference.{key}"] = arrays[f"state._model.reference.{key}"][..., :0]


def keep_experts(n: int) -> Change:
    """Without all experts but the first ones, and without the others' arrays; weights stay."""

    def change(document: Any, arrays: dict[str, Any]) -> None:
        experts = document["state"]["_model"]["panel"]["models"]
        for place in range(n, len(experts)):
            for name in [each for each in arrays if each.startswith(f"state._model.panel.models.{place}.")]:
                del arrays[name]
        del experts[n:]

    return change


def no_experts(document: Any, arrays: dict[str, Any]) -> None:
    keep_experts(0)(document, arrays)
    document["state"]["_model"]["panel"]["names"] = []
    for key in ("weights", "first_weights"):
        arrays[f"state._model.panel.{key}"] = arrays[f"state._model.panel.{key}"][:, :0]


def other_columns(_: Any, arrays: dict[str, Any]) -> None:
    """An expert of another table: of three columns, where there are four."""
    arrays["state._model.panel.models.0.means"] = arrays["state._model.panel.models.0.means"][:3]


def model_of_expert(place: int, to: str) -> Change:
    """An expert's model that is said to be of another class."""

    def change(document: Any, _: dict[str, Any]) -> None:
        models = document["state"]["_model"]["panel"]["models"]
        models[place] = {to: next(iter(models[place].values()))}

    return change


OUTSIDE, TREE = "has places outside of", "a tree goes back, or outside"
EXPERTS, TOGETHER = "experts and weights do not go together", "experts, weights and columns do not go together"
INCONSISTENT: dict[str, tuple[str, Change, str]] = {
    "a mean that is not finite": ("mean", entry("_model.means", 0, np.nan), "means has values that are not finite"),
    "means of another type": ("mean", array("_model.means", lambda a: a.astype(np.float32)), "must be float64"),
    "means of another shape": ("mean", array("_model.means", lambda a: a[None]), r"must be float64 of shape \[columns\]"),
    "a mean too few": ("mean", array("_model.means", lambda a: a[1:]), "has other columns than the table"),
    "an array too many": ("mean", lambda _, arrays: arrays.update(x=np.ones(3)), "does not use the arrays x"),
    "an array too few": ("mean", lambda _, arrays: arrays.pop("state._model.means"), "an array that is not there"),
    "an attribute too few": ("mean", without("training_table_"), "state must have _model, .*training_table_"),
    "an attribute too many": ("mean", value("transform", to=1), "state must have"),
    "another number of columns": ("mean", value("n_features_in_", to=5), "has 4 table where 5 are expected"),
    "no whole number": ("mean", value("n_features_in_", to=4.0), "n_features_in_ must be a whole number"),
    "names of the wrong number": ("mean", value("feature_names_in_", to=["a"]), "feature_names_in_ has 1 table"),
    "gaps of other columns": ("mean", value("file_gaps_", to=[["NA"]]), "file_gaps_ has other columns than the table"),
    "gaps that are no texts": ("mean", value("file_gaps_", to=[[1]] * 4), "must be of type str"),
    "names that are none": ("mean", value("feature_names_in_", to=[None] * 4), "must be a list of names"),
    "an indicator outside": ("mean", array("indicator_columns_", lambda _: np.array([4])), OUTSIDE),
    "a column that turned empty": ("mean", entry("training_table_.empty", 0, True), "has other columns than the table"),
    "a spread that vanished": ("knn", entry("_model.columns.scaler.spread", 0, 0.0), "columns that vary must have a spread"),
    "a negative spread": ("knn", entry("_model.columns.scaler.spread", 0, -1.0), "has values below 0"),
    "nothing learned": ("knn", nothing_learned("_model.method"), "a method that fills them"),
    "neighbours without a value": ("knn", entry("_model.method.rows", np.s_[:, 0], np.nan), "no value in any row"),
    "neighbours at infinity": ("knn", entry("_model.method.rows", 0, np.inf), "not finite"),
    "unknown weights": ("knn", value("_model", "method", "weights", to="pickle"), "weights must be one of"),
    "a step of a column outside": ("ice", entry("_model.method.column", 0, 9), OUTSIDE),
    "a tree that goes back": ("missforest", entry("_model.method.forests.0.child", 0, 0), TREE),
    "a tree that leaves its nodes": ("missforest", entry("_model.method.forests.0.child", 0, 2**30), TREE),
    "a tree that leaves its inputs": ("missforest", entry("_model.method.forests.0.feature", 0, 2), TREE),
    "a tree that begins nowhere": ("missforest", entry("_model.method.forests.0.roots", 0, -5), TREE),
    "a forest without trees": ("missforest", array("_model.method.forests.0.roots", lambda a: a[:0]), "needs trees"),
    "a forest of another column": ("missforest", entry("_model.method.forests.0.columns", 0, 3), OUTSIDE),
    "endless rounds": ("missforest", value("_model", "method", "n_rounds", to=10**18), "n_rounds must be a whole number"),
    "a covariance too small": ("gaussian-em", array("_model.method.covariance", lambda a: a[:2, :2]), "has 2 varying where 3"),
    "a rank above the columns": ("softimpute", array("_model.method.loadings", lambda _: np.ones((3, 50))), "the rank exceeds"),
    "no penalty": ("softimpute", value("_model", "method", "penalty", to=0.0), "must be a finite number > 0"),
    "another varying column": ("sinkhorn", entry("_model.columns.varying", 2, 2), "must be those with a spread"),
    "no reference": ("sinkhorn", nothing_learned("_model.reference"), "there must be reference rows"),
    "a reference without rows": ("sinkhorn", no_reference_rows, "needs at least one row"),
    "offsets of fewer rows": ("sinkhorn", array("_model.reference.offset", lambda a: a[1:]), "has 59 R where 60"),
    "a precision too small": ("sinkhorn", array("_model.reference.precision", lambda a: a[:2, :2]), "has 2 varying where 3"),
    "a target outside": ("round-robin", value("_model", "targets", 0, "column", to=3), "targets must be different ones of 3"),
    "a target twice": ("round-robin", value("_model", "targets", 0, "column", to=1), "targets must be different ones of 3"),
    "a limit that is none": ("round-robin", value("_model", "targets", 0, "low", to="nan"), "low must be a finite number"),
    "layers that do not fit": ("round-robin-mlp", entry("_model.nets.sizes", 1, 5), "are no network"),
    "layers whose sum overflows": ("round-robin-mlp", entry("_model.nets.sizes", 1, 2**62), "are no network"),
    "a negative weight": ("auto", entry("_model.panel.weights", 0, -1.0), EXPERTS),
    "a negative first weight": ("auto", entry("_model.panel.first_weights", 0, -1.0), EXPERTS),
    "a weight that is not finite": ("auto", entry("_model.panel.weights", 0, np.nan), "not finite"),
    "weights of fewer columns": ("auto", array("_model.panel.weights", lambda a: a[1:]), "has 3 G where 4"),
    "weights of other experts": ("auto", array("_model.panel.weights", lambda a: a[:, 1:]), EXPERTS),
    "a group outside": ("auto", entry("_model.columns.group", 3, 10**15), TOGETHER),
    "a group below": ("auto", entry("_model.columns.group", 0, -5), TOGETHER),
    "groups in another order": ("auto", array("_model.columns.group", lambda a: a[::-1].copy()), TOGETHER),
    "error bars of fewer columns": ("auto", array("_model.error_bars.weights", lambda a: a[1:]), TOGETHER),
    "draws whose quantiles fall": ("auto", array("_model.draw_rule.wanted", lambda a: a[..., ::-1].copy()), "must not fall"),
    "a negative error bar": ("auto", entry("_model.error_bars.weights", 0, -1.0), "below 0"),
    "a missing expert": ("auto", keep_experts(1), EXPERTS),
    "no expert at all": ("auto", no_experts, EXPERTS),
    "an expert of another class": ("auto", model_of_expert(1, "MeanModel"), "must have the fields means"),
    "an expert that is no expert": ("auto", model_of_expert(0, "AutoModel"), "must be one of"),
    "an expert that is code": ("auto", model_of_expert(0, "os.system"), "must be one of"),
    "an expert of other columns": ("auto", other_columns, "has 3 columns where 4 are expected"),
    "an expert that lacks its start": ("auto", refining_first, EXPERTS),
    "an expert's tree that goes back": ("auto", entry("_model.panel.models.3.method.forests.0.child", 0, 0), TREE),
    "an expert's tree that leaves its inputs": ("auto", entry("_model.panel.models.3.method.forests.0.feature", 0, 2), TREE),
    "an expert's tree of a column outside": ("auto", entry("_model.panel.models.3.method.forests.0.columns", 0, 3), OUTSIDE),
    "draws by another expert": (
        "auto-distribution",
        value("_model", "panel", "names", to=["gaussian_mixture", "gaussian_em", "mean"]),
        TOGETHER,
    ),
    "draws without their expert": (
        "auto-distribution",
        value("_model", "panel", "names", to=["mean", "gaussian_em", "x"]),
        TOGETHER,
    ),
    "a mixture too small": (
        "gaussian-mixture",
        array("_model.method.mixtures.0.covariance", lambda a: a[:, :2, :2]),
        "has 2 varying where 3",
    ),
    "a covariance of fewer components": (
        "gaussian-mixture",
        array("_model.method.mixtures.0.covariance", lambda a: a[1:]),
        "has 1 K where",
    ),
    "a component without a share": ("gaussian-mixture", entry("_model.method.mixtures.0.share", 0, 0.0), "needs a share"),
    "a covariance that is none": (
        "gaussian-mixture",
        entry("_model.method.mixtures.0.covariance", np.s_[0, 0, 0], -1.0),
        "positive definite",
    ),
    "a kernel of fewer landmarks": (
        "kernel-ridge",
        array("_model.method.rounds.0.landmarks", lambda a: a[:, 1:].copy()),
        "are expected",
    ),
    "a kernel of no other columns": ("kernel-ridge", array("_model.method.groups", lambda a: 0 * a), "columns to predict from"),
    "no network at all": ("round-robin", nothing_learned("_model.nets"), "networks, or weights"),
}


@pytest.mark.parametrize("what", INCONSISTENT)
def test_contents_that_do_not_go_together_are_refused_though_the_checksum_is_right(
    what: str, models: Any, tmp_path: Path
) -> None:
    name, change, message = INCONSISTENT[what]
    with pytest.raises(StoredFileError, match=message):
        otimpute.load(models.rewrite(name, change, tmp_path / "model"))


FUZZ = settings(
    max_examples=int(os.environ.get("OTIMPUTE_FUZZ", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", ["mean", "sinkhorn"])
@FUZZ
@given(data=st.data())
def test_damaged_files_are_always_refused(name: str, models: Any, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(models.file(name).read_bytes())
    damage = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    where = data.draw(st.integers(0, len(content) - 1))
    if damage == "flip":
        content[where] ^= data.draw(st.integers(1, 255))
    elif damage == "cut":
        del content[where:]
    else:
        content[where:where] = data.draw(st.binary(min_size=1, max_size=9))
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(StoredFileError):
        otimpute.load(tmp_path / "model")


NUMBERS = [0, 1, -1, 2, 7, 2**31, -(2**63), 2**63, 10**30, 0.5, -0.0, 1e300, 5e-324]
OTHERS = [None, True, "", "nan", "inf", "state.means_", "mlp", "covariance", [], {}, [[1]], {"array": "x"}, {"float": "nan"}]
TAGGED = [{"tuple": [1]}, {"dict": [["a"], [1]]}, {"dict": [[[]], [1]]}, {"objects": [[9], [1]]}, {"given": "at load"}]
ENTRIES = [0, 1, -1, 3, 127, 1e9, np.nan, np.inf, -np.inf, 1e38]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    return [place for key in keys for place in [(tree, key), *places(tree[key])]]


def change_document(document: Any, data: st.DataObject) -> None:
    container, key = data.draw(st.sampled_from(places(document)))
    how = data.draw(st.sampled_from(["replace", "replace", "remove", "copy"]))
    if how == "remove":
        del container[key]
    elif how == "replace":
        container[key] = copy.deepcopy(data.draw(st.sampled_from(NUMBERS + OTHERS + TAGGED)))
    else:
        other, place = data.draw(st.sampled_from(places(document)))
        container[key] = other[place] if not isinstance(other[place], dict | list) else None


def change_array(arrays: dict[str, Any], data: st.DataObject) -> None:
    key, other = (data.draw(st.sampled_from(sorted(arrays))) for _ in range(2))
    changed = arrays[key]
    how = data.draw(st.sampled_from(["entry", "entry", "entry", "rows", "type", "swap", "remove", "transpose"]))
    if how == "entry" and changed.size:
        changed.flat[data.draw(st.integers(0, changed.size - 1))] = np.array(data.draw(st.sampled_from(ENTRIES))).astype(
            changed.dtype
        )
    elif how == "rows" and changed.ndim:
        rows = data.draw(st.lists(st.integers(0, max(len(changed) - 1, 0)), max_size=len(changed) + 1))
        arrays[key] = changed[rows] if len(changed) else changed
    elif how == "type":
        arrays[key] = changed.astype(data.draw(st.sampled_from(["bool", "int8", "int64", "float32", "uint64"])))
    elif how == "swap":
        arrays[key], arrays[other] = arrays[other], arrays[key]
    elif how == "remove":
        del arrays[key]
    elif how == "transpose":
        arrays[key] = changed.T


@FUZZ
@given(data=st.data())
def test_changed_contents_are_refused_or_do_no_harm(model_name: str, models: Any, tmp_path: Path, data: st.DataObject) -> None:
    def change(document: Any, arrays: dict[str, Any]) -> None:
        for _ in range(data.draw(st.integers(1, 3))):
            if data.draw(st.booleans()) and arrays:
                change_array(arrays, data)
            elif places(document):
                change_document(document, data)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = models.rewrite(model_name, change, tmp_path / "model")
        try:
            imputer = otimpute.load(path, **models.given(model_name))
        except StoredFileError:
            return
        except (TypeError, ValueError) as error:  # parameters are checked where they are used
            assert any(text in str(error) for text in ("of your own", "completer must be", "model must be")), error
            return
        for rows in (models.table(seed=5), np.full((2, 4), np.nan)):
            try:
                imputer.transform(rows)
            except Exception as error:  # anything that Python can report is no harm
                assert not isinstance(error, SystemError | MemoryError), error
