"""What the trial on hidden values showed, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..table import Encoding, category_of, seconds_of
from ._experts import MEAN
from ._trial import Cells, Columns, Trial

STACK = "stack"  # the combination, by weights learned on other hidden values
_MOST_NAMED = 5


def score_columns(
    trial: Trial, crossed: Cells, columns: Columns, encoding: Encoding, groups: NDArray[np.int64], names: Sequence[Any]
) -> dict[Any, dict[str, dict[str, float]]]:
    """By column and expert: MAE and RMSE in the column's units, or the share of wrong categories."""
    scores: dict[Any, dict[str, dict[str, float]]] = {}
    unit = columns.scaler.unit
    hidden_group = columns.group[trial.column]
    candidates = [*zip(trial.names, trial.guesses.T, strict=True), (STACK, crossed)]
    for g, place in enumerate(dict.fromkeys(groups.tolist())):
        code, mine = encoding.codes[place], hidden_group == g
        if not mine.any():
            continue
        scores[names[place]] = {}
        for expert, guess in candidates:
            if code.is_scaled:
                width = int((columns.group == g).sum())
                truth, guessed = (each[mine].reshape(-1, width) for each in (trial.truth, guess))
                centre = columns.scaler.centre[columns.group == g]
                wrong = category_of(code, truth + centre) != category_of(code, guessed + centre)
                scores[names[place]][expert] = {"wrong": float(wrong.mean())}
            else:
                error = (guess - trial.truth)[mine]
                mae, rmse = np.abs(error).mean(), np.sqrt((error**2).mean())
                own = float(unit[columns.group == g][0]) * seconds_of(code)
                scores[names[place]][expert] = {"mae": float(mae) * own, "rmse": float(rmse) * own}
    return scores


def verdict(
    trial: Trial,
    crossed: Cells,
    weights: Cells,
    no_better: NDArray[np.bool_],
    with_holes: NDArray[np.bool_],
    n_holes: int,
    columns: Columns,
    names: Sequence[Any],
    left_out: Mapping[str, str],
) -> str:
    """What a person should know, in plain words; ``names`` are those of the columns with values."""
    if n_holes == 0:
        return "Nothing was missing."
    lines = []
    group = columns.group[trial.column]
    counts = with_holes[group]
    if not counts.any():
        lines.append("There were too few observed values to check the imputation on: treat the imputed ones as guesses.")
    else:
        own, mean = (np.abs(each - trial.truth)[counts].mean() for each in (crossed, trial.guesses[:, trial.names.index(MEAN)]))
        better = "no better than" if own >= mean else f"{1 - own / mean:.0%} less than"
        lines.append(
            f"On {counts.sum():,} observed values that were hidden for a trial, the imputed ones were off by "
            f"{own:.2f} standard deviations on average, {better} column means ({mean:.2f})."
        )
        trusted = weights[with_holes].mean(axis=0)
        order = [k for k in np.argsort(-trusted).tolist() if trusted[k] >= 0.005]
        lines.append("Most trusted: " + ", ".join(f"{trial.names[k]} {trusted[k]:.0%}" for k in order) + ".")
    hopeless = [str(names[g]) for g in np.flatnonzero(no_better & with_holes).tolist()]
    if hopeless:
        more = f" and {len(hopeless) - _MOST_NAMED} more" if len(hopeless) > _MOST_NAMED else ""
        lines.append(
            f"Nothing was better than the mean (or the most frequent value) in {', '.join(hopeless[:_MOST_NAMED])}{more}: "
            "that is what was filled in, and other columns say little about it."
        )
    lines += [f"Left out: {name} ({why})." for name, why in left_out.items()]
    lines.append(
        "No check on observed values can tell whether values are missing because of what they are (the rich not stating their "
        "income): if so, imputed values are off in that direction by more than stated here."
    )
    return "\n".join(lines)
