"""Holes in arrays and frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from otimpute.missingness import MCAR, LogisticMAR, Mechanism, hide


def mixed_pandas() -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame(
        {
            "float": x,
            "float32": x.astype(np.float32),
            "Float64": pd.Series(x).astype("Float64"),
            "Int64": pd.Series(2**62 + np.arange(60)).astype("Int64"),  # not floats: must survive exactly
            "boolean": pd.Series(x > 0).astype("boolean"),
            "arrow": pd.Series(np.rint(10 * x)).astype("int64[pyarrow]"),
            "int": np.rint(5 * x).astype(np.int64),
            "bool": x > 1,
            7: x,
        }
    )
    frame.index = pd.Index([f"row {i // 2}" for i in range(60)], name="id")  # with repeats
    return frame


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, bool])
def test_arrays_become_float64_with_nan_in_the_holes_only(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 2, (50, 4)).astype(dtype)
    X_incomplete, missing = hide(X, MCAR(0.4), 1)
    assert X_incomplete.dtype == np.float64
    np.testing.assert_array_equal(missing, MCAR(0.4).sample(X, 1))
    np.testing.assert_array_equal(np.isnan(X_incomplete), missing)
    np.testing.assert_array_equal(X_incomplete[~missing], X[~missing])


def test_pandas_frames_keep_names_index_and_types_that_know_null() -> None:
    frame = mixed_pandas()
    before = frame.copy(deep=True)
    X_incomplete, missing = hide(frame, MCAR(0.3), 2)
    pd.testing.assert_index_equal(X_incomplete.index, frame.index)
    pd.testing.assert_index_equal(X_incomplete.columns, frame.columns)
    np.testing.assert_array_equal(X_incomplete.isna(), missing)
    for k, name in enumerate(frame):
        plain = name in ("int", "bool")
        assert X_incomplete[name].dtype == (np.float64 if plain else frame[name].dtype)
        there = ~missing[:, k]
        assert (X_incomplete[name][there] == frame[name][there]).all()
    pd.testing.assert_frame_equal(frame, before)


def test_polars_and_arrow_tables_keep_their_types_and_get_nulls() -> None:
    frame = pl.from_pandas(mixed_pandas().reset_index(drop=True).rename(columns={7: "seven"}))
    X_incomplete, missing = hide(frame, MCAR(0.3), 2)
    assert X_incomplete.schema == frame.schema
    for k, name in enumerate(frame.columns):
        np.testing.assert_array_equal(X_incomplete[name].is_null().to_numpy(), missing[:, k])
        there = pl.Series(~missing[:, k])
        assert X_incomplete[name].filter(there).equals(frame[name].filter(there))
    small = frame.drop("Int64")
    table, _ = hide(small.to_arrow(), MCAR(0.3), 2)
    assert isinstance(table, pa.Table)
    assert pl.from_arrow(table).equals(hide(small, MCAR(0.3), 2)[0])


def test_columns_without_holes_are_as_before_and_not_shared() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=list("abcd")).astype({"a": np.float32})
    frame["e"] = np.arange(40)
    X_incomplete, missing = hide(frame, LogisticMAR(0.3, observed_fraction=0.8), 0)
    whole = ~missing.any(axis=0)
    assert whole.sum() == 4
    pd.testing.assert_frame_equal(X_incomplete.loc[:, whole], frame.loc[:, whole])
    before = frame.copy(deep=True)
    X_incomplete.iloc[:, :] = 0
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("frame", [mixed_pandas(), pl.DataFrame({"a": [1, 2], "b": [True, False]})])
def test_nothing_hidden_is_the_same_frame_again(frame: pd.DataFrame | pl.DataFrame) -> None:
    X_incomplete, missing = hide(frame, MCAR(0), 0)
    assert not missing.any()
    assert X_incomplete is not frame
    assert X_incomplete.equals(frame)


@pytest.mark.parametrize("mechanism", [0.3, MCAR, None])
def test_what_is_no_mechanism_is_refused(mechanism: object) -> None:
    with pytest.raises(TypeError, match=r"mechanism must be a Mechanism such as MCAR\(0.3\), got"):
        hide(np.zeros((2, 2)), mechanism, 0)  # type: ignore[arg-type]


def test_a_mechanism_of_ones_own_only_needs_probabilities() -> None:
    class Negative(Mechanism):
        def probabilities(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            return 1.0 * (X < 0)

    np.testing.assert_array_equal(hide([[-1, 2], [3, -4]], Negative(0.5), 0)[1], [[True, False], [False, True]])
