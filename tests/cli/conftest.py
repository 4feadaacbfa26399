"""Run commands in this process, or in one of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner

from otimpute.cli.app import app


class Invoke(Protocol):
    def __call__(self, *arguments: Any, code: int = 0, stdin: bytes = b"") -> Any: ...


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command in a folder of its own; its result has ``stdout``, ``stderr`` and ``stdout_bytes``."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: Any, code: int = 0, stdin: bytes = b"") -> Any:
        result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def two_experts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the default method ask its quickest experts only; what the others say is tested where they are."""
    monkeypatch.setattr("otimpute.auto._experts.DEFAULT", ("mean", "gaussian_em"))


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Run a command in a process of its own."""

    def run(*arguments: Any, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "otimpute.cli", *map(str, arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120, cwd=tmp_path)

    return run
