"""A TOML or YAML file as plain values, and the line of every key in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._optional import require

Keys = tuple[str, ...]  # of tables in tables: ("constraints", "age", "bounds")

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_ASSIGNED = re.compile(rf"\s*({_DOTTED})\s*=")
_QUOTES = re.compile(r'"""|' + "'''")
_TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


class PlanError(ValueError):
    """Something is wrong in a file that says what is known of a table; the message names the file, the line and the key."""


@dataclass(frozen=True)
class Document:
    """What a file says."""

    path: str
    content: Mapping[str, Any]
    lines: Mapping[Keys, int] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file; its extension tells the format."""
        readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml}
        if path.suffix.lower() not in readers:
            raise PlanError(f"{path}: a plan is a .toml or .yaml file; give it one of these extensions")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise PlanError(f"{path}: this is not UTF-8 text; save it as UTF-8") from None
        return cls(str(path), *readers[path.suffix.lower()](str(path), text))

    def line(self, keys: Keys) -> int | None:
        """Return the line of a key, or of the nearest key around it that has a line of its own."""
        return next((self.lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), None)

    def where(self, keys: Keys) -> str:
        """Return file and line, for the beginning of a message."""
        line = self.line(keys)
        return self.path if line is None else f"{self.path}, line {line}"

    def error(self, keys: Keys, said: str) -> PlanError:
        """Return an error about a key."""
        return PlanError(f"{self.where(keys)}: {dotted(keys)} {said}".replace("  ", " "))


def dotted(keys: Keys) -> str:
    """Write keys of tables in tables as TOML does.

    >>> dotted(("constraints", "year of birth", "bounds"))
    'constraints."year of birth".bounds'
    """
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"' for key in keys)


def _read_toml(path: str, text: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    try:
        return tomllib.loads(text), dict(reversed(list(_toml_lines(text))))  # a key counts where it comes first
    except tomllib.TOMLDecodeError as error:
        place = _TOML_PLACE.search(str(error))
        said = _TOML_PLACE.sub("", str(error))
        line, column = place.groups() if place else (None, None)
        where = f"line {line}, column {column}" if line else f"end of line {len(text.splitlines())}"
        raise PlanError(f"{path}, {where}: {said[0].lower()}{said[1:]}") from None


def _toml_lines(text: str) -> Iterator[tuple[Keys, int]]:
    r"""Yield keys and their lines; keys in tables of one line, ``{...}``, have the line of the key before it.

    >>> list(_toml_lines('time = "year"\n[constraints]\nage.integer = true'))
    [(('time',), 1), (('constraints',), 2), (('constraints', 'age'), 3), (('constraints', 'age', 'integer'), 3)]
    """
    around: Keys = ()
    closing: str | None = None  # the quotes that end a text over several lines
    for number, line in enumerate(text.split("\n"), start=1):
        if closing is None:
            if header := _HEADER.match(line):
                around = _split(header[1])
                yield from ((around[:n], number) for n in range(1, len(around) + 1))
            elif key := _ASSIGNED.match(line):
                own = _split(key[1])
                yield from (((*around, *own[:n]), number) for n in range(1, len(own) + 1))
        for quotes in _QUOTES.findall(line):
            closing = quotes if closing is None else None if closing == quotes else closing


def _split(written: str) -> Keys:
    """Split a dotted key of TOML."""
    keys, table = [], tomllib.loads(f"{written} = 0")
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return tuple(keys)


def _read_yaml(path: str, text: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    yaml = require("yaml", "reading a plan in YAML (a plan in TOML needs nothing)", "yaml")
    try:
        lines = dict(_yaml_lines(path, yaml.compose(text, Loader=yaml.SafeLoader), ()))
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or str(error)
        raise PlanError(f"{path}{f', line {mark.line + 1}, column {mark.column + 1}' if mark else ''}: {said}") from None
    if content is not None and not isinstance(content, dict):
        raise PlanError(f"{path}: a plan has keys and values, such as time: year")
    return content or {}, lines


def _yaml_lines(path: str, node: Any, around: Keys) -> Iterator[tuple[Keys, int]]:
    if type(node).__name__ != "MappingNode":
        return
    seen = set()
    for key, value in node.value:
        keys, line = (*around, str(key.value)), key.start_mark.line + 1
        if key.value in seen:
            raise PlanError(f"{path}, line {line}: {dotted(keys)} is there twice; leave one out")
        if key.tag != "tag:yaml.org,2002:str":
            raise PlanError(f"{path}, line {line}: {dotted(keys)} is not text in YAML; put it in quotes: '{key.value}'")
        seen.add(key.value)
        yield keys, line
        yield from _yaml_lines(path, value, keys)
