"""Several completed tables: what the diagnostics of each column say, and the verdict on them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from .._text import count, listed, number, number_beside, share
from ..estimator import Rating
from ..inference import ColumnDiagnostics, Diagnostics
from ..table import CategoryCode, MomentCode, labels_of
from ._before_after import Cells, unit_of
from ._verdict import by_chance
from .data import Light, MissingnessFacts, Statistic
from .multiple_data import Matched, MultipleColumn, MultipleImputation, Trace

_SHOWN_TABLES = 20  # lines of a figure
_NO_ROUNDS = "This imputer draws values at once, not in rounds, or it was loaded from a file, which does not hold its rounds."
_NAMES = {"50 %": "median"}
_SHOWN_STATISTICS = ("mean", "sd", "5 %", "50 %", "95 %")
_FEWEST_TO_TELL = 5  # tables from which what is unknown can be estimated: with two or three it comes out as almost anything
_TOO_FEW = 1.25  # times more tables than there are: the estimate of how many are needed is rough


def describe_multiple(found: Diagnostics, shifted: Collection[str]) -> MultipleImputation:
    """Return the diagnostics of several tables in numbers and words; some columns were ``shifted`` by the parameter delta."""
    columns = [_describe(column, found.n_tables, is_shifted=column.name in shifted) for column in found.columns]
    return MultipleImputation(found.n_tables, "" if any(each.trace for each in columns) else _NO_ROUNDS, columns)


def statistics_of(column: ColumnDiagnostics) -> list[Statistic]:
    """Return statistics of observed values, and the mean and range over tables of those of imputed values."""
    if column.labels:
        return []
    lines = []
    spread = float(column.of_observed[1])
    for k, name in enumerate(column.statistics):
        drawn = column.of_draws[:, k]
        numbers = np.array([column.of_observed[k], drawn.mean(), drawn.min(), drawn.max()])
        is_shown = name in _SHOWN_STATISTICS and not (isinstance(column.code, MomentCode) and name == "sd")
        if not is_shown or np.isnan(numbers).any():
            continue
        if isinstance(column.code, MomentCode):
            words = labels_of(column.code, numbers)
        else:
            words = [number_beside(float(each), spread) for each in numbers]
        lines.append(Statistic(_NAMES.get(name, name), words[0], words[1], f"{words[2]} to {words[3]}"))
    return lines


def multiple_verdict(kept: Light, found: MultipleImputation, missingness: MissingnessFacts) -> list[Light]:
    """Return a rating and an answer per question."""
    return [kept, _settled(found), _alike(found), _enough(found), by_chance(missingness)]


def shown_tables(draws: Cells) -> list[Cells]:
    """Return the draws of the first tables, as many as a figure shows."""
    return list(draws[:_SHOWN_TABLES])


def _describe(column: ColumnDiagnostics, n_tables: int, *, is_shifted: bool) -> MultipleColumn:
    pooled, k = column.pooled, column.uncertain
    trace, matched = _trace(column), _matched(column, is_shifted=is_shifted)
    missing = share(column.draws.shape[1] / (column.draws.shape[1] + len(column.observed)))
    clear = column.matched is not None and column.matched.is_clear
    moved = column.convergence is not None and column.convergence.has_drifted
    light = Rating.CAUTION if clear or moved else Rating.GOOD if matched else Rating.UNKNOWN
    said = [each.words for each, is_worth_it in ((matched, clear), (trace, moved)) if each and is_worth_it]
    words = f"{missing} missing; " + (
        "; ".join(said) or ("imputed values are like observed ones in rows alike" if matched else "too few values to compare")
    )
    if pooled is None or k is None:
        return MultipleColumn(
            column.name, column.draws.shape[1], "", None, None, None, None, "–", "–", 2, [], trace, matched, light, f"{words}."
        )  # fmt: skip
    within, between, error = float(pooled.within[k]), float(pooled.between[k]), float(pooled.std_error[k])
    counts = np.unique([*np.geomspace(2, max(2 * n_tables, column.tables_needed), 30).round(), n_tables]).tolist()
    against = [[m, math.sqrt(between / m / (within + (1 + 1 / m) * between))] for m in counts]
    what = f"share of {pooled.names[k]}" if column.labels else "mean"
    middle = float(pooled.estimate[k])
    if isinstance(column.code, MomentCode):
        unit, unit_name = unit_of(column.observed)
        estimate = f"{labels_of(column.code, np.array([middle]))[0]} ± {number(error / unit)} {unit_name}"
        monte_carlo = f"{number(column.monte_carlo_error / unit)} {unit_name}"
    else:
        monte_carlo = number(column.monte_carlo_error)
        estimate = f"{number_beside(middle, error)} ± {number_beside(error, error)}"
    return MultipleColumn(
        column.name, column.draws.shape[1], what, within, between, column.fmi, column.monte_carlo_error, monte_carlo, estimate,
        column.tables_needed, against, trace, matched, light, f"{words}.",
    )  # fmt: skip


def _trace(column: ColumnDiagnostics) -> Trace | None:
    found = column.convergence
    if found is None:
        return None
    lines, what = found.means, "mean of the draws"
    if isinstance(column.code, MomentCode):
        unit, unit_name = unit_of(column.observed)
        lines, what = lines / unit, f"mean of the draws, {unit_name} after the first"
    elif isinstance(column.code, CategoryCode) and not column.code.ordered:
        if len(column.labels) < 2:
            return None
        lines = lines / column.code.all_corners()[0, 0]
        what = f"share of {column.labels[0]} less that of {column.labels[1]}"
    elif column.labels:
        what = "mean position of the category" if isinstance(column.code, CategoryCode) else "share of true"
    drift, r_hat = (None if math.isnan(each) else each for each in (found.drift, found.r_hat))
    if drift is None:
        words = "one round only: nothing is known of its convergence"
    elif found.has_drifted:
        words = f"draws were still moving in the last rounds, by {abs(drift):.1f} standard errors: use more rounds"
    else:
        words = "settled"
    return Trace(what, lines.T[:_SHOWN_TABLES].tolist(), drift, r_hat, words)


def _matched(column: ColumnDiagnostics, *, is_shifted: bool) -> Matched | None:
    found = column.matched
    if found is None:
        return None
    words = column.findings[0] + (", as delta intends" * is_shifted) if found.is_clear else "alike"
    return Matched(found.name, found.difference, found.standard_error, found.distance, found.n_alike, words)


def _names(columns: Sequence[MultipleColumn]) -> str:
    return listed([column.name for column in columns])


def _settled(found: MultipleImputation) -> Light:
    question = "Had the draws settled after the last round?"
    traced = [column for column in found.columns if column.trace]
    if not traced:
        return Light("converged", Rating.GOOD, question, found.no_trace)
    known = [column for column in traced if column.trace and column.trace.drift is not None]
    if not known:
        answer = "There was one round only, so that nothing is known of it; use more rounds."
        return Light("converged", Rating.UNKNOWN, question, answer)
    moving = [column for column in known if column.trace and column.trace.words != "settled"]
    if moving:
        return Light("converged", Rating.CAUTION, question, f"Not in {_names(moving)}: use more rounds (n_rounds).")
    return Light("converged", Rating.GOOD, question, "Yes: in the last rounds nothing moved by more than chance explains.")


def _alike(found: MultipleImputation) -> Light:
    question = "Are imputed values like observed ones, in rows that are alike?"
    compared = [column for column in found.columns if column.matched]
    different = [column for column in compared if column.matched and column.matched.words != "alike"]
    left = len(found.columns) - len(compared)
    note = f" {count(left, 'column')} could not be compared: too few values." if left else ""
    if different:
        return Light("alike", Rating.CAUTION, question, f"Not in {_names(different)}; see the report on each.{note}")
    if not compared:
        return Light("alike", Rating.UNKNOWN, question, "Too few values to compare.")
    answer = f"Yes: no difference is larger than chance explains, in {count(len(compared), 'column')}.{note}"
    return Light("alike", Rating.GOOD, question, answer)


def _enough(found: MultipleImputation) -> Light:
    question = "Are there enough tables?"
    most = max(found.columns, key=lambda column: column.tables_needed)
    if most.fmi is None:
        return Light("enough", Rating.GOOD, question, "Yes: all tables are the same.")
    known = f"the {most.what} of {most.name}" if most.what == "mean" else f"the {most.what} in {most.name}"
    if found.n_tables < _FEWEST_TO_TELL:
        answer = (
            f"{count(found.n_tables, 'table')} cannot show how much is unknown: make 20, and see how many tables "
            "pool(...).tables_needed() then asks for."
        )
        return Light("enough", Rating.CAUTION, question, answer)
    lost = f"{known} lacks {share(most.fmi)} of its information, the most of all columns"
    if most.tables_needed > _TOO_FEW * found.n_tables:
        answer = (
            f"{count(found.n_tables, 'table')} may be too few for reproducible standard errors: {lost}, for which about "
            f"{most.tables_needed} tables would do. What your analysis needs, pool(...).tables_needed() says."
        )
        return Light("enough", Rating.CAUTION, question, answer)
    answer = (
        f"Yes, for means and shares: {lost}, for which about {most.tables_needed} tables would do; there are {found.n_tables}."
    )
    return Light("enough", Rating.GOOD, question, answer)
