"""How a fit went: how long it took, why it ended, and what was seen on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._stored import Maybe, Whole, stored
from .._text import count
from .._warn import warn_user
from ..exceptions import FitStoppedWarning, Message, Term
from .stop_reason import StopReason

CURVES = {  # entries of a history
    "loss": "divergence between batches",
    "training_loss": "loss in training",
    "movement": "how far imputed values moved",
    "validation_mae": "mean absolute error on hidden values",
    "validation_rmse": "root mean square error on hidden values",
}
STOPPED_EARLY = (StopReason.CALLBACK, StopReason.INTERRUPTED, StopReason.MAX_SECONDS)  # by somebody else than the fit itself
_ENDED: Mapping[str, str] = {
    StopReason.MAX_SECONDS: "The fit was stopped by max_seconds; more time may improve it.",
    StopReason.INTERRUPTED: "The fit was stopped by hand; more time may improve it.",
    StopReason.CALLBACK: "The fit was stopped by a callback.",
    StopReason.NOTHING_MISSING: "Nothing was missing, so nothing was trained.",
    StopReason.NOTHING_TO_TRAIN: "There was nothing to train.",
    StopReason.VALIDATION: "The fit ended when errors on hidden values no longer fell.",
}


@stored(n_steps=Maybe(Whole()), best_step=Maybe(Whole()))
@dataclass(frozen=True)
class FitSummary:
    """What there is to say about any fit.

    ``history`` has lists of equal length: one counts the steps, under the name ``counted``, the others are `CURVES`.
    """

    counted: str = "round"  # what a step is called: step, cycle or round
    n_steps: int | None = None  # None where nothing is repeated
    converged: bool | None = None  # None where nothing has to settle
    stop_reason: str = ""
    history: Any = field(default_factory=dict)  # dict[str, list[float]]
    best_step: int | None = None  # whose state is kept, if not the last one's

    @property
    def ended(self) -> str:
        """How the fit ended, as a sentence; empty where there is nothing to say."""
        if self.converged is None:
            return ""
        if self.stop_reason in _ENDED:
            return _ENDED[self.stop_reason]
        after = f"after {count(self.n_steps or 0, self.counted)}"
        if self.converged:
            return f"Imputed values had settled {after}."
        return f"Imputed values had not quite settled {after}, the most that were allowed."

    @property
    def hidden_error(self) -> float | None:
        """Mean absolute error on values hidden from the fit, when it was as it is kept: at its best, or at its end."""
        errors, steps = self.history.get("validation_mae"), self.history.get(self.counted, [])
        if not errors:
            return None
        return float(errors[steps.index(self.best_step) if self.best_step in steps else -1])

    def warn_if_stopped(self, resumes: str = "") -> None:
        """Warn of a fit that was stopped by the clock or by hand: it can be used all the same."""
        if self.stop_reason in (StopReason.INTERRUPTED, StopReason.MAX_SECONDS):
            by_clock = self.stop_reason == StopReason.MAX_SECONDS
            cause = Term("max_seconds") if by_clock else "Ctrl-C (press it again to stop the program)"
            reached = count(self.n_steps or 0, self.counted)
            then = f" after {reached}; the imputer holds what was reached and can be used{resumes}"
            warn_user(Message("stopped by ", cause, then), FitStoppedWarning)
