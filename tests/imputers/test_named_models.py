"""``methods=`` of RoundRobinImputer: columns whose model is another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import otimpute
from otimpute import RoundRobinImputer

SHORT: dict[str, Any] = {"max_cycles": 2, "n_updates": 3, "n_pairs": 2, "random_state": 0}


def incomplete_table(n: int = 120) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=n)
    X = np.column_stack([x, np.abs(x) - 0.5, 2 * x]) + 0.05 * rng.normal(size=(n, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize(("model", "other"), [("linear", "mlp"), ("mlp", "linear")])
def test_all_columns_named_are_as_with_that_model(model: str, other: str) -> None:
    X = incomplete_table()
    named = RoundRobinImputer(model, methods=dict.fromkeys(range(3), other), **SHORT)
    plain = RoundRobinImputer(other, **SHORT)
    np.testing.assert_array_equal(named.fit_transform(X), plain.fit_transform(X))
    np.testing.assert_array_equal(named.transform(X), plain.transform(X))


def test_the_model_of_a_named_column_bends_and_those_of_the_others_do_not() -> None:
    asked = {**SHORT, "random_state": 4, "initial_weights": "random"}  # other seeds may begin with units that never wake up
    imputer = RoundRobinImputer(methods={1: "mlp"}, **asked).fit(incomplete_table())
    x = np.linspace(-1, 1, 50)

    def bend(column: int) -> float:
        rows = np.zeros((50, 3))
        rows[:, 0], rows[:, column] = x, np.nan
        return float(np.abs(np.diff(imputer.transform(rows)[:, column], 2)).max())

    assert bend(1) > 1e-4 > 1e-5 > bend(2)


def test_columns_of_one_category_have_the_model_that_is_named_for_it() -> None:
    X = incomplete_table()
    frame = pd.DataFrame({"age": X[:, 0], "job": np.where(np.isnan(X[:, 1]), None, np.where(X[:, 1] > 0.1, "a", "b"))})
    frame.loc[::7, "job"] = "c"
    imputer = RoundRobinImputer(methods={"job": "mlp"}, **SHORT).fit(frame)
    assert imputer.model_.named is not None
    assert imputer.model_.named.which.tolist() == [-1, 0, 0]
    assert imputer.transform(frame).notna().to_numpy().all()


def test_saved_models_and_new_rows_know_what_was_named(tmp_path: Path) -> None:
    X = incomplete_table()
    imputer = RoundRobinImputer(methods={1: "mlp"}, **SHORT).fit(X)
    imputer.save(tmp_path / "model.otimpute")
    loaded = otimpute.load(tmp_path / "model.otimpute")
    assert loaded.methods == {1: "mlp"}
    np.testing.assert_array_equal(loaded.transform(X), imputer.transform(X))
    np.testing.assert_array_equal(loaded.transform(X[:5]), imputer.transform(X)[:5])


def test_modules_of_ones_own_are_the_models_of_the_others(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def model(d_in: int) -> Any:
        return torch.nn.Linear(d_in, 1)

    X = incomplete_table()
    imputer = RoundRobinImputer(model, methods={1: "mlp"}, **SHORT).fit(X)
    imputer.save(tmp_path / "model.otimpute")
    loaded = otimpute.load(tmp_path / "model.otimpute", model=model)
    np.testing.assert_array_equal(loaded.transform(X), imputer.transform(X))


def test_a_stopped_fit_goes_on_with_what_was_named(tmp_path: Path) -> None:
    X, asked = incomplete_table(), {**SHORT, "methods": {1: "mlp"}, "max_cycles": 6, "n_updates": 100}
    n_calls = 0

    def stop(_: Any) -> bool:
        nonlocal n_calls
        n_calls += 1
        return n_calls > 2

    path = tmp_path / "fit.checkpoint"
    stopped = RoundRobinImputer(checkpoint=path, callbacks=[stop], **asked).fit(X)
    assert stopped.stop_reason_ == "callback" and path.exists()
    resumed = RoundRobinImputer(checkpoint=path, **asked).fit_transform(X)
    np.testing.assert_array_equal(resumed, RoundRobinImputer(**asked).fit_transform(X))


def test_a_warm_start_goes_on_with_the_same_models_only() -> None:
    X = incomplete_table()
    imputer = RoundRobinImputer(methods={1: "mlp"}, warm_start=True, **SHORT).fit(X)
    before = imputer.model_.named.nets[0].parameters.copy()  # type: ignore[union-attr]
    imputer.fit(X)
    after = imputer.model_.named.nets[0].parameters  # type: ignore[union-attr]
    assert (before[1] != after[1]).any() and not after[[0, 2]].any()
    with pytest.raises(ValueError, match="warm_start=True continues to train"):
        imputer.set_params(methods={2: "mlp"}).fit(X)


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        ({3: "mlp"}, "which are 0, 1, 2; got 3"),
        ({"age": "mlp"}, "got 'age'"),
        ({1: "linaer"}, r"must be one of 'linear', 'mlp', got 'linaer'; did you mean 'linear'\?"),
        ({1: str}, "pass it as model"),
        ("mlp", "must be a dictionary of models by column"),
    ],
)
def test_methods_that_make_no_sense_are_refused(methods: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        RoundRobinImputer(methods=methods, **SHORT).fit(incomplete_table())
