"""Shared settings of the tests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from kernels import HAS_GPU

_SOURCE = Path(__file__).parents[1] / "src" / "otimpute"
_CACHE = Path(__file__).parents[1] / ".cache" / "numba"


_DATA_SETS = os.environ.get("OTIMPUTE_DATA")  # some tests take it out of the environment


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(_SOURCE.rglob("*.py")):
        content = path.read_bytes()
        if b"_compile import" in content or path.name == "_compile.py":
            digest.update(content)
    return digest.hexdigest()[:16]


# numba notices a change of the file a function is in, not of the files it calls into. A cache folder per state of the
# compiled sources makes sure that tests never run machine code of an older callee.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_CACHE / _digest_of_sources()))

# Without a GPU the kernel for one is run by Triton's interpreter, which has to be known before triton is imported.
if not HAS_GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")

# The same examples in every run: a change is judged by what it changes. `make fuzz` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session")
def uci() -> Path:
    """The folder of the paper's data sets."""
    if _DATA_SETS is None:
        pytest.skip("the paper's data sets are not here: OTIMPUTE_DATA names no folder")
    return Path(_DATA_SETS)


@pytest.fixture(scope="session")
def flats() -> pd.DataFrame:
    """Flats: rents follow sizes, are missing where these are large; heating is missing in one district; the rest by chance."""
    rng = np.random.default_rng(0)
    n = 240
    size = rng.gamma(4, 20, n).round(1)
    district = rng.choice(["hills", "harbour", "fields"], n)
    rent = 8 * size + np.where(district == "hills", 300, 0) + rng.normal(0, 20, n)
    frame = pd.DataFrame(
        {
            "size": size,
            "rent": rent,
            "rooms": pd.array((size // 25 + 1).astype(int), dtype="Int64"),
            "district": district,
            "heating": rng.choice(["gas", "oil"], n),
            "built": pd.Timestamp("1950-01-01") + pd.to_timedelta((size * 100).round(), unit="D"),
            "balcony": pd.array(size > 80, dtype="boolean"),
            "remark": [f"flat {k}" for k in range(n)],
            "whole": np.arange(n, dtype=float),
        }
    )
    large = size > np.median(size)
    frame.loc[rng.random(n) < np.where(large, 0.5, 0.05), "rent"] = np.nan
    frame.loc[(district == "hills") & (rng.random(n) < 0.6), "heating"] = None
    for name in ("size", "rooms", "district", "built", "balcony", "remark"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame
