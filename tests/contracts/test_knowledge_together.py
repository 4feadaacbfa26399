"""What people know about a table works together: predictors, methods by column, weights of rows, panels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

import otimpute
from otimpute import AutoImputer, RoundRobinImputer
from otimpute.baselines import GaussianEMImputer


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 120
    a, b = rng.normal(size=(2, n))
    frame = pd.DataFrame(
        {"a": a, "b": a + 0.3 * b, "c": a - b, "job": np.where(a + b > 0, "x", "y"), "who": np.repeat(np.arange(12), 10)}
    )
    frame["when"] = np.tile(np.arange(10), 12)
    for name in ("a", "b", "job"):
        frame.loc[rng.random(n) < 0.25, name] = None
    return frame


def weights(table: pd.DataFrame) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 4, size=len(table)).astype(float)


def test_weights_and_methods_hold_within_predictors(table: pd.DataFrame) -> None:
    imputer = AutoImputer(
        ["gaussian_em"], methods={"job": "trees", "b": "gaussian"}, predictors={"b": ["a"]}, n_splits=1, random_state=0
    )
    imputed = imputer.fit_transform(table, sample_weight=weights(table))
    assert imputer.weights_["job"]["extra_trees"] == 1 and imputer.weights_["b"]["gaussian_em"] == 1
    other = table.assign(c=table["c"] * 3 + np.random.default_rng(2).normal(size=len(table)))
    pd.testing.assert_series_equal(imputer.fit_transform(other, sample_weight=weights(table))["b"], imputed["b"])
    assert not imputed["b"].equals(imputer.fit_transform(table)["b"])  # weights did count
    assert not imputed.isna().any(axis=None)


def test_rows_without_weight_are_not_learned_from_in_any_block(table: pd.DataFrame) -> None:
    imputer = GaussianEMImputer(predictors={"b": ["a"]})
    weight = weights(table)
    elsewhere = table.copy()
    elsewhere.loc[(weight == 0) & table["b"].notna(), "b"] += 5
    counting = weight > 0
    before, after = (imputer.fit_transform(each, sample_weight=weight)[counting] for each in (table, elsewhere))
    pd.testing.assert_series_equal(after["b"], before["b"])


def test_models_by_column_hold_within_predictors(table: pd.DataFrame) -> None:
    imputer = RoundRobinImputer(methods={"a": "mlp"}, predictors={"b": ["a"]}, max_cycles=1, random_state=0)
    imputed = imputer.fit_transform(table)
    assert not imputed.isna().any(axis=None)
    pd.testing.assert_frame_equal(imputed.where(table.notna()), table.where(table.notna()))


def test_weights_and_methods_hold_in_panels(table: pd.DataFrame) -> None:
    imputer = AutoImputer(["gaussian_em"], methods={"b": "gaussian"}, groups="who", time="when", n_splits=1, random_state=0)
    imputed = imputer.fit_transform(table, sample_weight=weights(table))
    assert imputer.weights_["b"]["gaussian_em"] == 1
    assert not imputed.isna().any(axis=None)


def test_rules_hold_in_streams_of_batches(table: pd.DataFrame) -> None:
    table = table.assign(b=table["b"].where(table["c"] < 1))
    rules = {
        "exclude": ["who"], "predictors": {"b": ["a"]}, "derive": {"total": "a + c"}, "applicable": {"b": "c < 1"},
    }  # fmt: skip
    given = pa.Table.from_pandas(table.assign(total=np.where(np.arange(len(table)) % 3, table["a"] + table["c"], np.nan)))
    given = given.replace_schema_metadata(None)
    imputer = GaussianEMImputer(**rules).fit(otimpute.scan(pa.dataset.dataset(given)))
    batches = list(imputer.transform_batches(given.to_batches(max_chunksize=17)))
    found = pa.Table.from_batches(batches)
    assert found.equals(imputer.transform(given))
    completed = found.to_pandas()
    np.testing.assert_allclose(completed["total"], completed["a"] + completed["c"], atol=1e-9)
    assert completed["b"][table["c"] >= 1].isna().all()
    assert completed["b"][table["c"] < 1].notna().all()


def test_panels_are_not_read_in_batches(table: pd.DataFrame) -> None:
    given = pa.Table.from_pandas(table)
    imputer = GaussianEMImputer(groups="who")
    with pytest.raises(ValueError, match=r"groups use other rows of a group.*fit to a table in memory"):
        imputer.fit(otimpute.scan(pa.dataset.dataset(given)))
    with pytest.raises(ValueError, match=r"groups use other rows of a group.*call transform"):
        imputer.fit(given).transform_batches(given.to_batches())
