"""The verdict of a report: short answers to the most important questions."""

from __future__ import annotations

from collections.abc import Sequence

from .._text import count, listed, share
from ..estimator import Measure, Overall, Rating, rate
from ._check import MOST_FREQUENT
from ._missingness import speaks_against_chance
from ._trial import MEAN
from .data import ColumnReport, HiddenCheck, Light, MissingnessFacts, TableFacts, Training

_CANNOT_KNOW = "The data cannot tell whether values are missing because of the values themselves."


def give_verdict(
    table: TableFacts,
    missingness: MissingnessFacts,
    training: Training,
    columns: Sequence[ColumnReport],
    check: HiddenCheck | None,
    no_check: str,
    *,
    draws: bool,
) -> list[Light]:
    """Return a rating and an answer per question."""
    if table.n_missing == 0:
        return [Light("kept", Rating.GOOD, "Is everything filled in?", "Nothing was missing.")]
    return [
        filled_and_kept(columns),
        _converged(training),
        _better(check, no_check, draws=draws),
        _trusted(columns),
        by_chance(missingness),
    ]


def filled_and_kept(columns: Sequence[ColumnReport]) -> Light:
    """Say whether all missing values were imputed, and nothing else was changed."""
    question = "Is everything filled in, and nothing else changed?"
    broken = [column for column in columns if column.violations]
    if broken:
        n_cells = sum(each.n_cells for column in broken for each in column.violations)
        return Light(
            "kept", Rating.BAD, question, f"{count(n_cells, 'cell')} with problems, in {listed([c.name for c in broken])}."
        )
    left = [column.name for column in columns if column.n_filled < column.n_missing]
    n_filled = sum(column.n_filled for column in columns)
    kept = f"{count(n_filled, 'missing value')} imputed; observed values unchanged, bounds and categories respected"
    if left:
        return Light("kept", Rating.CAUTION, question, f"{kept}. Some values are still missing in {listed(left)}.")
    return Light("kept", Rating.GOOD, question, f"All {kept}." if n_filled > 1 else f"{kept}.")


def _converged(training: Training) -> Light:
    question = "Did the fit converge?"
    if training.left_out:
        answer = " ".join(f"Left out: {each.expert} ({each.words})." for each in training.left_out)
        return Light("converged", Rating.CAUTION, question, answer)
    if training.converged is None:
        return Light("converged", Rating.GOOD, question, "There is no sign that it was stopped early.")
    return Light("converged", Rating.GOOD if training.converged else Rating.CAUTION, question, training.words[0])


def _better(check: HiddenCheck | None, no_check: str, *, draws: bool) -> Light:
    question = "Is it better than the simplest imputation, on hidden values?"
    if check is None:
        return Light("better", Rating.UNKNOWN, question, no_check)
    if not check.overall:
        return Light("better", Rating.UNKNOWN, question, "Too few values could be hidden to tell.")
    light = rate([each.finding for each in check.overall], draws=draws)
    is_better = [each.finding.rating is Rating.GOOD for each in check.overall]
    yes = "Yes" if all(is_better) else "In part" if any(is_better) else "No"
    note = " Draws preserve the spread of columns: single draws have larger errors than expected values." if draws else ""
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
    question = "Are there columns that should not be trusted?"
    filled = [column for column in columns if column.n_filled]
    bad = [column.name for column in columns if column.light is Rating.BAD]
    doubtful = [column.name for column in filled if column.light is Rating.CAUTION]
    unknown = [column.name for column in filled if column.light is Rating.UNKNOWN]
    if bad:
        return Light("trusted", Rating.BAD, question, f"Yes: {listed(bad)}.")
    if doubtful:
        return Light(
            "trusted", Rating.CAUTION, question, f"Be careful with {listed(doubtful)}; the report on each column says why."
        )
    if unknown:
        return Light("trusted", Rating.UNKNOWN, question, f"Could not be checked: {listed(unknown)}.")
    answer = "No: in every column, hidden values were imputed better than by the simplest method, or exactly."
    return Light("trusted", Rating.GOOD, question, answer)


def by_chance(missingness: MissingnessFacts) -> Light:
    """Say whether anything speaks against values missing completely at random."""
    question = "Are values missing completely at random?"
    against = speaks_against_chance(missingness)
    if against:
        answer = f"No: {against}. Imputation can account for what depends on other columns. {_CANNOT_KNOW}"
        return Light("chance", Rating.CAUTION, question, answer)
    return Light("chance", Rating.UNKNOWN, question, f"There is no evidence against it in the table. {_CANNOT_KNOW}")
