"""Run Python code with what ``pip install`` of some requirements brings, and nothing else that happens to be installed here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# What packages have inside of themselves, under the names of others that may be installed here too.
_BUNDLED = {"ray": {"psutil", "colorama"}}
_CHILD = Path(__file__).with_name("installation_child.py")


@dataclass(frozen=True)
class Block:
    """Python code, and what was installed for it: ``otimpute[cli]``, ``pandas``."""

    code: str
    requirements: Sequence[str] = ("otimpute",)
    source: str = "<block>"  # where tracebacks say that the code is


@dataclass(frozen=True)
class Outcome:
    """What each block printed, and the values of expressions in the end."""

    printed: list[str]
    values: dict[str, Any]


def run_blocks(blocks: Iterable[Block], folder: Path, values: Mapping[str, str] | None = None) -> Outcome:
    """Run blocks in a process of their own, each going on from those before; then evaluate the expressions ``values``."""
    task = {
        "blocks": [{"code": each.code, "source": each.source, "absent": absent(each.requirements)} for each in blocks],
        "values": dict(values or {}),
    }
    command = [sys.executable, "-P", str(_CHILD)]
    ended = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, check=False, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return Outcome(**json.loads(ended.stdout))


def absent(requirements: Iterable[str]) -> list[str]:
    """Modules that are installed here, but would not be by ``pip install`` of these requirements."""
    present = distributions(requirements)
    return sorted(module for module, origins in _modules().items() if present.isdisjoint(map(canonicalize_name, origins)))


@cache
def _modules() -> Mapping[str, list[str]]:
    """Installed modules, and the distributions they come from."""
    return metadata.packages_distributions()


def distributions(requirements: Iterable[str]) -> set[str]:
    """All distributions that these requirements bring, directly or not; skips the test if one is not installed here."""
    found: set[tuple[str, str]] = set()
    to_read = [Requirement(each) for each in requirements]
    while to_read:
        required = to_read.pop()
        name = canonicalize_name(required.name)
        for extra in {"", *required.extras} - {extra for known, extra in found if known == name}:
            found.add((name, extra))
            try:
                lines = metadata.requires(name) or []
            except metadata.PackageNotFoundError:
                pytest.skip(f"needs {name}, which is not installed")
            further = [Requirement(line) for line in lines]
            to_read += [each for each in further if each.marker is None or each.marker.evaluate({"extra": extra})]
    names = {name for name, _ in found}
    return names.union(*(inside for name, inside in _BUNDLED.items() if name in names))
