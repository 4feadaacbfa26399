"""The course of a fit, for people: what its curves show, how it ended, and how far off hidden values were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._words import count
from .stop_reason import StopReason

CURVES = {  # entries of `history_`
    "loss": "divergence between batches",
    "training_loss": "loss in training",
    "movement": "how far imputed values moved",
    "validation_mae": "mean absolute error on hidden values",
    "validation_rmse": "root mean square error on hidden values",
}
_STOPPED: Mapping[str, str] = {
    StopReason.MAX_SECONDS: "The fit was stopped by max_seconds; more time may improve it.",
    StopReason.INTERRUPTED: "The fit was stopped by hand; more time may improve it.",
    StopReason.CALLBACK: "The fit was stopped by a callback.",
    StopReason.NOTHING_MISSING: "Nothing was missing, so nothing was trained.",
    StopReason.NOTHING_TO_TRAIN: "There was nothing to train.",
    StopReason.VALIDATION: "The fit ended when errors on hidden values no longer fell.",
}


def history_of(imputer: Any) -> Mapping[str, list[float]]:
    """The fit's history; empty where there is none."""
    history: Mapping[str, list[float]] = getattr(imputer, "history_", {})
    return history


def step_name(imputer: Any) -> str:
    """What the fit counts: step, cycle or round."""
    return next((name for name in ("step", "cycle") if name in history_of(imputer)), "round")


def how_it_ended(imputer: Any) -> str:
    """A sentence; empty where the imputer has nothing to say about it."""
    converged = getattr(imputer, "converged_", None)
    if converged is None:
        return ""
    reason = getattr(imputer, "stop_reason_", "")
    if reason in _STOPPED:
        return _STOPPED[reason]
    n_steps = next((int(getattr(imputer, name)) for name in ("n_steps_", "n_cycles_", "n_iter_") if hasattr(imputer, name)), 0)
    after = f"after {count(n_steps, step_name(imputer))}"
    if converged:
        return f"Imputed values had settled {after}."
    return f"Imputed values had not quite settled {after}, the most that were allowed."


def hidden_error(imputer: Any) -> float | None:
    """Mean absolute error on values hidden from the fit, when it was as it is kept: at its best, or at its end."""
    history = history_of(imputer)
    errors, steps = history.get("validation_mae"), history.get(step_name(imputer), [])
    if not errors:
        return None
    best = getattr(imputer, f"best_{step_name(imputer)}_", None)
    return errors[steps.index(best) if best in steps else -1]
