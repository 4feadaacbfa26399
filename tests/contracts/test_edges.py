"""What no observed value crosses, no imputed one does: 0, the range from 0 to 1, whole numbers; in every imputer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import otimpute
from every_imputer import Make
from otimpute.baselines import GaussianEMImputer

KINDS = {
    "gain": "number", "balance": "number ≥ 0", "debt": "number ≤ 0", "rate": "number from 0 to 1", "visits": "whole number ≥ 0",
    "member": "number from 0 to 1",
}  # fmt: skip


def accounts(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Columns that depend on each other steeply, so that guesses overshoot, with holes where the edges are near."""
    rng = np.random.default_rng(0)
    gain = rng.normal(size=n) ** 3
    visits = np.rint(np.maximum(4 * gain, 0))
    X = np.column_stack([gain, np.maximum(gain, 0), np.minimum(gain, 0), np.clip(0.5 + gain, 0, 1), visits, gain > 0])
    missing = rng.random(X.shape) < 0.3
    missing[:, 0] = rng.random(n) < 0.1
    return X, missing


def check_edges(imputed: Any) -> None:
    cells = np.asarray(imputed, dtype=np.float64)
    assert np.isfinite(cells).all()
    gain, balance, debt, rate, visits, member = cells.T
    assert balance.min() >= 0
    assert debt.max() <= 0
    assert 0 <= rate.min() <= rate.max() <= 1
    assert (visits.min() >= 0) and (visits % 1 == 0).all()
    assert 0 <= member.min() <= member.max() <= 1
    assert gain.min() < 0 < gain.max()


@pytest.mark.parametrize(
    "as_table", [np.asarray, pd.DataFrame, pl.DataFrame, pa.table], ids=["array", "pandas", "polars", "arrow"]
)
def test_imputed_values_cross_no_edge_that_observed_ones_do_not(make: Make, as_table: Any) -> None:
    X, missing = accounts()
    columns = dict(zip(KINDS, np.where(missing, np.nan, X).T, strict=True))
    table = as_table(np.column_stack(list(columns.values())) if as_table is np.asarray else columns)
    imputer = make()
    imputed = imputer.fit_transform(table)
    check_edges(imputed)
    check_edges(imputer.transform(table))
    assert list(imputer.column_kinds_.values()) == list(KINDS.values())
    np.testing.assert_array_equal(np.asarray(imputed)[~missing], X[~missing])


def test_edges_can_be_lifted() -> None:
    X, missing = accounts()
    incomplete = np.where(missing, np.nan, X)
    lifted = {1: {"bounds": (None, None)}, 2: {"non_negative": False}, 4: {"bounds": (None, 100), "integer": False}}
    imputer = GaussianEMImputer(constraints=lifted)
    imputed = imputer.fit_transform(incomplete)
    assert list(imputer.column_kinds_.values()) == [
        "number", "number", "number", "number from 0 to 1", "number ≤ 100", "number from 0 to 1",
    ]  # fmt: skip
    assert imputed[:, 1].min() < 0 < imputed[:, 2].max()
    assert imputed[:, 4].min() < 0
    assert (imputed[:, 4] % 1 != 0).any()


def test_constraints_go_before_edges() -> None:
    X, missing = accounts()
    wishes = {1: {"bounds": (0.5, 0.8)}, 4: {"bounds": (0.2, 0.7)}, 5: {"integer": True}}
    imputer = GaussianEMImputer(constraints=wishes)
    imputed = imputer.fit_transform(np.where(missing, np.nan, X))
    for column, low, high in ((1, 0.5, 0.8), (4, 0.2, 0.7)):
        filled = imputed[missing[:, column], column]
        assert low <= filled.min() <= filled.max() <= high
    assert set(imputed[:, 5]) == {0, 1}


def test_few_values_are_no_evidence_of_an_edge() -> None:
    X, missing = accounts()
    incomplete = np.where(missing, np.nan, X)
    incomplete[19:, 1] = np.nan
    assert np.count_nonzero(~np.isnan(incomplete[:, 1])) < 20
    assert GaussianEMImputer().fit(incomplete).column_kinds_["1"] == "number"


def test_integers_keep_to_edges_too() -> None:
    X, missing = accounts()
    visits = pl.Series(np.where(missing[:, 4], np.nan, X[:, 4]), nan_to_null=True).cast(pl.Int64)
    frame = pl.DataFrame({"gain": X[:, 0], "visits": visits})
    for integers in ("round", "float"):
        imputer = GaussianEMImputer(integers=integers)
        assert imputer.fit_transform(frame)["visits"].min() == 0
        assert imputer.column_kinds_["visits"] == "integer ≥ 0"
    free = GaussianEMImputer(constraints={"visits": {"bounds": (None, None)}})
    assert free.fit_transform(frame)["visits"].min() < 0


def test_integers_of_an_array_may_become_fractions() -> None:
    X, missing = accounts()
    whole = np.where(missing, -9, np.rint(10 * X)).astype(int)[:, [0, 4]]
    rounded = GaussianEMImputer(missing_values=-9).fit_transform(whole)
    floats = GaussianEMImputer(missing_values=-9, integers="float").fit_transform(whole)
    assert rounded.dtype == whole.dtype
    assert (floats % 1 != 0).any(axis=0).all()
    assert min(rounded[:, 1].min(), floats[:, 1].min()) >= 0


def test_edges_are_kept_in_model_files(tmp_path: Path) -> None:
    X, missing = accounts()
    imputer = GaussianEMImputer().fit(np.where(missing, np.nan, X))
    imputer.save(tmp_path / "model")
    loaded = otimpute.load(tmp_path / "model")
    assert loaded.column_kinds_ == imputer.column_kinds_
    new = np.full((1, 6), np.nan)
    new[0, 0] = -20.0
    check = loaded.transform(new)[0]
    assert (check[1], check[3], check[5]) == (0, 0, 0)
