"""Training: curves, or the weights of the experts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..estimator import BaseImputer
from ..fitting import CURVES
from .data import Curve, LeftOutMethod, Training, Weights

_MOST_COLUMNS = 40


def describe_training(imputer: BaseImputer, columns_with_holes: Sequence[str]) -> Training:
    """Describe an imputer's fit, in numbers and in words."""
    summary = imputer.fit_summary_
    history, counted = summary.history, summary.counted
    steps = history.get(counted, [])
    curves = [_curve(words, steps, history[name]) for name, words in CURVES.items() if history.get(name)]
    words = [line for line in (summary.ended, *getattr(imputer, "verdict_", "").splitlines()) if line]
    left_out = [LeftOutMethod(name, each.why, each.words) for name, each in getattr(imputer, "left_out_", {}).items()]
    found = getattr(imputer, "judgement_", None)
    return Training(
        words, summary.converged, counted, curves, _weights(imputer, columns_with_holes), left_out,
        None if found is None else asdict(found),
    )  # fmt: skip


def _curve(name: str, steps: Sequence[float], values: Sequence[float]) -> Curve:
    known = [(float(step), float(value)) for step, value in zip(steps, values, strict=False) if math.isfinite(value)]
    return Curve(name, [step for step, _ in known], [value for _, value in known])


def _weights(imputer: Any, columns_with_holes: Sequence[str]) -> Weights | None:
    weights: Mapping[Any, Mapping[str, float]] | None = getattr(imputer, "weights_", None)
    if not weights:
        return None
    by_name = {str(name): dict(row) for name, row in weights.items()}
    shown = [name for name in columns_with_holes if name in by_name]
    experts = list(next(iter(by_name.values())))
    rows = [[float(by_name[name][expert]) for expert in experts] for name in shown[:_MOST_COLUMNS]]
    return Weights(experts, shown[:_MOST_COLUMNS], rows, max(len(shown) - _MOST_COLUMNS, 0))
