"""The README's example runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_example_runs_and_prints_a_score_and_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), scope)
    score, row = capsys.readouterr().out.split("\n", 1)
    assert 0 < float(score) < 1
    assert row.count("[") == 2


def test_every_link_to_a_file_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert len(links) > 8
    assert [link for link in links if not (README.parent / link).exists()] == []
