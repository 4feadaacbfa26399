"""What people knew of their table, in words, and which columns inform which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._text import count, listed
from ..estimator import BaseImputer
from ..knowledge import Applicability
from ..table import ColumnKind, Table
from ..table.native import nulls_of
from .knowledge_data import KnowledgeFacts, PredictorMatrix, Rule, RuleKind

_MOST_NAMED = 12
_MOST_SHOWN = 60  # columns of the matrix, and as many rows
_MOST_RULES = 20  # of one kind


def describe_knowledge(imputer: BaseImputer, names: list[str], table: Table) -> KnowledgeFacts | None:
    """Return what was known of a table; None if nothing was."""
    rules = [*_about_columns(imputer, names, table), *_about_predictors(imputer, names, table), *_about_rows(imputer)]
    rules += [*_derived(imputer.derive, table), *_applicable(imputer, names, table), *_methods(imputer)]
    return KnowledgeFacts(rules, _matrix(imputer, names, table)) if rules else None


def _about_columns(imputer: BaseImputer, names: list[str], table: Table) -> Iterator[Rule]:
    imputed = imputer.training_table_.roles.imputed
    if imputer.columns is not None:
        only = [name for name, own in zip(names, imputed, strict=True) if own]
        yield Rule(RuleKind.ONLY, only, f"Only {listed(only, _MOST_NAMED)} may be imputed; others can still inform.")
    for kind, rule, why in (
        (ColumnKind.EXCLUDED, RuleKind.EXCLUDED, "Neither imputed nor looked at"),
        (ColumnKind.IDENTIFIER, RuleKind.IDENTIFIERS, "Set aside as identifiers, which say nothing about other rows"),
    ):
        left = [name for name, code in zip(names, table.codes, strict=True) if code.kind == kind]
        if left:
            yield Rule(rule, left, f"{why}: {listed(left, _MOST_NAMED)}.")


def _usable(table: Table) -> NDArray[np.bool_]:
    return np.array([not code.kind.is_idle for code in table.codes])


def _about_predictors(imputer: BaseImputer, names: list[str], table: Table) -> Iterator[Rule]:
    if imputer.predictors is None:
        return
    informs = imputer.training_table_.roles.predictors
    if isinstance(imputer.predictors, str):
        few = "The table is not wide, so all columns inform each other." if informs is None else (
            "Each column is informed by those that say most about it."
        )  # fmt: skip
        yield Rule(RuleKind.PREDICTORS, [], few)
    elif informs is not None:
        usable = np.flatnonzero(_usable(table)).tolist()
        mute = [k for k in usable if not informs[usable, k].any()]
        if mute and len(usable) > 1:
            which = [names[k] for k in mute]
            yield Rule(
                RuleKind.PREDICTORS, which, f"{listed(which, _MOST_NAMED)} inform{'s' * (len(which) == 1)} no other column."
            )
        others = [k for k in usable if k not in mute]
        limited = [k for k in usable if table.holes[:, k].any() and not informs[k, [j for j in others if j != k]].all()]
        for k in limited[:_MOST_RULES]:
            yield Rule(RuleKind.PREDICTORS, [names[k]], _informed(names, informs[k], [j for j in others if j != k], names[k]))


def _informed(names: list[str], row: NDArray[np.bool_], others: list[int], name: str) -> str:
    those, rest = ([names[j] for j in others if row[j] == wanted] for wanted in (True, False))
    if not those:
        return f"{name} is informed by no column."
    if len(rest) < len(those):
        return f"{name} is informed by all other columns but {listed(rest, _MOST_NAMED)}."
    return f"{name} is informed by {listed(those, _MOST_NAMED)} only."


def _about_rows(imputer: BaseImputer) -> Iterator[Rule]:
    groups, time = imputer.groups, imputer.time
    within = [str(each) for each in (groups if isinstance(groups, (list, tuple)) else [] if groups is None else [groups])]
    said = []
    if within:
        said.append(f"Rows with the same {' and '.join(within)} belong together, and say something about each other.")
    if time is not None:
        said.append(
            f"{time} is their time." if within else f"{time} is the time of rows; neighbours say something of each other."
        )
    if said:
        yield Rule(RuleKind.GROUPS, [*within, *([] if time is None else [str(time)])], " ".join(said))


def _derived(derive: Any, table: Table) -> Iterator[Rule]:
    for each in [] if derive is None else derive if isinstance(derive, (list, tuple)) else [derive]:
        if isinstance(each, Mapping):
            for name, formula in each.items():
                said = formula if isinstance(formula, str) else "an expression in Python"
                yield Rule(RuleKind.DERIVED, [str(name)], f"{name} = {said} in every imputed row.")
        else:
            yield Rule(RuleKind.DERIVED, [], f"{each} in every imputed row.")
    if table.solved is not None and (n := int(table.solved.sum())):
        follow = f"{count(n, 'missing value')} follow{'s' * (n == 1)} from these rules"
        words = f"{follow}: computed from known ones, and counted as known here."
        yield Rule(RuleKind.DERIVED, [], words)


def _applicable(imputer: BaseImputer, names: list[str], table: Table) -> Iterator[Rule]:
    if imputer.applicable is None:
        return
    marker = float("nan") if imputer.missing_values is None else imputer.missing_values
    rules = Applicability.of(imputer.applicable, table.source, marker)
    ruled_out = rules.ruled_out(table.source)
    for place, rule in rules.rules.items():
        n = int((ruled_out[:, place] & _empty(table, place, marker)).sum())
        where = " in some rows only" if isinstance(rule, np.ndarray) else f" only where {rule}"
        words = f"{names[place]} exists{where}: {count(n, 'cell')} stay{'s' * (n == 1)} empty, as nothing is missing there."
        yield Rule(RuleKind.APPLICABLE, [names[place]], words)


def _empty(table: Table, place: int, marker: Any) -> NDArray[np.bool_]:
    if not isinstance(table.source, nw.DataFrame):
        return np.asarray(np.isnan(table.source[:, place]) | (table.source[:, place] == marker))
    return np.asarray(nulls_of(table.source[table.source.columns[place]]))


def _methods(imputer: BaseImputer) -> Iterator[Rule]:
    for name, method in (getattr(imputer, "methods", None) or {}).items():
        yield Rule(
            RuleKind.METHODS,
            [str(name)],
            f"{name} is imputed by {method if isinstance(method, str) else type(method).__name__}.",
        )


def _matrix(imputer: BaseImputer, names: list[str], table: Table) -> PredictorMatrix | None:
    roles = imputer.training_table_.roles
    if roles.predictors is None:
        return None
    across = np.flatnonzero(_usable(table))
    down = [k for k in across if table.holes[:, k].any() and roles.imputed[k]]
    if not down:
        return None
    shown = across[:_MOST_SHOWN]
    informs = [[None if j == k else bool(roles.predictors[k, j]) for j in shown] for k in down[:_MOST_SHOWN]]
    n_left_out = len(set(across) | set(down)) - len(set(shown) | set(down[:_MOST_SHOWN]))
    return PredictorMatrix([names[k] for k in down[:_MOST_SHOWN]], [names[k] for k in shown], informs, n_left_out)
