"""Warn people at their own line of code."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the first caller outside otimpute and scikit-learn (whose wrappers stand between)."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("otimpute", "sklearn"):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
