"""Which key of a plan an error of the library is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...exceptions import ParameterError
from .document import Keys

_PARAMETERS = {
    "only": "columns",
    "weights": "(weights|sample_weight)",
    "na": "na_values",
    "keep": "keep_values",
}  # keys with another name in Python
_FORMULAS = ("derive", "applicable")


def blamed(error: Exception, content: Mapping[str, Any], flags: Mapping[str, Any]) -> Keys | None:
    """Return the key of a file that an error names, the more exact the better; None if it names none, or one of flags.

    >>> content = {"constraints": {"age": {"bounds": [0, 120]}}, "time": "year"}
    >>> blamed(ValueError("bounds of column 'age' must be numbers"), content, {})
    ('constraints', 'age', 'bounds')
    >>> blamed(ValueError("time must be a column of numbers"), content, {"time": "day"})
    """
    said = str(error)
    about = error.parameter if isinstance(error, ParameterError) else said
    if about in content.get("settings", {}):
        return None if about in flags.get("settings", {}) else ("settings", about)
    words = set(re.findall(r"\w+", said))
    found = [keys for keys, value in _paths(content) if keys[0] != "settings" and _is_named(keys, value, said, about, words)]
    exact = max(found, key=len, default=None)
    if exact is None or _is_there(exact, flags):
        return None
    return exact


def _is_named(keys: Keys, value: Any, said: str, about: str, words: Collection[str]) -> bool:
    parameter = _PARAMETERS.get(keys[0], keys[0])
    if len(keys) == 1:
        return re.match(rf"{parameter}\b", about) is not None
    if keys[0] in _FORMULAS and value in said:
        return True
    if repr(keys[1]) not in said:
        return False
    if keys[0] == "constraints":
        return "constraint" in said or "constraints" in words if len(keys) == 2 else keys[2] in words
    return parameter in words


def _paths(content: Mapping[str, Any], around: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    for key, value in content.items():
        yield (*around, key), value
        if isinstance(value, Mapping) and around != ("predictors",):
            yield from _paths(value, (*around, key))


def _is_there(keys: Keys, values: Any) -> bool:
    for key in keys:
        if not isinstance(values, Mapping):
            return True  # flags said something of all columns
        if key not in values:
            return False
        values = values[key]
    return True
