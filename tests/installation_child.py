"""The process of `installation.run_blocks`: runs code while some modules are absent; task in, outcome out, as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder
from io import StringIO
from typing import Any

from otimpute.exceptions import OtimputeWarning  # loads nothing else


class PartOfWhatIsInstalled(PathFinder):
    """Finds modules on the path except for absent ones, which are to ``import`` and ``find_spec`` as if never installed."""

    absent: frozenset[str] = frozenset()

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return None if fullname.partition(".")[0] in cls.absent else super().find_spec(fullname, path, target)


def main() -> None:
    task = json.load(sys.stdin)
    sys.meta_path[sys.meta_path.index(PathFinder)] = PartOfWhatIsInstalled
    warnings.simplefilter("error", OtimputeWarning)  # as in all tests
    printed = []
    scope: dict[str, Any] = {"__name__": "__main__"}
    for block in task["blocks"]:
        PartOfWhatIsInstalled.absent = frozenset(block["absent"])
        with redirect_stdout(StringIO()) as output:
            exec(compile(block["code"], block["source"], "exec"), scope)
        printed.append(output.getvalue())
    values = {name: eval(expression, scope) for name, expression in task["values"].items()}
    json.dump({"printed": printed, "values": values}, sys.stdout, default=lambda value: value.tolist())


if __name__ == "__main__":
    main()
