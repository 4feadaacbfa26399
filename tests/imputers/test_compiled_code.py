"""Machine code that was just compiled and machine code from the cache must give the same result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import hashlib, numpy as np
from otimpute import RoundRobinImputer, SinkhornImputer
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 6)) @ rng.normal(size=(6, 6))
X[rng.random(X.shape) < 0.2] = np.nan
for imputer in (SinkhornImputer(max_steps=200, random_state=0), RoundRobinImputer("mlp", random_state=0)):
    print(hashlib.sha256(imputer.fit_transform(X).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_first_run_on_a_machine_gives_the_same_bits_as_the_second(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second
