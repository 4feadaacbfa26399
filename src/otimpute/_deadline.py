"""When a fit has to be done."""

from __future__ import annotations

import time


class OutOfTime(Exception):  # noqa: N818 - no error, but a decision
    """A fit was given up because its time was over."""


def check_deadline(deadline: float) -> None:
    """Give up once ``time.perf_counter()`` has passed the ``deadline``."""
    if time.perf_counter() >= deadline:
        raise OutOfTime
