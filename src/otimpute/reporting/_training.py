"""How the fit went: curves, or the experts that were trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .._words import count
from ..estimator import BaseImputer
from .data import Curve, Training, Weights

_MOST_COLUMNS = 40
_CURVES = {
    "loss": "divergence between batches",
    "movement": "how far imputed values moved",
    "validation_mae": "mean absolute error on hidden values",
    "validation_rmse": "root mean square error on hidden values",
}
_STOPPED = {
    "max_seconds": "The fit was stopped by max_seconds; more time may improve it.",
    "interrupted": "The fit was stopped by hand; more time may improve it.",
    "callback": "The fit was stopped by a callback.",
    "nothing missing": "Nothing was missing, so nothing was trained.",
    "validation": "The fit ended when errors on hidden values no longer fell.",
}


def describe_training(imputer: BaseImputer, columns_with_holes: Sequence[str]) -> Training:
    """What an imputer keeps of its fit, in numbers and in words."""
    history: Mapping[str, list[float]] = getattr(imputer, "history_", {})
    step_name = next((name for name in ("step", "cycle") if name in history), "round")
    steps = history.get(step_name, [])
    curves = [_curve(words, steps, history[name]) for name, words in _CURVES.items() if history.get(name)]
    converged = getattr(imputer, "converged_", None)
    words = [] if converged is None else [_how_it_ended(imputer, step_name, converged)]
    words += getattr(imputer, "verdict_", "").splitlines()
    return Training(words, converged, step_name, curves, _weights(imputer, columns_with_holes))


def _curve(name: str, steps: Sequence[float], values: Sequence[float]) -> Curve:
    known = [(float(step), float(value)) for step, value in zip(steps, values, strict=False) if math.isfinite(value)]
    return Curve(name, [step for step, _ in known], [value for _, value in known])


def _how_it_ended(imputer: BaseImputer, step_name: str, converged: bool) -> str:
    reason = getattr(imputer, "stop_reason_", "")
    if reason in _STOPPED:
        return _STOPPED[reason]
    n_steps = next((int(getattr(imputer, name)) for name in ("n_steps_", "n_cycles_", "n_iter_") if hasattr(imputer, name)), 0)
    after = f"after {count(n_steps, step_name)}"
    if converged:
        return f"Imputed values had settled {after}."
    return f"Imputed values had not quite settled {after}, the most that were allowed."


def _weights(imputer: Any, columns_with_holes: Sequence[str]) -> Weights | None:
    weights: Mapping[Any, Mapping[str, float]] | None = getattr(imputer, "weights_", None)
    if not weights:
        return None
    by_name = {str(name): dict(row) for name, row in weights.items()}
    shown = [name for name in columns_with_holes if name in by_name]
    experts = list(next(iter(by_name.values())))
    rows = [[float(by_name[name][expert]) for expert in experts] for name in shown[:_MOST_COLUMNS]]
    return Weights(experts, shown[:_MOST_COLUMNS], rows, max(len(shown) - _MOST_COLUMNS, 0))
