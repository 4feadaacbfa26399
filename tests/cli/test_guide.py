"""The examples of the guide run as printed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "command-line.md"


@pytest.mark.usefixtures("two_experts")
def test_the_examples_run(invoke: Any) -> None:
    lines = "".join(re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)).splitlines()
    assert len(lines) > 15
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "otimpute"
        streams = {mark: Path(words[words.index(mark) + 1]) for mark in "<>" if mark in words}
        arguments = words[: min((words.index(mark) for mark in streams), default=len(words))]
        result = invoke(*arguments, stdin=streams["<"].read_bytes() if "<" in streams else b"")
        if ">" in streams:
            streams[">"].write_bytes(result.stdout_bytes)
    assert Path("piped.csv").read_bytes() == Path("filled.csv").read_bytes()
    truth = json.loads(Path("score.json").read_text())
    assert truth["accuracy"] > 0.6 and truth["mae"] < 0.6
    assert json.loads(Path("summary.json").read_text())["not_used"] == ["flat"]
    assert json.loads(Path("applied.json").read_text())["no_check"]


@pytest.mark.usefixtures("two_experts")
def test_the_commands_of_the_readme_run(invoke: Any) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", (GUIDE.parents[2] / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    Path("table.csv").write_text("\n".join(["a,b", *(f"{k},{2 * k if k % 5 else ''}" for k in range(40))]))
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "otimpute"
        invoke(*arguments)
    assert Path("complete.csv").read_text().splitlines()[2] == "1,2"
    assert "Imputation of table.csv" in Path("report.html").read_text(encoding="utf-8")


def test_every_option_and_command_that_the_guide_names_exists(invoke: Any) -> None:
    commands = ["impute", "inspect", "fit", "apply", "report", "mask", "score", "demo"]
    helps = " ".join(invoke(command, "--help").stdout for command in commands) + invoke("--help").stdout
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE.read_text(encoding="utf-8"))):
        assert option in helps, option
