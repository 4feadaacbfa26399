"""The first thing readers see: their questions, answered in a line each."""

from __future__ import annotations

from collections.abc import Sequence

from .._text import count, listed, share
from ..estimator import Measure, Overall, Rating, rate
from ._check import MOST_FREQUENT
from ._missingness import speaks_against_chance
from ._trial import MEAN
from .data import ColumnReport, HiddenCheck, Light, Missingness, TableFacts, Training

_CANNOT_KNOW = "Whether values are missing because of what they are themselves, no data can tell."


def give_verdict(
    table: TableFacts,
    missingness: Missingness,
    training: Training,
    columns: Sequence[ColumnReport],
    check: HiddenCheck | None,
    no_check: str,
    *,
    draws: bool,
) -> list[Light]:
    """A light per question."""
    if table.n_missing == 0:
        return [Light("kept", Rating.GOOD, "Is everything filled in?", "Nothing was missing.")]
    return [
        _filled_and_kept(columns),
        _converged(training),
        _better(check, no_check, draws=draws),
        _trusted(columns),
        _by_chance(missingness),
    ]


def _filled_and_kept(columns: Sequence[ColumnReport]) -> Light:
    question = "Is everything filled in, and nothing else changed?"
    broken = [column for column in columns if column.violations]
    if broken:
        n_cells = sum(each.n_cells for column in broken for each in column.violations)
        return Light(
            "kept", Rating.BAD, question, f"{count(n_cells, 'cell')} broke a promise, in {listed([c.name for c in broken])}."
        )
    left = [column.name for column in columns if column.n_filled < column.n_missing]
    n_filled = sum(column.n_filled for column in columns)
    kept = f"{count(n_filled, 'hole')} filled; observed values untouched, bounds and categories kept"
    if left:
        return Light("kept", Rating.CAUTION, question, f"{kept}. Holes stay in {listed(left)}.")
    return Light("kept", Rating.GOOD, question, f"All {kept}." if n_filled > 1 else f"{kept}.")


def _converged(training: Training) -> Light:
    question = "Did the fit come to an end?"
    if training.left_out:
        answer = " ".join(f"Left out: {each.expert} ({each.words})." for each in training.left_out)
        return Light("converged", Rating.CAUTION, question, answer)
    if training.converged is None:
        return Light("converged", Rating.GOOD, question, "Nothing is known to have cut it short.")
    return Light("converged", Rating.GOOD if training.converged else Rating.CAUTION, question, training.words[0])


def _better(check: HiddenCheck | None, no_check: str, *, draws: bool) -> Light:
    question = "Is it better than the simplest guess on hidden values?"
    if check is None:
        return Light("better", Rating.UNKNOWN, question, no_check)
    if not check.overall:
        return Light("better", Rating.UNKNOWN, question, "Too few values of columns that vary could be hidden to tell.")
    light = rate([each.finding for each in check.overall], draws=draws)
    is_better = [each.finding.rating is Rating.GOOD for each in check.overall]
    yes = "Yes" if all(is_better) else "In part" if any(is_better) else "No"
    note = " Draws keep the spread of columns: single ones are further off than expected values by design." if draws else ""
    return Light(
        "better", light, question, f"{yes}: {', and '.join(_against_peers(each, check) for each in check.overall)}.{note}"
    )


def _against_peers(found: Overall, check: HiddenCheck) -> str:
    says, simplest = (_wrong, MOST_FREQUENT) if found.measure is Measure.WRONG else (_off_by, MEAN)
    scores = {each.method: getattr(each, found.measure) for each in check.methods if each.method != check.method}
    peers = [f"{simplest if name == MEAN else name} {says(score)}" for name, score in scores.items() if score is not None]
    return f"{says(found.own, in_full=True)} ({', '.join(peers)})"


def _off_by(error: float, *, in_full: bool = False) -> str:
    return f"numbers were off by {error:.2f} standard deviations on average" if in_full else f"{error:.2f}"


def _wrong(rate: float, *, in_full: bool = False) -> str:
    return f"{share(rate)} of the categories were wrong" if in_full else share(rate)


def _trusted(columns: Sequence[ColumnReport]) -> Light:
    question = "Is there a column not to be trusted?"
    filled = [column for column in columns if column.n_filled]
    bad = [column.name for column in columns if column.light is Rating.BAD]
    doubtful = [column.name for column in filled if column.light is Rating.CAUTION]
    unknown = [column.name for column in filled if column.light is Rating.UNKNOWN]
    if bad:
        return Light("trusted", Rating.BAD, question, f"Yes: {listed(bad)}.")
    if doubtful:
        return Light(
            "trusted", Rating.CAUTION, question, f"Take care with {listed(doubtful)}: the report says why, column by column."
        )
    if unknown:
        return Light("trusted", Rating.UNKNOWN, question, f"Could not be checked: {listed(unknown)}.")
    answer = "No: in every column imputed values beat the simplest guess on hidden values, or were exact as it was."
    return Light("trusted", Rating.GOOD, question, answer)


def _by_chance(missingness: Missingness) -> Light:
    question = "Are values missing by chance alone?"
    against = speaks_against_chance(missingness)
    if against:
        answer = f"No: {against}. Imputation can allow for what other columns tell. {_CANNOT_KNOW}"
        return Light("chance", Rating.CAUTION, question, answer)
    return Light("chance", Rating.UNKNOWN, question, f"Nothing found in the table speaks against it. {_CANNOT_KNOW}")
