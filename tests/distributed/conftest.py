"""Engines that are started once, and a table of all kinds of columns that is cut into parts for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import otimpute
from engines import ENGINES, Engine, need
from every_imputer import IMPUTERS, grouped_table


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    need(request.param)
    # Workers import otimpute and `faults` from where the tests do.
    folders = [Path(otimpute.__file__).parents[1], Path(__file__).parents[1], os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(str(folder) for folder in folders if folder))
        started = ENGINES[request.param]()
        started.start(tmp_path_factory.mktemp(request.param))
        yield started
        started.stop()


@pytest.fixture(scope="session")
def table() -> pa.Table:
    """Numbers, integers, categories, booleans, dates and moments with holes; a key and a remark that no model knows."""
    n = 240
    table = pa.table(grouped_table(n=n)[1])
    shade = pa.array(
        [None if k % 5 == 0 else "dark" if size and size > 3 else "light" for k, size in enumerate(table["size"].to_pylist())]
    )
    table = table.append_column("shade", shade.dictionary_encode())
    table = table.append_column("remark", pa.array([None if k % 7 == 0 else f"remark {k}" for k in range(n)]))
    return table.append_column(pa.field("key", pa.int64(), nullable=False), pa.array(np.random.default_rng(0).permutation(n)))


@pytest.fixture(scope="session")
def imputer(table: pa.Table) -> otimpute.AutoImputer:
    return IMPUTERS["auto"]().fit(table.drop_columns(["key", "remark"]))


@pytest.fixture(scope="session")
def expected(table: pa.Table, imputer: otimpute.AutoImputer) -> pa.Table:
    """What the imputer makes of the table in memory."""
    filled = imputer.transform(table.drop_columns(["key", "remark"]))
    return filled.append_column("remark", table["remark"]).append_column(table.schema.field("key"), table["key"])
