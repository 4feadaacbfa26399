"""Memory that Dask's workers keep while they have work to do."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

CODE = """
import resource
import numpy as np
from otimpute.distributed.memory import memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(200_000)  # 1.6 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with memory_kept():
    with memory_kept():
        faults()
    kept = faults()
print(kept, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is that of the GNU C library")
def test_a_process_that_gives_memory_back_at_once_keeps_it_meanwhile() -> None:
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}  # as Dask starts its workers
    told = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True).stdout
    kept, afterwards = map(int, told.split())
    assert kept < 100  # pages of the system's that were asked for
    assert afterwards > 10_000
