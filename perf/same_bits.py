"""Are imputations the same to the bit as before a change that should not alter them?

    python perf/same_bits.py save before.json       # before the change
    python perf/same_bits.py compare before.json    # after it: lists what differs, exits with 1 if anything does

Every imputer fills arrays and mixed frames, with two seeds, in the table it is fitted to and in new rows, before and after
it went through a model file. Machines differ in their last bits: save and compare on the same one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import otimpute
from every_imputer import IMPUTERS, grouped_table

MORE: dict[str, Any] = {
    "auto-default": lambda **k: otimpute.AutoImputer(n_splits=1, **k),
    "sinkhorn-default": otimpute.SinkhornImputer,
    "sinkhorn-validated": lambda **k: otimpute.SinkhornImputer(validation_fraction=0.1, one_sided=True, max_steps=60, **k),
    "sinkhorn-two-threads": lambda **k: otimpute.SinkhornImputer(n_pairs=4, n_jobs=2, max_steps=60, **k),
}


def tables(seed: int) -> Iterator[tuple[str, Any, Any]]:
    """Name, table, new rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(130, 5)) @ rng.normal(size=(5, 5)) + 3
    x[:, 2] = x[:, 0] ** 2
    x[rng.random(x.shape) < 0.25] = np.nan
    yield "array", x[:90], x[90:]
    _, incomplete = grouped_table(n=120, seed=seed)
    frame = pl.DataFrame(incomplete)
    yield "polars", frame[:90], frame[90:]
    yield "pandas", pd.DataFrame(incomplete)[:90], pd.DataFrame(incomplete)[90:]


def fingerprint(table: Any) -> str:
    if isinstance(table, np.ndarray):
        content = table.tobytes() + str((table.dtype, table.shape)).encode()
    else:
        frame = pl.from_pandas(table) if isinstance(table, pd.DataFrame) else table
        content = json.dumps([str(table.dtypes), [[str(cell) if not isinstance(cell, float) else cell.hex() for cell in row]
                                                  for row in frame.rows()]]).encode()  # fmt: skip
    return hashlib.sha256(content).hexdigest()[:16]


def fingerprints(only: list[str]) -> dict[str, str]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in {**IMPUTERS, **MORE}.items():
            if only and name not in only:
                continue
            for seed in (0, 1):
                for kind, table, new in tables(seed):
                    key = f"{name} {kind} {seed}"
                    imputer = make(random_state=seed)
                    found[f"{key} fit"] = fingerprint(imputer.fit_transform(table))
                    found[f"{key} new"] = fingerprint(imputer.transform(new))
                    if "torch" not in name:
                        imputer.save(Path(folder) / "model.otimpute")
                        loaded = otimpute.load(Path(folder) / "model.otimpute")
                        found[f"{key} loaded"] = fingerprint(loaded.transform(new))
            print(name, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["save", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these imputers of tests/every_imputer.py")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = fingerprints(args.only)
    if args.do == "save":
        args.file.write_text(json.dumps(found, indent=1))
        return
    before = json.loads(args.file.read_text())
    other = [key for key, value in found.items() if before.get(key) != value]
    gone = [key for key in before if key not in found and (not args.only or key.split()[0] in args.only)]
    print(*(f"other bits: {key}" for key in other), *(f"not there any more: {key}" for key in gone), sep="\n")
    print(f"{len(found) - len(other)} of {len(found)} are the same")
    sys.exit(bool(other or gone))


if __name__ == "__main__":
    main()
