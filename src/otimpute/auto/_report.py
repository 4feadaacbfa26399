"""What the trial on hidden values showed, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..table import Encoding, category_of, observed_category_of, seconds_of
from ._experts import MEAN
from ._trial import Cells, Columns, Trial

STACK = "stack"  # the combination, by weights learned on other hidden values
_MOST_NAMED = 5
_A_TIE = 0.995


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
                wrong = observed_category_of(code, truth + centre) != category_of(code, guessed + centre)
                scores[names[place]][expert] = {"wrong": float(wrong.mean())}
            else:
                error = (guess - trial.truth)[mine]
                mae, rmse = np.abs(error).mean(), np.sqrt((error**2).mean())
                own = float(unit[columns.group == g][0]) * seconds_of(code)
                scores[names[place]][expert] = {"mae": float(mae) * own, "rmse": float(rmse) * own}
    return scores


@dataclass(frozen=True)
class Findings:
    """What a verdict is made of."""

    trial: Trial
    crossed: Cells  # [N]: the combination's guesses
    no_better: NDArray[np.bool_]  # [G]: columns where the mean is best
    with_holes: NDArray[np.bool_]  # [G]
    is_category: NDArray[np.bool_]  # [G]
    names: Sequence[Any]  # [G]
    asked: Sequence[str]  # [E]: experts of the panel
    weights: Cells  # [G, E]: theirs
    left_out: Mapping[str, str]
    draws: bool


def verdict(found: Findings, columns: Columns, scores: Mapping[Any, Mapping[str, Mapping[str, float]]]) -> str:
    """What a person should know, in plain words."""
    trial, group = found.trial, columns.group[found.trial.column]
    lines = []
    if not found.with_holes.any():
        lines.append(
            "No column with holes could be learned from: holes got the one value of their column, 0, or were left as they are."
        )
    else:
        numbers = (found.with_holes & ~found.is_category)[group]
        labelled = [g for g in np.flatnonzero(found.with_holes & found.is_category).tolist() if found.names[g] in scores]
        if numbers.any():
            lines.append(_about_numbers(found, numbers))
        if labelled:
            lines.append(_about_categories([scores[found.names[g]] for g in labelled]))
        if lines:
            trusted = found.weights[found.with_holes].mean(axis=0)
            order = [k for k in np.argsort(-trusted, kind="stable").tolist() if trusted[k] >= 0.005]
            lines.append("Most trusted: " + ", ".join(f"{found.asked[k]} {trusted[k]:.0%}" for k in order) + ".")
        else:
            lines.append("There were too few observed values to check the imputation on: treat the imputed ones as guesses.")
        if len(trial.names) > 1:
            lines += _about_hopeless(
                [str(found.names[g]) for g in np.flatnonzero(found.no_better & found.with_holes).tolist()], found
            )
    lines += [f"Left out: {name} ({why})." for name, why in found.left_out.items()]
    lines.append(
        "No check on observed values can tell whether values are missing because of what they are (the rich not stating their "
        "income): if so, imputed values are off in that direction by more than stated here."
    )
    return "\n".join(lines)


def _about_numbers(found: Findings, cells: NDArray[np.bool_]) -> str:
    trial = found.trial
    guesses = found.crossed, trial.guesses[:, trial.names.index(MEAN)]
    own, mean = (float(np.abs(guess - trial.truth)[cells].mean()) for guess in guesses)
    return (
        f"On {np.count_nonzero(cells):,} observed numbers that were hidden for a trial, the imputed ones were off by "
        f"{own:.2f} standard deviations on average, {_compared(own, mean)} column means ({mean:.2f})."
    )


def _about_categories(scores: Sequence[Mapping[str, Mapping[str, float]]]) -> str:
    own, most = (float(np.mean([each[who]["wrong"] for each in scores])) for who in (STACK, MEAN))
    return f"Of hidden categories, {own:.0%} were imputed wrongly, {_compared(own, most)} the most frequent ones ({most:.0%})."


def _compared(own: float, plain: float) -> str:
    return "no better than" if own >= _A_TIE * plain else f"{1 - own / plain:.0%} less than"


def _about_hopeless(names: Sequence[str], found: Findings) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    filled = "draws around it were" if found.draws else "that is what was"
    return [
        f"Nothing was better than the mean (or the most frequent value) in {', '.join(names[:_MOST_NAMED])}{more}: "
        f"{filled} filled in, and other columns say little about it."
    ]
