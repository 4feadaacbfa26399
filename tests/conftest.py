"""Shared settings of the tests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hypothesis import settings

_SOURCE = Path(__file__).parents[1] / "src" / "otimpute"
_CACHE = Path(__file__).parents[1] / ".cache" / "numba"


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(_SOURCE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# numba notices a change of the file a function is in, not of the files it calls into. A cache folder per state of the
# sources makes sure that tests never run machine code of an older callee.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_CACHE / _digest_of_sources()))

# The same examples in every run: a change is judged by what it changes. `make fuzz` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("same")
