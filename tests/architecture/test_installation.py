"""Code of tests can be run with what an extra brings, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from installation import Block, distributions, run_blocks

LOOK = """
from importlib.util import find_spec
try:
    import pandas
    print("imported")
except ModuleNotFoundError as error:
    print(error)
print(find_spec("pandas") is None)
"""


def test_what_was_not_installed_cannot_be_found_until_it_is(tmp_path: Path) -> None:
    before, after = run_blocks([Block(LOOK, ["otimpute[cli]"]), Block(LOOK, ["otimpute[cli]", "pandas"])], tmp_path).printed
    assert before.splitlines() == ["No module named 'pandas'", "True"]
    assert after.splitlines() == ["imported", "False"]


def test_extras_bring_what_they_require_and_what_that_requires() -> None:
    plain, cli = distributions(["otimpute"]), distributions(["otimpute[cli]"])
    assert {"numba", "llvmlite", "numpy"} <= plain
    assert {"jinja2", "markupsafe", "pyarrow", "rich", "typer"} <= cli - plain
    assert "pandas" not in cli and "pandas" in distributions(["otimpute[all]"])


def test_what_needs_a_package_that_is_not_installed_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception, match="needs no-such-package, which is not installed"):
        distributions(["otimpute", "no_such_package"])


def test_code_that_fails_says_where_and_why(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"""(?s)"page\.md", line 2.*ZeroDivisionError"""):
        run_blocks([Block("\n1 / 0", source="page.md")], tmp_path)
