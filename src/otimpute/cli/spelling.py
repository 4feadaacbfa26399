"""What the library says, in the words of the command line: options in the place of parameters."""

from __future__ import annotations

import json
import re
from typing import Any

from ..exceptions import Message, ParameterError, Term

_OPTIONS = {
    "max_seconds": "--max-seconds", "n_jobs": "--jobs", "max_categories": "--max-categories", "random_state": "--seed",
    "max_rows": "--max-rows", "rate": "--rate", "bounds": "--bounds", "integer": "--integer",
    "non_negative": "--non-negative", '{"categories": [...]}': "--categories", "format": "--format", "encoding": "--encoding",
    "decimal": "--decimal", "imputer.save()": "otimpute fit",
}  # fmt: skip
# Options cannot be None: they are left out.
_ADVICE = {
    "max_seconds": "leave it out for no limit",
    "n_jobs": "leave it out for one thread, or pass -1 for all cores",
    "max_categories": "",
}

# Messages of the readers and imputers that are not yet made of terms.
_NOT_YET_TERMS: tuple[tuple[str, str], ...] = (
    (r"\bforce to replace\b", "--force to replace"),
    (r"\bheader=False\b", "--no-header"),
    (r"\bday_first=True or False\b", "--day-first or --month-first"),
    (r"\bquote=''", "--quote ''"),
    (r"\b(format|encoding)='([\w-]+)'", r"--\1 \2"),
    (r"\b(format|encoding)=", r"--\1"),
    (r"\bna_values\b", "--na"),
    (r"\bkeep_values\b", "--keep"),
    (r"pass max_categories=None to use all texts, convert", "convert"),
    (r"\b(pass|leave) scale=True", "pass --set scale=true"),
    (r" ?\(see history_\)", ""),
    (r"^\[IterativeImputer\] ", "ice: "),
)


def in_options(said: Any) -> str:
    """An error, a warning or a text of the library as one line, in the words of the command line.

    >>> in_options(Message("stopped by ", Term("max_seconds"), " after 3 steps"))
    'stopped by --max-seconds after 3 steps'
    """
    if isinstance(said, ParameterError):
        return _one_line(said.said_of(_spell(Term(said.parameter)), _ADVICE.get(said.parameter, said.advice)))
    if isinstance(said, BaseException) and said.args and isinstance(said.args[0], Message):
        said = said.args[0]
    if isinstance(said, Message):
        return _one_line(said.spelled(_spell))
    line = _one_line(str(said))
    for parameter, option in _NOT_YET_TERMS:
        line = re.sub(parameter, option, line)
    return line


def _spell(term: Term) -> str:
    """As an option; what has none of its own is a setting of the method.

    >>> _spell(Term("max_seconds", 5)), _spell(Term("scale", True)), _spell(Term("n_splits"))
    ('--max-seconds 5', '--set scale=true', 'n_splits')
    """
    if term.value is ...:
        return _OPTIONS.get(term.name, term.name)
    value = term.value if isinstance(term.value, str) else json.dumps(term.value)
    return f"{_OPTIONS[term.name]} {value}" if term.name in _OPTIONS else f"--set {term.name}={value}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
