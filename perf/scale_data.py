"""Tables larger than memory, as folders of Parquet files: correlated numbers, a fifth of them missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_FILE = 1_000_000


def make(folder: Path, n_rows: int, n_columns: int = 20, dtype: str = "float64", rows_per_file: int = ROWS_PER_FILE) -> Path:
    """Write a table of so many rows, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = np.random.default_rng(0).normal(size=(6, n_columns))
    for k in range(-(-n_rows // rows_per_file)):
        path = folder / f"part-{k:04}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([1, k])
        n = min(rows_per_file, n_rows - k * rows_per_file)
        values = (rng.normal(size=(n, 6)) @ weights + rng.normal(size=(n, n_columns))).astype(dtype)
        holes = rng.random((n, n_columns), dtype=np.float32) < 0.2
        arrays = [pa.array(values[:, j], mask=holes[:, j]) for j in range(n_columns)]
        part = path.with_name(f".{path.name}")
        pq.write_table(pa.table(arrays, names=[f"c{j}" for j in range(n_columns)]), part, row_group_size=250_000)
        part.replace(path)
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(float(sys.argv[2])), dtype=sys.argv[3] if len(sys.argv) > 3 else "float64")
