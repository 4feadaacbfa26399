"""Messages of the library in terms of the command line: options instead of parameters."""

from __future__ import annotations

import json
import shlex
from typing import Any

from ..exceptions import Message, ParameterError, Term

_OPTIONS = {
    "max_seconds": "--max-seconds", "n_jobs": "--jobs", "max_categories": "--max-categories", "random_state": "--seed",
    "max_rows": "--max-rows", "rate": "--rate", "bounds": "--bounds", "integer": "--integer",
    "non_negative": "--non-negative", '{"categories": [...]}': "--categories", "format": "--format", "encoding": "--encoding",
    "decimal": "--decimal", "imputer.save()": "otimpute fit", "force": "--force", "quote": "--quote", "sheet": "--sheet",
    "na_values": "--na", "keep_values": "--keep", "delimiter": "--delimiter", "header": "--no-header",
    "day_first": "--day-first or --month-first", "delta": "--delta", "m": "--multiple",
    "columns": "--only", "exclude": "--exclude", "identifiers": "--identifiers", "predictors": "--predictors",
    "groups": "--groups", "time": "--time", "derive": "--derive", "applicable": "--applicable", "methods": "--methods",
    "sample_weight": "--weights",
}  # fmt: skip
# Replacements of scikit-learn's warnings, by type.
_OF_OTHERS = {"ConvergenceWarning": "ice: the imputed values had not converged after max_iter rounds"}
# Options cannot be None: advice must say to leave them out.
_ADVICE = {
    "max_seconds": "leave it out for no limit",
    "n_jobs": "leave it out for one thread, or pass -1 for all cores",
    "max_categories": "",
}


def in_options(said: Any) -> str:
    """Format an error, a warning or a text of the library as one line, in terms of the command line.

    >>> in_options(Message("stopped by ", Term("max_seconds"), " after 3 steps"))
    'stopped by --max-seconds after 3 steps'
    """
    if isinstance(said, ParameterError):
        return _one_line(said.said_of(_spell(Term(said.parameter)), _ADVICE.get(said.parameter, said.advice)))
    if type(said).__name__ in _OF_OTHERS:
        return _OF_OTHERS[type(said).__name__]
    if type(said).__name__ == "ExpressionError":  # which shows the place by a line below; here is one line
        place = "" if said.position is None else f", character {said.position + 1}"
        return _one_line(f"in {said.text!r}{place}: {said.problem}")
    if isinstance(said, BaseException) and said.args and isinstance(said.args[0], Message):
        said = said.args[0]
    return _one_line(said.spelled(_spell) if isinstance(said, Message) else str(said))


def _spell(term: Term) -> str:
    """Spell a term as an option; parameters without an option as ``--set``.

    >>> _spell(Term("max_seconds", 5)), _spell(Term("scale", True)), _spell(Term("n_splits"))
    ('--max-seconds 5', '--set scale=true', 'n_splits')
    """
    if term.value is ...:
        return _OPTIONS.get(term.name, term.name)
    if term == Term("header", False):
        return _OPTIONS["header"]
    value = shlex.quote(term.value) if isinstance(term.value, str) else json.dumps(term.value)
    return f"{_OPTIONS[term.name]} {value}" if term.name in _OPTIONS else f"--set {term.name}={value}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
