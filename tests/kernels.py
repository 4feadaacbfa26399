"""The transport kernels that tests are run with."""

from __future__ import annotations

from pathlib import Path

import pytest

HAS_GPU = Path("/dev/nvidiactl").exists()
KERNELS = (
    "reference",
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            not HAS_GPU, reason="no GPU, and Triton's interpreter takes 20 ms a softmin: test_cuda_kernel.py is enough for it"
        ),
    ),
)
