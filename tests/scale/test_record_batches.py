"""Streams of record batches: the same bits however rows are spread over them, in the schema they came with."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import otimpute
from every_imputer import IMPUTERS, grouped_table
from otimpute.baselines import ChainedImputer, GaussianEMImputer, MeanImputer
from otimpute.distributed import impute, impute_batches
from otimpute.exceptions import StoredFileError

# In torch, products of matrices round by the place of a row among others; a user's modules compute in single precision.
IN_TORCH = {"miwae": 1e-12, "gain": 1e-12, "round-robin-torch": 1e-5}
NAMES = sorted(set(IMPUTERS) - set(IN_TORCH))


def numbers(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 17)) @ np.random.default_rng(3).normal(size=(17, 17))
    X[rng.random(X.shape) < 0.2] = np.nan
    return pa.table({f"c{k}": pa.array(X[:, k], from_pandas=True) for k in range(17)})


def complete(imputer, batches) -> pa.Table:
    return pa.Table.from_batches(imputer.transform_batches(batches))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_imputed_alike_to_the_bit_however_they_are_spread(name: str) -> None:
    table, new = numbers(150), numbers(400, seed=1)
    imputer = otimpute.from_bytes(IMPUTERS[name]().fit(table).to_bytes())
    whole = imputer.transform(new)
    for size in (1, 7, 150, 333):
        some = new.slice(0, 20) if size == 1 else new
        assert complete(imputer, some.to_batches(max_chunksize=size)).equals(whole.slice(0, len(some)))
    order = np.random.default_rng(2).permutation(len(new))
    shuffled = new.take(order).combine_chunks()
    assert complete(imputer, shuffled.to_batches(max_chunksize=90)).equals(whole.take(order))


@pytest.mark.parametrize("name", sorted(set(IN_TORCH) & set(IMPUTERS)))
def test_torch_rounds_by_company(name: str) -> None:
    table, new = numbers(150), numbers(200, seed=1)
    imputer = IMPUTERS[name]().fit(table)
    whole, parts = imputer.transform(new), complete(imputer, new.to_batches(max_chunksize=90))
    for expected, found in zip(whole.columns, parts.columns, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=IN_TORCH[name])


@pytest.mark.parametrize("name", ["auto", "auto-distribution", "chained", "mean", "sinkhorn"])
def test_columns_of_all_kinds_keep_their_schema(name: str) -> None:
    frame = pa.table(grouped_table()[1])
    colour = frame.column("colour").dictionary_encode()
    schema = pa.schema(
        [*frame.schema, pa.field("as_dictionary", colour.type, metadata={"of": "colour"})], metadata={"by": "us"}
    )
    table = pa.table([*frame.columns, colour], schema=schema)
    imputer = IMPUTERS[name]().fit(table)
    pieces = [table.slice(begin, 25) for begin in range(0, len(table), 25)]
    # Each batch with a dictionary of its own, in which some categories may be absent.
    batches = []
    for piece in pieces:
        own = pa.array(piece.column("as_dictionary").to_pylist()).dictionary_encode()
        batches.append(pa.RecordBatch.from_arrays([*(c.combine_chunks() for c in piece.columns[:-1]), own], schema=schema))
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    out = list(imputer.transform_batches([empty, *batches, empty]))
    assert all(batch.schema.equals(schema, check_metadata=True) for batch in out)
    assert [batch.num_rows for batch in out] == [0, *(len(piece) for piece in pieces), 0]
    completed = pa.Table.from_batches(out)
    assert completed.to_pylist() == imputer.transform(table).to_pylist()
    assert not any(column.null_count for column in completed.columns)


def test_columns_go_by_name_and_others_pass() -> None:
    imputer = MeanImputer().fit(pa.table({"x": [1.0, None, 3.0], "y": [None, 5.0, 7.0]}))
    batch = pa.record_batch({"id": ["a", None], "y": [None, 1.0], "x": [None, 2.0]})
    (completed,) = imputer.transform_batches([batch])
    assert completed.to_pydict() == {"id": ["a", None], "y": [6.0, 1.0], "x": [2.0, 2.0]}
    with pytest.raises(ValueError, match="no column y, which the model needs"):
        list(imputer.transform_batches([batch.select(["id", "x"])]))


def test_columns_that_are_not_imputed_may_be_absent() -> None:
    table = pa.table({"x": [1.0, None] * 20, "note": [f"row {k}" for k in range(40)]})
    imputer = MeanImputer().fit(table)
    (completed,) = imputer.transform_batches(table.select(["x"]).to_batches())
    assert completed.column("x").null_count == 0


def test_equal_rows_get_equal_draws() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = np.where(rng.random(60) < 0.3, np.nan, x + rng.normal(size=60))
    imputer = ChainedImputer(n_rounds=2, random_state=0).fit(pa.table({"x": x, "y": pa.array(y, from_pandas=True)}))
    batch = pa.record_batch({"x": [0.5, 0.5, 0.7], "y": pa.array([None] * 3, pa.float64())})
    ((first, second, third),) = (each["y"].to_pylist() for each in imputer.transform_batches([batch]))
    assert first == second != third


def test_a_drifted_type_is_named_with_both_types() -> None:
    imputer = MeanImputer().fit(pa.table({"x": [1.0, None]}))
    with pytest.raises(ValueError, match="column 'x' held numbers in training, now it holds text"):
        list(imputer.transform_batches([pa.record_batch({"x": pa.array([None], pa.string())})]))
    with pytest.raises(ValueError, match="column 'x' has the type null"):
        list(imputer.transform_batches([pa.record_batch({"x": pa.nulls(1)})]))
    drifted = [pa.record_batch({"x": [1.0]}), pa.record_batch({"x": [1]})]
    with pytest.raises(ValueError, match=r"batch 1 .* column 'x' is int64 there, and double before"):
        list(imputer.transform_batches(drifted))


def test_what_would_change_the_schema_is_refused() -> None:
    table = pa.table({"x": [1.0, None]})
    for parameters in ({"add_indicator": True}, {"integers": "float"}):
        with pytest.raises(ValueError, match="batches keep their schema"):
            MeanImputer(**parameters).fit(table).transform_batches(table.to_batches())
    with pytest.raises(ValueError, match="without names"):
        list(MeanImputer().fit([[1.0], [np.nan]]).transform_batches(table.to_batches()))
    with pytest.raises(TypeError, match="must be pyarrow RecordBatches, got Table"):
        list(MeanImputer().fit(table).transform_batches([table]))


def test_the_output_container_changes_nothing() -> None:
    table = pa.table({"x": [1.0, None]})
    imputer = MeanImputer().set_output(transform="polars").fit(table)
    assert isinstance(imputer.transform(table), pl.DataFrame)
    (completed,) = imputer.transform_batches(table.to_batches())
    assert completed.to_pydict() == {"x": [1.0, 1.0]}


def test_bytes_are_those_of_the_file_and_are_checked(tmp_path) -> None:
    table = numbers(80)
    imputer = GaussianEMImputer().fit(table)
    imputer.save(tmp_path / "m.otimpute")
    data = imputer.to_bytes()
    assert data == (tmp_path / "m.otimpute").read_bytes() == otimpute.from_bytes(data).to_bytes()
    (batch,) = table.combine_chunks().to_batches()
    (completed,) = pickle.loads(pickle.dumps(impute_batches))(data, [batch])
    assert completed.equals(imputer.transform(batch))
    with pytest.raises(StoredFileError, match="the model in these bytes was changed or damaged"):
        otimpute.from_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(TypeError, match=r"otimpute.load\(path\)"):
        otimpute.from_bytes("m.otimpute")


def test_a_frame_of_no_engine_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="Ray Data, Spark or Dask, got polars"):
        impute(pl.DataFrame({"x": [1.0]}), MeanImputer())
