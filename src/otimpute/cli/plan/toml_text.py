"""Values as TOML writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from .document import dotted


def toml_value(value: Any) -> str:
    r"""Write a value in one line.

    >>> toml_value({"bounds": (0, 120.0), "integer": True, "categories": ["a", 'b"']})
    '{bounds = [0, 120.0], integer = true, categories = ["a", "b\\""]}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {"inf": "inf", "-inf": "-inf"}.get(str(value), "nan")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(toml_line(str(key), each) for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_line(key: str, value: Any) -> str:
    """Write a key and its value.

    >>> toml_line("year of birth", [1900, 2026])
    '"year of birth" = [1900, 2026]'
    """
    return f"{toml_key(key)} = {toml_value(value)}"


def toml_key(key: str) -> str:
    """Write a key, in quotes if it needs them."""
    written = dotted((key,))
    return toml_value(key) if written.startswith('"') else written
