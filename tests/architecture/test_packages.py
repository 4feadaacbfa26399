"""A package keeps its underscore names to itself.

What a subclass inherits is its own (``self._name``), and the modules directly under ``otimpute`` belong to all packages.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import otimpute

ROOT = Path(otimpute.__file__).parent
FILES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def package_of(path: Path) -> str:
    """The package directly under otimpute; modules there have none."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def test_no_package_imports_private_modules_or_names_of_another():
    found = []
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = path.parents[node.level - 1]
            parts = [*base.relative_to(ROOT).parts, *(node.module or "").split(".")]
            package = parts[0] if len(parts) > 1 or (ROOT / parts[0]).is_dir() else ""
            private = [name for name in [*parts[1:], *(alias.name for alias in node.names)] if is_private(name)]
            if package and package != package_of(path) and private:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} imports {', '.join(private)} of {package}")
    assert not found, "\n".join(found)


def test_no_package_uses_private_attributes_of_objects_of_another():
    homes = defaultdict(set)
    for path, tree in FILES.items():
        for name in filter(is_private, names_defined(tree)):
            homes[name].add(package_of(path))
    found = []
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not is_private(node.attr) or package_of(path) in homes[node.attr]:
                continue
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            of_base = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super"
            if homes[node.attr] and not of_itself and not of_base:
                found.append(
                    f"{path.relative_to(ROOT)}:{node.lineno} uses {node.attr} of {', '.join(sorted(homes[node.attr]))}"
                )
    assert not found, "\n".join(found)
