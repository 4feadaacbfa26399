"""Frames of Ray, Spark and Dask as rows to learn from: read by the workers, all of them, each time."""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.dataset import dataset

import otimpute
from engines import Engine, cut
from every_imputer import IMPUTERS
from faults import combine_descriptions, describe_rows
from otimpute.streams import BatchSource

pytestmark = pytest.mark.engines


@pytest.fixture
def source(engine: Engine, table: pa.Table) -> Any:
    return import_module(f"otimpute.distributed.{engine.name}").source(engine.frame(cut(table, 20)))


def test_workers_read_every_row_once_each_time_and_combine_what_they_found(source: Any, table: pa.Table) -> None:
    assert isinstance(source, BatchSource)
    for _ in range(2):
        states = [json.loads(state) for state in source.fold(describe_rows, combine_descriptions)]
        assert len(states) <= 16  # of 20 parts
        assert sorted(key for state in states for key in state["keys"]) == sorted(table["key"].to_pylist())
        assert os.getpid() not in {process for state in states for process in state["processes"]}


def test_all_parts_have_the_schema_of_the_source(source: Any, table: pa.Table) -> None:
    assert source.schema.names == table.column_names
    states = [json.loads(state) for state in source.fold(describe_rows, combine_descriptions)]
    schemas = {schema for state in states for schema in state["schemas"]}
    assert schemas == {str(source.schema.remove_metadata())}


@pytest.mark.parametrize("name", ["gaussian-em", "auto"])
def test_a_fit_to_a_frame_is_the_fit_to_its_rows_to_the_bit(name: str, engine: Engine, table: pa.Table) -> None:
    rows = table.drop_columns(["remark", "key"])
    sample = {"sample_rows": 100, "min_observed": 20}
    here = IMPUTERS[name]().fit(otimpute.scan(dataset(rows), **sample))
    there = IMPUTERS[name]().fit(otimpute.scan(engine.frame(cut(rows, 7)), **sample))
    assert there.transform(rows).equals(here.transform(rows))
