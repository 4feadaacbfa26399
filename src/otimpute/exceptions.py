"""What otimpute raises and warns, so that callers can tell cases apart."""

from __future__ import annotations


class OtimputeWarning(UserWarning):
    """Base of all warnings of this package."""


class NotConvergedWarning(OtimputeWarning):
    """An iteration ended before it settled; the result is usable but may still be moving."""


class EmptyColumnWarning(OtimputeWarning):
    """A column has no observed value at all, so there is nothing to learn its values from."""


class FitStoppedWarning(OtimputeWarning):
    """A fit was stopped early by Ctrl-C or ``max_seconds``; the imputer holds what was reached."""


class DivergedError(RuntimeError):
    """The numbers left the finite range; the message says which parameter to change."""


class StoredFileError(ValueError):
    """A model file or checkpoint is damaged, foreign, of a later version, or not what was asked for."""


class GpuError(RuntimeError):
    """The GPU is too small or failed; the table was not changed, and the message says what to do."""
