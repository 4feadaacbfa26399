"""Why a fit came to its end."""

from __future__ import annotations

from .._text import Keyword


class StopReason(Keyword):
    """What imputers that train keep as ``stop_reason_``."""

    TOL = "tol"
    VALIDATION = "validation"
    MAX_STEPS = "max_steps"
    MAX_CYCLES = "max_cycles"
    MAX_SECONDS = "max_seconds"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"
    NOTHING_MISSING = "nothing missing"
    NOTHING_TO_TRAIN = "nothing to train"
